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
#include "PtxRaiser.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace kvbuf::emu;

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

Operation *PtxRaiser::raiseClusterCopy(ArrayRef<PtxInstruction> instructions) {
  // mapa there, $address, $rank; mapa barrier, $barrier, $rank;
  // @$predicate cp.async.bulk [there], [$address], $bytes, [barrier]
  const PtxInstruction &there = instructions[0], &other = instructions[1],
                       &copy = instructions[2];
  const std::vector<PtxOperand> &o = copy.operands;
  if (other.opcode != there.opcode || there.operands.size() != 3 ||
      other.operands.size() != 3 || o.size() != 4 || !copy.predicate ||
      *copy.predicate >= numbered.size() || o[0].parts.size() != 1 ||
      o[3].parts.size() != 1 || o[0].parts[0].word != there.operands[0].word ||
      o[3].parts[0].word != other.operands[0].word)
    return nullptr;
  Value rank = value(there.operands[2]), bytes = value(o[2]),
        predicate = numbered[*copy.predicate];
  Value address = shared(there.operands[1]),
        barrier = shared(other.operands[1]);
  if (!rank || rank != value(other.operands[2]) || !bytes || !predicate ||
      !address || !barrier || o[1].parts.size() != 1 ||
      value(o[1].parts[0]) != value(there.operands[1]))
    return nullptr;
  context->getOrLoadDialect<kvbuf::KVBufferDialect>();
  return make("kvbuffer.cluster_copy",
              {bytes, address, barrier, rank, predicate});
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
           : instructions.size() != 3 ? nullptr
           : last.opcode.starts_with("cp.async.bulk.shared::cluster.shared::"
                                     "cta.mbarrier::complete_tx::bytes")
               ? raiseClusterCopy(instructions)
               : raiseClusterStore(instructions);
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
