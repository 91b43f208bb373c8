//===- Program.h - A kernel decoded for execution ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel is decoded once from MLIR into an array of plain structs. A value
// lives in *slots*: a slot is one 32-bit word for each lane of a wave. 64-bit
// values take two adjacent slots and are stored there as an array of 64-bit
// words. Vectors, arrays and structs are lists of slots that the decoder
// resolves, so that inserting, extracting and shuffling costs nothing.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_PROGRAM_H
#define KVBUF_LIB_EMULATOR_PROGRAM_H

#include "Chip.h"
#include "WarpOps.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvbuf {
struct LdsBuffer;
}

namespace kvbuf::emu {

enum class Code : uint16_t {
#define KVBUF_EMU_OP(Name) Name,
#include "Ops.def"
};

/// What an instruction counts as in the report.
enum class Class : uint8_t {
  None, // bookkeeping that no machine would execute
  Integer,
  Float,
  Transcendental,
  Convert,
  Matrix,
  MatrixLoad,
  SharedLoad,
  SharedStore,
  GlobalLoad,
  GlobalStore,
  Local,
  AsyncCopy,
  Barrier,
  Shuffle,
  Branch,
};
constexpr unsigned numClasses = 16;
/// The name under which the report lists a class.
const char *className(Class c);

/// What AtomicGlobal and AtomicShared do.
enum class AtomicKind : uint8_t {
  Exchange,
  Add,
  Sub,
  And,
  Or,
  Xor,
  SMax,
  SMin,
  UMax,
  UMin,
  Wrap, // one more, or 0 once the operand is reached
  CompareExchange,
  Nand,
  WrapDown,      // one less; the operand after 0, and above the operand
  SubIf,         // less the operand, unless that is larger
  SubSaturating, // less the operand, or 0
  // Of fp32 or fp64 by their size, of 16-bit floats by a flag.
  FAdd,
  FSub,
  FMax,
  FMin,
  FMaximum,
  FMinimum,
};
/// Beside an AtomicKind: each 16 bits of the datum are a float.
inline constexpr uint8_t atomicKindMask = 63, atomicF16 = 64, atomicBF16 = 128;

/// How an operation on global memory, or a fence, takes part in the order of
/// threads: bits of `Inst::order`; none: a plain access.
inline constexpr uint8_t atomicAccess = 1, acquires = 2, releases = 4;
/// A load through a cache that sees no writes of this launch.
inline constexpr uint8_t invariantAccess = 8;
/// A fence that writes a cache back, which takes until a wait is over.
inline constexpr uint8_t writesBack = 16;

/// Which threads an atomic operation or a fence is for.
enum class Scope : uint8_t { Lane, Warp, Block, Cluster, Device, System };
constexpr unsigned numScopes = 6;

/// Entries of AmdLaneMap's table that name no lane.
constexpr uint32_t keepLane = 64, zeroLane = 65;

/// No slot.
constexpr uint32_t noSlot = ~0u;
/// No block: what follows the kernel's end.
constexpr uint32_t noBlock = ~0u;

/// One micro-operation; `Ops.def` says what the fields hold.
struct Inst {
  Code op;
  Class cls = Class::None;
  uint8_t flags = 0;
  uint32_t dst = noSlot;
  uint32_t a = noSlot, b = noSlot, c = noSlot;
  /// Place and number of further operands in `Program::lists`.
  uint32_t list = 0;
  uint32_t listSize = 0;
  /// Which MLIR operation this came from: an index into `Program::origins`.
  uint32_t origin = 0;
  /// Bytes to which a memory operation's address must be aligned.
  uint32_t align = 0;
  /// Which of the memory statistics this operation adds to.
  uint32_t stat = 0;
  int64_t imm = 0;
  /// Constant bytes added to a memory operation's address `a`.
  int64_t offset = 0;
  /// Of operations on global memory and fences.
  uint8_t order = 0;
  Scope scope = Scope::Lane;
};

/// Flags of BarrierReduce: what the predicates of all lanes come to (PTX ISA,
/// "barrier{.cta}.red"): how many hold, whether all do, whether any does.
enum class Reduction : uint8_t { None, Count, All, Any };

/// Flags of Trap: a call through a pointer meant none of its functions, one
/// that comes to a call of what has no body, or one that is being called.
inline constexpr uint8_t trapOfCall = 1, trapOfBody = 2, trapOfSelf = 3;

/// Words of the descriptor of a tensor copy.
inline constexpr unsigned tensorWords = 20;

/// Flags of AmdMfma: what the operands are, f16 if nothing else is said.
inline constexpr uint8_t mfmaBF16 = 1, mfmaFloat8 = 2, mfmaLeftBF8 = 4,
                         mfmaRightBF8 = 8, mfmaFNUZ = 16;

/// An MLIR operation that became instructions.
struct Origin {
  std::string name;     // "nvvm.ldmatrix"
  std::string location; // "prefill.mlir:12:3"
  /// The operation's text and the function that has it, where it has no
  /// location.
  std::string text;
};

/// A basic block: instructions [begin, end), the last one a terminator.
struct CodeBlock {
  uint32_t begin = 0, end = 0;
  std::vector<uint32_t> successors;
  /// The immediate post-dominator, where diverged lanes meet again.
  uint32_t join = noBlock;
  /// Nothing that lanes do together lies on any way from its begin to the end.
  bool endsAlone = false;
  /// How many instructions of each class it executes.
  uint32_t classCount[numClasses] = {};
  /// Their sum of `matrixProducts`.
  double products = 0;
};

/// Values that the machine supplies: slots filled before a block starts.
enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NTidX,
  NTidY,
  NTidZ,
  CtaX,
  CtaY,
  CtaZ,
  NCtaX,
  NCtaY,
  NCtaZ,
  LaneId,
  WarpId,
  NWarps,
  LaneMaskEq,
  LaneMaskLe,
  LaneMaskLt,
  LaneMaskGe,
  LaneMaskGt,
  SharedBytes,
  DynamicSharedBytes,
  ClusterX, // the cluster's place in the grid
  ClusterY,
  ClusterZ,
  NClusterX, // clusters in the grid
  NClusterY,
  NClusterZ,
  ClusterCtaX, // the block's place in its cluster
  ClusterCtaY,
  ClusterCtaZ,
  ClusterNCtaX, // blocks of a cluster
  ClusterNCtaY,
  ClusterNCtaZ,
  ClusterRank, // the block's number in its cluster
  ClusterSize,
};
constexpr unsigned numSpecials = 36;

