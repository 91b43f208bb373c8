//===- Decoder.h - From MLIR to the emulator's program ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_DECODER_H
#define KVBUF_LIB_EMULATOR_DECODER_H

#include "Program.h"
#include "Variables.h"

#include "kvbuffer/Emulator/Emulator.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace kvbuf::emu {

/// A part of a value: one slot, or two for a 64-bit part.
struct Comp {
  uint32_t slot = noSlot;
  bool wide = false;
  bool operator==(const Comp &) const = default;
};
using Comps = llvm::SmallVector<Comp, 4>;

/// How a type lies in slots and in memory. Numbers saturate.
struct TypeInfo {
  /// 32-bit slots of a lane; 0: no slots hold such values.
  uint64_t slots = 0;
  /// Bytes in memory, and their alignment; 0: no memory holds such values.
  uint64_t size = 0, align = 0;
  /// Types that it is made of, itself included, however often they recur.
  uint64_t nodes = 1;
};

/// Decodes `kernel` and the functions that it calls, which are inlined. The
/// module has been verified by MLIR, and is trusted no further: what the
/// emulator does not know, or what goes beyond the limits of `options`, is an
/// error that has gone to MLIR's diagnostics, at the operation.
mlir::FailureOr<Program> decodeKernel(mlir::LLVM::LLVMFuncOp kernel,
                                      const Chip &chip, const Options &options,
                                      Variables &variables);

/// Why an interpreter must not run `program`: the operation's number in
/// `Program::origins`, and what is wrong with it. Nothing: every slot, list,
/// block and statistic that an instruction names exists.
std::optional<std::pair<uint32_t, std::string>>
findUnsafeInst(const Program &program);

/// The value of an operand that must be a constant; none, if it is not one.
std::optional<int64_t> constantOf(mlir::Value v);

/// The location that messages print: the file position nearest to `loc`.
std::string describeLocation(mlir::Location loc);

/// Whether the decoder knows what follows "mfma.", "wmma." or "cvt." in a name
/// of AMD's.
bool isAmdMfma(llvm::StringRef name);
bool isAmdWmma(llvm::StringRef name);
bool isAmdFloat8(llvm::StringRef name);

/// The functions without a body that kernels may call, by name.
std::vector<std::string> libraryFunctions();
/// Those of numbers.
void addNumberFunctions(std::vector<std::string> &names);

/// The class under which the report counts an operation by default.
Class defaultClass(Code op);

/// An immediate: an attribute of the dialect's operation, or a constant operand
/// of the intrinsic; none if it is neither.
std::optional<int64_t> immediate(mlir::Operation *op, llvm::StringRef attribute,
                                 unsigned operand);

class Decoder {
public:
  Decoder(mlir::LLVM::LLVMFuncOp kernel, const Chip &chip,
          const Options &options, Variables &variables)
      : kernel(kernel), options(options), variables(variables) {
    program.chip = chip;
  }
  mlir::FailureOr<Program> run();

private:
  // Decode.cpp: functions, blocks, branches.
  mlir::LogicalResult decodeParameters();
  bool placeParameter(mlir::Type type, uint32_t index, uint64_t offset,
                      llvm::ArrayRef<Comp> comps, uint32_t &next);
  mlir::LogicalResult decodeBody(mlir::Region &body,
                                 llvm::ArrayRef<Comps> arguments,
                                 uint32_t continuation,
                                 llvm::SmallVectorImpl<Comps> *results);
  mlir::LogicalResult decodeOp(mlir::Operation *op);
  mlir::LogicalResult decodeTerminator(mlir::Operation *op,
                                       uint32_t continuation,
                                       llvm::SmallVectorImpl<Comps> *results,
                                       bool singleReturn);
  mlir::LogicalResult decodeByOp(mlir::Operation *op);
  uint32_t edge(mlir::Block *dest, mlir::ValueRange operands);
  void moves(llvm::ArrayRef<Comp> dst, llvm::ArrayRef<Comp> src);
  void describeOrigins();
  void finish();

