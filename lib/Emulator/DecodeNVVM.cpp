//===- DecodeNVVM.cpp - Operations of the NVVM dialect --------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSwitch.h"

#include <optional>

using namespace mlir;
using namespace kvbuf::emu;

static std::optional<Special> nvidiaRegister(StringRef name) {
  if (!name.consume_front("nvvm.read.ptx.sreg."))
    return std::nullopt;
  return llvm::StringSwitch<std::optional<Special>>(name)
      .Case("tid.x", Special::TidX)
      .Case("tid.y", Special::TidY)
      .Case("tid.z", Special::TidZ)
      .Case("ntid.x", Special::NTidX)
      .Case("ntid.y", Special::NTidY)
      .Case("ntid.z", Special::NTidZ)
      .Case("ctaid.x", Special::CtaX)
      .Case("ctaid.y", Special::CtaY)
      .Case("ctaid.z", Special::CtaZ)
      .Case("nctaid.x", Special::NCtaX)
      .Case("nctaid.y", Special::NCtaY)
      .Case("nctaid.z", Special::NCtaZ)
      .Case("laneid", Special::LaneId)
      .Case("warpid", Special::WarpId)
      .Case("nwarpid", Special::NWarps)
      .Case("lanemask.eq", Special::LaneMaskEq)
      .Case("lanemask.le", Special::LaneMaskLe)
      .Case("lanemask.lt", Special::LaneMaskLt)
      .Case("lanemask.ge", Special::LaneMaskGe)
      .Case("lanemask.gt", Special::LaneMaskGt)
      .Case("total.smem.size", Special::SharedBytes)
      .Case("dynamic.smem.size", Special::DynamicSharedBytes)
      .Case("clusterid.x", Special::ClusterX)
      .Case("clusterid.y", Special::ClusterY)
      .Case("clusterid.z", Special::ClusterZ)
      .Case("nclusterid.x", Special::NClusterX)
      .Case("nclusterid.y", Special::NClusterY)
      .Case("nclusterid.z", Special::NClusterZ)
      .Case("cluster.ctaid.x", Special::ClusterCtaX)
      .Case("cluster.ctaid.y", Special::ClusterCtaY)
      .Case("cluster.ctaid.z", Special::ClusterCtaZ)
      .Case("cluster.nctaid.x", Special::ClusterNCtaX)
      .Case("cluster.nctaid.y", Special::ClusterNCtaY)
      .Case("cluster.nctaid.z", Special::ClusterNCtaZ)
      .Case("cluster.ctarank", Special::ClusterRank)
      .Case("cluster.nctarank", Special::ClusterSize)
      .Default(std::nullopt);
}

Comp Decoder::reduceAtBarrier(uint32_t id, uint32_t threads, Comp predicate,
                              Reduction kind) {
  Comp result = allocate(false);
  Inst &inst = emit(Code::BarrierReduce);
  inst.dst = result.slot;
  inst.a = id;
  inst.b = threads;
  inst.c = predicate.slot;
  inst.flags = static_cast<uint8_t>(kind);
  return result;
}

