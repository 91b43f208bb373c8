//===- RaisePtx.cpp - Operations in place of PTX in the text --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The NVVM dialect writes some of its operations as PTX: one instruction, maybe
// with a predicate, a comparison that makes one, or a loop around a wait. Only
// such text is read here; other assembly stays as it is and is refused later.
//
//===----------------------------------------------------------------------===//

#include "RaisePtx.h"
#include "MatrixJob.h"
#include "PtxText.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace kvbuf::emu;

namespace {

/// Raises one piece of text.
class PtxRaiser {
public:
  explicit PtxRaiser(LLVM::InlineAsmOp op)
      : op(op), builder(op), context(op.getContext()) {}

  /// The operation that does the same; null: there is none.
  Operation *run();
  /// The same for nothing but arithmetic.
  Operation *runArithmetic();
  /// Puts operations for each statement before the text and replaces its
  /// result. False: not all of it is known.
  bool runStatements();

private:
  bool readConstraints();
  Value value(const PtxOperand &o) {
    return o.kind == PtxOperand::Number && o.number < numbered.size() &&
                   !o.offset
               ? numbered[o.number]
               : Value();
  }
  /// The values in braces as a vector of words.
  Value wordsOf(const PtxOperand &o);
  /// The same, or a number of 32 bits.
  Value word(const PtxOperand &o) {
    auto n = o.kind == PtxOperand::Word ? constant(o) : std::nullopt;
    return n ? Value(LLVM::ConstantOp::create(
                   builder, op.getLoc(), builder.getI32Type(),
                   builder.getI32IntegerAttr(static_cast<int32_t>(*n))))
             : value(o);
  }
  /// The one value in brackets.
  Value memory(const PtxOperand &o) {
    return o.kind == PtxOperand::Memory && o.parts.size() == 1
               ? value(o.parts[0])
               : Value();
  }
  /// A pointer into a space, of one into another space or of an address in a
  /// register, whose bits count.
  Value pointer(Value v, unsigned space) {
    auto type = LLVM::LLVMPointerType::get(context, space);
    if (!v || v.getType() == type)
      return v;
    if (isa<LLVM::LLVMPointerType>(v.getType())) {
      if (space == 0)
        return LLVM::AddrSpaceCastOp::create(builder, op.getLoc(), type, v);
      v = LLVM::PtrToIntOp::create(builder, op.getLoc(), builder.getI64Type(),
                                   v);
    }
    if (!v.getType().isInteger(32) && !v.getType().isInteger(64))
      return nullptr;
    return LLVM::IntToPtrOp::create(builder, op.getLoc(), type, v);
  }
  std::optional<int64_t> constant(const PtxOperand &o) {
    int64_t n;
    if (o.kind == PtxOperand::Word && !o.word.getAsInteger(10, n))
      return n;
    APInt found;
    Value v = value(o);
    if (v && matchPattern(v, m_ConstantInt(&found)) &&
        found.getSignificantBits() <= 64)
      return found.getSExtValue();
    return std::nullopt;
  }
  NamedAttribute attr(StringRef name, Attribute a) {
    return builder.getNamedAttr(name, a);
  }
  NamedAttribute segments(ArrayRef<int32_t> sizes) {
    return attr("operandSegmentSizes", builder.getDenseI32ArrayAttr(sizes));
  }
  Operation *make(StringRef name, ValueRange operands,
                  ArrayRef<NamedAttribute> attributes = {},
                  TypeRange results = {}) {
    OperationState state(op.getLoc(), name);
    state.addOperands(operands);
    state.addAttributes(attributes);
    state.addTypes(results);
    return builder.create(state);
  }
  Operation *raiseMBarrier(const PtxInstruction &inst);
  Operation *raiseTensor(const PtxInstruction &inst);
  Operation *raiseCopy(const PtxInstruction &inst);
  Type wgmmaElement(StringRef name);
  Operation *raiseWgmma(const PtxInstruction &inst,
                        const PtxInstruction *compare);
  /// What `convert-kvbuffer-to-inline-asm` writes (KVBufferToInlineAsm.cpp): a
  /// committed group of products, and the wait for it.
  Operation *raiseGroup(ArrayRef<PtxInstruction> instructions);
  Operation *raiseGroupWait(const PtxInstruction &inst);
  /// An arrival and a word at another block's barrier; a transposed matrix.
  Operation *raiseClusterArrive(ArrayRef<PtxInstruction> instructions);
  Operation *raiseClusterStore(ArrayRef<PtxInstruction> instructions);
  /// Vectors of four of the scalars that are tied to the results.
  SmallVector<Value> accumulators();
  /// The statement's result, a struct, of vectors of four.
  Operation *unpack(ResultRange vectors);
  /// A pointer into shared memory of a register.
  Value shared(const PtxOperand &o);
  Operation *raiseWideMad(const PtxInstruction &low,
                          const PtxInstruction &high);

