//===- Isa.h - Instructions of AMD's chips, as far as counted ---*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_COMPILER_ISA_H
#define KVBUFFER_LIB_COMPILER_ISA_H

#include "kvbuffer/Compiler/IsaReport.h"
#include "kvbuffer/Target/IssueModel.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <memory>
#include <optional>

namespace kvbuf {

/// The class of an instruction; see IsaCounts for each.
enum class IsaClass {
  Mfma,
  Valu,
  LdsRead,
  LdsWrite,
  LdsExchange,
  Vmem,
  Scratch,
  Scalar,
  Wait,
  Nop,
  Barrier,
  Branch,
  Other
};

/// Parts of registers, by LLVM's numbers: registers share a part if they
/// overlap.
using RegisterUnits = llvm::SmallVector<uint16_t, 8>;

/// The registers of an instruction, for hazards.
struct IsaRegisters {
  /// Vector registers, and all others, that it writes.
  RegisterUnits vectorsWritten, scalarsWritten;
  /// The same of what it reads, but for the mask of lanes. A matrix
  /// instruction's vectors are those of A and B, and of C.
  RegisterUnits vectorsRead, scalarsRead, accumulatorsRead;
  /// What it takes a lane's number from.
  RegisterUnits laneNumber;
  /// Whether it writes, or reads for other ends than to mask lanes, EXEC;
  /// writes M0, VCC, or reads VCC.
  bool writesExec = false, writesM0 = false, writesVCC = false,
       readsVCC = false;
  /// Bytes of a vector that it stores.
  unsigned storeBytes = 0;
};

/// One instruction, decoded as far as the report needs it.
struct IsaInstruction {
  uint64_t address = 0;
  unsigned size = 0;
  IsaClass kind = IsaClass::Other;
  bool transcendental = false, packed = false, dot = false, accMove = false,
       ldsDma = false;
  /// Of a vector memory access: bytes that it loads, a lane; 0 of a store.
  unsigned loadBytes = 0;
  /// Bytes that it moves into or out of LDS, a lane.
  unsigned ldsBytes = 0;
  /// Whether it writes L2 back or invalidates caches, for a release or an
  /// acquire; whether it changes memory that other blocks may see.
  bool writesBack = false, invalidates = false, changesMemory = false;
  bool isCall = false;
  /// Of an s_waitcnt.
  IsaWait wait;
  /// Of an s_nop: idle cycles, in units of 4 clocks.
  unsigned nopCycles = 0;
  /// Of an MFMA: cycles that it occupies the matrix unit.
  unsigned mfmaCycles = 0;
  /// Of a branch with a known target.
  std::optional<uint64_t> target;
  /// Whether execution can go on after it.
  bool fallsThrough = true;
  IsaRegisters registers;
  /// Of vector instructions: whether it takes a lane by its number, or reads
  /// one lane; moves between lanes (DPP); divides by what VCC scales; whether a
  /// matrix instruction is of f32, and of f64.
  bool selectsLane = false, readsLane = false, betweenLanes = false,
       dividesByVCC = false, ofF32 = false, ofF64 = false;
};

/// Disassembles for one chip.
class IsaDecoder {
public:
  /// Fails if LLVM does not know the chip.
  static llvm::Expected<std::unique_ptr<IsaDecoder>>
  create(llvm::StringRef chip);
  virtual ~IsaDecoder() = default;

  /// The instructions of `code`, which lies at `address`. Fails at bytes that
  /// are no instruction of this chip. Padding after the last instruction is
  /// left out.
  virtual llvm::Expected<std::vector<IsaInstruction>>
  decode(llvm::StringRef code, uint64_t address) const = 0;
};

struct CodeObject;

/// Decodes the functions of a code object, one after the other, and calls `fn`
/// with each one's name and instructions. Fails as the decoder does; an error
/// of bytes that are no instruction names the function.
llvm::Error decodeFunctions(
    const CodeObject &object,
    llvm::function_ref<void(llvm::StringRef, llvm::ArrayRef<IsaInstruction>)>
        fn);

/// Adds one instruction to `counts`.
void countInstruction(IsaCounts &counts, const IsaInstruction &instruction);

/// The natural loops of a kernel that hold MFMAs outside of inner loops, by
/// address, with counts, waits and stages; without cycles.
std::vector<IsaLoop> findLoops(llvm::ArrayRef<IsaInstruction> instructions,
                               const std::optional<IssueModel> &model,
                               int64_t waveSize);

/// Cycles that a wave takes to issue instructions that follow each other.
int64_t issueCycles(llvm::ArrayRef<const IsaInstruction *> instructions,
                    const IssueModel &model);

/// Cuts the steady state of a loop into stages and fills in their cycles.
std::vector<IsaStage> modelStages(llvm::ArrayRef<const IsaInstruction *> body,
                                  const std::optional<IssueModel> &model,
                                  int64_t waveSize);

/// What a wave has on its way from memory in the steady state of a loop.
IsaFlight flightOf(llvm::ArrayRef<const IsaInstruction *> body,
                   int64_t waveSize);

/// An instruction that needs an `s_waitcnt vmcnt(0)` after an earlier one.
struct MissingWait {
  /// The kernel, or the function that one calls.
  std::string function;
  uint64_t address = 0;
  /// The two, and what goes wrong.
  std::string text;
};

/// The first instruction of each function of a code object that a release or an
/// acquire does not wait for, or that does not wait for one, where it has to.
/// Fails where the code cannot be read.
llvm::Expected<std::vector<MissingWait>>
findMissingWaits(llvm::StringRef hsaco);

/// An instruction that comes too early behind another, whose result it needs.
struct IsaHazard {
  std::string function;
  /// The two, and how many more cycles there have to be between them.
  std::string text;
};

/// The first hazard of each function of a code object that nothing resolves;
/// none where the chip resolves them itself. Fails where the code cannot be
/// read.
llvm::Expected<std::vector<IsaHazard>> findHazards(llvm::StringRef hsaco);

/// An instruction on a pair of f32 of a chip that may get it wrong.
struct UnsafePair {
  std::string function;
  /// The instruction, and what goes wrong.
  std::string text;
};

/// The first such instruction of each function of a code object; none where the
/// chip computes them right (`TargetInfo::pairsOfF32`). Fails where the code
/// cannot be read.
llvm::Expected<std::vector<UnsafePair>> findUnsafePairs(llvm::StringRef hsaco);

/// Waves of a kernel that fit on a compute unit: see IsaKernel::wavesPerUnit.
int64_t wavesPerUnit(const IsaKernel &kernel, int64_t ldsBytes,
                     const WaveLimits &limits);

} // namespace kvbuf

#endif // KVBUFFER_LIB_COMPILER_ISA_H
