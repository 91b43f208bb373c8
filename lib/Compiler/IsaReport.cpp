//===- IsaReport.cpp - What the code of an AMD kernel is made of ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Compiler/IsaReport.h"
#include "CodeObject.h"
#include "Isa.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace kvbuf;
namespace json = llvm::json;

double IsaLoop::valuPerMfma() const {
  return counts.mfma ? static_cast<double>(counts.valu) / counts.mfma : 0;
}

/// MFMA cycles over all stages' cycles of the kind that `member` names.
static double share(llvm::ArrayRef<IsaStage> stages,
                    int64_t IsaStage::*member) {
  int64_t mfma = 0, all = 0;
  for (const IsaStage &stage : stages) {
    mfma += stage.mfmaCycles;
    all += stage.*member;
  }
  return all ? static_cast<double>(mfma) / all : 0;
}

double IsaLoop::mfmaShare() const {
  return share(stages, &IsaStage::issueCycles);
}

double IsaLoop::mfmaShareExposed() const {
  return share(stages, &IsaStage::issueCyclesExposed);
}

double IsaLoop::mfmaShareOutOfLine() const {
  int64_t mfma = 0, all = outOfLineCycles;
  for (const IsaStage &stage : stages) {
    mfma += stage.mfmaCycles;
    all += stage.issueCycles;
  }
  return all ? static_cast<double>(mfma) / all : 0;
}

double IsaLoop::issueShare(const MemoryModel &memory) const {
  int64_t cycles = 0;
  for (const IsaStage &stage : stages)
    cycles += stage.issueCycles;
  // Each SIMD has its waves; all share what the unit gets.
  constexpr int kSimds = WaveLimits().simdsPerUnit;
  double loading = static_cast<double>(flight.loaded) / memory.bytesPerCycle();
  return loading > 0 ? cycles / (kSimds * loading) : 0;
}

llvm::StringRef IsaUnitCycles::binds() const {
  return matrix >= most() ? "matrix" : vector >= most() ? "vector" : "LDS";
}

IsaUnitCycles IsaLoop::unitCycles(int64_t waves) const {
  constexpr double kSimds = WaveLimits().simdsPerUnit;
  IsaUnitCycles cycles;
  for (const IsaStage &stage : stages) {
    cycles.matrix += waves / kSimds * stage.mfmaCycles;
    cycles.vector += waves / kSimds * stage.vectorCycles;
    cycles.lds += waves * stage.ldsCycles;
  }
  return cycles;
}

bool IsaLoop::drains() const {
  return llvm::any_of(waits,
                      [](const IsaWait &wait) { return wait.vmcnt == 0; });
}

const IsaLoop *IsaKernel::hotLoop() const {
  auto better = [](const IsaLoop &a, const IsaLoop &b) {
    return std::pair(-a.counts.mfma, a.counts.total()) <
           std::pair(-b.counts.mfma, b.counts.total());
  };
  auto best = std::min_element(loops.begin(), loops.end(), better);
  return best == loops.end() ? nullptr : &*best;
}