  LLVM::InlineAsmOp op;
  OpBuilder builder;
  MLIRContext *context;
  /// The values that "$0", "$1", ... stand for; null for results.
  SmallVector<Value> numbered;
  /// For each result, the operand that is tied to it, or null.
  SmallVector<Value> tied;
};

} // namespace

bool PtxRaiser::readConstraints() {
  SmallVector<StringRef> constraints;
  op.getConstraints().split(constraints, ',', -1, /*KeepEmpty=*/false);
  unsigned inputs = 0;
  for (StringRef c : constraints) {
    if (c.starts_with("~"))
      continue;
    if (c.starts_with("=")) {
      numbered.push_back(Value());
      tied.push_back(Value());
      continue;
    }
    if (inputs >= op.getOperands().size())
      return false;
    Value v = op.getOperands()[inputs++];
    unsigned output;
    if (!c.getAsInteger(10, output)) {
      if (output >= tied.size())
        return false;
      tied[output] = v;
    }
    numbered.push_back(v);
  }
  return inputs == op.getOperands().size();
}

Operation *PtxRaiser::raiseMBarrier(const PtxInstruction &inst) {
  StringRef code = inst.opcode;
  code.consume_front("mbarrier.");
  const std::vector<PtxOperand> &o = inst.operands;
  SmallVector<Value> operands;
  auto add = [&](Value v) {
    if (v)
      operands.push_back(v);
    return static_cast<bool>(v);
  };
  bool predicated = inst.predicate.has_value();
  PtxOperand p;
  p.kind = PtxOperand::Number;
  p.number = inst.predicate.value_or(0);
  code.consume_back(".b64");
  code.consume_back(".shared");
  code.consume_back(".shared::cta");
  if (code == "init" && o.size() == 2) {
    if (!add(pointer(memory(o[0]), 3)) || !add(word(o[1])) ||
        (predicated && !add(value(p))))
      return nullptr;
    return make("nvvm.mbarrier.init", operands);
  }
  if (code == "arrive.expect_tx" && o.size() == 3 && o[0].word == "_") {
    if (!add(pointer(memory(o[1]), 3)) || !add(word(o[2])) ||
        (predicated && !add(value(p))))
      return nullptr;
    return make("nvvm.mbarrier.arrive.expect_tx", operands);
  }
  if (code == "try_wait.parity" && (o.size() == 4 || o.size() == 3) &&
      o[0].kind == PtxOperand::Word && !predicated) {
    if (!add(pointer(memory(o[1]), 3)) || !add(word(o[2])))
      return nullptr;
    Value ticks = o.size() == 4 ? value(o[3]) : Value();
    if (!ticks)
      ticks =
          LLVM::ConstantOp::create(builder, op.getLoc(), builder.getI32Type(),
                                   builder.getI32IntegerAttr(0));
    operands.push_back(ticks);
    return make("nvvm.mbarrier.try_wait.parity", operands);
  }
  return nullptr;
}

// "[map, {coordinates}]" and its rank in the opcode.
static bool isBox(const PtxOperand &o) {
  return o.kind == PtxOperand::Memory && o.parts.size() == 2 &&
         o.parts[1].kind == PtxOperand::List && !o.parts[1].parts.empty() &&
         o.parts[1].parts.size() <= 5;
}

