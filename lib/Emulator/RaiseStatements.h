//===- RaiseStatements.h - PTX, statement by statement ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_RAISESTATEMENTS_H
#define KVBUFFER_LIB_EMULATOR_RAISESTATEMENTS_H

#include "PtxText.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

namespace kvbuf::emu {

/// "u32", "b16", "f64", "f16x2", "pred".
struct PtxType {
  char kind; // b, u, s or f
  unsigned bits;
  bool pair = false;
};

/// Null: no such type.
std::optional<PtxType> parseType(llvm::StringRef text);

/// Raises the statements of one piece of text.
class StatementRaiser {
public:
  StatementRaiser(mlir::LLVM::InlineAsmOp op,
                  llvm::ArrayRef<mlir::Value> numbered)
      : op(op), loc(op.getLoc()), b(op), numbered(numbered) {}

  /// Whether all are known. Operations stand before the text then, and its
  /// result is replaced.
  bool run(llvm::ArrayRef<PtxInstruction> instructions);

private:
  bool guarded(const PtxInstruction &inst);
  bool raise(const PtxInstruction &inst);
  bool raiseMove(const std::vector<PtxOperand> &o);
  bool raiseConvert(llvm::StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseAddress(llvm::StringRef opcode, const std::vector<PtxOperand> &o);
  bool raisePair(llvm::StringRef to, llvm::StringRef from,
                 llvm::StringRef rounding, bool finite, bool relu,
                 const std::vector<PtxOperand> &o);
  bool raiseFloat(llvm::StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseInteger(llvm::StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseBits(llvm::StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseCounts(llvm::StringRef head, const PtxType &type,
                   const std::vector<PtxOperand> &o);
  bool raiseWideProduct(llvm::StringRef head, const PtxType &type,
                        const std::vector<PtxOperand> &o);
  bool raiseLanes(llvm::StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseMap(llvm::StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseMapField(llvm::StringRef field, const std::vector<PtxOperand> &o,
                     unsigned space);
  bool raiseBarrierObject(llvm::StringRef opcode,
                          const std::vector<PtxOperand> &o);
  bool raiseBulk(llvm::StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseAsyncFence(llvm::StringRef opcode,
                       const std::vector<PtxOperand> &o);
  bool raiseGroupWait(const std::vector<PtxOperand> &o);
  bool raiseAccess(llvm::StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseAtomic(llvm::StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseMatrixLoad(llvm::StringRef opcode,
                       const std::vector<PtxOperand> &o);
  bool raiseProduct(llvm::StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseCopy(llvm::StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseSync(llvm::StringRef opcode, const std::vector<PtxOperand> &o);
  bool finish();

  /// "f16", "bf16x2", "f64"; null: none.
  mlir::Type floatOf(llvm::StringRef name);
  mlir::Value call(const llvm::Twine &name, mlir::ValueRange operands,
                   mlir::Type result);
  mlir::Value roundedCall(llvm::StringRef what, llvm::StringRef how,
                          bool flushes, bool saturates,
                          llvm::ArrayRef<mlir::Value> x);
  mlir::Value roundedToInteger(mlir::Value x, llvm::StringRef rounding);
  mlir::Type integer(unsigned bits) { return b.getIntegerType(bits); }
  mlir::Type typeOf(const PtxType &t) {
    if (t.kind != 'f' || t.pair)
      return integer(t.bits);
    return t.bits == 64   ? mlir::Type(b.getF64Type())
           : t.bits == 32 ? mlir::Type(b.getF32Type())
                          : mlir::Type(b.getF16Type());
  }
  mlir::Value number(mlir::Type type, int64_t n) {
    return mlir::LLVM::ConstantOp::create(b, loc, type,
                                          b.getIntegerAttr(type, n));
  }
  /// A value of as many bits as an integer.
  mlir::Value bitsOf(mlir::Value v);
  mlir::Value convert(mlir::Value v, mlir::Type type);
  mlir::Value raw(const PtxOperand &o);
  mlir::Value special(llvm::StringRef name);
  mlir::Value get(const PtxOperand &o, mlir::Type type) {
    return convert(raw(o), type);
  }
  std::optional<int64_t> constant(const PtxOperand &o);
  bool set(const PtxOperand &o, mlir::Value v);
  /// The pointer of "[...]".
  mlir::Value pointer(const PtxOperand &o, unsigned space);
  mlir::Operation *make(llvm::StringRef name, mlir::ValueRange operands,
                        llvm::ArrayRef<mlir::NamedAttribute> attributes = {},
                        mlir::TypeRange results = {}) {
    mlir::OperationState state(loc, name);
    state.addOperands(operands);
    state.addAttributes(attributes);
    state.addTypes(results);
    return b.create(state);
  }
  mlir::NamedAttribute attr(llvm::StringRef name, mlir::Attribute a) {
    return b.getNamedAttr(name, a);
  }

  mlir::LLVM::InlineAsmOp op;
  mlir::Location loc;
  mlir::OpBuilder b;
  /// Outputs, null until they are set, and inputs: "$3".
  llvm::SmallVector<mlir::Value> numbered;
  llvm::StringMap<mlir::Value> names;
};

} // namespace kvbuf::emu

#endif // KVBUFFER_LIB_EMULATOR_RAISESTATEMENTS_H
