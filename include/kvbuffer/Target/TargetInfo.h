//===- TargetInfo.h - What the lowering asks of a chip ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The one place that knows chips. Passes ask a `TargetInfo`; nothing else
/// switches on a chip's name. A new chip is a new entry in a vendor's file.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_TARGET_TARGETINFO_H
#define KVBUFFER_TARGET_TARGETINFO_H

#include "kvbuffer/Layout/Fragments.h"
#include "kvbuffer/Layout/Shared.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <optional>
#include <string>

namespace kvbuf {

/// Who made a chip: which target dialect its kernels end in.
enum class Vendor { NVIDIA, AMD };

/// The name used in manifests: "nvidia" or "amd".
llvm::StringRef vendorName(Vendor vendor);

/// A matrix instruction with fp32 accumulation.
struct MatrixInstruction {
  MatrixUnit unit = MatrixUnit::MmaSync;
  /// Of `wgmma`, n is the least: there are products of any multiple up to
  /// `TargetInfo::matrixGroupCols`.
  int64_t m = 0, n = 0, k = 0;
  /// Operand elements that one register of the instruction holds in a lane; a
  /// lane's part of an operand is a list of vectors of this many elements.
  unsigned wordElements = 2;
  /// Instructions, along the contraction, whose operands one 16-byte read of
  /// LDS gives: they are laid out as one instruction of `group` times k.
  unsigned group = 1;

