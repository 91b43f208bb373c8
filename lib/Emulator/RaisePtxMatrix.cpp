//===- RaisePtxMatrix.cpp - Products in place of PTX in the text ----------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatrixJob.h"
#include "PtxRaiser.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace kvbuf::emu;

/// The type that PTX names so; null if no wgmma of a group multiplies it.
Type PtxRaiser::wgmmaElement(StringRef name) {
  return name == "bf16"   ? Type(builder.getBF16Type())
         : name == "f16"  ? Type(builder.getF16Type())
         : name == "e4m3" ? Type(Float8E4M3FNType::get(context))
         : name == "e5m2" ? Type(Float8E5M2Type::get(context))
                          : Type();
}

static std::optional<NVVM::WGMMATypes> wgmmaType(StringRef name) {
  return NVVM::symbolizeWGMMATypes(name);
}

Operation *PtxRaiser::raiseWgmma(const PtxInstruction &inst,
                                 const PtxInstruction *compare) {
  SmallVector<StringRef> words;
  inst.opcode.split(words, '.');
  // wgmma.mma_async.sync.aligned.<shape>.<d>.<a>.<b>
  if (inst.predicate || words.size() < 8)
    return nullptr;
  StringRef shape = words[4];
  unsigned m, n, k;
  if (!shape.consume_front("m") || shape.consumeInteger(10, m) ||
      !shape.consume_front("n") || shape.consumeInteger(10, n) ||
      !shape.consume_front("k") || shape.consumeInteger(10, k) ||
      !shape.empty())
    return nullptr;
  auto d = wgmmaType(words[5]), a = wgmmaType(words[6]),
       b = wgmmaType(words[7]);
  const std::vector<PtxOperand> &o = inst.operands;
  if (!d || !a || !b || o.size() < 4 || o[0].kind != PtxOperand::List)
    return nullptr;
  // "setp.ne.b32 p, $n, 0" makes the predicate that the accumulator is added.
  bool registers = o[1].kind == PtxOperand::List;
  std::optional<int64_t> scaleD = compare && compare->operands.size() == 3 &&
                                          compare->operands[0].word == o[3].word
                                      ? constant(compare->operands[1])
                                      : constant(o[3]);
  auto number = [&](size_t i, int64_t otherwise) -> std::optional<int64_t> {
    return i < o.size() ? constant(o[i]) : otherwise;
  };
  auto scaleA = number(4, 1), scaleB = number(5, 1),
       layoutA = registers ? 0 : number(6, 0),
       layoutB = number(registers ? 6 : 7, 0);
  Value descA = registers ? Value() : value(o[1]), descB = value(o[2]);
  if (!scaleA || !scaleB || !layoutA || !layoutB || (!descA && !registers) ||
      !descB || op.getNumResults() != 1 ||
      (!scaleD && (compare || !value(o[3]))))
    return nullptr;
  auto type = dyn_cast<LLVM::LLVMStructType>(op->getResult(0).getType());
  if (!type || type.getBody().size() != o[0].parts.size() ||
      tied.size() != o[0].parts.size())
    return nullptr;
  Value inouts = LLVM::PoisonOp::create(builder, op.getLoc(), type);
  for (auto [i, v] : llvm::enumerate(tied)) {
    // Nothing is tied to what starts at zero.
    bool starts = !v && scaleD == 0;
    if ((!starts && (!v || v.getType() != type.getBody()[i])) ||
        o[0].parts[i].kind != PtxOperand::Number || o[0].parts[i].number != i)
      return nullptr;
    if (starts)
      v = LLVM::ZeroOp::create(builder, op.getLoc(), type.getBody()[i]);
    inouts =
        LLVM::InsertValueOp::create(builder, op.getLoc(), inouts, v,
                                    ArrayRef<int64_t>{static_cast<int64_t>(i)});
  }
  if (registers || !scaleD) {
    // The operation has descriptors and constants only: by name.
    SmallVector<Value> operands = {inouts};
    if (descA)
      operands.push_back(descA);
    for (const PtxOperand &part : o[1].parts)
      operands.push_back(value(part));
    operands.push_back(descB);
    Value adds = value(o[3]);
    if (scaleD)
      adds = LLVM::ConstantOp::create(builder, op.getLoc(), builder.getI1Type(),
                                      builder.getBoolAttr(*scaleD != 0));
    operands.push_back(adds);
    if (llvm::is_contained(operands, Value()))
      return nullptr;
    int32_t flags =
        (*scaleA < 0 ? wgmmaNegateA : 0) | (*scaleB < 0 ? wgmmaNegateB : 0) |
        (*layoutA ? wgmmaTransposeA : 0) | (*layoutB ? wgmmaTransposeB : 0);
    auto product = LLVM::CallIntrinsicOp::create(
        builder, op.getLoc(), type,
        builder.getStringAttr("llvm.nvvm.wgmma.mma_async." +
                              llvm::join(ArrayRef(words).slice(4, 4), ".")),
        operands);
    product->setAttr("flags", builder.getI32IntegerAttr(flags));
    return product;
  }
  // The dialect writes 1 for A that is M-major and for B that is N-major.
  auto layout = [&](bool transposed, bool isA) {
    return NVVM::MMALayoutAttr::get(context, transposed == isA
                                                 ? NVVM::MMALayout::col
                                                 : NVVM::MMALayout::row);
  };
  auto scale = [&](int64_t s) {
    return NVVM::WGMMAScaleInAttr::get(
        context, s < 0 ? NVVM::WGMMAScaleIn::neg : NVVM::WGMMAScaleIn::one);
  };
  auto typeAttr = [&](NVVM::WGMMATypes t) {
    return NVVM::WGMMATypesAttr::get(context, t);
  };
  SmallVector<NamedAttribute> attributes = {
      attr("shape", NVVM::MMAShapeAttr::get(context, m, n, k)),
      attr("typeA", typeAttr(*a)),
      attr("typeB", typeAttr(*b)),
      attr("typeD", typeAttr(*d)),
      attr("scaleD", NVVM::WGMMAScaleOutAttr::get(
                         context, *scaleD ? NVVM::WGMMAScaleOut::one
                                          : NVVM::WGMMAScaleOut::zero)),
      attr("scaleA", scale(*scaleA)),
      attr("scaleB", scale(*scaleB)),
      attr("layoutA", layout(*layoutA, true)),
      attr("layoutB", layout(*layoutB, false))};
  if (inst.opcode.contains(".satfinite"))
    attributes.push_back(
        attr("satfinite", NVVM::MMAIntOverflowAttr::get(
                              context, NVVM::MMAIntOverflow::satfinite)));
  return make("nvvm.wgmma.mma_async", {inouts, descA, descB}, attributes, type);
}

