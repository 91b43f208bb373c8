//===- DecodeWgmma.cpp - Asynchronous products ----------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `kvbuffer.wgmma` and NVVM's operations. What reads the registers of a product
// is preceded by a check that they are there (see MatrixAsync.cpp).
//
//===----------------------------------------------------------------------===//

#include "Async.h"
#include "Decoder.h"
#include "HostMath.h"

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace kvbuf::emu;

/// Products in one operation; the field that holds them is no larger.
static constexpr uint32_t maxSteps = 1024;

static bool anyWide(const Comps &parts) {
  return llvm::any_of(parts, [](Comp c) { return c.wide; });
}

Inst &Decoder::emitAsync(Code code) {
  program.async = true;
  return emit(code);
}

// What only chips with instructions for groups of warps have.
LogicalResult Decoder::needMatrixGroups(Operation *op) {
  if (program.chip.hasMatrixGroups)
    return success();
  return unsupported(op, program.chip.describe() + " does not have it");
}

// What this dialect has beside llvm and nvvm. kvbuffer.wgmma: one committed
// group, with its fence.
LogicalResult Decoder::decodeKVBuffer(Operation *op) {
  if (auto x = dyn_cast<kvbuf::LaneTransposeOp>(op)) {
    if (program.chip.lanes != 32)
      return unsupported(op, program.chip.describe() + " does not have it");
    set(x.getTurned(),
        {emit(Code::LaneTranspose, false, getNarrow(x.getWord()))});
    return success();
  }
  if (failed(needMatrixGroups(op)))
    return failure();
  if (auto x = dyn_cast<kvbuf::ClusterArriveOp>(op)) {
    Comp address = sharedPointer(x.getBarrier()), rank = getNarrow(x.getRank()),
         predicate = getNarrow(x.getPredicate());
    Inst &inst = emitAsync(Code::MBarrierArrive);
    inst.a = address.slot;
    inst.b = rank.slot;
    inst.flags = mbarrierArrives;
    list(inst, {Comp{}, Comp{}, predicate});
    return success();
  }
  if (auto x = dyn_cast<kvbuf::ClusterStoreOp>(op)) {
    Comp address = sharedPointer(x.getAddress()),
         barrier = sharedPointer(x.getBarrier()), rank = getNarrow(x.getRank());
    // A word, or four of them.
    Comps words = isa<VectorType>(x.getValue().getType())
                      ? get(x.getValue())
                      : Comps{getNarrow(x.getValue())};
    Inst &inst = emitAsync(Code::ClusterStore);
    inst.a = address.slot;
    inst.b = words.front().slot;
    inst.c = barrier.slot;
    inst.imm = int64_t(words.size());
    inst.align = 4 * words.size();
    inst.stat = program.numStats++;
    Comps others{rank};
    llvm::append_range(others, ArrayRef(words).drop_front());
    list(inst, others);
    return success();
  }
  if (auto x = dyn_cast<kvbuf::ClusterCopyOp>(op)) {
    Comp address = sharedPointer(x.getAddress()),
         barrier = sharedPointer(x.getBarrier()), rank = getNarrow(x.getRank()),
         bytes = getNarrow(x.getBytes()),
         predicate = getNarrow(x.getPredicate());
    Inst &inst = emitAsync(Code::ClusterCopy);
    inst.a = address.slot;
    inst.b = bytes.slot;
    inst.c = barrier.slot;
    inst.align = 16;
    inst.stat = program.numStats++;
    list(inst, {rank, predicate});
    return success();
  }
  auto gather = [&](ValueRange range) {
    Comps all;
    for (Value v : range)
      llvm::append_range(all, get(v));
    return all;
  };
  if (auto x = dyn_cast<kvbuf::WgmmaOp>(op)) {
    uint32_t n = x.getN(), steps = x.getBSteps().size();
    Comps results;
    for (Value v : x.getResults()) {
      Comps parts = allocate(v.getType());
      llvm::append_range(results, parts);
      set(v, parts);
    }
    Comps parts = results, c = gather(x.getC()), a = gather(x.getA());
    if (n == 0 || n > 256 || n % 8 || steps == 0 || steps > maxSteps ||
        results.size() != n / 2 || (!c.empty() && c.size() != n / 2) ||
        (a.empty() ? !x.getADesc() || x.getASteps().size() != steps
                   : a.size() != 4 * static_cast<size_t>(steps)) ||
        anyWide(results) || anyWide(c) || anyWide(a))
      return unsupported(op, "these types");
    llvm::append_range(parts, c);
    llvm::append_range(parts, a);
    // Not slots, but numbers; they ride in the same list.
    for (uint32_t i = 0; i < steps; ++i)
      parts.push_back(
          Comp{x.getADesc() ? static_cast<uint32_t>(x.getASteps()[i]) : 0});
    for (int64_t step : x.getBSteps())
      parts.push_back(Comp{static_cast<uint32_t>(step)});
    Comp descA = x.getADesc() ? getWide(x.getADesc()) : Comp{},
         descB = getWide(x.getBDesc());
    Inst &inst = emitAsync(Code::Wgmma);
    inst.a = descA.slot;
    inst.b = descB.slot;
    auto is = [](Type type, uint8_t types) {
      return isa<Float8E5M2Type>(type) ? types : 0;
    };
    bool areBytes = x.getElement().getIntOrFloatBitWidth() == 8;
    inst.imm =
        wgmmaShape(n, steps,
                   areBytes ? wgmmaBytes | is(x.elementOfA(), wgmmaLeftBF8) |
                                  is(x.getElement(), wgmmaRightBF8)
                            : 0);
    inst.flags = wgmmaGroup | (x.getElement().isBF16() ? wgmmaBF16 : 0) |
                 (c.empty() ? 0 : wgmmaAccumulate) |
                 (a.empty() ? 0 : wgmmaRegisterA) |
                 (x.getTransposeB() ? wgmmaTransposeB : 0);
    list(inst, parts);
    return success();
  }
  if (auto x = dyn_cast<kvbuf::WgmmaWaitOp>(op)) {
    Comps parts = gather(x.getValues());
    for (Value v : x.getResults()) {
      Comps to = allocate(v.getType());
      llvm::append_range(parts, to);
      set(v, to);
    }
    if (anyWide(parts) || parts.size() % 2)
      return unsupported(op, "these types");
    Inst &inst = emitAsync(Code::WgmmaWait);
    inst.imm = pendingGroups(x.getPending());
    list(inst, parts);
    return success();
  }
  return unsupported(op);
}

