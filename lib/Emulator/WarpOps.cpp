//===- WarpOps.cpp - Rare operations of whole warps -----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Fragments of mma.sync: PTX ISA, "Matrix Fragments for mma.m16n8k16" and its
// siblings. Those of wmma have no layout that a program may know; here element
// number e of lane l is number (e + n l) mod size of the matrix by rows, n
// being the elements that a lane needs.
//
//===----------------------------------------------------------------------===//

#include "WarpOps.h"

#include "HostMath.h"
#include "Launch.h"
#include "Machine.h"
#include "Spaces.h"
#include "WarpFragment.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

using namespace kvbuf::emu;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {

/// Matrices by rows: A is m x k, B k x n, C and D m x n, as bits.
struct Product {
  const WarpOp &op;
  std::vector<uint64_t> a, b, c;

  explicit Product(const WarpOp &op)
      : op(op), a(op.m * op.k), b(op.k * op.n), c(op.m * op.n) {}
  /// `cuts`: sums are cut off as an H200's matrix unit does.
  void run(bool cuts);

private:
  template <typename T> void sumFloats(unsigned row, unsigned col);
  void cutSum(unsigned row, unsigned col);
  void sumIntegers(unsigned row, unsigned col);

  /// A and B as numbers, where they are floats.
  std::vector<double> left, right;
};

} // namespace

/// Bits below the leading one that an H200's matrix unit keeps of a sum of
/// 8-bit floats' products.
static constexpr int kFloat8SumBits = 13;

// A sum of products of 8-bit floats as an H200 makes it, by what is known of it
// from outside: aligned at the largest exponent among the sum so far and the
// products, all cut off so many bits below it, added exactly, and cut off to as
// many bits again.
void Product::cutSum(unsigned row, unsigned col) {
  uint64_t &result = c[row * op.n + col];
  double start = numberOf(op.c, result), largest = std::abs(start), sum = start;
  for (unsigned k = 0; k < op.k; ++k) {
    double x = left[row * op.k + k] * right[k * op.n + col];
    largest = std::fmax(largest, std::abs(x));
    sum += x;
  }
  // What is no number, or infinite, stays so.
  if (std::isfinite(sum) && largest > 0) {
    auto cut = [](double x, int exponent) {
      double unit = std::ldexp(1.0, exponent - kFloat8SumBits);
      return std::trunc(x / unit) * unit;
    };
    int exponent = std::ilogb(largest);
    sum = cut(start, exponent);
    for (unsigned k = 0; k < op.k; ++k)
      sum += cut(left[row * op.k + k] * right[k * op.n + col], exponent);
    if (sum != 0)
      sum = cut(sum, std::ilogb(sum));
  }
  result = bitsAs(op.c, static_cast<float>(sum));
}

// In the order of k, each product added with one rounding.
template <typename T> void Product::sumFloats(unsigned row, unsigned col) {
  uint64_t &result = c[row * op.n + col];
  T sum = static_cast<T>(numberOf(op.c, result));
  for (unsigned k = 0; k < op.k; ++k)
    sum = std::fma(static_cast<T>(left[row * op.k + k]),
                   static_cast<T>(right[k * op.n + col]), sum);
  result = op.c == Element::F64
               ? std::bit_cast<uint64_t>(static_cast<double>(sum))
               : bitsAs(op.c, static_cast<float>(sum));
}

void Product::sumIntegers(unsigned row, unsigned col) {
  uint64_t &result = c[row * op.n + col];
  int64_t sum = static_cast<int32_t>(result);
  for (unsigned k = 0; k < op.k; ++k) {
    uint64_t x = a[row * op.k + k], y = b[k * op.n + col];
    if (op.a == Element::B1)
      sum += (op.detail ? x & y : x ^ y) & 1; // and.popc, xor.popc
    else
      sum += static_cast<int64_t>(numberOf(op.a, x)) *
             static_cast<int64_t>(numberOf(op.b, y));
  }
  if (op.saturates)
    sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
  result = static_cast<uint32_t>(sum);
}

