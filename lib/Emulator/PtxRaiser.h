//===- PtxRaiser.h - Operations for one piece of PTX ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_PTXRAISER_H
#define KVBUFFER_LIB_EMULATOR_PTXRAISER_H

#include "PtxText.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

namespace kvbuf::emu {

/// Raises one piece of text: barriers, copies and what stands alone
/// (RaisePtx.cpp), and products of the matrix unit (RaisePtxMatrix.cpp).
class PtxRaiser {
public:
  explicit PtxRaiser(mlir::LLVM::InlineAsmOp op)
      : op(op), builder(op), context(op.getContext()) {}

  /// The operation that does the same; null: there is none.
  mlir::Operation *run();
  /// The same for nothing but arithmetic.
  mlir::Operation *runArithmetic();
  /// Puts operations for each statement before the text and replaces its
  /// result. False: not all of it is known.
  bool runStatements();

private:
  bool readConstraints();
  mlir::Value value(const PtxOperand &o) {
    return o.kind == PtxOperand::Number && o.number < numbered.size() &&
                   !o.offset
               ? numbered[o.number]
               : mlir::Value();
  }
  /// The values in braces as a vector of words.
  mlir::Value wordsOf(const PtxOperand &o);
  /// The same, or a number of 32 bits.
  mlir::Value word(const PtxOperand &o) {
    auto n = o.kind == PtxOperand::Word ? constant(o) : std::nullopt;
    return n ? mlir::Value(mlir::LLVM::ConstantOp::create(
                   builder, op.getLoc(), builder.getI32Type(),
                   builder.getI32IntegerAttr(static_cast<int32_t>(*n))))
             : value(o);
  }
  /// The one value in brackets.
  mlir::Value memory(const PtxOperand &o) {
    return o.kind == PtxOperand::Memory && o.parts.size() == 1
               ? value(o.parts[0])
               : mlir::Value();
  }
  /// A pointer into a space, of one into another space or of an address in a
  /// register, whose bits count.
  mlir::Value pointer(mlir::Value v, unsigned space) {
    auto type = mlir::LLVM::LLVMPointerType::get(context, space);
    if (!v || v.getType() == type)
      return v;
    if (mlir::isa<mlir::LLVM::LLVMPointerType>(v.getType())) {
      if (space == 0)
        return mlir::LLVM::AddrSpaceCastOp::create(builder, op.getLoc(), type,
                                                   v);
      v = mlir::LLVM::PtrToIntOp::create(builder, op.getLoc(),
                                         builder.getI64Type(), v);
    }
    if (!v.getType().isInteger(32) && !v.getType().isInteger(64))
      return nullptr;
    return mlir::LLVM::IntToPtrOp::create(builder, op.getLoc(), type, v);
  }
  std::optional<int64_t> constant(const PtxOperand &o) {
    int64_t n;
    if (o.kind == PtxOperand::Word && !o.word.getAsInteger(10, n))
      return n;
    llvm::APInt found;
    mlir::Value v = value(o);
    if (v && mlir::matchPattern(v, mlir::m_ConstantInt(&found)) &&
        found.getSignificantBits() <= 64)
      return found.getSExtValue();
    return std::nullopt;
  }
  mlir::NamedAttribute attr(llvm::StringRef name, mlir::Attribute a) {
    return builder.getNamedAttr(name, a);
  }
  mlir::NamedAttribute segments(llvm::ArrayRef<int32_t> sizes) {
    return attr("operandSegmentSizes", builder.getDenseI32ArrayAttr(sizes));
  }
  mlir::Operation *make(llvm::StringRef name, mlir::ValueRange operands,
                        llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
                        mlir::TypeRange results = {}) {
    mlir::OperationState state(op.getLoc(), name);
    state.addOperands(operands);
    state.addAttributes(attributes);
    state.addTypes(results);
    return builder.create(state);
  }
  mlir::Operation *raiseMBarrier(const PtxInstruction &inst);
  mlir::Operation *raiseTensor(const PtxInstruction &inst);
  mlir::Operation *raiseCopy(const PtxInstruction &inst);
  mlir::Type wgmmaElement(llvm::StringRef name);
  mlir::Operation *raiseWgmma(const PtxInstruction &inst,
                              const PtxInstruction *compare);
  /// What `convert-kvbuffer-to-inline-asm` writes (KVBufferToInlineAsm.cpp): a
  /// committed group of products, and the wait for it.
  mlir::Operation *raiseGroup(llvm::ArrayRef<PtxInstruction> instructions);
  mlir::Operation *raiseGroupWait(const PtxInstruction &inst);
  /// An arrival and a word at another block's barrier; a transposed matrix.
  mlir::Operation *
  raiseClusterArrive(llvm::ArrayRef<PtxInstruction> instructions);
  mlir::Operation *
  raiseClusterStore(llvm::ArrayRef<PtxInstruction> instructions);
  mlir::Operation *
  raiseClusterCopy(llvm::ArrayRef<PtxInstruction> instructions);
  /// Vectors of four of the scalars that are tied to the results.
  llvm::SmallVector<mlir::Value> accumulators();
  /// The statement's result, a struct, of vectors of four.
  mlir::Operation *unpack(mlir::ResultRange vectors);
  /// A pointer into shared memory of a register.
  mlir::Value shared(const PtxOperand &o);
  mlir::Operation *raiseWideMad(const PtxInstruction &low,
                                const PtxInstruction &high);

  mlir::LLVM::InlineAsmOp op;
  mlir::OpBuilder builder;
  mlir::MLIRContext *context;
  /// The values that "$0", "$1", ... stand for; null for results.
  llvm::SmallVector<mlir::Value> numbered;
  /// For each result, the operand that is tied to it, or null.
  llvm::SmallVector<mlir::Value> tied;
};

} // namespace kvbuf::emu

#endif // KVBUFFER_LIB_EMULATOR_PTXRAISER_H