LogicalResult Decoder::decodeWgmma(Operation *op, bool &known) {
  if (isa<NVVM::WgmmaFenceAlignedOp, NVVM::WgmmaGroupSyncAlignedOp,
          NVVM::WgmmaWaitGroupSyncOp, NVVM::WgmmaMmaAsyncOp>(op) &&
      failed(needMatrixGroups(op)))
    return failure();
  if (isa<NVVM::WgmmaFenceAlignedOp>(op)) {
    emitAsync(Code::WgmmaFence);
    return success();
  }
  if (isa<NVVM::WgmmaGroupSyncAlignedOp>(op)) {
    emitAsync(Code::WgmmaCommit);
    return success();
  }
  if (auto x = dyn_cast<NVVM::WgmmaWaitGroupSyncOp>(op)) {
    emitAsync(Code::WgmmaWait).imm = pendingGroups(x.getGroup());
    return success();
  }
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op)) {
    StringRef name = call.getIntrin();
    known = name.consume_front("llvm.nvvm.wgmma.");
    if (!known)
      return success();
    if (failed(needMatrixGroups(op)))
      return failure();
    if (name == "wait_group")
      return decodeGroupWait(call);
    if (name.consume_front("mma_async."))
      return decodeWgmmaCall(call, name);
  }
  auto x = dyn_cast<NVVM::WgmmaMmaAsyncOp>(op);
  if (!x) {
    known = false;
    return success();
  }
  bool bf16 = x.getTypeA() == NVVM::WGMMATypes::bf16;
  auto isByte = [](NVVM::WGMMATypes type) {
    return type == NVVM::WGMMATypes::e4m3 || type == NVVM::WGMMATypes::e5m2;
  };
  bool areBytes = isByte(x.getTypeA()) && isByte(x.getTypeB());
  bool isTurned = x.getLayoutA() == NVVM::MMALayout::col ||
                  x.getLayoutB() == NVVM::MMALayout::row;
  uint32_t n = x.getShape().getN();
  Comps results = allocate(x.getResults().getType()), parts = results,
        c = get(x.getInouts());
  if (x.getShape().getM() != 64 || x.getTypeD() != NVVM::WGMMATypes::f32 ||
      x.getShape().getK() != (areBytes ? 32 : 16) || (areBytes && isTurned) ||
      (!areBytes && ((!bf16 && x.getTypeA() != NVVM::WGMMATypes::f16) ||
                     x.getTypeB() != x.getTypeA())) ||
      n == 0 || n > 256 || n % 8 || results.size() != n / 2 ||
      c.size() != n / 2 || anyWide(results) || anyWide(c))
    return unsupported(op, "products other than m64nNk16 of f16 or bf16, and "
                           "m64nNk32 of e4m3 and e5m2, with fp32 accumulators");
  bool accumulate = x.getScaleD() == NVVM::WGMMAScaleOut::one;
  if (accumulate)
    llvm::append_range(parts, c);
  parts.append(2, Comp{0}); // steps added to the descriptors
  Comp a = getWide(x.getDescriptorA()), b = getWide(x.getDescriptorB());
  Inst &inst = emitAsync(Code::Wgmma);
  inst.a = a.slot;
  inst.b = b.slot;
  inst.imm = wgmmaShape(
      n, 1,
      areBytes
          ? wgmmaBytes |
                (x.getTypeA() == NVVM::WGMMATypes::e5m2 ? wgmmaLeftBF8 : 0) |
                (x.getTypeB() == NVVM::WGMMATypes::e5m2 ? wgmmaRightBF8 : 0)
          : 0);
  inst.flags = (bf16 ? wgmmaBF16 : 0) | (accumulate ? wgmmaAccumulate : 0) |
               (x.getLayoutA() == NVVM::MMALayout::col ? wgmmaTransposeA : 0) |
               (x.getLayoutB() == NVVM::MMALayout::row ? wgmmaTransposeB : 0) |
               (x.getScaleA() == NVVM::WGMMAScaleIn::neg ? wgmmaNegateA : 0) |
               (x.getScaleB() == NVVM::WGMMAScaleIn::neg ? wgmmaNegateB : 0);
  list(inst, parts);
  set(op->getResult(0), results);
  return success();
}

