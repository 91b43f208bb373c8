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

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace kvbuf::emu;

namespace {

/// An operand of an instruction: "$3", a name or a number, "[...]" or "{...}".
struct Operand {
  enum Kind { Number, Word, Memory, List } kind = Word;
  unsigned number = 0;
  StringRef word;
  std::vector<Operand> parts;
};

struct Instruction {
  std::optional<unsigned> predicate; // "@$5"
  StringRef predicateName;           // "@p"
  StringRef opcode;
  std::vector<Operand> operands;
};

/// Reads instructions, one after the other.
class Parser {
public:
  explicit Parser(StringRef text) : rest(text) {}

  /// False: not of the simple kind.
  bool run(SmallVectorImpl<Instruction> &instructions);

private:
  void skipSpace() { rest = rest.ltrim(); }
  static bool isWord(char c) {
    return llvm::isAlnum(c) || StringRef("_.:%-").contains(c);
  }
  StringRef word() {
    StringRef w = rest.take_while(isWord);
    rest = rest.drop_front(w.size());
    return w;
  }
  bool operand(Operand &o, unsigned depth);
  bool operands(std::vector<Operand> &list, char end, unsigned depth);

  StringRef rest;
};

} // namespace

bool Parser::operand(Operand &o, unsigned depth) {
  skipSpace();
  if (depth > 4 || rest.empty())
    return false;
  if (rest.consume_front("$")) {
    o.kind = Operand::Number;
    return !rest.consumeInteger(10, o.number);
  }
  char open = rest.front();
  if (open == '[' || open == '{') {
    rest = rest.drop_front();
    o.kind = open == '[' ? Operand::Memory : Operand::List;
    return operands(o.parts, open == '[' ? ']' : '}', depth + 1);
  }
  o.word = word();
  return !o.word.empty();
}

bool Parser::operands(std::vector<Operand> &list, char end, unsigned depth) {
  skipSpace();
  if (!rest.empty() && rest.front() == end) {
    rest = rest.drop_front();
    return true;
  }
  while (true) {
    if (list.size() > 512 || !operand(list.emplace_back(), depth))
      return false;
    skipSpace();
    if (rest.consume_front(","))
      continue;
    if (rest.empty() || rest.front() != end)
      return false;
    rest = rest.drop_front();
    return true;
  }
}

bool Parser::run(SmallVectorImpl<Instruction> &instructions) {
  while (true) {
    skipSpace();
    if (rest.empty())
      return true;
    if (rest.consume_front("{") || rest.consume_front("}"))
      continue;
    // A declaration, of which the names say enough.
    if (rest.starts_with(".reg")) {
      size_t end = rest.find(';');
      if (end == StringRef::npos)
        return false;
      rest = rest.drop_front(end + 1);
      continue;
    }
    Instruction inst;
    if (rest.consume_front("@")) {
      Operand p;
      if (!operand(p, 0) ||
          (p.kind != Operand::Number && p.kind != Operand::Word))
        return false;
      if (p.kind == Operand::Number)
        inst.predicate = p.number;
      else
        inst.predicateName = p.word;
      skipSpace();
    }
    inst.opcode = word();
    if (inst.opcode.empty())
      return false;
    // A label.
    if (inst.opcode.ends_with(":"))
      continue;
    if (!operands(inst.operands, ';', 0))
      return false;
    if (instructions.size() >= 16)
      return false;
    instructions.push_back(std::move(inst));
  }
}

namespace {

/// Raises one piece of text.
class Raiser {
public:
  explicit Raiser(LLVM::InlineAsmOp op)
      : op(op), builder(op), context(op.getContext()) {}