/// What a load or store through a generic pointer counts in shared and in
/// private memory follows what it counts in global memory.
constexpr uint32_t genericShared = 1, genericLocal = 2;
inline bool isGenericAccess(Code op) {
  return op == Code::LoadGeneric || op == Code::StoreGeneric;
}
/// How many statistics an operation has, the first of them `Inst::stat`.
inline uint32_t statsOf(Code op) { return isGenericAccess(op) ? 3 : 1; }

/// A constant: the same word (or two) in every lane.
struct Constant {
  uint32_t slot;
  bool wide;
  uint64_t value;
  /// An address in shared memory, which begins elsewhere for every block of a
  /// cluster.
  bool inShared = false;
};

/// A kernel parameter: `bytes` of the argument at `offset` into a slot, or,
/// if it is passed by value, the address of a copy of all of it.
struct Parameter {
  uint32_t index;  // which argument
  uint32_t offset; // bytes into it
  uint32_t bytes;  // 1, 2, 4 or 8
  uint32_t slot;
  bool byValue = false;
};

/// Memory of a launch that no argument names, of which a kernel may have the
/// address: AMD's sizes of grid and blocks, as arguments behind the kernel's
/// own or in the packet of the queue; the barrier of NVIDIA's cooperative
/// launches.
enum class Hidden : uint8_t { Arguments, Packet, GridBarrier };
constexpr unsigned numHidden = 3;

/// A decoded kernel.
struct Program {
  std::string name;
  Chip chip;
  std::vector<Inst> insts;
  std::vector<uint32_t> lists;
  std::vector<CodeBlock> blocks;
  /// What WarpCall does.
  std::vector<WarpOp> warpOps;
  std::vector<Origin> origins;
  std::vector<Constant> constants;
  std::vector<Parameter> parameters;
  /// Sizes of the arguments, in bytes.
  std::vector<uint32_t> argBytes;
  uint32_t specials[numSpecials];
  /// Slots for the addresses of the launch's own memory, or none.
  uint32_t hidden[numHidden] = {noSlot, noSlot, noSlot};
  uint32_t numSlots = 0;
  uint32_t numStats = 0;
  /// Shared memory: static bytes; the dynamic part starts after them.
  uint32_t staticShared = 0;
  /// Names of the shared variables: (first byte, bytes, name).
  struct SharedVar {
    uint32_t offset, bytes;
    std::string name;
  };
  std::vector<SharedVar> sharedVars;
  /// Buffers in shared memory whose elements have known places.
  std::vector<std::shared_ptr<const LdsBuffer>> ldsBuffers;
  /// Private memory a lane needs for its allocas.
  uint32_t localBytes = 0;
  /// Uses mbarriers, bulk copies, asynchronous products or setmaxnreg.
  bool async = false;
  /// Blocks of a cluster, where the launch says nothing else.
  uint32_t cluster[3] = {1, 1, 1};
  /// The kernel says so, and no launch may differ.
  bool clusterIsFixed = false;
  /// Uses what only whole warpgroups execute.
  bool usesGroups = false;
  /// Registers of a lane at the kernel's entry; 0: unknown.
  uint32_t entryRegisters = 0;

  /// Whether lanes that come to a block have nothing left but to return.
  bool onlyReturns(uint32_t block) const;
  /// The same of lanes that have executed an instruction.
  bool endsBehind(const Inst &inst) const;
};

/// Puts AmdCountVm after vector memory operations and AmdUse before the first
/// use of what an LDS operation brings, as LLVM's backend puts waits there.
void insertCounting(std::vector<std::vector<Inst>> &code,
                    std::vector<uint32_t> &lists);

/// Multiplications that the matrix unit does for a warp that executes `inst`,
/// in those of 16-bit operands: an operand of 8 bits takes half as long, one of
/// 32 twice. 0 for what is no product.
double matrixProducts(const Program &p, const Inst &inst);

/// Fills in `successors` and `join` of every block.
void computeJoins(Program &p);
/// Lets lanes that end alone do so before others come to a barrier, which waits
/// for those alone that have not ended. Needs the joins.
void orderSides(Program &p);

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_PROGRAM_H