// What "wgmma.wait_group" in assembly hands out: the operands behind the number
// of groups.
LogicalResult Decoder::decodeGroupWait(LLVM::CallIntrinsicOp op) {
  std::optional<int64_t> n = constantOf(op.getArgs()[0]);
  if (!n || op->getNumResults() != 1)
    return unsupported(op, "a number that is no constant");
  Comps values;
  for (Value v : llvm::drop_begin(op.getArgs()))
    llvm::append_range(values, get(v));
  // Products have registers of 32 bits.
  Comps from, to, results;
  for (Comp c : values) {
    results.push_back(c.wide ? c : allocate(false));
    if (c.wide)
      continue;
    from.push_back(c);
    to.push_back(results.back());
  }
  llvm::append_range(from, to);
  Inst &inst = emitAsync(Code::WgmmaWait);
  inst.imm = pendingGroups(*n);
  list(inst, from);
  set(op->getResult(0), results);
  return success();
}

// "m64n64k16.f32.f16.f16" of accumulators, a descriptor or four words of A, a
// descriptor of B, and whether the accumulators are added.
LogicalResult Decoder::decodeWgmmaCall(LLVM::CallIntrinsicOp op,
                                       StringRef name) {
  SmallVector<StringRef> words;
  name.split(words, '.');
  uint32_t n = 0;
  StringRef shape = words[0];
  OperandRange args = op.getArgs();
  bool registers = args.size() == 7;
  auto flags = op->getAttrOfType<IntegerAttr>("flags");
  if (words.size() != 4 || !shape.consume_front("m64n") ||
      shape.consumeInteger(10, n) || shape != "k16" || words[1] != "f32" ||
      (words[2] != "f16" && words[2] != "bf16") || words[3] != words[2] ||
      n == 0 || n > 256 || n % 8 || !flags || op->getNumResults() != 1 ||
      (args.size() != 4 && !registers))
    return unsupported(op, "products other than m64nNk16 of f16 or bf16 with "
                           "fp32 accumulators");
  Comps results = allocate(op->getResult(0).getType()), parts = results,
        c = get(args[0]);
  if (results.size() != n / 2 || c.size() != n / 2 || anyWide(results) ||
      anyWide(c))
    return unsupported(op, "these types");
  llvm::append_range(parts, c);
  if (registers)
    for (Value v : args.slice(1, 4))
      parts.push_back(getNarrow(v));
  parts.append(2, Comp{0}); // steps added to the descriptors
  Comp a = registers ? Comp{} : getWide(args[1]),
       b = getWide(args[args.size() - 2]), adds = getNarrow(args.back());
  Inst &inst = emitAsync(Code::Wgmma);
  inst.a = a.slot;
  inst.b = b.slot;
  inst.c = adds.slot;
  inst.imm = n | 1 << 16;
  inst.flags = static_cast<uint8_t>(flags.getInt()) | wgmmaAccumulate |
               (words[2] == "bf16" ? wgmmaBF16 : 0) |
               (registers ? wgmmaRegisterA : 0);
  list(inst, parts);
  set(op->getResult(0), results);
  return success();
}