SmallVector<Value> PtxRaiser::accumulators() {
  SmallVector<Value> vectors;
  auto type = VectorType::get({4}, builder.getF32Type());
  for (size_t i = 0; i + 4 <= tied.size(); i += 4) {
    Value vector = LLVM::PoisonOp::create(builder, op.getLoc(), type);
    for (size_t j = 0; j < 4; ++j) {
      Value at =
          LLVM::ConstantOp::create(builder, op.getLoc(), builder.getI32Type(),
                                   builder.getI32IntegerAttr(j));
      vector = LLVM::InsertElementOp::create(builder, op.getLoc(), vector,
                                             tied[i + j], at);
    }
    vectors.push_back(vector);
  }
  return vectors;
}

Operation *PtxRaiser::unpack(ResultRange vectors) {
  Value result =
      LLVM::PoisonOp::create(builder, op.getLoc(), op->getResult(0).getType());
  int64_t next = 0;
  for (Value vector : vectors)
    for (int64_t j = 0; j < 4; ++j) {
      Value at =
          LLVM::ConstantOp::create(builder, op.getLoc(), builder.getI32Type(),
                                   builder.getI32IntegerAttr(j));
      Value x =
          LLVM::ExtractElementOp::create(builder, op.getLoc(), vector, at);
      result = LLVM::InsertValueOp::create(builder, op.getLoc(), result, x,
                                           ArrayRef<int64_t>{next++});
    }
  return result.getDefiningOp();
}