Operation *PtxRaiser::raiseTensor(const PtxInstruction &inst) {
  StringRef code = inst.opcode;
  code.consume_front("cp.async.bulk.tensor.");
  code = code.drop_front(std::min<size_t>(3, code.size())); // the rank
  const std::vector<PtxOperand> &o = inst.operands;
  SmallVector<Value> operands;
  SmallVector<int32_t> sizes;
  bool good = true;
  auto add = [&](Value v) {
    good &= static_cast<bool>(v);
    operands.push_back(v);
  };
  auto addBox = [&](const PtxOperand &box) {
    for (const PtxOperand &c : box.parts[1].parts)
      add(value(c));
  };
  auto addPredicate = [&] {
    if (!inst.predicate)
      return 0;
    PtxOperand p;
    p.kind = PtxOperand::Number;
    p.number = *inst.predicate;
    add(value(p));
    return 1;
  };
  code.consume_front("tile.");
  if (code.consume_front("shared::cluster.global.") ||
      code.consume_front("shared::cta.global.")) {
    code.consume_front("tile.");
    NVVM::TMALoadMode mode = code.consume_front("tile::gather4.")
                                 ? NVVM::TMALoadMode::TILE_GATHER4
                                 : NVVM::TMALoadMode::TILE;
    if (!code.consume_front("mbarrier::complete_tx::bytes"))
      return nullptr;
    bool multicast = code.consume_front(".multicast::cluster"),
         hint = code.consume_front(".L2::cache_hint");
    if (!code.empty() || o.size() != 3u + multicast + hint || !isBox(o[1]))
      return nullptr;
    add(pointer(memory(o[0]), 3));
    add(pointer(value(o[1].parts[0]), 0));
    addBox(o[1]);
    add(pointer(memory(o[2]), 3));
    if (multicast)
      add(value(o[3]));
    if (hint)
      add(value(o[3 + multicast]));
    int32_t predicate = addPredicate();
    if (!good)
      return nullptr;
    return make(
        "nvvm.cp.async.bulk.tensor.shared.cluster.global", operands,
        {attr("mode", NVVM::TMALoadModeAttr::get(context, mode)),
         segments({1, 1, static_cast<int32_t>(o[1].parts[1].parts.size()), 1, 0,
                   multicast, hint, predicate})});
  }
  if (code.consume_front("global.shared::cta.")) {
    code.consume_front("tile.");
    if (!code.consume_front("bulk_group"))
      return nullptr;
    bool hint = code.consume_front(".L2::cache_hint");
    if (!code.empty() || o.size() != 2u + hint || !isBox(o[0]))
      return nullptr;
    add(pointer(value(o[0].parts[0]), 0));
    add(pointer(memory(o[1]), 3));
    addBox(o[0]);
    if (hint)
      add(value(o[2]));
    int32_t predicate = addPredicate();
    if (!good)
      return nullptr;
    return make(
        "nvvm.cp.async.bulk.tensor.global.shared.cta", operands,
        {attr("mode",
              NVVM::TMAStoreModeAttr::get(context, NVVM::TMAStoreMode::TILE)),
         segments({1, 1, static_cast<int32_t>(o[0].parts[1].parts.size()), hint,
                   predicate})});
  }
  return nullptr;
}

Operation *PtxRaiser::raiseCopy(const PtxInstruction &inst) {
  const std::vector<PtxOperand> &o = inst.operands;
  if (inst.predicate || (o.size() != 3 && o.size() != 4))
    return nullptr;
  auto modifier = inst.opcode.contains(".cg.")
                      ? NVVM::LoadCacheModifierKind::CG
                      : NVVM::LoadCacheModifierKind::CA;
  std::optional<int64_t> size = constant(o[2]);
  Value dst = pointer(memory(o[0]), 3), src = pointer(memory(o[1]), 1);
  Value part = o.size() == 4 ? value(o[3]) : Value();
  if (!size || !dst || !src || (o.size() == 4 && !part))
    return nullptr;
  SmallVector<Value> operands = {dst, src};
  if (part)
    operands.push_back(part);
  return make("nvvm.cp.async.shared.global", operands,
              {attr("size", builder.getI32IntegerAttr(*size)),
               attr("modifier",
                    NVVM::LoadCacheModifierKindAttr::get(context, modifier))});
}

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