LogicalResult Decoder::decodeNVVM(Operation *op, bool &known) {
  known = true;
  if (auto special = nvidiaRegister(op->getName().getStringRef())) {
    set(op->getResult(0),
        {Comp{program.specials[static_cast<unsigned>(*special)]}});
    return success();
  }
  if (isa<NVVM::WarpSizeOp>(op)) {
    set(op->getResult(0), {constant(32)});
    return success();
  }
  // Of the driver's registers the second and third have the address of the
  // grid's barrier (CUDA's cooperative groups, driver_abi.h).
  if (StringRef name = op->getName().getStringRef();
      name.consume_front("nvvm.read.ptx.sreg.envreg")) {
    bool high = name == "1";
    set(op->getResult(0),
        {high || name == "2" ? emitFree(high ? Code::Hi64 : Code::Lo64, false,
                                        hidden(Hidden::GridBarrier))
                             : constant(0)});
    return success();
  }
  if (isa<NVVM::GlobalTimerOp>(op)) {
    set(op->getResult(0),
        {emitFree(Code::ZExt64, true, emit(Code::Clock, false, {}))});
    return success();
  }
  if (isa<NVVM::ClockOp, NVVM::Clock64Op>(op)) {
    Comp c = emit(Code::Clock, false, {});
    if (bitsOf(op->getResult(0).getType()) == 64)
      c = emitFree(Code::ZExt64, true, c);
    set(op->getResult(0), {c});
    return success();
  }

  // Barriers.
  if (isa<NVVM::Barrier0Op>(op)) {
    emit(Code::Barrier);
    return success();
  }
  if (auto x = dyn_cast<NVVM::BarrierOp>(op)) {
    uint32_t id = x.getBarrierId() ? getNarrow(x.getBarrierId()).slot : noSlot;
    uint32_t n = x.getNumberOfThreads() ? getNarrow(x.getNumberOfThreads()).slot
                                        : noSlot;
    if (std::optional<NVVM::BarrierReduction> kind = x.getReductionOp()) {
      // Its predicate is any number but 0.
      Comp holds = emit(Code::CmpNe32, false,
                        getNarrow(x.getReductionPredicate()), constant(0));
      Comp made = reduceAtBarrier(
          id, n, holds,
          *kind == NVVM::BarrierReduction::POPC  ? Reduction::Count
          : *kind == NVVM::BarrierReduction::AND ? Reduction::All
                                                 : Reduction::Any);
      if (op->getNumResults())
        set(op->getResult(0), {made});
      return success();
    }
    Inst &inst = emit(Code::Barrier);
    inst.a = id;
    inst.b = n;
    return success();
  }
  if (auto x = dyn_cast<NVVM::BarrierArriveOp>(op)) {
    uint32_t id = x.getBarrierId() ? getNarrow(x.getBarrierId()).slot : noSlot;
    uint32_t n = getNarrow(x.getNumberOfThreads()).slot;
    Inst &inst = emit(Code::BarrierArrive);
    inst.a = id;
    inst.b = n;
    return success();
  }
  if (auto x = dyn_cast<NVVM::SyncWarpOp>(op)) {
    uint32_t mask = getNarrow(x.getMask()).slot;
    emit(Code::WarpSync).a = mask;
    return success();
  }
  if (isa<NVVM::PrefetchOp, NVVM::Breakpoint, NVVM::PMEventOp>(op) ||
      decodeFenceOp(op))
    return success();
  if (isa<NVVM::Exit>(op)) {
    emit(Code::Return);
    current = newBlock();
    return success();
  }

  // The warp.
  if (auto x = dyn_cast<NVVM::ShflOp>(op)) {
    Comps result = allocate(op->getResult(0).getType());
    if (result.size() > 2 ||
        llvm::any_of(result, [](Comp c) { return c.wide; }))
      return unsupported(op, "results of other than 32 bits");
    uint32_t a = getNarrow(x.getVal()).slot, b = getNarrow(x.getOffset()).slot,
             c = getNarrow(x.getMaskAndClamp()).slot;
    Comp mask = getNarrow(x.getThreadMask());
    Inst &inst = emit(Code::Shuffle);
    inst.dst = result[0].slot;
    inst.a = a;
    inst.b = b;
    inst.c = c;
    inst.flags = static_cast<uint8_t>(x.getKind());
    list(inst, {mask, result.size() > 1 ? result[1] : Comp{}});
    set(op->getResult(0), result);
    return success();
  }
  if (auto x = dyn_cast<NVVM::VoteSyncOp>(op)) {
    Comp pred = getNarrow(x.getPred()), mask = getNarrow(x.getMask());
    Comp c = emit(Code::Vote, false, pred, mask);
    code[current].back().flags = static_cast<uint8_t>(x.getKind());
    set(x.getResult(), {c});
    return success();
  }
  if (auto x = dyn_cast<NVVM::ElectSyncOp>(op)) {
    Comp mask = x.getMembermask() ? getNarrow(x.getMembermask())
                                  : constant(0xFFFFFFFFu);
    set(op->getResult(0), {emit(Code::Elect, false, mask)});
    return success();
  }
  if (auto x = dyn_cast<NVVM::PermuteOp>(op)) {
    if (x.getMode() != NVVM::PermuteMode::DEFAULT || !x.getHi())
      return unsupported(op, "a mode other than default");
    Comp lo = getNarrow(x.getLo()), hi = getNarrow(x.getHi()),
         selector = getNarrow(x.getSelector());
    set(op->getResult(0), {emit(Code::Prmt, false, lo, hi, selector)});
    return success();
  }

  // Copies in the background.
  if (auto x = dyn_cast<NVVM::CpAsyncOp>(op)) {
    Comp src = getWide(x.getSrc());
    Comp size = x.getCpSize() ? getNarrow(x.getCpSize()) : Comp{};
    auto [dst, offset] = getAddress(x.getDst());
    if (x.getSize() != 4 && x.getSize() != 8 && x.getSize() != 16)
      return unsupported(op, "copies of other than 4, 8 or 16 bytes");
    if (dst.wide)
      return unsupported(op, "copies to other than shared memory");
    Inst &inst = emit(Code::CpAsync);
    inst.a = dst.slot;
    inst.offset = offset;
    inst.b = src.slot;
    inst.c = size.slot;
    inst.imm = x.getSize();
    inst.align = x.getSize();
    inst.stat = program.numStats++;
    return success();
  }
  if (isa<NVVM::CpAsyncCommitGroupOp>(op)) {
    emit(Code::CpAsyncCommit);
    return success();
  }
  if (auto x = dyn_cast<NVVM::CpAsyncWaitGroupOp>(op)) {
    emit(Code::CpAsyncWait).imm = pendingGroups(x.getN());
    return success();
  }

  // Matrices.
  auto isOf8x8 = [](auto x) {
    return x.getEltType() == NVVM::LdStMatrixEltType::B16 &&
           x.getShape().getM() == 8 && x.getShape().getN() == 8;
  };
  auto isCount = [](const Comps &registers) {
    size_t n = registers.size();
    return (n == 1 || n == 2 || n == 4) &&
           llvm::none_of(registers, [](Comp c) { return c.wide; });
  };
  auto emitMatrices = [&](auto x, Code code, const Comps &registers) {
    auto [base, offset] = getAddress(x.getPtr());
    if (base.wide)
      return fail("an address outside of shared memory");
    Inst &inst = emit(code);
    inst.a = base.slot;
    inst.offset = offset;
    inst.align = 16;
    inst.flags = x.getLayout() == NVVM::MMALayout::col;
    inst.stat = program.numStats++;
    list(inst, registers);
  };
  if (auto x = dyn_cast<NVVM::LdMatrixOp>(op)) {
    if (!isOf8x8(x))
      return unsupported(op, "matrices other than 8x8 of b16");
    Comps result = allocate(op->getResult(0).getType());
    if (result.size() != x.getNum() || !isCount(result))
      return unsupported(op, "this result type");
    emitMatrices(x, Code::LdMatrix, result);
    set(op->getResult(0), result);
    return success();
  }
  if (auto x = dyn_cast<NVVM::StMatrixOp>(op)) {
    if (!isOf8x8(x))
      return unsupported(op, "matrices other than 8x8 of b16");
    Comps sources;
    for (Value v : x.getSources())
      sources.push_back(getNarrow(v));
    if (!isCount(sources))
      return unsupported(op, "this number of matrices");
    emitMatrices(x, Code::StMatrix, sources);
    return success();
  }
  if (auto x = dyn_cast<NVVM::MmaOp>(op)) {
    int64_t m = x.getShape().getM(), n = x.getShape().getN(),
            k = x.getShape().getK();
    auto type = x.getMultiplicandAPtxType();
    bool bf16 = type == NVVM::MMATypes::bf16;
    auto record = dyn_cast<LLVM::LLVMStructType>(x.getType());
    bool f32 = record && record.getBody().size() == 4 &&
               llvm::all_of(record.getBody(), [](Type t) { return t.isF32(); });
    if (m != 16 || n != 8 || (k != 8 && k != 16) || !f32 ||
        (!bf16 && type != NVVM::MMATypes::f16) ||
        x.getMultiplicandBPtxType() != type ||
        x.getLayoutA() != NVVM::MMALayout::row ||
        x.getLayoutB() != NVVM::MMALayout::col)
      return decodeMatrixOp(op, known);
    Comps parts = allocate(x.getType());
    Comps result = parts;
    for (Value v : op->getOperands())
      llvm::append_range(parts, get(v));
    if (parts.size() != static_cast<size_t>(8 + k / 4 + k / 8) ||
        llvm::any_of(parts, [](Comp c) { return c.wide; }))
      return unsupported(op, "this number of operands");
    Inst &inst = emit(Code::MmaSync);
    inst.imm = k;
    inst.flags = bf16;
    list(inst, parts);
    set(op->getResult(0), result);
    return success();
  }

  // Arithmetic.
  if (auto x = dyn_cast<NVVM::RcpApproxFtzF32Op>(op)) {
    set(x.getResult(), {emit(Code::RcpFtzF32, false, getNarrow(x.getArg()))});
    return success();
  }
  auto convert = [&](auto x, Code code) -> LogicalResult {
    if (x.getRandomBits() || x.getRelu() ||
        x.getSat() != NVVM::SaturationMode::NONE ||
        (x.getRnd() != NVVM::FPRoundingMode::NONE &&
         x.getRnd() != NVVM::FPRoundingMode::RN))
      return unsupported(op, "rounding other than to nearest even");
    Comp hi = getNarrow(x.getSrcHi()), lo = getNarrow(x.getSrcLo());
    set(op->getResult(0), {emit(code, false, lo, hi)});
    return success();
  };
  if (failed(decodeMatrixOp(op, known)))
    return failure();
  if (known)
    return success();
  known = true;
  if (auto x = dyn_cast<NVVM::ConvertF32x2ToBF16x2Op>(op))
    return convert(x, Code::PackF32ToBF16);
  if (auto x = dyn_cast<NVVM::ConvertF32x2ToF16x2Op>(op))
    return convert(x, Code::PackF32ToF16);
  if (auto x = dyn_cast<NVVM::ConvertF8x2ToF16x2Op>(op)) {
    bool isE4M3 = isa<Float8E4M3FNType>(x.getSrcType());
    if (x.getRelu() || !(isE4M3 || isa<Float8E5M2Type>(x.getSrcType())))
      return unsupported(op, "a form other than of e4m3 or e5m2");
    Comp low = getNarrow(x.getSrc());
    // f32 has all of them, and so has f16. The formats' numbers: HostMath.h.
    auto wide = [&](Comp code) {
      return laneCall("f32.from.f8", {code}, isE4M3 ? 0 : 2);
    };
    Comp high = emit(Code::LShr32, false, low, constant(8));
    set(op->getResult(0),
        {emit(Code::PackF32ToF16, false, wide(low), wide(high))});
    return success();
  }
  if (auto x = dyn_cast<NVVM::ConvertF32x2ToF8x2Op>(op)) {
    bool isE4M3 = isa<Float8E4M3FNType>(x.getDstTy());
    if (x.getRelu() || x.getRnd() != NVVM::FPRoundingMode::RN ||
        x.getSat() != NVVM::SaturationMode::SATFINITE ||
        !x.getDst().getType().isInteger(16) ||
        !(isE4M3 || isa<Float8E5M2Type>(x.getDstTy())))
      return unsupported(op, "a form other than rn.satfinite of e4m3 or e5m2");
    Comp hi = getNarrow(x.getA()), lo = getNarrow(x.getB());
    set(op->getResult(0),
        {emit(isE4M3 ? Code::PackF32ToE4M3 : Code::PackF32ToE5M2, false, lo,
              hi)});
    return success();
  }
  return decodeHopper(op, known);
}