llvm::Expected<IsaReport> kvbuf::analyzeCodeObject(llvm::StringRef hsaco,
                                                   int64_t dynamicLdsBytes) {
  llvm::Expected<CodeObject> object = readCodeObject(hsaco);
  if (!object)
    return object.takeError();
  auto decoder = IsaDecoder::create(object->chip);
  if (!decoder)
    return decoder.takeError();
  std::optional<IssueModel> model = lookupIssueModel(object->chip);
  std::optional<WaveLimits> limits = lookupWaveLimits(object->chip);

  IsaReport report;
  report.chip = object->chip;
  for (CodeObjectKernel &source : object->kernels) {
    auto code = (*decoder)->decode(source.code, source.address);
    if (!code)
      return llvm::createStringError("kernel '" + source.metadata.name +
                                     "': " + llvm::toString(code.takeError()));
    IsaKernel kernel = std::move(source.metadata);
    for (const IsaInstruction &instruction : *code)
      countInstruction(kernel.counts, instruction);
    kernel.loops = findLoops(*code, model, kernel.waveSize);
    if (limits) {
      kernel.wavesPerUnit =
          wavesPerUnit(kernel, kernel.ldsBytes + dynamicLdsBytes, *limits);
      kernel.wavesPerSimd =
          llvm::divideCeil(kernel.wavesPerUnit, limits->simdsPerUnit);
    }
    report.kernels.push_back(std::move(kernel));
  }
  return report;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

/// Rounded, so that reports do not differ in the last bit of a quotient.
static double rounded(double value) { return std::round(value * 1e4) / 1e4; }

static json::Object toJSON(const IsaCounts &counts) {
  return json::Object{{"mfma", counts.mfma},
                      {"valu", counts.valu},
                      {"transcendental", counts.transcendental},
                      {"packed", counts.packed},
                      {"dot", counts.dot},
                      {"acc_moves", counts.accMoves},
                      {"lds_reads", counts.ldsReads},
                      {"lds_writes", counts.ldsWrites},
                      {"lds_exchanges", counts.ldsExchanges},
                      {"vmem", counts.vmem},
                      {"lds_dma", counts.ldsDma},
                      {"scratch", counts.scratch},
                      {"scalar", counts.scalar},
                      {"waits", counts.waits},
                      {"nops", counts.nops},
                      {"nop_cycles", counts.nopCycles},
                      {"barriers", counts.barriers},
                      {"branches", counts.branches},
                      {"other", counts.other},
                      {"total", counts.total()}};
}

static json::Object toJSON(const IsaUnitCycles &cycles) {
  return json::Object{{"matrix", cycles.matrix},
                      {"vector", cycles.vector},
                      {"lds", cycles.lds},
                      {"binds", cycles.binds()},
                      {"mfma_share", rounded(cycles.mfmaShare())}};
}

static json::Object toJSON(const IsaLoop &loop, bool hot, int64_t wavesPerUnit,
                           const std::optional<MemoryModel> &memory) {
  json::Array waits, stages;
  for (const IsaWait &wait : loop.waits) {
    json::Object entry;
    if (wait.vmcnt >= 0)
      entry["vmcnt"] = wait.vmcnt;
    if (wait.lgkmcnt >= 0)
      entry["lgkmcnt"] = wait.lgkmcnt;
    waits.push_back(std::move(entry));
  }
  for (const IsaStage &stage : loop.stages)
    stages.push_back(json::Object{{"instructions", toJSON(stage.counts)},
                                  {"mfma_cycles", stage.mfmaCycles},
                                  {"issue_cycles", stage.issueCycles}});
  json::Object flight{{"loaded", loop.flight.loaded},
                      {"most", loop.flight.most},
                      {"after_waits", loop.flight.afterWaits}};
  if (memory && loop.flight.loaded)
    flight["issue_share"] = rounded(loop.issueShare(*memory));
  json::Object units;
  if (IsaUnitCycles cycles = loop.unitCycles(wavesPerUnit); cycles.vector > 0)
    units = toJSON(cycles);
  return json::Object{
      {"hot", hot},
      {"wave_bytes", std::move(flight)},
      {"unit_cycles", std::move(units)},
      {"begin", static_cast<int64_t>(loop.begin)},
      {"end", static_cast<int64_t>(loop.end)},
      {"instructions", toJSON(loop.counts)},
      {"out_of_line", toJSON(loop.outOfLine)},
      {"waits", std::move(waits)},
      {"drains", loop.drains()},
      {"stages", std::move(stages)},
      {"valu_per_mfma", rounded(loop.valuPerMfma())},
      {"mfma_share", rounded(loop.mfmaShare())},
      {"mfma_share_exposed", rounded(loop.mfmaShareExposed())},
      {"mfma_share_out_of_line", rounded(loop.mfmaShareOutOfLine())}};
}

json::Value kvbuf::isaReportToJSON(const IsaReport &report) {
  json::Array kernels;
  std::optional<MemoryModel> memory = lookupMemoryModel(report.chip);
  for (const IsaKernel &kernel : report.kernels) {
    json::Array loops;
    for (const IsaLoop &loop : kernel.loops)
      loops.push_back(
          toJSON(loop, &loop == kernel.hotLoop(), kernel.wavesPerUnit, memory));
    json::Object entry{{"name", kernel.name},
                       {"threads", kernel.threads},
                       {"wave_size", kernel.waveSize},
                       {"vgprs", kernel.vgprs},
                       {"agprs", kernel.agprs},
                       {"sgprs", kernel.sgprs},
                       {"vgpr_spills", kernel.vgprSpills},
                       {"sgpr_spills", kernel.sgprSpills},
                       {"scratch_bytes", kernel.scratchBytes},
                       {"lds_bytes", kernel.ldsBytes},
                       {"kernarg_bytes", kernel.kernargBytes},
                       {"waves_per_simd", kernel.wavesPerSimd},
                       {"code_bytes", kernel.codeBytes},
                       {"waves_per_unit", kernel.wavesPerUnit},
                       {"instructions", toJSON(kernel.counts)},
                       {"loops", std::move(loops)}};
    const IsaLoop *hot = kernel.hotLoop();
    if (memory && hot && hot->flight.loaded && kernel.wavesPerUnit >= 0) {
      entry["unit_bytes_in_flight"] = hot->flight.most * kernel.wavesPerUnit;
      entry["unit_bytes_needed"] = std::llround(memory->bytesInFlight());
    }
    kernels.push_back(std::move(entry));
  }
  return json::Object{{"chip", report.chip}, {"kernels", std::move(kernels)}};
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string percent(double share) {
  return llvm::formatv("{0:f1} %", 100 * share).str();
}

/// "16 MFMA, 72 VALU (16 transcendental), ..."; classes without instructions
/// are left out.
static std::string describe(const IsaCounts &counts) {
  llvm::SmallVector<std::string> parts, vector, memory;
  auto add = [](llvm::SmallVectorImpl<std::string> &to, int64_t count,
                llvm::StringRef name) {
    if (count)
      to.push_back((llvm::Twine(count) + " " + name).str());
  };
  auto of = [](llvm::ArrayRef<std::string> inner) {
    return inner.empty() ? "" : " (" + llvm::join(inner, ", ") + ")";
  };
  add(parts, counts.mfma, "MFMA");
  add(vector, counts.transcendental, "transcendental");
  add(vector, counts.packed, "packed");
  add(vector, counts.dot, "dot");
  add(vector, counts.accMoves, "accumulator moves");
  add(parts, counts.valu, "VALU" + of(vector));
  add(parts, counts.ldsReads, "LDS reads");
  add(parts, counts.ldsWrites, "LDS writes");
  add(parts, counts.ldsExchanges, "LDS exchanges");
  add(memory, counts.ldsDma, "into LDS");
  add(parts, counts.vmem, "VMEM" + of(memory));
  add(parts, counts.scratch, "scratch");
  add(parts, counts.scalar, "scalar");
  add(parts, counts.waits, "waits");
  add(parts, counts.nops,
      llvm::formatv("s_nop ({0} cycles)", counts.nopCycles).str());
  add(parts, counts.barriers, "barriers");
  add(parts, counts.branches, "branches");
  add(parts, counts.other, "other");
  return llvm::join(parts, ", ");
}

static std::string describe(const IsaWait &wait) {
  llvm::SmallVector<std::string> parts;
  if (wait.vmcnt >= 0)
    parts.push_back(llvm::formatv("vmcnt({0})", wait.vmcnt).str());
  if (wait.lgkmcnt >= 0)
    parts.push_back(llvm::formatv("lgkmcnt({0})", wait.lgkmcnt).str());
  return parts.empty() ? "none" : llvm::join(parts, " ");
}

static void printLoop(const IsaLoop &loop, const IsaKernel &kernel, bool hot,
                      bool modelled, const std::optional<MemoryModel> &memory,
                      llvm::raw_ostream &os) {
  os << llvm::formatv("  {0} 0x{1:x-} to 0x{2:x-}\n", hot ? "hot loop" : "loop",
                      loop.begin, loop.end);
  auto line = [&](llvm::StringRef key, const llvm::Twine &value) {
    os << "    " << llvm::left_justify(key, 15) << value << "\n";
  };
  line("instructions", describe(loop.counts));
  if (loop.outOfLine.total())
    line("out of line", describe(loop.outOfLine));
  line("VALU per MFMA", llvm::formatv("{0:f2}", loop.valuPerMfma()).str());
  line("waits", loop.waits.empty()
                    ? std::string("none")
                    : llvm::join(llvm::map_range(loop.waits,
                                                 [](const IsaWait &wait) {
                                                   return describe(wait);
                                                 }),
                                 "; "));
  if (loop.flight.loaded) {
    std::string text = llvm::formatv("{0} B a wave, {1} B after waits",
                                     loop.flight.most, loop.flight.afterWaits);
    if (memory && kernel.wavesPerUnit >= 0)
      text += llvm::formatv(
          "; {0} waves a unit: {1} B (Little's law: {2:f0} B)",
          kernel.wavesPerUnit, loop.flight.most * kernel.wavesPerUnit,
          memory->bytesInFlight());
    line("in flight", text);
    text = llvm::formatv("{0} B a wave and iteration", loop.flight.loaded);
    if (memory && modelled)
      text += "; issue takes " + percent(loop.issueShare(*memory)) +
              " of the cycles that memory takes for them";
    line("loads", text);
  }
  if (loop.stages.size() > 1)
    for (const IsaStage &stage : loop.stages)
      line("stage",
           describe(stage.counts) +
               (modelled ? llvm::formatv(": {0} of {1} cycles MFMA",
                                         stage.mfmaCycles, stage.issueCycles)
                               .str()
                         : ""));
  if (!modelled)
    return;
  line("MFMA share",
       percent(loop.mfmaShare()) +
           " of issue cycles; transcendental exposed: " +
           percent(loop.mfmaShareExposed()) +
           (loop.outOfLine.total() ? "; through all that is out of line: " +
                                         percent(loop.mfmaShareOutOfLine())
                                   : ""));
  if (kernel.wavesPerUnit <= 0)
    return;
  IsaUnitCycles cycles = loop.unitCycles(kernel.wavesPerUnit);
  line("shared units",
       llvm::formatv("{0} waves a unit: {1} binds; matrix {2:f0} cycles, "
                     "vector {3:f0}, LDS {4:f0}; MFMA share at most {5}",
                     kernel.wavesPerUnit, cycles.binds(), cycles.matrix,
                     cycles.vector, cycles.lds, percent(cycles.mfmaShare()))
           .str());
}

void kvbuf::printIsaReport(const IsaReport &report, llvm::raw_ostream &os) {
  std::optional<IssueModel> model = lookupIssueModel(report.chip);
  std::optional<MemoryModel> memory = lookupMemoryModel(report.chip);
  bool anyLoop = false, anyLoads = false;
  for (const IsaKernel &kernel : report.kernels) {
    os << llvm::formatv(
        "{0}  {1}, {2} threads\n"
        "  registers      {3} VGPR (of these {4} AGPR), {5} SGPR; spilled: {6} "
        "VGPR, {7} SGPR; scratch {8} B\n"
        "  waves          {9} per SIMD; LDS {10} B; code {11} B\n",
        kernel.name, report.chip, kernel.threads, kernel.vgprs, kernel.agprs,
        kernel.sgprs, kernel.vgprSpills, kernel.sgprSpills, kernel.scratchBytes,
        kernel.wavesPerSimd < 0 ? "?" : std::to_string(kernel.wavesPerSimd),
        kernel.ldsBytes, kernel.codeBytes);
    const IsaLoop *hot = kernel.hotLoop();
    for (const IsaLoop &loop : kernel.loops)
      printLoop(loop, kernel, &loop == hot, model.has_value(), memory, os);
    anyLoop |= hot != nullptr;
    anyLoads |= hot && hot->flight.loaded;
  }
  if (model && anyLoop)
    os << llvm::formatv(
        "issue model of {0}: one wave in program order; MFMA cycles as in "
        "LLVM's scheduling model; VALU {1} cycles, transcendental {2}, packed "
        "fp32 {3}; in all but {4} cycles of an MFMA other VALU runs beside it, "
        "packed and dot products never do; LDS moves {5} B a cycle, without "
        "bank conflicts; memory and waiting are not modelled\n",
        report.chip, model->vector, model->transcendental, model->packed,
        model->matrixIssue, model->ldsBytes);
  if (memory && anyLoads)
    os << llvm::formatv(
        "memory model of {0}: {1}, {2:f1} TB/s, {3} units at {4:f1} GHz, "
        "{5:f0} "
        "ns from a load to its data (assumed, not measured); as many waves as "
        "fit\n",
        report.chip, memory->device, memory->bytesPerSecond / 1e12,
        memory->units, memory->clock / 1e9, memory->latency * 1e9);
}