Value PtxRaiser::shared(const PtxOperand &o) {
  Value word = value(o);
  if (!word || !word.getType().isInteger(32))
    return nullptr;
  constexpr unsigned kShared = 3;
  return LLVM::IntToPtrOp::create(
      builder, op.getLoc(), LLVM::LLVMPointerType::get(context, kShared), word);
}

Operation *
PtxRaiser::raiseClusterArrive(ArrayRef<PtxInstruction> instructions) {
  // mapa there, $barrier, $rank; @$predicate arrive _, [there]
  const PtxInstruction &map = instructions[0], &arrive = instructions[1];
  if (arrive.opcode != "mbarrier.arrive.shared::cluster.b64" ||
      !arrive.predicate || *arrive.predicate >= numbered.size() ||
      map.operands.size() != 3 || arrive.operands.size() != 2 ||
      arrive.operands[1].parts.size() != 1 ||
      arrive.operands[1].parts[0].word != map.operands[0].word)
    return nullptr;
  Value barrier = shared(map.operands[1]), rank = value(map.operands[2]),
        predicate = numbered[*arrive.predicate];
  if (!barrier || !rank || !predicate)
    return nullptr;
  context->getOrLoadDialect<kvbuf::KVBufferDialect>();
  return make("kvbuffer.cluster_arrive", {barrier, rank, predicate});
}

Value PtxRaiser::wordsOf(const PtxOperand &o) {
  Location loc = op.getLoc();
  Type word = builder.getI32Type();
  Value words = LLVM::PoisonOp::create(
      builder, loc, VectorType::get({int64_t(o.parts.size())}, word));
  for (auto [i, part] : llvm::enumerate(o.parts)) {
    Value of = value(part);
    if (!of || of.getType() != word)
      return nullptr;
    words = LLVM::InsertElementOp::create(
        builder, loc, words, of,
        LLVM::ConstantOp::create(builder, loc, word,
                                 builder.getI32IntegerAttr(int32_t(i))));
  }
  return words;
}

Operation *PtxRaiser::raiseClusterStore(ArrayRef<PtxInstruction> instructions) {
  // mapa there, $address, $rank; mapa barrier, $barrier, $rank;
  // st.async [there], $value, [barrier], or {$value, ...} of four words
  const PtxInstruction &there = instructions[0], &other = instructions[1],
                       &store = instructions[2];
  const std::vector<PtxOperand> &o = store.operands;
  if (other.opcode != there.opcode || there.operands.size() != 3 ||
      other.operands.size() != 3 || o.size() != 3 || o[0].parts.size() != 1 ||
      o[2].parts.size() != 1 || o[0].parts[0].word != there.operands[0].word ||
      o[2].parts[0].word != other.operands[0].word ||
      !StringRef(store.opcode)
           .starts_with("st.async.shared::cluster.mbarrier::complete_tx::"
                        "bytes."))
    return nullptr;
  StringRef type = StringRef(store.opcode).rsplit("bytes.").second;
  bool four = type == "v4.b32";
  if ((!four && type != "b32") || o[1].parts.size() != (four ? 4 : 1))
    return nullptr;
  Value rank = value(there.operands[2]), word;
  if (four)
    word = wordsOf(o[1]);
  else
    word = value(o[1]);
  Value address = shared(there.operands[1]),
        barrier = shared(other.operands[1]);
  if (!rank || rank != value(other.operands[2]) || !word || !address ||
      !barrier)
    return nullptr;
  context->getOrLoadDialect<kvbuf::KVBufferDialect>();
  return make("kvbuffer.cluster_store", {word, address, barrier, rank});
}