  // DecodeFunctions.cpp: calls of the module's own functions.
  mlir::LogicalResult decodeCall(mlir::LLVM::CallOp op);
  mlir::LogicalResult decodeIndirectCall(mlir::LLVM::CallOp op);
  mlir::LogicalResult inlineCall(mlir::LLVM::CallOp op,
                                 mlir::LLVM::LLVMFuncOp callee,
                                 llvm::ArrayRef<Comps> arguments,
                                 Comps &result);
  /// What a pointer to a function holds: the same in all kernels of a module.
  uint64_t functionAddress(mlir::LLVM::LLVMFuncOp function);

  // DecodeLLVM.cpp: arithmetic, conversions, aggregates.
  mlir::LogicalResult decodeLLVM(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeConstant(mlir::LLVM::ConstantOp op);
  mlir::LogicalResult decodeIntrinsicCall(mlir::LLVM::CallIntrinsicOp op);
  bool decodeInteger(mlir::Operation *op);
  bool decodeFloat(mlir::Operation *op);
  bool decodeReduction(mlir::Operation *op);
  bool decodeTwoResults(mlir::Operation *op);
  bool decodeFloatClass(mlir::Operation *op);
  mlir::LogicalResult decodeICmp(mlir::LLVM::ICmpOp op);
  mlir::LogicalResult decodeFCmp(mlir::LLVM::FCmpOp op);
  mlir::LogicalResult decodeSelect(mlir::LLVM::SelectOp op);
  bool decodeConversion(mlir::Operation *op);
  mlir::LogicalResult decodeBitcast(mlir::LLVM::BitcastOp op);
  bool decodeAggregate(mlir::Operation *op);
  bool decodeVectorParts(mlir::Operation *op);
  /// Integer functions that depend on the width (DecodeBits.cpp).
  bool decodeBits(mlir::Operation *op);
  struct Bits;
  mlir::LogicalResult floatOp(mlir::Operation *op, Code op32, Code op64,
                              mlir::ValueRange operands);

  // DecodeMemory.cpp: addresses, loads, stores.
  mlir::LogicalResult decodeMemory(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeGep(mlir::LLVM::GEPOp op);
  mlir::LogicalResult decodeGepVector(mlir::LLVM::GEPOp op);
  mlir::LogicalResult moveAddress(mlir::LLVM::GEPOp op, unsigned lane,
                                  Comp &base, uint64_t &offset);
  mlir::LogicalResult decodeAccess(mlir::Operation *op, mlir::Value pointer,
                                   mlir::Type type, uint64_t alignment,
                                   Comps &data, bool store, int64_t more = 0);
  /// The same at an address in a space: its base and its constant offset.
  mlir::LogicalResult decodeAccess(mlir::Operation *op, unsigned space,
                                   std::pair<Comp, int64_t> place,
                                   mlir::Type type, uint64_t alignment,
                                   Comps &data, bool store);
  mlir::LogicalResult decodeBitVector(mlir::Operation *op, unsigned space,
                                      std::pair<Comp, int64_t> place,
                                      mlir::VectorType type, uint64_t alignment,
                                      Comps &data, bool store);
  mlir::LogicalResult decodeMasked(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeCopy(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeAddressOf(mlir::LLVM::AddressOfOp op);
  mlir::LogicalResult decodeAlloca(mlir::LLVM::AllocaOp op);

  mlir::LogicalResult decodeAtomic(mlir::LLVM::AtomicRMWOp op);
  mlir::LogicalResult decodeAsm(mlir::LLVM::InlineAsmOp op);

  // DecodeOrder.cpp: which threads an operation orders, and how.
  mlir::LogicalResult decodeScope(mlir::Operation *op,
                                  std::optional<llvm::StringRef> name,
                                  Scope &scope);
  mlir::LogicalResult decodeOrder(mlir::Operation *op,
                                  mlir::LLVM::AtomicOrdering ordering,
                                  std::optional<llvm::StringRef> scopeName,
                                  bool isVolatile, bool isInvariant,
                                  uint8_t &order, Scope &scope);
  mlir::LogicalResult decodeFence(mlir::LLVM::FenceOp op);
  mlir::LogicalResult decodeCompareExchange(mlir::LLVM::AtomicCmpXchgOp op);
  /// Whether a plain load is the first guess of a loop that exchanges the value
  /// where it finds it still, as memref.generic_atomic_rmw becomes.
  bool isFirstGuess(mlir::LLVM::LoadOp op);
  /// A fence as one instruction of assembly. False: it is none that is known.
  bool decodeFenceText(llvm::StringRef text);
  /// NVIDIA's own fences. False: it is none.
  bool decodeFenceOp(mlir::Operation *op);
  void emitFence(uint8_t order, Scope scope);

  // DecodeNVVM.cpp.
  mlir::LogicalResult decodeNVVM(mlir::Operation *op, bool &known);

  // DecodeCalls.cpp.
  /// Calls a function of HostMath.h by its name. False: there is none that
  /// takes such operands.
  bool laneCall(llvm::StringRef name, llvm::ArrayRef<Comp> operands,
                Comps &results, unsigned flags = 0);
  /// The same where there has to be one; its one result.
  Comp laneCall(llvm::StringRef name, llvm::ArrayRef<Comp> operands,
                unsigned flags = 0);
  bool elementwise(mlir::Operation *op, llvm::StringRef name,
                   unsigned flags = 0);
  mlir::LogicalResult decodeExternalCall(mlir::LLVM::CallOp op,
                                         llvm::StringRef name, bool &known);
  // DecodeLibrary.cpp.
  mlir::LogicalResult decodeNumberCall(mlir::LLVM::CallOp op,
                                       llvm::StringRef name, bool &known);
  // DecodeIntrinsics.cpp.
  mlir::LogicalResult decodeNvvmIntrinsic(mlir::LLVM::CallIntrinsicOp op,
                                          bool &known);
  // DecodeMatrix.cpp: products of all types, reductions, matches.
  void emitWarpOp(const WarpOp &op, llvm::ArrayRef<Comp> parts);
  mlir::LogicalResult decodeProduct(mlir::Operation *op, WarpOp w,
                                    llvm::ArrayRef<mlir::Value> a,
                                    llvm::ArrayRef<mlir::Value> b,
                                    llvm::ArrayRef<mlir::Value> c);
  mlir::LogicalResult decodeFragment(mlir::Operation *op, WarpOp w,
                                     mlir::Value pointer, mlir::ValueRange data,
                                     mlir::Value stride);
  mlir::LogicalResult decodeMatrixIntrinsic(mlir::LLVM::CallIntrinsicOp op,
                                            llvm::StringRef name, bool &known);
  mlir::LogicalResult decodeMatrixOp(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeRedux(mlir::Operation *op, Redux kind,
                                  mlir::Value value, mlir::Value mask);
  mlir::LogicalResult decodeMatch(mlir::Operation *op, bool all,
                                  mlir::Value value, mlir::Value mask);
  bool decodeRounded(mlir::LLVM::CallIntrinsicOp op, llvm::StringRef name);
  // DecodeGlobals.cpp: variables outside of shared memory.
  mlir::LogicalResult decodeGlobal(mlir::LLVM::AddressOfOp op,
                                   mlir::LLVM::GlobalOp global);
  /// Where a variable lies, which gets its place and its initial value when
  /// it has none. Nothing: that has been reported at `op`.
  std::optional<uint64_t> placeVariable(mlir::Operation *op,
                                        mlir::LLVM::GlobalOp global);

  // DecodeROCDL.cpp: everything that AMD's kernels have of their own.
  mlir::LogicalResult decodeROCDL(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeAmdgcn(mlir::Operation *op, llvm::StringRef name,
                                   bool &known);
  /// Conversions of AMD's 8-bit floats (DecodeConversion.cpp).
  mlir::LogicalResult decodeAmdFloat8(mlir::Operation *op, llvm::StringRef name,
                                      bool &known);
  mlir::LogicalResult decodeScaledFloat8(mlir::Operation *op, bool pair,
                                         bool to8, unsigned flags,
                                         int64_t place);
  mlir::LogicalResult decodeLaneMap(mlir::Operation *op, mlir::Value old,
                                    mlir::Value source, bool zero,
                                    llvm::function_ref<uint32_t(uint32_t)> map);
  mlir::LogicalResult decodeDPP(mlir::Operation *op, mlir::Value old,
                                mlir::Value source, uint32_t control,
                                uint32_t rows, uint32_t banks, bool zero);
  mlir::LogicalResult decodeSetRegister(mlir::Operation *op);
  mlir::LogicalResult decodePermLane16(mlir::Operation *op, bool other);
  mlir::LogicalResult decodeSwizzle(mlir::Operation *op);
  mlir::LogicalResult decodeMfma(mlir::Operation *op, llvm::StringRef shape);
  // DecodeAmdMatrix.cpp.
  Comps registersOf(mlir::Value v, bool isDouble);
  mlir::LogicalResult decodeAmdProduct(mlir::Operation *op, WarpOp w,
                                       mlir::Value a, mlir::Value b,
                                       mlir::Value c,
                                       llvm::ArrayRef<mlir::Value> scales = {});
  mlir::LogicalResult decodeAmdWmma(mlir::Operation *op, llvm::StringRef name);
  mlir::LogicalResult decodeAnyMfma(mlir::Operation *op, llvm::StringRef name);
  // DecodeBuffers.cpp.
  mlir::LogicalResult decodeBuffers(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeBufferAccess(mlir::Operation *op, Comps rsrc,
                                         Comp offset, Comp waveOffset,
                                         int64_t constant, mlir::Type type,
                                         Comps &data, bool store);
  mlir::LogicalResult decodeTurnedRead(mlir::Operation *op,
                                       mlir::Value pointer);
  mlir::LogicalResult decodeLdsCopy(mlir::Operation *op, mlir::Value lds,
                                    Comps source, Comp offset, Comp waveOffset,
                                    int64_t size, int64_t constant);
  mlir::LogicalResult decodeFatPointer(mlir::Operation *op, bool &known);
  /// Elements of vectors of pointers into buffers. False: it has none.
  bool decodeBufferVector(mlir::Operation *op);
  // DecodeHopper.cpp, DecodeWgmma.cpp.
  mlir::LogicalResult decodeHopper(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeEntryRegisters(mlir::Operation *op);
  Comp sharedPointer(mlir::Value v);
  Inst &emitAsync(Code code);
  mlir::LogicalResult decodeKVBuffer(mlir::Operation *op);
  mlir::LogicalResult decodeWgmma(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeWgmmaCall(mlir::LLVM::CallIntrinsicOp op,
                                      llvm::StringRef name);
  mlir::LogicalResult decodeGroupWait(mlir::LLVM::CallIntrinsicOp op);
  mlir::LogicalResult needMatrixGroups(mlir::Operation *op);
  void checkProducts();

  // Values.
  /// How a type is laid out in slots: one flag (wide) a part. Empty: not
  /// supported, or more than a value may have.
  Comps shape(mlir::Type type);
  /// The parts of a pointer to or into one of AMD's buffers; 0: it is none.
  unsigned bufferParts(mlir::Type type);
  Comps allocate(mlir::Type type);
  Comp allocate(bool wide);
  /// The parts of a value; an address with a pending offset is made whole.
  Comps get(mlir::Value v);
  /// The one part of a value: of any width, of 32 bits, of 64 bits.
  Comp getScalar(mlir::Value v);
  Comp getNarrow(mlir::Value v);
  Comp getWide(mlir::Value v);
  /// Base and constant offset of an address.
  std::pair<Comp, int64_t> getAddress(mlir::Value v);
  /// Gives a value its parts, which have to be those of its type.
  void set(mlir::Value v, Comps comps);
  Comp constant(uint64_t value, bool wide = false);
  /// The address of memory of the launch that no argument names.
  Comp hidden(Hidden what);
  /// The elements of a vector (or the one scalar), one part each.
  Comps unpack(mlir::Value v);
  Comps unpack(llvm::ArrayRef<Comp> comps, mlir::Type type);
  /// The opposite.
  Comps pack(llvm::ArrayRef<Comp> elements, mlir::Type type);
  /// The same for floating point of 16 bits as fp32 numbers.
  Comps unpackFloats(mlir::Value v);
  Comps packFloats(llvm::ArrayRef<Comp> elements, mlir::Type type);
  TypeInfo infoOf(mlir::Type type, unsigned depth = 0);
  uint64_t sizeOf(mlir::Type type);
  uint64_t alignOf(mlir::Type type);
  /// The type for a message.
  std::string describe(mlir::Type type);

  // Checks (DecodeChecks.cpp). What fails is reported at the operation that is
  // being decoded, once; decoding goes on with values that exist, and ends
  // after the operation.
  void fail(const llvm::Twine &why);
  /// Whether an operation's results and operands are those of a signature,
  /// "results=operands", a letter each:
  ///   i, b, f  i32, i1, f32        s  one register or pair of registers
  ///   w        one register        x  one type, the same wherever x stands
  ///   v        anything            *  at the end: any number of any type
  bool fits(mlir::Operation *op, llvm::StringRef what,
            llvm::StringRef signature);
  /// Whether two lists of parts are equally long.
  bool alike(llvm::ArrayRef<Comp> a, llvm::ArrayRef<Comp> b);
  /// An alignment that is a power of two, else 1.
  uint64_t aligned(uint64_t alignment);
  /// A number of groups that a wait lets be; 0 after an error.
  int64_t pendingGroups(int64_t n);
  /// Whether what has been decoded so far keeps to the limits.
  void checkLimits();

  // Instructions.
  Inst &emit(Code op);
  Comp emit(Code op, bool wide, Comp a, Comp b = {}, Comp c = {},
            int64_t imm = 0);
  /// A barrier (slots of its number and threads, or none) at which all learn
  /// what their predicates have come to.
  Comp reduceAtBarrier(uint32_t id, uint32_t threads, Comp predicate,
                       Reduction kind);
  /// The same, counted as nothing.
  Comp emitFree(Code op, bool wide, Comp a, Comp b = {}, Comp c = {},
                int64_t imm = 0);
  void list(Inst &inst, llvm::ArrayRef<Comp> comps);
  uint32_t newBlock();
  mlir::LogicalResult unsupported(mlir::Operation *op,
                                  const llvm::Twine &why = "");

  mlir::LLVM::LLVMFuncOp kernel;
  const Options &options;
  Variables &variables;
  Program program;
  /// The operation that is being decoded, and whether it failed.
  mlir::Operation *here = nullptr;
  /// Conversions to AMD's 8-bit floats give the largest number for more.
  bool clampsFloat8 = false;
  bool broken = false;
  /// Parts of values, instructions and list entries so far.
  uint64_t parts = 0, insts = 0;
  llvm::DenseMap<mlir::Type, TypeInfo> types;
  llvm::DenseMap<mlir::Value, Comps> values;
  llvm::DenseMap<mlir::Value, int64_t> offsets;
  llvm::DenseMap<mlir::Block *, uint32_t> blockIds;
  llvm::DenseMap<std::pair<uint64_t, unsigned>, Comp> constants;
  llvm::DenseMap<mlir::Operation *, Comp> sharedAddress;
  /// The numbers of the module's functions; empty before one is asked for.
  llvm::DenseMap<mlir::Operation *, uint64_t> functions;
  std::vector<std::vector<Inst>> code;
  std::vector<uint32_t> dynamicSharedSlots;
  uint32_t dynamicSharedAlign = 16;
  llvm::SmallVector<mlir::Operation *> callStack;
  uint32_t current = 0;
  uint32_t origin = 0;
  /// What the program's origins are, but for the first one, the kernel.
  std::vector<mlir::Operation *> originOps;
};

/// Element type of a vector, or the type itself.
mlir::Type elementOf(mlir::Type type);
/// Bits of an integer or floating-point element; pointers by address space. 0:
/// a type that no register holds.
unsigned bitsOf(mlir::Type type);
/// Whether an address of this space fits one slot: shared memory, that of a
/// cluster (here, of one block), and private memory.
inline bool isNarrowSpace(unsigned space) {
  return space == 3 || space == 5 || space == 7;
}

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_DECODER_H