  std::array<int64_t, 3> shape() const { return {m, n, k}; }
  /// Whether several warps execute it together.
  bool isOfGroups() const { return warpsTogether(unit) > 1; }
  /// Its rows that a warp has.
  int64_t rowsOfWarp() const { return m / warpsTogether(unit); }
};

/// What brings tiles into LDS, beside registers, which every chip has. Machines
/// (KVBufferToGPU/Machine.h) say what is emitted for each.
enum class CopyEngine {
  /// `cp.async`: each lane copies for itself and counts groups of copies.
  Lanes,
  /// One instruction of a wave, with one base address, that fills LDS in the
  /// order of the lanes and counts in the wave's loads in flight even where it
  /// copies nothing.
  Waves,
  /// TMA: boxes of tensors, by maps that the host makes.
  Boxes,
  /// The same of rows of a matrix, gathered by their numbers.
  Rows,
  /// A wave asks for rows of a tensor, block of columns by block, which it
  /// counts in the wave's boxes in flight (AMD's tensor data mover). Such
  /// copies take the place of those of lanes, and swizzle nothing.
  WaveBoxes
};

/// How teams hand slots of rings on to each other.
enum class SlotSignal {
  /// Barriers in LDS count arrivals, and bytes that an engine copies, by
  /// phases.
  PhaseBarriers,
  /// Waves poll counters in LDS, and those of a team fill slots themselves.
  PolledCounters
};

/// An input that the hardware or the loader prepares for a kernel that asks for
/// it by an intrinsic, and the function attribute that says it is not needed.
struct KernelInput {
  llvm::StringLiteral intrinsic, unusedAttribute;
};

/// A chip, as far as the lowering has to know it.
struct TargetInfo {
  /// "sm_80", "gfx942", ...
  std::string chip;
  Vendor vendor = Vendor::NVIDIA;
  /// Lanes of a wave (warp).
  unsigned waveSize = 32;
  /// Banks of shared memory (LDS), 4 bytes each.
  unsigned banks = 32;
  /// Shared memory that one block may use, bytes.
  int64_t ldsBytes = 0;
  /// Bytes of a row of a tile's blocks there, where nothing asks for others:
  /// swizzles keep reads of operands from meeting in a bank.
  int64_t ldsRowBytes = 128;
  /// Registers of 4 bytes that a lane may use.
  unsigned registersPerLane = 255;
  /// Registers that all lanes of a block share.
  unsigned registersPerBlock = 65536;
  /// Threads of a block, at most.
  unsigned maxThreads = 1024;
  /// Multiprocessors (compute units) of the largest device with this chip, and
  /// the threads that one of them holds at once.
  unsigned multiprocessors = 1, residentThreads = 2048;
  /// Widths of asynchronous copies from DRAM into LDS, bytes a lane.
  llvm::SmallVector<unsigned> asyncCopyBytes;
  /// Triple, features and data layout for LLVM's backend.
  std::string triple, features, dataLayout;
  /// Whether instructions on pairs of f32 may be in kernels.
  bool pairsOfF32 = true;
  /// Function attributes (name, value) that every kernel has unless it says
  /// otherwise; see the vendor's file for the reasons.
  llvm::SmallVector<std::pair<llvm::StringLiteral, llvm::StringLiteral>>
      functionAttributes;
  /// Inputs that take registers and launch time unless a kernel is known not to
  /// use them.
  llvm::ArrayRef<KernelInput> kernelInputs;
  /// Whether LLVM may rewrite addresses by loop strength reduction. It takes
  /// registers to be plenty, and where accumulators fill the register file each
  /// one that it adds is spilled.
  bool loopStrengthReduction = true;
  /// Whether the lanes of a warp can transpose 8x8 matrices of 16-bit elements
  /// (`kvbuffer.lane_transpose`).
  bool transposesAmongLanes = false;
  /// Whether the lanes of a warp look up the page of a row each, of pages that
  /// hold no whole tile, and tell the others.
  bool looksUpByLane = false;
  /// The most pages of a tile that lanes do not look up all the same: one
  /// look-up each serves the whole warp.
  int64_t fewPages = 0;
  /// Whether they do so for tiles of `rows` rows over pages of `page` (0: whole
  /// tiles) that `warps` warps copy together. The look-up may come before the
  /// tile's load; else it is part of it.
  bool lanesLookUp(int64_t rows, int64_t page, int64_t warps) const;
  /// What brings tiles into LDS beside registers.
  llvm::SmallVector<CopyEngine> copyEngines;
  bool has(CopyEngine engine) const {
    return llvm::is_contained(copyEngines, engine);
  }
  /// Whether a product may wait for its own operand only, so that copies for
  /// later products stay in flight.
  bool waitsByOperand = false;
  /// Where sums of the matrix unit are cut off instead of rounded: keys whose
  /// weighted values one sum has in kernels of warp roles for very many keys,
  /// which add such sums up by themselves; 0: all.
  /// `mostSumKeys`: the most keys for which one sum will do.
  int64_t sumKeys = 0, mostSumKeys = 0;
  /// Whether fragments that stay in registers come from DRAM without LDS.
  bool fragmentsFromDram = false;
  /// Whether LDS can be read transposed; V is transposed on its way into LDS
  /// where it cannot.
  bool readsTransposed = true;
  /// Whether an instruction rounds to bf16.
  bool roundsToBf16 = true;
  /// Whether kernels can read the size of the grid from a register.
  bool readsGridSize = true;
  /// The last word of the descriptor of a range of DRAM (a raw buffer) whose
  /// reads past its end are zeros, as the backend takes it.
  uint32_t rangeFlags = 0;
  /// The operand of an `s_waitcnt` that waits for the write-back of L2 by which
  /// a release at a scope wider than a block begins, where a chip has such and
  /// LLVM's backend loses the wait for it (llvm-project PR 178316).
  std::optional<uint32_t> writeBackWait;
  /// Dies with an L2 each, which consecutive blocks go to in turn.
  int64_t dies = 1;
  /// Matrix instructions for 16-bit operands, bf16 or f16.
  llvm::SmallVector<MatrixInstruction> matrixInstructions;
  /// The 8-bit floats that the matrix unit multiplies, by their names in MLIR;
  /// empty where it has none.
  llvm::SmallVector<llvm::StringRef> float8Formats;
  /// Whether pairs of those become bf16 in as many instructions as f16. Where
  /// they do not, and for other formats anywhere, products of what is widened
  /// are of f16 where the other operand is in registers.
  bool widensToBF16 = false;
  /// The 16-bit elements, by their names in MLIR, of which one instruction adds
  /// a pair to an f32, each exactly.
  llvm::SmallVector<llvm::StringRef> pairSums;
  /// Whether one instruction shifts both 16-bit halves of a word, or multiplies
  /// them as f16.
  bool packsHalves = false;
  /// Matrix instructions for operands of those formats, each of either, that
  /// code is generated for; empty where there is none yet.
  llvm::SmallVector<MatrixInstruction> float8Instructions;
  /// Bits of a sum of 8-bit products that the matrix unit keeps, where these
  /// are fewer than f32 has: terms that lie further below the sum are cut off.
  /// Long sums are then added up outside of it (`accumulate`); 0: it adds in
  /// f32.
  unsigned float8SumBits = 0;
  /// Warps that multiply together, asynchronously and with operands read from
  /// LDS by the matrix unit (a warpgroup); 0 where a chip has no such products.
  unsigned warpsPerMatrixGroup() const {
    const MatrixInstruction *mma = groupInstruction("bf16");
    return mma ? unsigned(warpsTogether(mma->unit)) : 0;
  }
  /// Whether they multiply bytes, too, that lie along the contraction in LDS on
  /// both sides: values are turned on their way there.
  bool turnsBytesForGroups() const {
    return warpsPerMatrixGroup() && !float8Instructions.empty();
  }
  /// Rows of such a product, and the most columns.
  unsigned matrixGroupRows = 64, matrixGroupCols = 256;
  /// Whether a copy of a box names the own block's LDS as that; else it names
  /// it as a part of the cluster's, which every block is one of.
  bool copiesBoxesIntoBlock = false;
  /// How teams hand slots on; nothing where a chip's teams have no rings.
  std::optional<SlotSignal> slotSignal;
  /// Warps whose lanes get other numbers of registers than they began with
  /// together; 0 where a chip hands out none anew.
  unsigned warpsPerRegisterGroup = 0;
  /// Whether rings join teams: slots are filled, and handed on. What multiplies
  /// out of them is another question.
  bool hasRings() const { return slotSignal.has_value(); }
  /// Whether a problem's schedule may have a team that only moves tiles: a copy
  /// engine does it, which takes few of a block's registers.
  bool hasMovingTeams() const {
    return has(CopyEngine::Boxes) && slotSignal == SlotSignal::PhaseBarriers;
  }
  /// Barriers of a block at which some of its warps can meet; the first is the
  /// whole block's.
  int64_t namedBarriers = 1;
  /// The most blocks of a cluster, whose blocks load tiles for each other; 1:
  /// none. The rows of such a tile that one of them loads, where blocks of BK
  /// columns are not enough parts, are a multiple of `clusterPartRows`.
  int64_t maxCluster = 1, clusterPartRows = 1;
  /// Rows of the smallest pages that the copy engine loads one by one; 0: none.
  /// Rows of smaller ones lanes copy.
  int64_t fewestPageRows = 0;
  /// Whether the copy engine loads tiles over pages of `page` rows: one box a
  /// page of few rows, or parts of pages that are multiples of what a swizzle
  /// repeats after.
  bool boxesPages(int64_t page) const {
    return fewestPageRows && page >= fewestPageRows &&
           (page < clusterPartRows || page % clusterPartRows == 0);
  }
  /// Whether blocks of a cluster take heads that share K and V, `sharing` of
  /// them, rather than neighbouring tiles of queries (kvbuf-assign-work).
  static bool clustersOfHeads(int64_t sharing) { return sharing % 2 == 0; }
  /// Where accumulators are multiplied by the factors of a softmax, which are 1
  /// but where a maximum has grown: whether lanes leave out multiplications by
  /// 1, because predicates of instructions cost nothing.
  bool predicatesRescale = false;
  /// From this number of accumulators a lane on a warp that has nothing to
  /// multiply passes all of it by, with a vote and a branch; 0: never. (With
  /// fewer the branch costs more than it saves: it keeps what stands on its two
  /// sides apart.) Measured on an H200; counted by compiling for AMD's chips
  /// (docs/decode.md).
  int64_t branchedRescaleAccumulators = 0;
  /// Whether one instruction takes the largest of three integers, where two
  /// floating-point numbers take one.
  bool integerMaxima = false;
  /// Registers that lanes take of the block's share are multiples of this.
  unsigned registerStep = 8;