Operation *PtxRaiser::raiseWideMad(const PtxInstruction &low,
                                   const PtxInstruction &high) {
  const std::vector<PtxOperand> &l = low.operands, &h = high.operands;
  if (l.size() != 4 || h.size() != 4 || low.predicate || high.predicate ||
      op.getNumResults() != 1 || h[3].word != "0" ||
      l[0].kind != PtxOperand::Number || l[0].number != 0 ||
      h[0].kind != PtxOperand::Number || h[0].number != 1)
    return nullptr;
  Value x = value(l[1]), y = value(l[2]), z = value(l[3]);
  auto type = dyn_cast<LLVM::LLVMStructType>(op->getResult(0).getType());
  auto isWord = [](Value v) { return v && v.getType().isInteger(32); };
  if (!isWord(x) || !isWord(y) || !isWord(z) || value(h[1]) != x ||
      value(h[2]) != y || !type || type.getBody().size() != 2)
    return nullptr;
  Location loc = op.getLoc();
  Type wide = builder.getI64Type(), word = builder.getI32Type();
  auto extend = [&](Value v) -> Value {
    return LLVM::ZExtOp::create(builder, loc, wide, v);
  };
  Value product = LLVM::MulOp::create(builder, loc, extend(x), extend(y));
  Value sum = LLVM::AddOp::create(builder, loc, product, extend(z));
  Value by = LLVM::ConstantOp::create(builder, loc, wide,
                                      builder.getI64IntegerAttr(32));
  Value upper = LLVM::LShrOp::create(builder, loc, sum, by);
  Value result = LLVM::PoisonOp::create(builder, loc, type);
  result = LLVM::InsertValueOp::create(
      builder, loc, result, LLVM::TruncOp::create(builder, loc, word, sum),
      ArrayRef<int64_t>{0});
  return LLVM::InsertValueOp::create(
      builder, loc, result, LLVM::TruncOp::create(builder, loc, word, upper),
      ArrayRef<int64_t>{1});
}

Operation *PtxRaiser::run() {
  SmallVector<PtxInstruction> instructions;
  if (!PtxParser(op.getAsmString()).run(instructions) || !readConstraints() ||
      instructions.empty() ||
      llvm::any_of(instructions, [](const PtxInstruction &i) {
        return i.negated && !i.opcode.starts_with("bra");
      }))
    return nullptr;
  // A loop around a wait is the wait.
  const PtxInstruction &first = instructions.front();
  bool loop = first.opcode.starts_with("mbarrier.try_wait.parity");
  for (const PtxInstruction &i : llvm::drop_begin(instructions))
    loop &= i.opcode == "bra.uni" || i.opcode == "bra";
  if (loop && instructions.size() > 1)
    return raiseMBarrier(first);
  const PtxInstruction &last = instructions.back();
  // A product of 32 bits plus a number, in 64 bits, as libdevice writes it.
  if (instructions.size() == 2 && first.opcode == "mad.lo.cc.u32" &&
      last.opcode == "madc.hi.u32")
    return raiseWideMad(first, last);
  if (last.opcode == "wgmma.commit_group.sync.aligned" &&
      instructions.size() > 1)
    return raiseGroup(instructions);
  if (last.opcode == "wgmma.wait_group.sync.aligned" &&
      instructions.size() == 1 && op.getNumResults() == 1 && !tied.empty())
    return raiseGroupWait(last);
  if (first.opcode == "mapa.shared::cluster.u32")
    return instructions.size() == 2   ? raiseClusterArrive(instructions)
           : instructions.size() == 3 ? raiseClusterStore(instructions)
                                      : nullptr;
  if (instructions.size() == 1 &&
      last.opcode == "movmatrix.sync.aligned.m8n8.trans.b16" &&
      last.operands.size() == 2 && value(last.operands[1]) &&
      op.getNumResults() == 1) {
    context->getOrLoadDialect<kvbuf::KVBufferDialect>();
    return make("kvbuffer.lane_transpose", value(last.operands[1]), {},
                op->getResultTypes());
  }
  if (last.opcode == "bar.arrive" && instructions.size() == 1 &&
      !last.predicate && last.operands.size() == 2 && value(last.operands[0]) &&
      value(last.operands[1]))
    return make("nvvm.barrier.arrive",
                {value(last.operands[0]), value(last.operands[1])});
  if (last.opcode.starts_with("wgmma.mma_async."))
    return instructions.size() == 1 ? raiseWgmma(last, nullptr)
           : instructions.size() == 2 && first.opcode == "setp.ne.b32"
               ? raiseWgmma(last, &first)
               : nullptr;
  if (instructions.size() != 1 || !last.predicateName.empty())
    return nullptr;
  if (last.opcode.starts_with("mbarrier.") &&
      !last.opcode.starts_with("mbarrier.try_wait"))
    return raiseMBarrier(last);
  if (last.opcode.starts_with("cp.async.bulk.tensor."))
    return raiseTensor(last);
  if (last.opcode == "prefetch.tensormap" && last.operands.size() == 1)
    if (Value map = memory(last.operands[0])) {
      SmallVector<Value> operands = {map};
      PtxOperand p;
      p.kind = PtxOperand::Number;
      p.number = last.predicate.value_or(0);
      if (last.predicate)
        operands.push_back(value(p));
      return operands.back() ? make("nvvm.prefetch", operands,
                                    attr("tensormap", builder.getUnitAttr()))
                             : nullptr;
    }
  if (last.opcode == "cp.async.ca.shared.global" ||
      last.opcode == "cp.async.cg.shared.global")
    return raiseCopy(last);
  if (last.opcode == "rcp.approx.ftz.f32" && last.operands.size() == 2 &&
      !last.predicate && op.getNumResults() == 1 && value(last.operands[1]))
    return make("nvvm.rcp.approx.ftz.f", value(last.operands[1]), {},
                op->getResultTypes());
  if (last.predicate || !last.operands.empty())
    return nullptr;
  if (last.opcode == "fence.mbarrier_init.release.cluster")
    return make("nvvm.fence.mbarrier.init", {});
  if (last.opcode.starts_with("fence.proxy.async")) {
    StringRef space = last.opcode.drop_front(17);
    if (space.empty())
      return make("nvvm.fence.proxy", {},
                  attr("kind", NVVM::ProxyKindAttr::get(
                                   context, NVVM::ProxyKind::async)));
    if (space == ".global")
      return make("nvvm.fence.proxy", {},
                  attr("kind", NVVM::ProxyKindAttr::get(
                                   context, NVVM::ProxyKind::async_global)));
    if (space == ".shared::cta" || space == ".shared::cluster")
      return make(
          "nvvm.fence.proxy", {},
          {attr("kind", NVVM::ProxyKindAttr::get(
                            context, NVVM::ProxyKind::async_shared)),
           attr("space",
                NVVM::SharedSpaceAttr::get(
                    context, space.ends_with("cta")
                                 ? NVVM::SharedSpace::shared_cta
                                 : NVVM::SharedSpace::shared_cluster))});
  }
  return nullptr;
}