//===----------------------------------------------------------------------===//
// Checks in front of readers
//===----------------------------------------------------------------------===//

// The slots that an instruction reads as 32-bit values.
static void readSlots(const Program &program, const Inst &inst,
                      SmallVectorImpl<uint32_t> &out) {
  ArrayRef<uint32_t> lists = program.lists;
  for (uint32_t slot : {inst.a, inst.b, inst.c})
    if (slot != noSlot)
      out.push_back(slot);
  ArrayRef<uint32_t> list = lists.slice(inst.list, inst.listSize);
  switch (inst.op) {
  case Code::StoreShared:
  case Code::StoreGlobal:
  case Code::StoreLocal:
  case Code::StoreGeneric:
  case Code::StMatrix:
  case Code::Shuffle:
  case Code::BulkLoad:
  case Code::BulkStore:
  case Code::ClusterStore:
  case Code::ClusterCopy:
  case Code::MBarrierArrive:
    llvm::copy_if(list, std::back_inserter(out),
                  [](uint32_t slot) { return slot != noSlot; });
    break;
  case Code::MmaSync:
    llvm::append_range(out, list.drop_front(4));
    break;
  // Results, then operands.
  case Code::LaneCall:
    llvm::append_range(
        out, list.drop_front(
                 StringRef(laneFunctions()[inst.imm].signature).find('=')));
    break;
  case Code::WarpCall: {
    const WarpOp &op = program.warpOps[inst.imm];
    size_t results = op.kind <= WarpOpKind::Wmma        ? op.numD
                     : op.kind == WarpOpKind::WmmaStore ? 0
                     : op.kind == WarpOpKind::WmmaLoad  ? list.size() - 2
                     : op.kind == WarpOpKind::Match     ? 1 + (op.detail != 0)
                                                        : 1;
    llvm::append_range(out, list.drop_front(results));
    break;
  }
  case Code::Print:
    llvm::append_range(out, list);
    break;
  default: // results, or blocks
    break;
  }
}

void Decoder::checkProducts() {
  // Slots that may hold a result in flight: those of products, and copies.
  llvm::DenseSet<uint32_t> pending;
  for (const std::vector<Inst> &insts : code)
    for (const Inst &inst : insts)
      if (inst.op == Code::Wgmma)
        for (uint32_t i = 0; i < wgmmaColumns(inst.imm) / 2; ++i)
          pending.insert(program.lists[inst.list + i]);
  if (pending.empty())
    return;
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::vector<Inst> &insts : code)
      for (const Inst &inst : insts)
        if (inst.op == Code::MovN)
          for (int64_t k = 0; k < inst.imm; ++k)
            if (pending.contains(inst.a + k))
              changed |= pending.insert(inst.dst + k).second;
  }
  for (std::vector<Inst> &insts : code) {
    std::vector<Inst> checked;
    for (const Inst &inst : insts) {
      SmallVector<uint32_t> reads;
      if (inst.op != Code::Wgmma && inst.op != Code::WgmmaWait &&
          inst.op != Code::MovN)
        readSlots(program, inst, reads);
      Inst check;
      check.op = Code::WgmmaCheck;
      check.origin = inst.origin;
      check.list = program.lists.size();
      for (uint32_t slot : reads)
        if (pending.contains(slot))
          program.lists.push_back(slot);
      check.listSize = program.lists.size() - check.list;
      if (check.listSize)
        checked.push_back(check);
      checked.push_back(inst);
    }
    insts = std::move(checked);
  }
}