  // What the chip does at once, by which kvbuf-assign-work orders the items of
  // any program.

  /// Bytes of keys and values that the tiles of a group of heads may read: they
  /// stay in L2, which holds 50 to 60 MB, while the group runs, beside its
  /// queries and results and what the groups before and after it use. Measured
  /// on an H200 (docs/tuning.md); other chips take the same.
  int64_t sharedReadBytes = 16 << 20;
  /// Tiles that are worked on at once, about one for each multiprocessor. A
  /// group has no more, where that is a head's or several heads': what others
  /// read only takes room in L2. The last group has twice as many at least:
  /// only a long sequence of ever shorter tiles leaves all multiprocessors busy
  /// to the end (longest processing time first). What is left over joins it.
  int64_t tilesAtOnce = 128;

  /// The matrix instructions for operands of a type, by its name in MLIR
  /// ("bf16", "f8E4M3FN"); empty: see `whyNoProduct`.
  llvm::ArrayRef<MatrixInstruction>
  matrixInstructionsFor(llvm::StringRef element) const;
  /// Why there is no matrix instruction for operands of a type, for a message
  /// that goes on after the type's name (", which gfx942 lacks; ..."); nothing
  /// if there is one.
  std::optional<std::string> whyNoProduct(llvm::StringRef element) const;
  /// The same for whole kernels, which take fewer types than lanes do.
  std::optional<std::string> whyNoKernel(llvm::StringRef element) const;
  /// The shapes of some matrix instructions for a message: "32x32x8 and
  /// 16x16x16".
  static std::string shapesOf(llvm::ArrayRef<MatrixInstruction> instructions);
  /// One shape, likewise.
  static std::string shapeText(llvm::ArrayRef<int64_t> shape);
  /// The matrix instruction of a shape for operands of a type, by its name in
  /// MLIR, or null.
  const MatrixInstruction *findMatrix(llvm::ArrayRef<int64_t> shape,
                                      llvm::StringRef element) const;
  /// The matrix instruction of a product of such operands in a kernel whose
  /// schedule names `shape`: that of the shape, else the one that has as many
  /// rows and columns, for a schedule names the elements of one product alone;
  /// or null.
  const MatrixInstruction *instructionFor(llvm::ArrayRef<int64_t> shape,
                                          llvm::StringRef element) const;
  /// The same of a product that groups of warps execute (`byGroups`), or of one
  /// that each warp executes for itself: where the schedule names an
  /// instruction of the other kind, the first one with as many columns.
  const MatrixInstruction *instructionFor(llvm::ArrayRef<int64_t> shape,
                                          llvm::StringRef element,
                                          bool byGroups) const;
  /// The instruction that groups of warps execute for operands of a type, or
  /// null.
  const MatrixInstruction *groupInstruction(llvm::StringRef element) const;
  /// The instructions that each warp executes for itself.
  llvm::SmallVector<MatrixInstruction>
  warpInstructions(llvm::StringRef element) const;
  /// The family of the instructions that each warp executes for itself.
  MatrixUnit matrixUnit() const { return matrixInstructions.front().unit; }
  /// Why the chip cannot execute an op of its vendor's dialect
  /// ("rocdl.wmma...", "nvvm.wgmma..."), for a message; nothing if it can, or
  /// if it is not known that it cannot.
  std::optional<std::string> whyNot(llvm::StringRef op) const;
  /// The operand layouts of one of this chip's matrix instructions; of a whole
  /// group of them.
  MmaLayouts layouts(const MatrixInstruction &mma) const;
  /// Whether the accumulators of an instruction can become its operands: the
  /// weights of attention. With `swapped` products they are its operand B.
  bool feedsItself(const MatrixInstruction &mma, bool swapped) const {
    return feeds(mma, mma, swapped);
  }
  /// The same of the accumulators of one and the operands of another.
  bool feeds(const MatrixInstruction &mma, const MatrixInstruction &next,
             bool swapped) const;
  /// The swizzle of a tile with rows of `rowBytes` bytes in LDS, of elements of
  /// `elementBytes`, for an instruction; `transposed` if it is read along its
  /// rows' contraction (Q, K); `direct` if copies fill it, not registers.
  Swizzle swizzle(const MatrixInstruction &mma, int64_t rowBytes,
                  int64_t elementBytes, bool transposed, bool direct) const;
  /// Whether tiles of `rows` rows, as LDS blocks with rows of `rowBytes` bytes,
  /// can be copied into LDS without registers; `pageSize`: rows that lie
  /// together in DRAM if they are fewer than the tile's, else 0. Lanes of
  /// several `warps` copy rows of any pages whose places they have looked up,
  /// where a copy of theirs is as wide as a load.
  bool canCopyDirectly(int64_t rows, int64_t rowBytes, int64_t pageSize,
                       int64_t warps = 1) const;
};

/// The chip of that name; nothing if it is not known.
std::optional<TargetInfo> lookupTarget(llvm::StringRef chip);

/// The names of all known chips, by vendor and generation, for messages and
/// help.
llvm::ArrayRef<llvm::StringRef> knownTargets();

} // namespace kvbuf

#endif // KVBUFFER_TARGET_TARGETINFO_H