/// Whether a type is a struct of so many f32, a multiple of four.
static bool isAccumulator(Type type, size_t count) {
  auto parts = dyn_cast<LLVM::LLVMStructType>(type);
  return parts && count && count % 4 == 0 && parts.getBody().size() == count &&
         llvm::all_of(parts.getBody(), [](Type t) { return t.isF32(); });
}

Operation *PtxRaiser::raiseGroup(ArrayRef<PtxInstruction> instructions) {
  // Predicates are comparisons of numbers, and descriptors a register and a
  // number.
  llvm::StringMap<bool> predicates;
  llvm::StringMap<std::pair<Value, int64_t>> sums;
  SmallVector<int64_t> aSteps, bSteps;
  SmallVector<Value> words;
  Value aDesc, bDesc;
  StringRef kind;
  bool transpose = false, zero = false, fenced = false, committed = false;
  size_t count = tied.size();
  if (op.getNumResults() != 1 ||
      !isAccumulator(op->getResult(0).getType(), count))
    return nullptr;
  for (const PtxInstruction &inst : instructions) {
    const std::vector<PtxOperand> &o = inst.operands;
    if (inst.predicate || !inst.predicateName.empty() || committed)
      return nullptr;
    if (inst.opcode == "wgmma.fence.sync.aligned" && o.empty()) {
      fenced = true;
    } else if (inst.opcode == "wgmma.commit_group.sync.aligned" && o.empty()) {
      committed = true;
    } else if (inst.opcode == "setp.ne.b32" && o.size() == 3) {
      auto x = constant(o[1]), y = constant(o[2]);
      if (!x || !y)
        return nullptr;
      predicates[o[0].word] = *x != *y;
    } else if (inst.opcode == "add.s64" && o.size() == 3) {
      Value base = value(o[1]);
      auto step = constant(o[2]);
      if (!base || !step)
        return nullptr;
      sums[o[0].word] = {base, *step};
    } else if (inst.opcode.starts_with("wgmma.mma_async.") && o.size() >= 6) {
      bool descriptors = o[1].kind == PtxOperand::Word;
      auto added = predicates.find(o[3].word);
      auto b = sums.find(o[2].word);
      // Signs are not changed, and A is as it is in memory.
      auto isNumber = [&](size_t i, int64_t n) {
        return i < o.size() && constant(o[i]) == n;
      };
      // 8-bit elements lie as they are contracted.
      bool areBytes =
          inst.opcode.ends_with("m3") || inst.opcode.ends_with("m2");
      size_t signs = 6;
      auto turned = areBytes ? std::optional<int64_t>(0)
                    : o.size() == (descriptors ? 8 : 7)
                        ? constant(o.back())
                        : std::optional<int64_t>();
      if (areBytes && o.size() != signs)
        return nullptr;
      bool isFirst = bSteps.empty();
      if (!fenced || added == predicates.end() || b == sums.end() || !turned ||
          !isNumber(4, 1) || !isNumber(5, 1) ||
          (descriptors && !areBytes && !isNumber(signs, 0)) ||
          o[0].parts.size() != count ||
          (!isFirst && (inst.opcode != kind || !added->second ||
                        bDesc != b->second.first || transpose != *turned)))
        return nullptr;
      for (auto [i, part] : llvm::enumerate(o[0].parts))
        if (part.kind != PtxOperand::Number || part.number != i)
          return nullptr;
      if (isFirst) {
        kind = inst.opcode;
        transpose = *turned;
        zero = !added->second;
        bDesc = b->second.first;
      }
      bSteps.push_back(b->second.second);
      if (descriptors) {
        auto a = sums.find(o[1].word);
        if (a == sums.end() || (aDesc && aDesc != a->second.first))
          return nullptr;
        aDesc = a->second.first;
        aSteps.push_back(a->second.second);
        continue;
      }
      for (const PtxOperand &part : o[1].parts)
        words.push_back(value(part));
    } else {
      return nullptr;
    }
  }
  SmallVector<StringRef> names;
  kind.split(names, '.');
  // wgmma.mma_async.sync.aligned.m64n<n>k<k>.f32.<a>.<b>
  if (!committed || names.size() != 8 || names[5] != "f32")
    return nullptr;
  Type element = wgmmaElement(names[7]), elementA = wgmmaElement(names[6]);
  bool areBytes = element && element.getIntOrFloatBitWidth() == 8;
  if (!element || !elementA ||
      elementA.getIntOrFloatBitWidth() != element.getIntOrFloatBitWidth() ||
      (!areBytes && elementA != element) ||
      names[4] !=
          "m64n" + std::to_string(2 * count) + (areBytes ? "k32" : "k16") ||
      bool(aDesc) == !words.empty() ||
      (aDesc ? aSteps.size() != bSteps.size()
             : words.size() != 4 * bSteps.size()) ||
      llvm::any_of(words,
                   [](Value w) { return !w || !w.getType().isInteger(32); }) ||
      (!zero &&
       llvm::any_of(tied, [](Value v) { return !v || !v.getType().isF32(); })))
    return nullptr;
  SmallVector<Value> operands;
  if (!zero)
    operands = accumulators();
  int32_t cs = operands.size();
  for (Value word : words)
    operands.push_back(LLVM::BitcastOp::create(
        builder, op.getLoc(),
        areBytes ? VectorType::get({4}, builder.getI8Type())
                 : VectorType::get({2}, element),
        word));
  if (aDesc)
    operands.push_back(aDesc);
  operands.push_back(bDesc);
  SmallVector<NamedAttribute> attributes = {
      attr("a_steps", builder.getDenseI64ArrayAttr(aSteps)),
      attr("b_steps", builder.getDenseI64ArrayAttr(bSteps)),
      attr("element", TypeAttr::get(element)),
      attr("n", builder.getI64IntegerAttr(2 * count)),
      segments({cs, static_cast<int32_t>(words.size()), aDesc ? 1 : 0, 1})};
  if (elementA != element)
    attributes.push_back(attr("a_element", TypeAttr::get(elementA)));
  if (transpose)
    attributes.push_back(attr("transpose_b", builder.getUnitAttr()));
  SmallVector<Type> types(count / 4,
                          VectorType::get({4}, builder.getF32Type()));
  context->getOrLoadDialect<kvbuf::KVBufferDialect>();
  return unpack(
      make("kvbuffer.wgmma", operands, attributes, types)->getResults());
}

Operation *PtxRaiser::raiseGroupWait(const PtxInstruction &inst) {
  auto pending = inst.operands.size() == 1 ? constant(inst.operands[0])
                                           : std::optional<int64_t>();
  if (!pending || inst.predicate || !inst.predicateName.empty() ||
      op.getNumResults() != 1 ||
      !isAccumulator(op->getResult(0).getType(), tied.size()) ||
      llvm::any_of(tied, [](Value v) { return !v || !v.getType().isF32(); }))
    return nullptr;
  SmallVector<Value> values = accumulators();
  context->getOrLoadDialect<kvbuf::KVBufferDialect>();
  return unpack(make("kvbuffer.wgmma_wait", values,
                     attr("pending", builder.getI64IntegerAttr(*pending)),
                     ValueRange(values).getTypes())
                    ->getResults());
}
