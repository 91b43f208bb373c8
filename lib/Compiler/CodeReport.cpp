//===- CodeReport.cpp - What NVIDIA's code is made of ---------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Compiler/CodeReport.h"
#include "kvbuffer/Compiler/ExternalTools.h"
#include "kvbuffer/Target/TargetInfo.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace kvbuf;
namespace json = llvm::json;

namespace {

/// A class, as people and as programs read it.
struct Column {
  int64_t CodeCounts::*counter;
  llvm::StringLiteral name, key;
};

constexpr Column kColumns[] = {
    {&CodeCounts::matrix, "matrix", "matrix"},
    {&CodeCounts::matrixLoads, "fragment loads and stores", "matrix_loads"},
    {&CodeCounts::floats, "float", "floats"},
    {&CodeCounts::transcendental, "transcendental", "transcendental"},
    {&CodeCounts::converts, "conversions", "converts"},
    {&CodeCounts::integers, "integer", "integers"},
    {&CodeCounts::uniform, "uniform", "uniform"},
    {&CodeCounts::moves, "moves", "moves"},
    {&CodeCounts::exchanges, "exchanges", "exchanges"},
    {&CodeCounts::sharedLoads, "shared loads", "shared_loads"},
    {&CodeCounts::sharedStores, "shared stores", "shared_stores"},
    {&CodeCounts::copies, "asynchronous copies", "copies"},
    {&CodeCounts::globalLoads, "global loads", "global_loads"},
    {&CodeCounts::globalStores, "global stores", "global_stores"},
    {&CodeCounts::local, "private memory", "local"},
    {&CodeCounts::waits, "waits", "waits"},
    {&CodeCounts::barriers, "barriers", "barriers"},
    {&CodeCounts::branches, "branches", "branches"},
    {&CodeCounts::nops, "nops", "nops"},
    {&CodeCounts::other, "other", "other"}};

} // namespace

int64_t CodeCounts::total() const {
  int64_t sum = 0;
  for (const Column &column : kColumns)
    sum += this->*column.counter;
  return sum;
}

const CodeLoop *CodeKernel::hotLoop() const {
  auto best =
      llvm::min_element(loops, [](const CodeLoop &a, const CodeLoop &b) {
        return std::pair(-a.counts.matrix, a.counts.total()) <
               std::pair(-b.counts.matrix, b.counts.total());
      });
  return best == loops.end() ? nullptr : &*best;
}

CodeReport kvbuf::analyzeNvidiaCode(const Artifact &artifact,
                                    llvm::StringRef chip) {
  CodeReport report;
  report.chip = chip.str();
  report.from = "SASS";
  const std::string *cubin = artifact.find("cubin");
  if (cubin) {
    std::string text;
    report.note = disassembleCubin(*cubin, text);
    if (report.note.empty())
      report.kernels = parseSass(text);
    if (!report.kernels.empty())
      return report;
    if (report.note.empty())
      report.note = "the disassembler shows no kernel";
  } else {
    report.note = "there is no cubin, which takes ptxas";
  }
  report.from = "PTX";
  if (const std::string *ptx = artifact.find("ptx"))
    report.kernels = parsePtx(*ptx);
  return report;
}

