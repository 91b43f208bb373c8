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

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace kvbuf::emu {

/// A part of a value: one slot, or two for a 64-bit part.
struct Comp {
  uint32_t slot = noSlot;
  bool wide = false;
  bool operator==(const Comp &) const = default;
};
using Comps = llvm::SmallVector<Comp, 4>;

/// Decodes `kernel` and the functions that it calls, which are inlined. On
/// failure the error has gone to MLIR's diagnostics, at the operation.
mlir::FailureOr<Program> decodeKernel(mlir::LLVM::LLVMFuncOp kernel,
                                      const Chip &chip);

/// The location that messages print: the file position nearest to `loc`.
std::string describeLocation(mlir::Location loc);

/// The class under which the report counts an operation by default.
Class defaultClass(Code op);

class Decoder {
public:
  Decoder(mlir::LLVM::LLVMFuncOp kernel, const Chip &chip) : kernel(kernel) {
    program.chip = chip;
  }
  mlir::FailureOr<Program> run();

private:
  // Decode.cpp: functions, blocks, branches.
  mlir::LogicalResult decodeParameters();
  mlir::LogicalResult decodeBody(mlir::Region &body,
                                 llvm::ArrayRef<Comps> arguments,
                                 uint32_t continuation,
                                 llvm::SmallVectorImpl<Comps> *results);
  mlir::LogicalResult decodeOp(mlir::Operation *op);
  mlir::LogicalResult decodeTerminator(mlir::Operation *op,
                                       uint32_t continuation,
                                       llvm::SmallVectorImpl<Comps> *results,
                                       bool singleReturn);
  mlir::LogicalResult decodeCall(mlir::LLVM::CallOp op);
  uint32_t edge(mlir::Block *dest, mlir::ValueRange operands);
  void moves(llvm::ArrayRef<Comp> dst, llvm::ArrayRef<Comp> src);
  void finish();

  // DecodeLLVM.cpp: arithmetic, conversions, aggregates.
  mlir::LogicalResult decodeLLVM(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeConstant(mlir::LLVM::ConstantOp op);
  mlir::LogicalResult decodeIntrinsicCall(mlir::LLVM::CallIntrinsicOp op);
  bool decodeInteger(mlir::Operation *op);
  bool decodeFloat(mlir::Operation *op);
  bool decodeReduction(mlir::Operation *op);
  mlir::LogicalResult decodeICmp(mlir::LLVM::ICmpOp op);
  mlir::LogicalResult decodeFCmp(mlir::LLVM::FCmpOp op);
  mlir::LogicalResult decodeSelect(mlir::LLVM::SelectOp op);
  bool decodeConversion(mlir::Operation *op);
  mlir::LogicalResult decodeBitcast(mlir::LLVM::BitcastOp op);
  bool decodeAggregate(mlir::Operation *op);
  mlir::LogicalResult floatOp(mlir::Operation *op, Code op32, Code op64,
                              mlir::ValueRange operands);

  // DecodeMemory.cpp: addresses, loads, stores.
  mlir::LogicalResult decodeMemory(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeGep(mlir::LLVM::GEPOp op);
  mlir::LogicalResult decodeAccess(mlir::Operation *op, mlir::Value pointer,
                                   mlir::Type type, uint64_t alignment,
                                   Comps &data, bool store);
  mlir::LogicalResult decodeAddressOf(mlir::LLVM::AddressOfOp op);
  mlir::LogicalResult decodeAlloca(mlir::LLVM::AllocaOp op);

  mlir::LogicalResult decodeAtomic(mlir::LLVM::AtomicRMWOp op);
  mlir::LogicalResult decodeAsm(mlir::LLVM::InlineAsmOp op);

  // DecodeNVVM.cpp.
  mlir::LogicalResult decodeNVVM(mlir::Operation *op, bool &known);

  // DecodeROCDL.cpp: everything that AMD's kernels have of their own.
  mlir::LogicalResult decodeROCDL(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeAmdgcn(mlir::Operation *op, llvm::StringRef name,
                                   bool &known);
  mlir::LogicalResult decodeLaneMap(mlir::Operation *op, mlir::Value old,
                                    mlir::Value source, bool zero,
                                    llvm::function_ref<uint32_t(uint32_t)> map);
  mlir::LogicalResult decodeDPP(mlir::Operation *op, mlir::Value old,
                                mlir::Value source, uint32_t control,
                                uint32_t rows, uint32_t banks, bool zero);
  mlir::LogicalResult decodeSwizzle(mlir::Operation *op);
  mlir::LogicalResult decodeMfma(mlir::Operation *op, llvm::StringRef shape);
  // DecodeBuffers.cpp.
  mlir::LogicalResult decodeBuffers(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeBufferAccess(mlir::Operation *op, Comps rsrc,
                                         Comp offset, Comp waveOffset,
                                         int64_t constant, mlir::Type type,
                                         Comps &data, bool store);
  mlir::LogicalResult decodeLdsCopy(mlir::Operation *op, mlir::Value lds,
                                    Comps source, Comp offset, Comp waveOffset,
                                    int64_t size, int64_t constant);
  mlir::LogicalResult decodeFatPointer(mlir::Operation *op, bool &known);
  // DecodeHopper.cpp, DecodeWgmma.cpp.
  mlir::LogicalResult decodeHopper(mlir::Operation *op, bool &known);
  mlir::LogicalResult decodeEntryRegisters(mlir::Operation *op);
  Comp sharedPointer(mlir::Value v);
  Inst &emitAsync(Code code);
  mlir::LogicalResult decodeKVBuffer(mlir::Operation *op);
  mlir::LogicalResult decodeWgmma(mlir::Operation *op, bool &known);
  mlir::LogicalResult needMatrixGroups(mlir::Operation *op);
  void checkProducts();

  // Values.
  /// How a type is laid out in slots: one flag (wide) a part. Empty: not
  /// supported.
  Comps shape(mlir::Type type);
  Comps allocate(mlir::Type type);
  Comp allocate(bool wide);
  /// The parts of a value; an address with a pending offset is made whole.
  Comps get(mlir::Value v);
  Comp getScalar(mlir::Value v) { return get(v).front(); }
  /// Base and constant offset of an address.
  std::pair<Comp, int64_t> getAddress(mlir::Value v);
  void set(mlir::Value v, Comps comps) {
    values[v] = std::move(comps);
    offsets.erase(v);
  }
  Comp constant(uint64_t value, bool wide = false);
  /// The elements of a vector (or the one scalar), one part each.
  Comps unpack(mlir::Value v);
  Comps unpack(llvm::ArrayRef<Comp> comps, mlir::Type type);
  /// The opposite.
  Comps pack(llvm::ArrayRef<Comp> elements, mlir::Type type);
  /// The same for floating point of 16 bits as fp32 numbers.
  Comps unpackFloats(mlir::Value v);
  Comps packFloats(llvm::ArrayRef<Comp> elements, mlir::Type type);
  uint64_t sizeOf(mlir::Type type);
  uint64_t alignOf(mlir::Type type);

  // Instructions.
  Inst &emit(Code op);
  Comp emit(Code op, bool wide, Comp a, Comp b = {}, Comp c = {},
            int64_t imm = 0);
  /// The same, counted as nothing.
  Comp emitFree(Code op, bool wide, Comp a, Comp b = {}, Comp c = {},
                int64_t imm = 0);
  void list(Inst &inst, llvm::ArrayRef<Comp> comps);
  uint32_t newBlock();
  mlir::LogicalResult unsupported(mlir::Operation *op,
                                  const llvm::Twine &why = "");

  mlir::LLVM::LLVMFuncOp kernel;
  Program program;
  llvm::DenseMap<mlir::Value, Comps> values;
  llvm::DenseMap<mlir::Value, int64_t> offsets;
  llvm::DenseMap<mlir::Block *, uint32_t> blockIds;
  llvm::DenseMap<std::pair<uint64_t, unsigned>, Comp> constants;
  llvm::DenseMap<mlir::Operation *, Comp> sharedAddress;
  std::vector<std::vector<Inst>> code;
  std::vector<uint32_t> dynamicSharedSlots;
  uint32_t dynamicSharedAlign = 16;
  llvm::SmallVector<mlir::Operation *> callStack;
  uint32_t current = 0;
  uint32_t origin = 0;
};

/// Element type of a vector, or the type itself.
mlir::Type elementOf(mlir::Type type);
/// Bits of an integer or floating-point element; pointers by address space.
unsigned bitsOf(mlir::Type type);
/// Whether an address of this space fits one slot: shared memory, that of a
/// cluster (here, of one block), and private memory.
inline bool isNarrowSpace(unsigned space) {
  return space == 3 || space == 5 || space == 7;
}

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_DECODER_H
