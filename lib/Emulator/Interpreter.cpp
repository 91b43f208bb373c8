//===- Interpreter.cpp - Executes a warp's instructions -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled once for each instruction set, in a namespace of its own
// (KVBUF_EMU_ISA) and each number of lanes (KVBUF_EMU_LANES). Nothing here may
// instantiate inline functions of other namespaces that the linker could pick
// for the whole program: only plain loops, and calls into Run.
//
// A lane's value is computed for all lanes and kept for the active ones.
//
//===----------------------------------------------------------------------===//

#include "Async.h"
#include "HostMath.h"
#include "Machine.h"
#include "MatrixJob.h"
#include "Spaces.h"

#include <cmath>
#include <cstring>

#ifndef KVBUF_EMU_ISA
#define KVBUF_EMU_ISA base
#endif
#ifndef KVBUF_EMU_LANES
#define KVBUF_EMU_LANES 32
#endif

#if defined(__clang__)
#define KVBUF_LANES                                                            \
  _Pragma("clang loop vectorize(assume_safety)") for (unsigned l = 0; l < W;   \
                                                      ++l)
#else
#define KVBUF_LANES _Pragma("GCC ivdep") for (unsigned l = 0; l < W; ++l)
#endif

namespace kvbuf::emu::KVBUF_EMU_ISA {

#include "ExecMath.h"

template <unsigned W> struct Exec {
  Run &r;
  Hot &h;
  Warp &w;
  uint32_t *regs;
  bool full = true;
  alignas(64) uint32_t m32[W];
  alignas(64) uint64_t m64[W];
  alignas(64) uint32_t scratch[2 * W];

  Exec(Run &run, Warp &warp) : r(run), h(run.hot), w(warp), regs(warp.regs) {
    newMask();
  }

  template <typename T> T *reg(uint32_t slot) {
    return reinterpret_cast<T *>(regs + static_cast<size_t>(slot) * W);
  }
  // Where a result goes: straight to its slot, or aside for the blend.
  template <typename T> T *out(uint32_t slot) {
    return full ? reg<T>(slot) : reinterpret_cast<T *>(scratch);
  }
  template <typename T> void done(uint32_t slot) {
    if (full)
      return;
    if constexpr (sizeof(T) == 4) {
      uint32_t *d = reg<uint32_t>(slot);
      KVBUF_LANES d[l] = (d[l] & ~m32[l]) | (scratch[l] & m32[l]);
    } else {
      uint64_t *d = reg<uint64_t>(slot);
      const uint64_t *s = reinterpret_cast<const uint64_t *>(scratch);
      KVBUF_LANES d[l] = (d[l] & ~m64[l]) | (s[l] & m64[l]);
    }
  }
  void newMask() {
    full = w.mask == w.full;
    if (full)
      return;
    for (unsigned l = 0; l < W; ++l) {
      m64[l] = -((w.mask >> l) & 1);
      m32[l] = static_cast<uint32_t>(m64[l]);
    }
  }

#include "ExecControl.h"
#include "ExecMatrix.h"
#include "ExecMemory.h"
#include "ExecWarp.h"

// Uses macros of the others.
#include "ExecAsync.h"
#include "ExecAtomic.h"

#include "ExecAMD.h"
#include "ExecAMDLanes.h"
#include "ExecAMDMatrix.h"
#include "ExecAMDMemory.h"

  Stop run();
};

#define UN(Name, TD, TA, Expr)                                                 \
  case Code::Name: {                                                           \
    const TA *a = reg<TA>(i.a);                                                \
    TD *d = out<TD>(i.dst);                                                    \
    KVBUF_LANES {                                                              \
      TA x = a[l];                                                             \
      d[l] = static_cast<TD>(Expr);                                            \
    }                                                                          \
    done<TD>(i.dst);                                                           \
    break;                                                                     \
  }
#define BIN(Name, TD, TA, TB, Expr)                                            \
  case Code::Name: {                                                           \
    const TA *a = reg<TA>(i.a);                                                \
    const TB *b = reg<TB>(i.b);                                                \
    TD *d = out<TD>(i.dst);                                                    \
    KVBUF_LANES {                                                              \
      TA x = a[l];                                                             \
      TB y = b[l];                                                             \
      d[l] = static_cast<TD>(Expr);                                            \
    }                                                                          \
    done<TD>(i.dst);                                                           \
    break;                                                                     \
  }
#define TERN(Name, TD, TA, TB, TC, Expr)                                       \
  case Code::Name: {                                                           \
    const TA *a = reg<TA>(i.a);                                                \
    const TB *b = reg<TB>(i.b);                                                \
    const TC *c = reg<TC>(i.c);                                                \
    TD *d = out<TD>(i.dst);                                                    \
    KVBUF_LANES {                                                              \
      TA x = a[l];                                                             \
      TB y = b[l];                                                             \
      TC z = c[l];                                                             \
      d[l] = static_cast<TD>(Expr);                                            \
    }                                                                          \
    done<TD>(i.dst);                                                           \
    break;                                                                     \
  }
// U and S are the unsigned and the signed type of a width.
#define INT2(Name, U, S, Expr) BIN(Name, U, U, U, Expr)
#define INT2S(Name, U, S, Expr) BIN(Name, U, S, S, Expr)
#define INT1(Name, U, S, Expr) UN(Name, U, U, Expr)
#define CMPU(Name, U, S, Expr) BIN(Name, uint32_t, U, U, Expr)
#define CMPS(Name, U, S, Expr) BIN(Name, uint32_t, S, S, Expr)

template <unsigned W> Stop Exec<W>::run() {
  const Inst *ip = h.insts + w.pc;
  uint32_t budget = h.quantum;
  using u32 = uint32_t;
  using u64 = uint64_t;
  using i32 = int32_t;
  using i64 = int64_t;
  for (;;) {
    const Inst &i = *ip++;
    switch (i.op) {
      UN(Mov64, u64, u64, x)
    case Code::MovN: {
      if (full) {
        std::memmove(reg<u32>(i.dst), reg<u32>(i.a), i.imm * W * 4);
        break;
      }
      for (i64 k = 0; k < i.imm; ++k) {
        u32 *d = reg<u32>(i.dst + k);
        const u32 *a = reg<u32>(i.a + k);
        KVBUF_LANES d[l] = (d[l] & ~m32[l]) | (a[l] & m32[l]);
      }
      break;
    }
      INT2(Add32, u32, i32, x + y)
      INT2(Add64, u64, i64, x + y)
      INT2(Sub32, u32, i32, x - y)
      INT2(Sub64, u64, i64, x - y)
      INT2(Mul32, u32, i32, x * y)
      INT2(Mul64, u64, i64, x * y)
      // Division by zero is undefined; GPUs return all ones.
      INT2(UDiv32, u32, i32, y ? x / y : ~0u)
      INT2(UDiv64, u64, i64, y ? x / y : ~0ull)
      INT2(URem32, u32, i32, y ? x % y : x)
      INT2(URem64, u64, i64, y ? x % y : x)
      INT2S(SDiv32, u32, i32, !y ? -1 : y == -1 ? i32(0u - u32(x)) : x / y)
      INT2S(SDiv64, u64, i64, !y ? -1 : y == -1 ? i64(0ull - u64(x)) : x / y)
      INT2S(SRem32, u32, i32, !y ? x : y == -1 ? 0 : x % y)
      INT2S(SRem64, u64, i64, !y ? x : y == -1 ? 0 : x % y)
      INT2(And32, u32, i32, x & y)
      INT2(And64, u64, i64, x & y)
      INT2(Or32, u32, i32, x | y)
      INT2(Or64, u64, i64, x | y)
      INT2(Xor32, u32, i32, x ^ y)
      INT2(Xor64, u64, i64, x ^ y)
      // Shifts beyond the width clamp, as PTX's do.
      INT2(Shl32, u32, i32, y < 32 ? x << (y & 31) : 0)
      INT2(Shl64, u64, i64, y < 64 ? x << (y & 63) : 0)
      INT2(LShr32, u32, i32, y < 32 ? x >> (y & 31) : 0)
      INT2(LShr64, u64, i64, y < 64 ? x >> (y & 63) : 0)
      BIN(AShr32, u32, i32, u32, x >> (y < 32 ? y : 31))
      BIN(AShr64, u64, i64, u64, x >> (y < 64 ? y : 63))
      INT2(UMin32, u32, i32, x < y ? x : y)
      INT2(UMin64, u64, i64, x < y ? x : y)
      INT2(UMax32, u32, i32, x > y ? x : y)
      INT2(UMax64, u64, i64, x > y ? x : y)
      INT2S(SMin32, u32, i32, x < y ? x : y)
      INT2S(SMin64, u64, i64, x < y ? x : y)
      INT2S(SMax32, u32, i32, x > y ? x : y)
      INT2S(SMax64, u64, i64, x > y ? x : y)
      INT1(Abs32, u32, i32, i32(x) < 0 ? 0u - x : x)
      INT1(Abs64, u64, i64, i64(x) < 0 ? 0ull - x : x)
      INT1(Ctpop32, u32, i32, __builtin_popcount(x))
      INT1(Ctpop64, u64, i64, __builtin_popcountll(x))
      INT1(Ctlz32, u32, i32, x ? __builtin_clz(x) : 32)
      INT1(Ctlz64, u64, i64, x ? __builtin_clzll(x) : 64)
      INT1(Cttz32, u32, i32, x ? __builtin_ctz(x) : 32)
      INT1(Cttz64, u64, i64, x ? __builtin_ctzll(x) : 64)
      TERN(Fshl32, u32, u32, u32, u32,
           (z & 31) ? x << (z & 31) | y >> (32 - (z & 31)) : x)
      TERN(Fshl64, u64, u64, u64, u64,
           (z & 63) ? x << (z & 63) | y >> (64 - (z & 63)) : x)
      TERN(Fshr32, u32, u32, u32, u32,
           (z & 31) ? y >> (z & 31) | x << (32 - (z & 31)) : y)
      TERN(Fshr64, u64, u64, u64, u64,
           (z & 63) ? y >> (z & 63) | x << (64 - (z & 63)) : y)
      UN(AddImm32, u32, u32, x + u32(i.imm))
      UN(AddImm64, u64, u64, x + u64(i.imm))
      UN(AndImm32, u32, u32, x & u32(i.imm))
      BIN(Gep32, u32, u32, u32, x + y * u32(i.imm))
      BIN(Gep64By32, u64, u64, i32, x + u64(i64(y)) * u64(i.imm))
      BIN(Gep64By64, u64, u64, u64, x + y * u64(i.imm))
      CMPU(CmpEq32, u32, i32, x == y)
      CMPU(CmpEq64, u64, i64, x == y)
      CMPU(CmpNe32, u32, i32, x != y)
      CMPU(CmpNe64, u64, i64, x != y)
      CMPS(CmpSlt32, u32, i32, x < y)
      CMPS(CmpSlt64, u64, i64, x < y)
      CMPS(CmpSle32, u32, i32, x <= y)
      CMPS(CmpSle64, u64, i64, x <= y)
      CMPU(CmpUlt32, u32, i32, x < y)
      CMPU(CmpUlt64, u64, i64, x < y)
      CMPU(CmpUle32, u32, i32, x <= y)
      CMPU(CmpUle64, u64, i64, x <= y)
      TERN(Select32, u32, u32, u32, u32, x & 1 ? y : z)
      TERN(Select64, u64, u32, u64, u64, x & 1 ? y : z)
      UN(Lo64, u32, u64, x)
      UN(Hi64, u32, u64, x >> 32)
      BIN(Pack64, u64, u32, u32, x | u64(y) << 32)
      UN(ZExt64, u64, u32, x)
      UN(SExt64, u64, i32, i64(x))
      UN(SExtBits, u32, u32, i32(x << (32 - i.imm)) >> (32 - i.imm))
      UN(ExtractHalf, u32, u32, (x >> i.imm) & 0xFFFF)
      BIN(InsertHalf, u32, u32, u32,
          (x & ~(0xFFFFu << i.imm)) | (y & 0xFFFF) << i.imm)
      BIN(PackHalf, u32, u32, u32, (x & 0xFFFF) | y << 16)
      UN(ExtractByte, u32, u32, (x >> i.imm) & 0xFF)
      BIN(InsertByte, u32, u32, u32,
          (x & ~(0xFFu << i.imm)) | (y & 0xFF) << i.imm)
      TERN(Prmt, u32, u32, u32, u32, prmt(x, y, z))

#define FP2(Name, Expr)                                                        \
  BIN(Name##F32, float, float, float, Expr)                                    \
  BIN(Name##F64, double, double, double, Expr)
#define FP1(Name, Expr)                                                        \
  UN(Name##F32, float, float, Expr) UN(Name##F64, double, double, Expr)
#define FPC(Name, Expr)                                                        \
  BIN(Cmp##Name##F32, u32, float, float, Expr)                                 \
  BIN(Cmp##Name##F64, u32, double, double, Expr)
      FP2(Add, x + y)
      FP2(Sub, x - y)
      FP2(Mul, x * y)
      FP2(Div, x / y)
      BIN(RemF32, float, float, float, fmodf(x, y))
      BIN(RemF64, double, double, double, fmod(x, y))
      FP1(Neg, -x)
      FP1(Fabs, __builtin_elementwise_abs(x))
      BIN(CopySignF32, float, float, float, __builtin_copysignf(x, y))
      BIN(CopySignF64, double, double, double, __builtin_copysign(x, y))
      TERN(FmaF32, float, float, float, float, __builtin_fmaf(x, y, z))
      TERN(FmaF64, double, double, double, double, __builtin_fma(x, y, z))
      BIN(MaxNumF32, float, float, float, maxNum(x, y))
      BIN(MaxNumF64, double, double, double, __builtin_fmax(x, y))
      BIN(MinNumF32, float, float, float, minNum(x, y))
      BIN(MinNumF64, double, double, double, __builtin_fmin(x, y))
      BIN(MaximumF32, float, float, float, maximumOf(x, y))
      BIN(MaximumF64, double, double, double,
          x != x || y != y ? x + y : __builtin_fmax(x, y))
      BIN(MinimumF32, float, float, float, minimumOf(x, y))
      BIN(MinimumF64, double, double, double,
          x != x || y != y ? x + y : __builtin_fmin(x, y))
      UN(SqrtF32, float, float, __builtin_sqrtf(x))
      UN(SqrtF64, double, double, __builtin_sqrt(x))
      UN(FloorF32, float, float, __builtin_floorf(x))
      UN(FloorF64, double, double, __builtin_floor(x))
      UN(CeilF32, float, float, __builtin_ceilf(x))
      UN(CeilF64, double, double, __builtin_ceil(x))
      UN(RoundEvenF32, float, float, __builtin_rintf(x))
      UN(RoundEvenF64, double, double, __builtin_rint(x))
      UN(TruncToF32, float, float, __builtin_truncf(x))
      UN(TruncToF64, double, double, __builtin_trunc(x))
      UN(Exp2F32, float, float, exp2Of(x))
      UN(Exp2F64, double, double, exp2(x))
      UN(Log2F32, float, float, log2f(x))
      UN(Log2F64, double, double, log2(x))
      UN(Exp2FtzF32, float, float, flush(exp2Of(x)))
      UN(Log2FtzF32, float, float, log2f(flush(x)))
      UN(RcpF32, float, float, 1.0f / x)
      UN(RcpFtzF32, float, float, flush(1.0f / flush(x)))
      UN(RsqrtF32, float, float, 1.0f / __builtin_sqrtf(x))
      UN(TanhF32, float, float, tanhf(x))
      FPC(Oeq, x == y)
      FPC(Olt, x < y)
      FPC(Ole, x <= y)
      FPC(One, x < y || x > y)
      FPC(Ord, x == x && y == y)
      FPC(Uno, x != x || y != y)
      FPC(Ueq, !(x < y || x > y))
      FPC(Ult, !(x >= y))
      FPC(Ule, !(x > y))
      FPC(Une, x != y)
      UN(F32ToF16, u32, float, toF16(x))
      UN(F32ToBF16, u32, float, toBF16(x))
      UN(F16ToF32, float, u32, fromF16(x))
      UN(BF16ToF32, float, u32, fromBF16(x))
      BIN(PackF32ToF16, u32, float, float, toF16(x) | toF16(y) << 16)
      BIN(PackF32ToBF16, u32, float, float, toBF16(x) | toBF16(y) << 16)
      BIN(PackF32ToE4M3, u32, float, float, toE4M3(x) | toE4M3(y) << 8)
      BIN(PackF32ToE5M2, u32, float, float, toE5M2(x) | toE5M2(y) << 8)
      UN(F32ToF64, double, float, x)
      UN(F64ToF32, float, double, x)
      UN(S32ToF32, float, i32, x)
      UN(U32ToF32, float, u32, x)
      UN(S64ToF32, float, i64, x)
      UN(U64ToF32, float, u64, x)
      UN(S32ToF64, double, i32, x)
      UN(U32ToF64, double, u32, x)
      UN(S64ToF64, double, i64, x)
      UN(U64ToF64, double, u64, x)
      UN(F32ToS32, u32, float, (toInt<i32, float>(x, -0x1p31f, 0x1p31f)))
      UN(F32ToU32, u32, float, (toInt<u32, float>(x, 0, 0x1p32f)))
      UN(F32ToS64, u64, float, (toInt<i64, float>(x, -0x1p63f, 0x1p63f)))
      UN(F32ToU64, u64, float, (toInt<u64, float>(x, 0, 0x1p64f)))
      UN(F64ToS32, u32, double, (toInt<i32, double>(x, -0x1p31, 0x1p31)))
      UN(F64ToU32, u32, double, (toInt<u32, double>(x, 0, 0x1p32)))
      UN(F64ToS64, u64, double, (toInt<i64, double>(x, -0x1p63, 0x1p63)))
      UN(F64ToU64, u64, double, (toInt<u64, double>(x, 0, 0x1p64)))

    case Code::LoadShared:
      sharedAccess(i, reg<u32>(i.a), w.mask, /*store=*/false);
      // What is read in a loop others have to write.
      if (i.order & atomicAccess)
        goto giveWay;
      break;
    case Code::StoreShared:
      sharedAccess(i, reg<u32>(i.a), w.mask, /*store=*/true);
      break;
    case Code::LoadGlobal:
      if (i.order & atomicAccess) {
        if (h.hold)
          goto hold;
        globalAccess(i, reg<u64>(i.a), w.mask, false);
        goto giveWay;
      }
      globalAccess(i, reg<u64>(i.a), w.mask, false);
      if (h.giveWay)
        goto giveWay;
      break;
    case Code::StoreGlobal:
      if (i.order & atomicAccess) {
        if (h.hold)
          goto hold;
        globalAccess(i, reg<u64>(i.a), w.mask, true);
        goto giveWay;
      }
      globalAccess(i, reg<u64>(i.a), w.mask, true);
      if (h.giveWay)
        goto giveWay;
      break;
    case Code::Fence:
      if (h.hold)
        goto hold;
      r.fence(w, i);
      goto giveWay;
    case Code::LoadLocal:
      localAccess(i, reg<u32>(i.a), w.mask, false);
      break;
    case Code::StoreLocal:
      localAccess(i, reg<u32>(i.a), w.mask, true);
      break;
    case Code::LoadGeneric:
    case Code::StoreGeneric:
      if ((i.order & atomicAccess) && h.hold)
        goto hold;
      genericAccess(i, i.op == Code::StoreGeneric);
      if (h.giveWay || (i.order & atomicAccess))
        goto giveWay;
      break;
      UN(ToGeneric, u64, u32, (i.imm == 3 ? sharedWindow : localWindow) | x)
      UN(FromGeneric, u32, u64, x)
    case Code::CpAsync:
      cpAsync(i);
      break;
    case Code::CpAsyncCommit:
      r.asyncCommit(w);
      break;
    case Code::CpAsyncWait:
      r.asyncWait(w, i, i.imm, w.mask);
      break;
    case Code::LdMatrix:
      ldMatrix(i);
      break;
    case Code::StMatrix:
      stMatrix(i);
      break;
    case Code::MmaSync:
      mmaSync(i);
      break;
    case Code::LaneTranspose:
      laneTranspose(i);
      break;
    case Code::Shuffle:
      shuffle(i);
      meetTogether();
      break;
    case Code::Vote:
      vote(i);
      meetTogether();
      break;
    case Code::Elect:
      elect(i);
      meetTogether();
      break;
    case Code::WarpSync:
      members(i, firstActive(i.a));
      if (h.laneOrder)
        r.meetLanes(w, w.mask);
      break;
    case Code::Barrier:
    case Code::BarrierArrive:
    case Code::BarrierReduce:
      w.pc = ip - h.insts;
      w.loaded = w.clock;
      if (!r.barrier(w, i, i.a == noSlot ? nullptr : reg<u32>(i.a),
                     i.b == noSlot ? nullptr : reg<u32>(i.b),
                     i.op == Code::BarrierArrive))
        return h.stop ? Stop::Abort : Stop::Blocked;
      break;
    case Code::Clock: {
      u32 *d = out<u32>(i.dst);
      KVBUF_LANES d[l] = static_cast<u32>(w.executed);
      done<u32>(i.dst);
      break;
    }
    case Code::AtomicShared:
      atomic(i);
      break;
    case Code::LaneCall:
      r.laneCall(w, i);
      break;
    case Code::WarpCall:
      r.warpCall(w, i);
      break;
    case Code::Print:
      if (h.hold)
        goto hold;
      r.print(w, i);
      goto giveWay;
    case Code::AtomicGlobal:
      if (h.hold)
        goto hold;
      atomic(i);
      goto giveWay;
#define KVBUF_EMU_OP(Name) case Code::Name:
#include "OpsAMD.def"
#undef KVBUF_EMU_OP
      if ((i.order & atomicAccess) && h.hold)
        goto hold;
      executeAMD(i);
      if (h.giveWay || (i.order & atomicAccess))
        goto giveWay;
      break;
    case Code::MBarrierInit:
    case Code::MBarrierInval:
    case Code::MBarrierArrive:
    case Code::MBarrierOwe:
      mbarrier(i);
      break;
    case Code::ClusterArrive:
      r.clusterArrive(w, i);
      break;
    case Code::ClusterWait:
      if (r.clusterWait(w, i))
        break;
      w.pc = &i - h.insts;
      return Stop::Blocked;
    case Code::ClusterStore: {
      const u32 *rank = reg<u32>(h.lists[i.list]);
      KVBUF_EACH(w.mask) {
        std::array<u32, 4> words{reg<u32>(i.b)[l]};
        for (int64_t word = 1; word < i.imm; ++word)
          words[word] = reg<u32>(h.lists[i.list + word])[l];
        r.clusterStore(w, i, l, reg<u32>(i.a)[l], words, reg<u32>(i.c)[l],
                       rank[l]);
      }
      break;
    }
    case Code::ClusterCopy: {
      const u32 *rank = reg<u32>(h.lists[i.list]);
      KVBUF_EACH(predicated(h.lists[i.list + 1]))
      r.clusterCopy(w, i, l, reg<u32>(i.a)[l], reg<u32>(i.b)[l],
                    reg<u32>(i.c)[l], rank[l]);
      break;
    }
    case Code::MBarrierTest: {
      uint64_t complete = mbarrierTest(i);
      if (complete == w.mask)
        break;
      if (h.stop)
        return Stop::Abort;
      r.block(w, i, WaitFor::MBarrier);
      if (i.dst == noSlot) {
        w.pc = &i - h.insts;
        return Stop::Blocked;
      }
      // A test in a loop lets the others run.
      w.pc = ip - h.insts;
      return Stop::Yield;
    }
    case Code::ProxyFence:
      r.proxyFence(w, i);
      break;
    case Code::BulkLoad:
    case Code::BulkStore:
      bulkCopy(i);
      break;
    case Code::BulkCommit:
      r.bulkCommit(w);
      break;
    case Code::BulkWait:
      r.bulkWait(w, i);
      break;
    case Code::Wgmma:
      wgmma(i);
      if (h.stop)
        return Stop::Abort;
      break;
    case Code::WgmmaFence:
      if (converged(i))
        r.matrixFence(w);
      break;
    case Code::WgmmaCommit:
      if (converged(i))
        r.matrixCommit(w);
      break;
    case Code::WgmmaWait:
      if (wgmmaWait(i))
        break;
      w.pc = &i - h.insts;
      return Stop::Blocked;
    case Code::WgmmaCheck:
      r.matrixCheck(w, i);
      break;
    case Code::SetMaxRegisters:
      if (r.setMaxRegisters(w, i))
        break;
      w.pc = &i - h.insts;
      return Stop::Blocked;
    case Code::Jump:
      enter(static_cast<u32>(i.imm));
      goto nextBlock;
    case Code::Branch:
      branch(i);
      goto nextBlock;
    case Code::Trap:
      r.faultText(FaultKind::Trap, w, i, -1,
                  i.flags == trapOfCall
                      ? "the address is of no function that takes and returns "
                        "what this call does"
                  : i.flags == trapOfBody
                      ? "execution comes to a function that has no body here"
                  : i.flags == trapOfSelf
                      ? "a function calls itself by its address, which is not "
                        "executed"
                      : "execution reaches 'unreachable'");
      [[fallthrough]];
    case Code::Return:
      if (!leave())
        return Stop::Exited;
      goto nextBlock;
    }
    continue;
  hold:
    // It is executed when no other block runs.
    w.pc = &i - h.insts;
    h.held = true;
    return Stop::Yield;
  giveWay:
    // Another block's turn, and on with the next instruction afterwards.
    w.pc = ip - h.insts;
    return Stop::Yield;
  nextBlock:
    ip = h.insts + w.pc;
    uint32_t size = h.blocks[w.block].end - h.blocks[w.block].begin;
    w.executed += size;
    if (h.stop)
      return Stop::Abort;
    if (budget < size)
      return Stop::Yield;
    budget -= size;
  }
}

#if KVBUF_EMU_LANES == 64
Stop runWarp64(Run &r, Warp &w) { return Exec<64>(r, w).run(); }
#else
Stop runWarp32(Run &r, Warp &w) { return Exec<32>(r, w).run(); }
#endif

} // namespace kvbuf::emu::KVBUF_EMU_ISA
