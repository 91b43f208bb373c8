//===- IsaHazards.cpp - Results that are read too early -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CDNA3 and CDNA4 do not hold back an instruction for some results that it
// needs: there have to be so many others, or cycles of s_nop, between the two.
// ("Manually Inserted Wait States" of the CDNA3 ISA; LLVM's
// GCNHazardRecognizer, which resolves them for what it compiles, and looks
// into no inline assembly.) Checked here, on all ways through a function:
//
// - what a matrix instruction writes: read, or written again, by a vector
//   instruction, or read by an access of memory; read by another as A or B, or
//   as a part of C that is not the same registers;
// - what a vector instruction writes: read by a matrix instruction; a result of
//   the transcendental unit read by others; registers for moves between lanes
//   and reads of one lane; scalars read by vector instructions and accesses,
//   as the number of a lane, and as what v_div_fmas takes of VCC; the mask of
//   lanes;
// - M0 for a copy into LDS;
// - the data of a wide store, written again.
//
// Not checked: what instructions for parts of registers (SDWA) forward, f64
// products, and hazards between functions.
//
//===----------------------------------------------------------------------===//

#include "CodeObject.h"
#include "Isa.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace kvbuf;

/// Clocks of a pass of the matrix unit.
static constexpr unsigned kClocksPerPass = 4;
/// The most wait states that any hazard needs: of a result of 16 passes.
static constexpr unsigned kMostStates = 20;
/// States that a branch is worth that is taken: 16 clocks. (LLVM counts one,
/// but looks at a block once, on the first way to it, which need not be the
/// shortest.)
static constexpr unsigned kTakenBranch = 4;

namespace {
/// How far an instruction has to stand behind another, and why.
struct Distance {
  unsigned states = 0;
  llvm::StringRef why;

  void need(bool overlaps, unsigned atLeast, llvm::StringRef because) {
    if (overlaps && atLeast > states)
      *this = {atLeast, because};
  }
};
} // namespace

static bool overlap(llvm::ArrayRef<uint16_t> x, llvm::ArrayRef<uint16_t> y) {
  return llvm::any_of(
      x, [&](uint16_t unit) { return llvm::is_contained(y, unit); });
}

/// Units of `x` that are none of `y`.
static RegisterUnits without(llvm::ArrayRef<uint16_t> x,
                             llvm::ArrayRef<uint16_t> y) {
  RegisterUnits rest;
  llvm::copy_if(x, std::back_inserter(rest),
                [&](uint16_t unit) { return !llvm::is_contained(y, unit); });
  return rest;
}

/// Distances behind a matrix instruction. `later`: states more that the chip
/// needs behind all but the shortest. `anew`: what matrix instructions between
/// the two write, of which C is then.
static void behindMatrix(const IsaInstruction &first,
                         const IsaInstruction &second, unsigned later,
                         llvm::ArrayRef<uint16_t> anew, Distance &distance) {
  if (first.ofF64)
    return;
  unsigned passes = first.mfmaCycles / kClocksPerPass;
  unsigned more = passes > 2 && !first.ofF32 ? later : 0;
  unsigned result = passes + (first.ofF32 ? 2 : 3) + more;
  const RegisterUnits &written = first.registers.vectorsWritten;
  const IsaRegisters &use = second.registers;
  if (second.kind == IsaClass::Mfma) {
    distance.need(overlap(written, use.vectorsRead), result,
                  "takes for A or B what");
    bool same = use.accumulatorsRead == written;
    distance.need(
        !same && overlap(without(written, anew), use.accumulatorsRead),
        passes + (first.ofF32 ? 0 : 1) + more, "takes for a part of C what");
    return;
  }
  bool isVector = second.kind == IsaClass::Valu;
  bool isAccess =
      second.kind == IsaClass::Vmem || second.kind == IsaClass::LdsRead ||
      second.kind == IsaClass::LdsWrite ||
      second.kind == IsaClass::LdsExchange || second.kind == IsaClass::Scratch;
  distance.need((isVector || isAccess) && overlap(written, use.vectorsRead),
                result, "reads what");
  distance.need(isVector && overlap(written, use.vectorsWritten), result,
                "writes again what");
}

/// Distances behind another vector instruction.
static void behindVector(const IsaInstruction &first,
                         const IsaInstruction &second, Distance &distance) {
  const IsaRegisters &def = first.registers, &use = second.registers;
  bool isVector = second.kind == IsaClass::Valu,
       isMatrix = second.kind == IsaClass::Mfma,
       isMemory = second.kind == IsaClass::Vmem;
  if (isMatrix && !first.dot) {
    constexpr unsigned states = 2;
    distance.need(overlap(def.vectorsWritten, use.vectorsRead) ||
                      overlap(def.vectorsWritten, use.accumulatorsRead),
                  states, "reads what");
  }
  if (isVector) {
    bool reads = overlap(def.vectorsWritten, use.vectorsRead);
    distance.need(reads && first.transcendental && !second.transcendental, 1,
                  "reads what");
    distance.need(reads && second.betweenLanes, 2, "reads of other lanes what");
    distance.need(reads && second.readsLane, 1, "reads of a lane what");
  }
  bool scalars = overlap(def.scalarsWritten, use.scalarsRead);
  distance.need(scalars && isVector, 2, "reads the scalar that");
  distance.need(overlap(def.scalarsWritten, use.laneNumber), 4,
                "takes for a lane's number the scalar that");
  distance.need(scalars && isMemory, 5, "reads the scalar that");
  distance.need(def.writesVCC && second.dividesByVCC, 4, "takes the VCC that");
  if (def.writesExec) {
    distance.need(isVector && second.betweenLanes, 5, "uses the lanes that");
    distance.need(isMatrix || second.readsLane || second.selectsLane, 4,
                  "uses the lanes that");
  }
}