  /// The operation that does the same; null: there is none.
  Operation *run();

private:
  bool readConstraints();
  Value value(const Operand &o) {
    return o.kind == Operand::Number && o.number < numbered.size()
               ? numbered[o.number]
               : Value();
  }
  /// The one value in brackets.
  Value memory(const Operand &o) {
    return o.kind == Operand::Memory && o.parts.size() == 1 ? value(o.parts[0])
                                                            : Value();
  }
  std::optional<int64_t> constant(const Operand &o) {
    int64_t n;
    if (o.kind == Operand::Word && !o.word.getAsInteger(10, n))
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
  Operation *raiseMBarrier(const Instruction &inst);
  Operation *raiseTensor(const Instruction &inst);
  Operation *raiseCopy(const Instruction &inst);
  Operation *raiseWgmma(const Instruction &inst, const Instruction *compare);
  Operation *raiseWideMad(const Instruction &low, const Instruction &high);

  LLVM::InlineAsmOp op;
  OpBuilder builder;
  MLIRContext *context;
  /// The values that "$0", "$1", ... stand for; null for results.
  SmallVector<Value> numbered;
  /// For each result, the operand that is tied to it, or null.
  SmallVector<Value> tied;
};

} // namespace

bool Raiser::readConstraints() {
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

Operation *Raiser::raiseMBarrier(const Instruction &inst) {
  StringRef code = inst.opcode;
  code.consume_front("mbarrier.");
  const std::vector<Operand> &o = inst.operands;
  SmallVector<Value> operands;
  auto add = [&](Value v) {
    if (v)
      operands.push_back(v);
    return static_cast<bool>(v);
  };
  bool predicated = inst.predicate.has_value();
  Operand p;
  p.kind = Operand::Number;
  p.number = inst.predicate.value_or(0);
  code.consume_back(".b64");
  code.consume_back(".shared");
  code.consume_back(".shared::cta");
  if (code == "init" && o.size() == 2) {
    if (!add(memory(o[0])) || !add(value(o[1])) ||
        (predicated && !add(value(p))))
      return nullptr;
    return make("nvvm.mbarrier.init", operands);
  }
  if (code == "arrive.expect_tx" && o.size() == 3 && o[0].word == "_") {
    if (!add(memory(o[1])) || !add(value(o[2])) ||
        (predicated && !add(value(p))))
      return nullptr;
    return make("nvvm.mbarrier.arrive.expect_tx", operands);
  }
  if (code == "try_wait.parity" && (o.size() == 4 || o.size() == 3) &&
      o[0].kind == Operand::Word && !predicated) {
    if (!add(memory(o[1])) || !add(value(o[2])))
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
static bool isBox(const Operand &o) {
  return o.kind == Operand::Memory && o.parts.size() == 2 &&
         o.parts[1].kind == Operand::List && !o.parts[1].parts.empty() &&
         o.parts[1].parts.size() <= 5;
}

Operation *Raiser::raiseTensor(const Instruction &inst) {
  StringRef code = inst.opcode;
  code.consume_front("cp.async.bulk.tensor.");
  code = code.drop_front(std::min<size_t>(3, code.size())); // the rank
  const std::vector<Operand> &o = inst.operands;
  SmallVector<Value> operands;
  SmallVector<int32_t> sizes;
  bool good = true;
  auto add = [&](Value v) {
    good &= static_cast<bool>(v);
    operands.push_back(v);
  };
  auto addBox = [&](const Operand &box) {
    for (const Operand &c : box.parts[1].parts)
      add(value(c));
  };
  auto addPredicate = [&] {
    if (!inst.predicate)
      return 0;
    Operand p;
    p.kind = Operand::Number;
    p.number = *inst.predicate;
    add(value(p));
    return 1;
  };
  code.consume_front("tile.");
  if (code.consume_front("shared::cluster.global.")) {
    code.consume_front("tile.");
    if (!code.consume_front("mbarrier::complete_tx::bytes"))
      return nullptr;
    bool multicast = code.consume_front(".multicast::cluster"),
         hint = code.consume_front(".L2::cache_hint");
    if (!code.empty() || o.size() != 3u + multicast + hint || !isBox(o[1]))
      return nullptr;
    add(memory(o[0]));
    add(value(o[1].parts[0]));
    addBox(o[1]);
    add(memory(o[2]));
    if (multicast)
      add(value(o[3]));
    if (hint)
      add(value(o[3 + multicast]));
    int32_t predicate = addPredicate();
    if (!good)
      return nullptr;
    return make(
        "nvvm.cp.async.bulk.tensor.shared.cluster.global", operands,
        {attr("mode",
              NVVM::TMALoadModeAttr::get(context, NVVM::TMALoadMode::TILE)),
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
    add(value(o[0].parts[0]));
    add(memory(o[1]));
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

Operation *Raiser::raiseCopy(const Instruction &inst) {
  const std::vector<Operand> &o = inst.operands;
  if (inst.predicate || (o.size() != 3 && o.size() != 4))
    return nullptr;
  auto modifier = inst.opcode.contains(".cg.")
                      ? NVVM::LoadCacheModifierKind::CG
                      : NVVM::LoadCacheModifierKind::CA;
  std::optional<int64_t> size = constant(o[2]);
  Value dst = memory(o[0]), src = memory(o[1]),
        part = o.size() == 4 ? value(o[3]) : Value();
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

static std::optional<NVVM::WGMMATypes> wgmmaType(StringRef name) {
  return NVVM::symbolizeWGMMATypes(name);
}

Operation *Raiser::raiseWgmma(const Instruction &inst,
                              const Instruction *compare) {
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
  const std::vector<Operand> &o = inst.operands;
  if (!d || !a || !b || o.size() < 4 || o[0].kind != Operand::List)
    return nullptr;
  // "setp.ne.b32 p, $n, 0" makes the predicate that the accumulator is added.
  std::optional<int64_t> scaleD = compare && compare->operands.size() == 3 &&
                                          compare->operands[0].word == o[3].word
                                      ? constant(compare->operands[1])
                                      : constant(o[3]);
  auto number = [&](size_t i, int64_t otherwise) -> std::optional<int64_t> {
    return i < o.size() ? constant(o[i]) : otherwise;
  };
  auto scaleA = number(4, 1), scaleB = number(5, 1), layoutA = number(6, 0),
       layoutB = number(7, 0);
  Value descA = value(o[1]), descB = value(o[2]);
  if (!scaleD || !scaleA || !scaleB || !layoutA || !layoutB || !descA ||
      !descB || op.getNumResults() != 1)
    return nullptr;
  auto type = dyn_cast<LLVM::LLVMStructType>(op->getResult(0).getType());
  if (!type || type.getBody().size() != o[0].parts.size() ||
      tied.size() != o[0].parts.size())
    return nullptr;
  Value inouts = LLVM::PoisonOp::create(builder, op.getLoc(), type);
  for (auto [i, v] : llvm::enumerate(tied)) {
    if (!v || v.getType() != type.getBody()[i] ||
        o[0].parts[i].kind != Operand::Number || o[0].parts[i].number != i)
      return nullptr;
    inouts =
        LLVM::InsertValueOp::create(builder, op.getLoc(), inouts, v,
                                    ArrayRef<int64_t>{static_cast<int64_t>(i)});
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

Operation *Raiser::raiseWideMad(const Instruction &low,
                                const Instruction &high) {
  const std::vector<Operand> &l = low.operands, &h = high.operands;
  if (l.size() != 4 || h.size() != 4 || low.predicate || high.predicate ||
      op.getNumResults() != 1 || h[3].word != "0" ||
      l[0].kind != Operand::Number || l[0].number != 0 ||
      h[0].kind != Operand::Number || h[0].number != 1)
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

Operation *Raiser::run() {
  SmallVector<Instruction> instructions;
  if (!Parser(op.getAsmString()).run(instructions) || !readConstraints() ||
      instructions.empty())
    return nullptr;
  // A loop around a wait is the wait.
  const Instruction &first = instructions.front();
  bool loop = first.opcode.starts_with("mbarrier.try_wait.parity");
  for (const Instruction &i : llvm::drop_begin(instructions))
    loop &= i.opcode == "bra.uni" || i.opcode == "bra";
  if (loop && instructions.size() > 1)
    return raiseMBarrier(first);
  const Instruction &last = instructions.back();
  // A product of 32 bits plus a number, in 64 bits, as libdevice writes it.
  if (instructions.size() == 2 && first.opcode == "mad.lo.cc.u32" &&
      last.opcode == "madc.hi.u32")
    return raiseWideMad(first, last);
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
      Operand p;
      p.kind = Operand::Number;
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

void kvbuf::emu::raisePtx(LLVM::InlineAsmOp op) {
  if (Operation *raised = Raiser(op).run()) {
    if (op.getNumResults() && raised->getNumResults() == op.getNumResults())
      op->replaceAllUsesWith(raised->getResults());
    else if (!op->use_empty())
      return raised->erase();
    op->erase();
    return;
  }
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
