//===- KVBufferToInlineAsm.cpp - Instructions that LLVM lacks -------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What is left of the dialect at the target stage, on the way out of MLIR. A
/// group of products is one statement of assembly: the fence of the
/// accumulator registers, the instructions, the commit. The accumulators are
/// tied operands, so that LLVM sees one register hold each through all of it
/// and never copies one that is in flight. PTX ISA: "wgmma.mma_async",
/// "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group".
///
//===----------------------------------------------------------------------===//

#include "kvbuffer/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringExtras.h"

namespace kvbuf {
#define GEN_PASS_DEF_CONVERTKVBUFFERTOINLINEASM
#include "kvbuffer/Conversion/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

/// The elements of vectors, one after the other.
static SmallVector<Value> scalars(ImplicitLocOpBuilder &b, ValueRange vectors) {
  SmallVector<Value> result;
  for (Value vector : vectors) {
    auto type = cast<VectorType>(vector.getType());
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      result.push_back(LLVM::ExtractElementOp::create(
          b, vector,
          LLVM::ConstantOp::create(b, b.getI32Type(), b.getI32IntegerAttr(i))));
  }
  return result;
}

/// Vectors of the types of `like` from elements.
static SmallVector<Value> vectors(ImplicitLocOpBuilder &b,
                                  ArrayRef<Value> elements, TypeRange like) {
  SmallVector<Value> result;
  size_t next = 0;
  for (Type type : like) {
    Value vector = LLVM::PoisonOp::create(b, type);
    for (int64_t i = 0; i < cast<VectorType>(type).getNumElements(); ++i)
      vector = LLVM::InsertElementOp::create(
          b, vector, elements[next++],
          LLVM::ConstantOp::create(b, b.getI32Type(), b.getI32IntegerAttr(i)));
    result.push_back(vector);
  }
  return result;
}

/// A statement that yields `count` f32; operands come in the order of their
/// constraints.
static SmallVector<Value> assembly(ImplicitLocOpBuilder &b, StringRef text,
                                   ArrayRef<std::string> constraints,
                                   ValueRange operands, size_t count) {
  Type f32 = b.getF32Type();
  Type type = count == 1 ? f32
                         : Type(LLVM::LLVMStructType::getLiteral(
                               b.getContext(), SmallVector<Type>(count, f32)));
  auto op = LLVM::InlineAsmOp::create(
      b, type, operands, text, llvm::join(constraints, ","),
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  SmallVector<Value> result;
  for (size_t i = 0; i < count; ++i)
    result.push_back(count == 1 ? op.getResult(0)
                                : Value(LLVM::ExtractValueOp::create(
                                      b, op.getResult(0), i)));
  return result;
}

/// "{$first, $first+1, ...}"
static std::string registers(size_t first, size_t count) {
  std::string text = "{";
  for (size_t i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + "}";
}

/// A type of operands as PTX names it.
static StringRef ptxName(Type element) {
  return isa<Float8E4M3FNType>(element) ? "e4m3"
         : isa<Float8E5M2Type>(element) ? "e5m2"
         : element.isBF16()             ? "bf16"
                                        : "f16";
}

static void lowerProduct(WgmmaOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  size_t count = op.getN() / 2;
  bool zero = op.getC().empty(), descriptors = bool(op.getADesc());
  bool areBytes = op.getElement().getIntOrFloatBitWidth() == 8;

  // Operands: results, then a, then b, then the accumulators.
  SmallVector<std::string> constraints;
  SmallVector<Value> operands;
  // What writes its results before it has read all of a must not share
  // registers with it.
  for (size_t i = 0; i < count; ++i)
    constraints.push_back(zero && !descriptors ? "=&f" : "=f");
  size_t a = count;
  if (descriptors) {
    constraints.push_back("l");
    operands.push_back(op.getADesc());
  }
  for (Value word : op.getA()) {
    constraints.push_back("r");
    operands.push_back(LLVM::BitcastOp::create(b, b.getI32Type(), word));
  }
  size_t bDesc = a + operands.size();
  constraints.push_back("l");
  operands.push_back(op.getBDesc());
  SmallVector<Value> accumulators = scalars(b, op.getC());
  for (size_t i = 0; i < accumulators.size(); ++i)
    constraints.push_back(std::to_string(i));
  llvm::append_range(operands, accumulators);

  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{\n.reg .pred zero;\n.reg .pred add;\n.reg .b64 a;\n.reg .b64 b;\n"
     << "setp.ne.b32 zero, 0, 0;\nsetp.ne.b32 add, 1, 0;\n"
     << "wgmma.fence.sync.aligned;\n";
  for (auto [step, bStep] : llvm::enumerate(op.getBSteps())) {
    if (descriptors)
      os << "add.s64 a, $" << a << ", " << op.getASteps()[step] << ";\n";
    os << "add.s64 b, $" << bDesc << ", " << bStep << ";\n"
       << "wgmma.mma_async.sync.aligned.m64n" << op.getN()
       << (areBytes ? "k32" : "k16") << ".f32." << ptxName(op.elementOfA())
       << "." << ptxName(op.getElement()) << " " << registers(0, count) << ", ";
    if (descriptors)
      os << "a";
    else
      os << registers(a + 4 * step, 4);
    // After b: whether D is added to, the signs of a and b, and which operands
    // in LDS are transposed; in registers a never is, nor are 8-bit elements.
    os << ", b, " << (zero && step == 0 ? "zero" : "add") << ", 1, 1";
    if (!areBytes)
      os << (descriptors ? ", 0" : "") << ", " << (op.getTransposeB() ? 1 : 0);
    os << ";\n";
  }
  os << "wgmma.commit_group.sync.aligned;\n}";
  op->replaceAllUsesWith(
      vectors(b, assembly(b, text, constraints, operands, count),
              op.getResults().getTypes()));
  op.erase();
}

static void lowerWait(WgmmaWaitOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> values = scalars(b, op.getValues());
  SmallVector<std::string> constraints(values.size(), "=f");
  for (size_t i = 0; i < values.size(); ++i)
    constraints.push_back(std::to_string(i));
  // Slots are released after the wait.
  constraints.push_back("~{memory}");
  std::string text = "wgmma.wait_group.sync.aligned " +
                     std::to_string(int64_t(op.getPending())) + ";";
  op->replaceAllUsesWith(
      vectors(b, assembly(b, text, constraints, values, values.size()),
              op.getResults().getTypes()));
  op.erase();
}

/// A statement without results; its operands have 32 bits or one.
static void statement(ImplicitLocOpBuilder &b, StringRef text,
                      StringRef constraints, ValueRange operands) {
  LLVM::InlineAsmOp::create(
      b, LLVM::LLVMVoidType::get(b.getContext()), operands, text, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
}

/// A pointer into shared memory as a register of 32 bits.
static Value address(ImplicitLocOpBuilder &b, Value pointer) {
  return LLVM::PtrToIntOp::create(b, b.getI32Type(), pointer);
}

static void lowerArrive(ClusterArriveOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  // The plain form: one that releases to the cluster waits for all of the
  // thread's writes to memory, and took a fifth of a loop's time on an H200.
  statement(b,
            "{\n.reg .b32 there;\n"
            "mapa.shared::cluster.u32 there, $0, $1;\n"
            "@$2 mbarrier.arrive.shared::cluster.b64 _, [there];\n}",
            "r,r,b,~{memory}",
            {address(b, op.getBarrier()), op.getRank(), op.getPredicate()});
  op.erase();
}

static void lowerStore(ClusterStoreOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> operands{address(b, op.getAddress()),
                              address(b, op.getBarrier()), op.getRank()};
  std::string to = "{\n.reg .b32 there;\n.reg .b32 barrier;\n"
                   "mapa.shared::cluster.u32 there, $0, $2;\n"
                   "mapa.shared::cluster.u32 barrier, $1, $2;\n"
                   "st.async.shared::cluster.mbarrier::complete_tx::bytes";
  if (isa<VectorType>(op.getValue().getType())) {
    llvm::append_range(operands, scalars(b, op.getValue()));
    statement(b, to + ".v4.b32 [there], {$3, $4, $5, $6}, [barrier];\n}",
              "r,r,r,r,r,r,r,~{memory}", operands);
  } else {
    operands.push_back(op.getValue());
    statement(b, to + ".b32 [there], $3, [barrier];\n}", "r,r,r,r,~{memory}",
              operands);
  }
  op.erase();
}

static void lowerCopy(ClusterCopyOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  statement(b,
            "{\n.reg .b32 there;\n.reg .b32 barrier;\n"
            "mapa.shared::cluster.u32 there, $0, $2;\n"
            "mapa.shared::cluster.u32 barrier, $1, $2;\n"
            "@$4 cp.async.bulk.shared::cluster.shared::cta.mbarrier::"
            "complete_tx::bytes [there], [$0], $3, [barrier];\n}",
            "r,r,r,r,b,~{memory}",
            {address(b, op.getAddress()), address(b, op.getBarrier()),
             op.getRank(), op.getBytes(), op.getPredicate()});
  op.erase();
}

/// PTX ISA, "movmatrix". The statement has effects, so that LLVM leaves it
/// where all lanes of the warp are together.
static void lowerTranspose(LaneTransposeOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto asmOp = LLVM::InlineAsmOp::create(
      b, b.getI32Type(), ValueRange{op.getWord()},
      "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  op->replaceAllUsesWith(asmOp);
  op.erase();
}

namespace {
struct ConvertKVBufferToInlineAsmPass
    : kvbuf::impl::ConvertKVBufferToInlineAsmBase<
          ConvertKVBufferToInlineAsmPass> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([](Operation *op) {
      if (auto product = dyn_cast<WgmmaOp>(op))
        lowerProduct(product);
      else if (auto wait = dyn_cast<WgmmaWaitOp>(op))
        lowerWait(wait);
      else if (auto arrive = dyn_cast<ClusterArriveOp>(op))
        lowerArrive(arrive);
      else if (auto store = dyn_cast<ClusterStoreOp>(op))
        lowerStore(store);
      else if (auto copy = dyn_cast<ClusterCopyOp>(op))
        lowerCopy(copy);
      else if (auto transpose = dyn_cast<LaneTransposeOp>(op))
        lowerTranspose(transpose);
    });
    // The rest has no business at the target stage: say so here, where the op
    // has a name, instead of in the translation.
    WalkResult left = getOperation()->walk([](Operation *op) -> WalkResult {
      if (!isa_and_nonnull<KVBufferDialect>(op->getDialect()))
        return WalkResult::advance();
      return op->emitOpError("has no form in assembly; expected a kernel at "
                             "the target stage");
    });
    if (left.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