/// How far `second` has to stand behind `first`, with `anew` written between.
static Distance distanceOf(const IsaInstruction &first,
                           const IsaInstruction &second, unsigned later,
                           llvm::ArrayRef<uint16_t> anew) {
  Distance distance;
  if (first.kind == IsaClass::Mfma)
    behindMatrix(first, second, later, anew, distance);
  else if (first.kind == IsaClass::Valu)
    behindVector(first, second, distance);
  distance.need(first.kind == IsaClass::Scalar && first.registers.writesM0 &&
                    second.ldsDma,
                1, "goes to the place in LDS that");
  constexpr unsigned wideStore = 8;
  distance.need(
      first.kind == IsaClass::Vmem && first.changesMemory &&
          first.registers.storeBytes > wideStore &&
          second.kind == IsaClass::Valu &&
          overlap(first.registers.vectorsRead, second.registers.vectorsWritten),
      1, "writes again the data that");
  return distance;
}

/// Wait states that an instruction is worth by itself.
static unsigned statesOf(const IsaInstruction &instruction) {
  return instruction.kind == IsaClass::Nop ? instruction.nopCycles : 1;
}

/// The first hazard of a function.
static std::optional<std::string>
findHazard(llvm::ArrayRef<IsaInstruction> code, unsigned later) {
  llvm::DenseMap<uint64_t, size_t> byAddress;
  for (auto [index, instruction] : llvm::enumerate(code))
    byAddress[instruction.address] = index;
  struct Before {
    size_t index;
    bool branches;
  };
  std::vector<llvm::SmallVector<Before, 2>> before(code.size());
  for (auto [index, instruction] : llvm::enumerate(code)) {
    if (instruction.fallsThrough && index + 1 < code.size())
      before[index + 1].push_back({index, false});
    if (instruction.target)
      if (auto it = byAddress.find(*instruction.target); it != byAddress.end())
        before[it->second].push_back({index, true});
  }
  for (auto [index, second] : llvm::enumerate(code)) {
    if (second.kind == IsaClass::Nop || second.kind == IsaClass::Wait)
      continue;
    // Ways back: an instruction, the states between it and this one, and what
    // matrix instructions between them write.
    struct Way {
      size_t at;
      unsigned states;
      RegisterUnits anew;
    };
    std::vector<Way> work;
    llvm::DenseMap<size_t, std::vector<Way>> reached;
    auto reach = [&](size_t from, unsigned behind, const RegisterUnits &anew) {
      for (auto [at, branches] : before[from]) {
        Way way{at, behind + (branches ? kTakenBranch - 1 : 0), anew};
        // No sooner there than by another one, on which no more is written.
        std::vector<Way> &known = reached[at];
        if (llvm::any_of(known, [&](const Way &other) {
              return other.states <= way.states &&
                     without(other.anew, way.anew).empty();
            }))
          continue;
        known.push_back(way);
        work.push_back(std::move(way));
      }
    };
    reach(index, 0, {});
    while (!work.empty()) {
      auto [at, states, anew] = std::move(work.back());
      work.pop_back();
      const IsaInstruction &first = code[at];
      Distance distance = distanceOf(first, second, later, anew);
      if (distance.states > states)
        return llvm::formatv("the instruction at 0x{0:x-} {1} that at "
                             "0x{2:x-} writes, {3} cycles too early",
                             second.address, distance.why, first.address,
                             distance.states - states)
            .str();
      // A function that is called, or waits, takes longer than any.
      if (first.isCall || states + statesOf(first) >= kMostStates)
        continue;
      if (first.kind == IsaClass::Mfma && second.kind == IsaClass::Mfma)
        anew.append(without(first.registers.vectorsWritten, anew));
      reach(at, states + statesOf(first), anew);
    }
  }
  return std::nullopt;
}

llvm::Expected<std::vector<IsaHazard>>
kvbuf::findHazards(llvm::StringRef hsaco) {
  llvm::Expected<CodeObject> object = readCodeObject(hsaco);
  if (!object)
    return object.takeError();
  std::vector<IsaHazard> found;
  // Others have other tables, or wait by themselves.
  std::optional<IssueModel> model = lookupIssueModel(object->chip);
  if (!model)
    return found;
  auto look = [&](llvm::StringRef name, llvm::ArrayRef<IsaInstruction> code) {
    if (std::optional<std::string> hazard =
            findHazard(code, model->laterResults))
      found.push_back({name.str(), std::move(*hazard)});
  };
  if (llvm::Error error = decodeFunctions(*object, look))
    return std::move(error);
  return found;
}