void Product::run(bool cuts) {
  if (op.c != Element::S32) {
    for (uint64_t bits : a)
      left.push_back(numberOf(op.a, bits));
    for (uint64_t bits : b)
      right.push_back(numberOf(op.b, bits));
  }
  cuts &= bitsOf(op.a) == 8;
  for (unsigned row = 0; row < op.m; ++row)
    for (unsigned col = 0; col < op.n; ++col) {
      if (op.c == Element::S32)
        sumIntegers(row, col);
      else if (op.c == Element::F64)
        sumFloats<double>(row, col);
      else if (cuts)
        cutSum(row, col);
      else
        sumFloats<float>(row, col);
    }
}

/// Where element `e` of lane `l` of an operand of mma.sync is.
static void mmaPlace(const WarpOp &op, char operand, unsigned l, unsigned e,
                     unsigned &row, unsigned &col) {
  unsigned group = l / 4, inGroup = l % 4;
  if (operand == 'c') {
    row = group + 8 * (e / 2);
    col = 2 * inGroup + e % 2;
    return;
  }
  // A register, or pair of them, has `per` neighbours along k.
  Element element = operand == 'a' ? op.a : op.b;
  unsigned per = element == Element::F64 ? 1 : 32 / bitsOf(element);
  unsigned r = e / per, halves = operand == 'a' ? op.m / 8 : 1;
  unsigned k = r / halves * 4 * per + inGroup * per + e % per;
  if (operand == 'a') {
    row = group + 8 * (r % halves);
    col = k;
  } else {
    row = k;
    col = group;
  }
}

/// Calls f(lane, element, row, column) for all that an operand's lanes hold.
template <typename F>
static void eachElement(const WarpOp &op, char operand, F &&f) {
  unsigned rows = operand == 'b' ? op.k : op.m,
           cols = operand == 'a' ? op.k : op.n, per = rows * cols / 32;
  for (unsigned l = 0; l < 32; ++l)
    for (unsigned e = 0; e < per; ++e) {
      unsigned row, col;
      if (op.kind == WarpOpKind::Mma) {
        mmaPlace(op, operand, l, e, row, col);
      } else {
        unsigned at = l * per + e;
        row = at / cols;
        col = at % cols;
      }
      f(l, e, row, col);
    }
}

/// Executes D = A B + C.
static void multiply(Warp &w, const WarpOp &op, const uint32_t *slots,
                     unsigned lanes, bool cuts) {
  Fragment d{w, lanes, slots, op.wideC, op.c},
      a{w, lanes, slots + op.numD, op.wideA, op.a},
      b{w, lanes, slots + op.numD + op.numA, op.wideA, op.b},
      c{w, lanes, slots + op.numD + op.numA + op.numB, op.wideC, op.c};
  Product p(op);
  eachElement(op, 'a', [&](unsigned l, unsigned e, unsigned row, unsigned col) {
    p.a[row * op.k + col] = a.bits(l, e);
  });
  eachElement(op, 'b', [&](unsigned l, unsigned e, unsigned row, unsigned col) {
    p.b[row * op.n + col] = b.bits(l, e);
  });
  eachElement(op, 'c', [&](unsigned l, unsigned e, unsigned row, unsigned col) {
    p.c[row * op.n + col] = c.bits(l, e);
  });
  p.run(cuts);
  eachElement(op, 'c', [&](unsigned l, unsigned e, unsigned row, unsigned col) {
    d.setBits(l, e, p.c[row * op.n + col]);
  });
}

//===----------------------------------------------------------------------===//
// wmma's loads and stores
//===----------------------------------------------------------------------===//

