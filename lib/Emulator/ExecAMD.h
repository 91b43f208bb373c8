//===- ExecAMD.h - Operations of AMD's waves --------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Members of Exec: the operations of OpsAMD.def.
//
//===----------------------------------------------------------------------===//

void executeAMD(const Inst &i) {
  switch (i.op) {
  case Code::AmdBufferLoad:
    return bufferAccess(i, /*store=*/false);
  case Code::AmdBufferStore:
    return bufferAccess(i, /*store=*/true);
  case Code::AmdBufferLoadLds:
    return bufferToLds(i);
  case Code::AmdGlobalLoadLds:
    return globalToLds(i);
  case Code::AmdReadTr16:
    return readTr16(i);
  case Code::AmdLoadTr16:
    return loadTr16(i);
  case Code::AmdTensorLoad:
    return tensorLoad(i);
  case Code::AmdTensorWait:
    return r.asyncWait(w, i, static_cast<uint32_t>(i.imm), ~0ull,
                       /*ofTensors=*/true);
  case Code::AmdCountVm:
    return r.vmCount(w);
  case Code::AmdWait:
    // Waits are the wave's, whichever lanes are active.
    r.asyncWait(w, i, static_cast<uint32_t>(i.imm), ~0ull);
    if (i.imm == 0)
      r.writtenBack(w);
    return r.ldsWait(w, static_cast<uint32_t>(i.offset));
  case Code::AmdMark:
    return r.vmMark(w, i);
  case Code::AmdUse:
    return r.ldsUse(w, i);
  case Code::AmdMfma:
    // Waves of 32 have none.
    if constexpr (W == 64)
      mfma(i);
    return;
  case Code::AmdLaneMap:
    return laneMap(i);
  case Code::AmdReadLane:
    return i.flags ? readLane<uint64_t>(i) : readLane<uint32_t>(i);
  case Code::AmdBpermute:
    return bpermute(i);
  case Code::AmdSwap:
    if constexpr (W == 64)
      swapGroups(i);
    return;
  case Code::AmdBallot:
    return ballot(i);
  case Code::AmdMbcntLo:
  case Code::AmdMbcntHi:
    return countBelow(i);
  case Code::AmdPerm:
    return permBytes(i);
  case Code::AmdDot2F16:
  case Code::AmdDot2BF16:
    return dot2(i);
  case Code::AmdPackF16Rtz:
    return packRtz(i);
  default:
    return;
  }
}

// v_perm_b32: bytes 0 to 3 of b, 4 to 7 of a, signs, 0x00 and 0xFF (CDNA3
// ISA, V_PERM_B32).
static uint32_t permByte(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t all = static_cast<uint64_t>(a) << 32 | b;
  if (selector < 8)
    return all >> (8 * selector) & 0xFF;
  if (selector < 12) // the sign of one of the four halves
    return all >> (16 * (selector - 8) + 15) & 1 ? 0xFF : 0;
  return selector == 12 ? 0 : 0xFF;
}

void permBytes(const Inst &i) {
  const uint32_t *a = reg<uint32_t>(i.a), *b = reg<uint32_t>(i.b),
                 *c = reg<uint32_t>(i.c);
  uint32_t *d = out<uint32_t>(i.dst);
  for (unsigned l = 0; l < W; ++l) {
    uint32_t x = a[l], y = b[l], selectors = c[l], result = 0;
    for (unsigned k = 0; k < 4; ++k)
      result |= permByte(x, y, selectors >> (8 * k) & 0xFF) << (8 * k);
    d[l] = result;
  }
  done<uint32_t>(i.dst);
}

// a.lo * b.lo + a.hi * b.hi + c in fp32. Numbers of fp32 below the normal ones
// are 0 (LLVM, SITargetLowering::performFMACombine), f16 below its normal ones
// as they are (llvm-project PR 205101).
void dot2(const Inst &i) {
  const uint32_t *a = reg<uint32_t>(i.a), *b = reg<uint32_t>(i.b);
  const float *c = reg<float>(i.c);
  float *d = out<float>(i.dst);
  bool bf16 = i.op == Code::AmdDot2BF16;
  KVBUF_LANES {
    uint32_t x = a[l], y = b[l];
    float x0 = bf16 ? fromBF16(x & 0xFFFF) : fromF16(x & 0xFFFF);
    float x1 = bf16 ? fromBF16(x >> 16) : fromF16(x >> 16);
    float y0 = bf16 ? fromBF16(y & 0xFFFF) : fromF16(y & 0xFFFF);
    float y1 = bf16 ? fromBF16(y >> 16) : fromF16(y >> 16);
    d[l] = flush(multiplyAdd(x1, y1, multiplyAdd(x0, y0, flush(c[l]))));
  }
  done<float>(i.dst);
}

// To f16 toward zero: the nearest one, or the one below it in magnitude.
static uint32_t toF16Rtz(float x) {
  uint32_t h = toF16(x);
  float back = __builtin_fabsf(fromF16(h));
  return back > __builtin_fabsf(x) ? h - 1 : h;
}

void packRtz(const Inst &i) {
  const float *a = reg<float>(i.a), *b = reg<float>(i.b);
  uint32_t *d = out<uint32_t>(i.dst);
  KVBUF_LANES {
    float x = a[l], y = b[l];
    d[l] = toF16Rtz(x) | toF16Rtz(y) << 16;
  }
  done<uint32_t>(i.dst);
}