int64_t kvbuf::residentBlocks(const KernelResources &use,
                              llvm::StringRef chip) {
  std::optional<TargetInfo> target = lookupTarget(chip);
  if (!target || use.threads < 1 || use.registers < 1)
    return -1;
  int64_t warps = llvm::divideCeil(use.threads, int64_t(target->waveSize));
  // Registers are given to warps in portions of 256 (CUDA occupancy
  // calculator); a block's shared memory has 1 KiB more, the system's.
  constexpr int64_t kPortion = 256, kReserved = 1024;
  int64_t registers =
      warps * llvm::alignTo(use.registers * target->waveSize, kPortion);
  int64_t shared = std::max<int64_t>(use.staticSharedBytes, 0) +
                   std::max<int64_t>(use.dynamicSharedBytes, 0) + kReserved;
  return std::min(
      {int64_t(target->registersPerBlock) / registers,
       (target->ldsBytes + kReserved) / shared,
       int64_t(target->residentThreads) / (warps * int64_t(target->waveSize))});
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string describe(const CodeCounts &counts) {
  llvm::SmallVector<std::string> parts;
  for (const Column &column : kColumns)
    if (int64_t n = counts.*column.counter)
      parts.push_back((llvm::Twine(n) + " " + column.name).str());
  return parts.empty() ? "none" : llvm::join(parts, ", ");
}

/// "wgmma.wait_group, mbarrier.try_wait twice".
static std::string describe(llvm::ArrayRef<std::string> waits) {
  llvm::SmallVector<std::pair<llvm::StringRef, unsigned>> runs;
  for (const std::string &wait : waits) {
    if (!runs.empty() && runs.back().first == wait)
      ++runs.back().second;
    else
      runs.push_back({wait, 1});
  }
  llvm::SmallVector<std::string> parts;
  for (auto [name, count] : runs)
    parts.push_back(count == 1 ? name.str()
                               : (name + " x " + llvm::Twine(count)).str());
  return parts.empty() ? "none" : llvm::join(parts, "; ");
}

static void printLoop(const CodeLoop &loop, bool hot, llvm::raw_ostream &os) {
  os << llvm::formatv("  {0} 0x{1:x-} to 0x{2:x-}\n", hot ? "hot loop" : "loop",
                      loop.begin, loop.end);
  auto line = [&](llvm::StringRef key, const llvm::Twine &value) {
    os << "    " << llvm::left_justify(key, 15) << value << "\n";
  };
  line("instructions", describe(loop.counts));
  line("per product",
       llvm::formatv("{0:f2} other instructions",
                     double(loop.counts.total() - loop.counts.matrix) /
                         loop.counts.matrix)
           .str());
  line("waits", describe(loop.waits));
  if (loop.stages.size() > 1)
    for (const CodeCounts &stage : loop.stages)
      line("stage", describe(stage));
}

void kvbuf::printCodeReport(const CodeReport &report,
                            llvm::ArrayRef<KernelResources> resources,
                            llvm::raw_ostream &os) {
  for (const CodeKernel &kernel : report.kernels) {
    auto use = llvm::find_if(resources, [&](const KernelResources &r) {
      return r.entry == kernel.name;
    });
    auto told = [&](int64_t KernelResources::*member) {
      return use != resources.end() && use->*member >= 0
                 ? std::to_string(use->*member)
                 : std::string("?");
    };
    int64_t blocks =
        use == resources.end() ? -1 : residentBlocks(*use, report.chip);
    os << llvm::formatv(
        "{0}  {1}, {2} threads, {3}{4}\n"
        "  registers      {5}; spilled: {6} B\n"
        "  blocks         {7} per multiprocessor; shared memory {8} B of the "
        "code, {9} B at launch{10}\n"
        "  instructions   {11}\n",
        kernel.name, report.chip, told(&KernelResources::threads), report.from,
        report.note.empty() ? "" : " (" + report.note + ")",
        told(&KernelResources::registers), told(&KernelResources::spillBytes),
        blocks < 0 ? "?" : std::to_string(blocks),
        told(&KernelResources::staticSharedBytes),
        told(&KernelResources::dynamicSharedBytes),
        kernel.codeBytes ? "; code " + std::to_string(kernel.codeBytes) + " B"
                         : std::string(),
        describe(kernel.counts));
    const CodeLoop *hot = kernel.hotLoop();
    for (const CodeLoop &loop : kernel.loops)
      printLoop(loop, &loop == hot, os);
  }
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

static json::Object toJSON(const CodeCounts &counts) {
  json::Object object;
  for (const Column &column : kColumns)
    object[column.key] = counts.*column.counter;
  object["total"] = counts.total();
  return object;
}

json::Value kvbuf::codeReportToJSON(const CodeReport &report,
                                    llvm::ArrayRef<KernelResources> resources) {
  json::Array kernels;
  for (const KernelResources &use : resources) {
    json::Object kernel = resourcesToJSON(use);
    if (int64_t blocks = residentBlocks(use, report.chip); blocks >= 0)
      kernel["blocks_per_multiprocessor"] = blocks;
    auto code = llvm::find_if(report.kernels, [&](const CodeKernel &k) {
      return k.name == use.entry;
    });
    if (code != report.kernels.end()) {
      json::Array loops;
      for (const CodeLoop &loop : code->loops) {
        json::Array stages;
        for (const CodeCounts &stage : loop.stages)
          stages.push_back(toJSON(stage));
        loops.push_back(
            json::Object{{"hot", &loop == code->hotLoop()},
                         {"begin", static_cast<int64_t>(loop.begin)},
                         {"end", static_cast<int64_t>(loop.end)},
                         {"instructions", toJSON(loop.counts)},
                         {"waits", json::Array(loop.waits)},
                         {"stages", std::move(stages)}});
      }
      kernel["code"] =
          json::Object{{"from", report.from},
                       {"instructions", toJSON(code->counts)},
                       {"code_bytes", static_cast<int64_t>(code->codeBytes)},
                       {"loops", std::move(loops)}};
    }
    kernels.push_back(std::move(kernel));
  }
  json::Object all{{"chip", report.chip}, {"kernels", std::move(kernels)}};
  if (!report.note.empty())
    all["note"] = report.note;
  return all;
}