/// Moves bytes of one lane at a generic address, with all checks of an access.
void Run::moveElement(Warp &w, const Inst &inst, unsigned lane,
                      uint64_t address, unsigned bytes, bool store,
                      void *data) {
  uint64_t bit = 1ull << lane;
  if ((address & windowMask) == sharedWindow) {
    uint32_t at[maxLanes] = {};
    at[lane] = static_cast<uint32_t>(address);
    bool inside = at[lane] >= hot.sharedBegin &&
                  at[lane] - hot.sharedBegin + bytes <= hot.sharedBytes;
    if (!inside && !checkShared(w, inst, at, bytes, bit, store))
      return;
    w.lastRead = w.touched = w.clock;
    if (hot.checkShadow) {
      if (store)
        shadowWrite(w, inst, lane, at[lane], bytes);
      else
        shadowRead(w, inst, lane, at[lane], bytes);
    }
    if (store)
      std::memcpy(hot.shared + at[lane], data, bytes);
    else
      std::memcpy(data, hot.shared + at[lane], bytes);
    return;
  }
  uint64_t at[maxLanes] = {};
  at[lane] = address;
  if (!checkGlobal(w, inst, at, bytes, bit, store))
    return;
  if (hot.watching)
    orderGlobal(w, inst, at, bytes, bit, store);
  *hot.changes += store;
  if (store)
    writeGlobal(address, data, bytes);
  else
    readGlobal(data, address, bytes);
  MemStat &s = hot.stats[inst.stat];
  ++s.accesses;
  s.bytes += bytes;
}