Operation *PtxRaiser::runArithmetic() {
  SmallVector<PtxInstruction> instructions;
  if (!PtxParser(op.getAsmString()).run(instructions) || !readConstraints() ||
      instructions.empty())
    return nullptr;
  return raiseArithmetic(op, instructions, numbered);
}

bool PtxRaiser::runStatements() {
  SmallVector<PtxInstruction> instructions;
  if (!PtxParser(op.getAsmString()).run(instructions) || !readConstraints() ||
      instructions.empty())
    return false;
  // An output begins as the input that is tied to it.
  for (auto [i, input] : llvm::enumerate(tied))
    if (input)
      numbered[i] = input;
  return raiseStatements(op, instructions, numbered);
}

void kvbuf::emu::raisePtx(LLVM::InlineAsmOp op) {
  // Headers compute what most kernels have no use for.
  if (!op.getHasSideEffects() && op->use_empty())
    return op->erase();
  Operation *raised = PtxRaiser(op).run();
  if (!raised)
    raised = PtxRaiser(op).runArithmetic();
  if (raised) {
    if (op.getNumResults() && raised->getNumResults() == op.getNumResults())
      op->replaceAllUsesWith(raised->getResults());
    else if (!op->use_empty())
      return raised->erase();
    op->erase();
    return;
  }
  if (PtxRaiser(op).runStatements())
    return op->erase();
  if (op.getNumResults() == 1 && op->use_empty() &&
      isa<LLVM::LLVMVoidType>(op->getResult(0).getType())) {
    OpBuilder builder(op);
    OperationState state(op.getLoc(), op->getName().getStringRef());
    state.addOperands(op->getOperands());
    state.addAttributes(op->getAttrs());
    builder.create(state);
    op->erase();
  }
}
