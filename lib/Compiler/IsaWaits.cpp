//===- IsaWaits.cpp - Whether releases and acquires are awaited -----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What LLVM's AMDGPUUsage asks for ("Memory Model GFX942") beyond a block:
//
// - a release is `buffer_wbl2`, `s_waitcnt vmcnt(0)`, and then the store or the
//   atomic operation that another block may see, or the barrier behind which
//   another wave makes it;
// - an acquire is the load or the atomic operation, `s_waitcnt vmcnt(0)`, and
//   then `buffer_inv`: what is read before its number is there may be older.
//   Loads behind it do not overtake it.
//
// A function begins and ends with nothing in flight: LLVM waits there, but for
// the end of a kernel. Only vmcnt(0) counts as a wait: what LLVM waits for less
// than that is loads of its own.
//
//===----------------------------------------------------------------------===//

#include "CodeObject.h"
#include "Isa.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <limits>

using namespace kvbuf;

namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

/// What may not have happened yet before an instruction, on some way to it: the
/// first write-back and the first access of vector memory since a wait, by
/// their numbers.
struct Pending {
  size_t writeBack = kNone, access = kNone;
  bool isReached = false;

  /// Takes in what another way brings; returns whether that is more.
  bool merge(const Pending &other) {
    Pending all{std::min(writeBack, other.writeBack),
                std::min(access, other.access), true};
    bool more =
        !isReached || all.writeBack != writeBack || all.access != access;
    *this = all;
    return more;
  }
};

} // namespace

/// What is pending after an instruction.
static Pending after(Pending pending, size_t index,
                     const IsaInstruction &instruction) {
  if (instruction.isCall ||
      (instruction.kind == IsaClass::Wait && instruction.wait.vmcnt == 0))
    return {kNone, kNone, true};
  bool accesses = instruction.kind == IsaClass::Vmem ||
                  instruction.kind == IsaClass::Scratch;
  if (instruction.writesBack)
    pending.writeBack = std::min(pending.writeBack, index);
  else if (accesses && !instruction.invalidates)
    pending.access = std::min(pending.access, index);
  return pending;
}

/// What is pending before each instruction of a function.
static std::vector<Pending>
pendingBefore(llvm::ArrayRef<IsaInstruction> instructions) {
  llvm::DenseMap<uint64_t, size_t> byAddress;
  for (auto [index, instruction] : llvm::enumerate(instructions))
    byAddress[instruction.address] = index;
  std::vector<Pending> before(instructions.size());
  llvm::SmallVector<size_t> changed;
  auto flow = [&](const Pending &pending, size_t to) {
    if (to < before.size() && before[to].merge(pending))
      changed.push_back(to);
  };
  flow(Pending(), 0);
  while (!changed.empty()) {
    size_t index = changed.pop_back_val();
    const IsaInstruction &instruction = instructions[index];
    Pending pending = after(before[index], index, instruction);
    if (instruction.target)
      if (auto it = byAddress.find(*instruction.target); it != byAddress.end())
        flow(pending, it->second);
    if (instruction.fallsThrough)
      flow(pending, index + 1);
  }
  return before;
}

/// The first instruction of a function that lacks a wait.
static std::optional<MissingWait>
findMissingWait(llvm::ArrayRef<IsaInstruction> instructions) {
  auto at = [&](size_t index) {
    return "0x" + llvm::utohexstr(instructions[index].address,
                                  /*LowerCase=*/true);
  };
  std::vector<Pending> before = pendingBefore(instructions);
  for (auto [index, instruction] : llvm::enumerate(instructions)) {
    const Pending &pending = before[index];
    bool returns = instruction.kind == IsaClass::Branch &&
                   !instruction.fallsThrough && !instruction.target;
    llvm::StringRef what = instruction.changesMemory
                               ? "store or atomic operation"
                           : instruction.kind == IsaClass::Barrier ? "barrier"
                           : instruction.isCall                    ? "call"
                           : instruction.invalidates ? "buffer_inv"
                           : returns                 ? "return"
                                                     : "";
    if (pending.writeBack != kNone && !what.empty())
      return MissingWait{"", instruction.address,
                         ("the " + what + " at " + at(index) +
                          " does not wait for the buffer_wbl2 at " +
                          at(pending.writeBack) +
                          ": others may see it before what it releases")
                             .str()};
    if (pending.access != kNone && instruction.invalidates)
      return MissingWait{"", instruction.address,
                         "the buffer_inv at " + at(index) +
                             " does not wait for the access of memory at " +
                             at(pending.access) +
                             ": what it acquires may be invalidated too early"};
  }
  return std::nullopt;
}

llvm::Expected<std::vector<MissingWait>>
kvbuf::findMissingWaits(llvm::StringRef hsaco) {
  llvm::Expected<CodeObject> object = readCodeObject(hsaco);
  if (!object)
    return object.takeError();
  std::vector<MissingWait> missing;
  auto look = [&](llvm::StringRef name, llvm::ArrayRef<IsaInstruction> code) {
    if (std::optional<MissingWait> found = findMissingWait(code)) {
      found->function = name.str();
      missing.push_back(std::move(*found));
    }
  };
  if (llvm::Error error = decodeFunctions(*object, look))
    return std::move(error);
  return missing;
}

llvm::Expected<std::vector<std::string>>
kvbuf::checkCodeObject(llvm::StringRef hsaco) {
  llvm::Expected<std::vector<MissingWait>> missing = findMissingWaits(hsaco);
  if (!missing)
    return missing.takeError();
  llvm::Expected<std::vector<IsaHazard>> hazards = findHazards(hsaco);
  if (!hazards)
    return hazards.takeError();
  llvm::Expected<std::vector<UnsafePair>> pairs = findUnsafePairs(hsaco);
  if (!pairs)
    return pairs.takeError();
  llvm::Expected<IsaReport> report = analyzeCodeObject(hsaco);
  if (!report)
    return report.takeError();
  std::vector<std::string> found;
  for (const MissingWait &wait : *missing)
    found.push_back("'" + wait.function +
                    "' lacks a 's_waitcnt vmcnt(0)': " + wait.text);
  for (const IsaHazard &hazard : *hazards)
    found.push_back("'" + hazard.function +
                    "' does not wait for a result: " + hazard.text);
  for (const UnsafePair &pair : *pairs)
    found.push_back("'" + pair.function + "' may go wrong: " + pair.text);
  for (const IsaKernel &kernel : report->kernels) {
    if (kernel.vgprSpills || kernel.sgprSpills)
      found.push_back(llvm::formatv("'{0}' has spilled {1} vector and {2} "
                                    "scalar registers",
                                    kernel.name, kernel.vgprSpills,
                                    kernel.sgprSpills)
                          .str());
    if (kernel.scratchBytes)
      found.push_back(llvm::formatv("'{0}' keeps {1} bytes a lane in memory",
                                    kernel.name, kernel.scratchBytes)
                          .str());
  }
  return found;
}