static void moveFragment(Run &run, Warp &w, const Inst &inst, const WarpOp &op,
                         const uint32_t *slots, unsigned lanes,
                         unsigned count) {
  bool store = op.kind == WarpOpKind::WmmaStore;
  char operand = op.operand == 'd' ? 'c' : op.operand;
  Element element = operand == 'a' ? op.a : operand == 'b' ? op.b : op.c;
  bool wide = element == Element::F64;
  Fragment f{w, lanes, slots, wide, element};
  unsigned bits = bitsOf(element),
           inMemory = element == Element::TF32 ? 32 : bits;
  // Fragments of 16-bit operands are larger than they need be.
  unsigned held = count * f.perWord();
  const uint32_t *address = w.regs + static_cast<size_t>(slots[count]) * lanes,
                 *stride =
                     w.regs + static_cast<size_t>(slots[count + 1]) * lanes;
  unsigned rows = operand == 'b' ? op.k : op.m,
           cols = operand == 'a' ? op.k : op.n, per = rows * cols / 32;
  eachElement(op, operand,
              [&](unsigned l, unsigned e, unsigned row, unsigned col) {
                uint64_t base;
                std::memcpy(&base, address + 2 * l, 8);
                uint64_t n = stride[l],
                         index = op.columns ? col * n + row : row * n + col;
                // Elements of less than a byte come a byte at a time.
                if (inMemory < 8) {
                  uint8_t byte = 0;
                  run.moveElement(w, inst, l, base + index * inMemory / 8, 1,
                                  false, &byte);
                  f.setBits(l, e, byte >> (index * inMemory % 8));
                  return;
                }
                uint64_t value = store ? f.bits(l, e) : 0;
                run.moveElement(w, inst, l, base + index * (inMemory / 8),
                                inMemory / 8, store, &value);
                if (!store)
                  for (unsigned at = e; at < held; at += per)
                    f.setBits(l, at, value);
              });
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

static uint32_t combine(Redux kind, uint32_t a, uint32_t b) {
  auto s = [](uint32_t x) { return static_cast<int32_t>(x); };
  auto f = [](uint32_t x) { return std::bit_cast<float>(x); };
  auto u = [](float x) { return std::bit_cast<uint32_t>(x); };
  switch (kind) {
  case Redux::Add:
    return a + b;
  case Redux::And:
    return a & b;
  case Redux::Or:
    return a | b;
  case Redux::Xor:
    return a ^ b;
  case Redux::SMin:
    return s(a) < s(b) ? a : b;
  case Redux::SMax:
    return s(a) > s(b) ? a : b;
  case Redux::UMin:
    return std::min(a, b);
  case Redux::UMax:
    return std::max(a, b);
  case Redux::FMin:
    return u(std::fmin(f(a), f(b)));
  case Redux::FMax:
    return u(std::fmax(f(a), f(b)));
  }
  return a;
}

void Run::warpCall(Warp &w, const Inst &inst) {
  const WarpOp &op = program.warpOps[inst.imm];
  const uint32_t *slots = hot.lists + inst.list;
  auto value = [&](unsigned k, unsigned lane) {
    return (w.regs + static_cast<size_t>(slots[k]) * lanes)[lane];
  };
  auto set = [&](unsigned k, unsigned lane, uint32_t x) {
    (w.regs + static_cast<size_t>(slots[k]) * lanes)[lane] = x;
  };
  auto each = [&](auto &&f) {
    for (uint64_t rest = w.mask; rest; rest &= rest - 1)
      f(static_cast<unsigned>(std::countr_zero(rest)));
  };
  auto members = [&](uint64_t named) {
    named &= w.full & w.live;
    if (named == w.mask || (named & ~goneOf(w)) == w.mask)
      return;
    if ((named & ~goneOf(w, /*alone=*/true)) == w.mask)
      warning(FaultKind::Divergence, w, inst, -1,
              "the member mask names lanes that end without it");
    else
      fault(FaultKind::Divergence, w, inst, -1,
            w.mask & ~named
                ? "the member mask leaves out lanes that execute it"
                : "the member mask names lanes that do not execute it");
  };
  bool whole =
      op.kind <= WarpOpKind::WmmaStore || op.kind >= WarpOpKind::AmdWmma;
  if (whole && w.mask != w.full) {
    fault(FaultKind::Divergence, w, inst, -1,
          "executed by a part of the warp, but it needs all lanes");
    return;
  }
  if (hot.forgiving && op.kind != WarpOpKind::ActiveMask)
    meetLanes(w, w.mask);
  switch (op.kind) {
  case WarpOpKind::Mma:
  case WarpOpKind::Wmma:
    return multiply(w, op, slots, lanes, hot.cutSums);
  case WarpOpKind::WmmaLoad:
  case WarpOpKind::WmmaStore:
    return moveFragment(*this, w, inst, op, slots, lanes, inst.listSize - 2);
  case WarpOpKind::Redux: {
    unsigned first = std::countr_zero(w.mask);
    members(value(2, first));
    uint32_t sum = value(1, first);
    each([&](unsigned l) {
      if (l != first)
        sum = combine(static_cast<Redux>(op.detail), sum, value(1, l));
    });
    return each([&](unsigned l) { set(0, l, sum); });
  }
  case WarpOpKind::Match: {
    unsigned first = std::countr_zero(w.mask), at = op.detail ? 2 : 1;
    members(value(at + 1, first));
    auto key = [&](unsigned l) {
      uint64_t x = value(at, l);
      if (op.wideA)
        std::memcpy(&x, w.regs + static_cast<size_t>(slots[at]) * lanes + 2 * l,
                    8);
      return x;
    };
    bool same = true;
    each([&](unsigned l) { same &= key(l) == key(first); });
    uint32_t result[maxLanes];
    each([&](unsigned l) {
      uint32_t equal = 0;
      each([&](unsigned v) { equal |= uint32_t(key(v) == key(l)) << v; });
      result[l] =
          op.detail ? (same ? static_cast<uint32_t>(w.mask) : 0) : equal;
    });
    return each([&](unsigned l) {
      set(0, l, result[l]);
      if (op.detail)
        set(1, l, same);
    });
  }
  case WarpOpKind::ActiveMask:
    return each([&](unsigned l) { set(0, l, static_cast<uint32_t>(w.mask)); });
  case WarpOpKind::AmdWmma:
  case WarpOpKind::AmdMfmaAny:
    return amdMultiply(w, op, slots);
  }
}
