//===- DecodeMatrix.cpp - mma.sync and wmma of all types ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As operations of the NVVM dialect, or as intrinsics, of which the name says
// everything: "mma.m16n8k16.row.col.f32.f32", "wmma.m16n16k16.load.a.row.
// stride.f16".
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSwitch.h"

#include <optional>

using namespace mlir;
using namespace kvbuf::emu;

static std::optional<Element> elementNamed(StringRef name) {
  return llvm::StringSwitch<std::optional<Element>>(name)
      .Case("f16", Element::F16)
      .Case("bf16", Element::BF16)
      .Case("tf32", Element::TF32)
      .Case("f32", Element::F32)
      .Case("f64", Element::F64)
      .Case("s8", Element::S8)
      .Case("u8", Element::U8)
      .Case("s4", Element::S4)
      .Case("u4", Element::U4)
      .Case("b1", Element::B1)
      .Case("s32", Element::S32)
      .Case("e4m3", Element::E4M3)
      .Case("e5m2", Element::E5M2)
      .Default(std::nullopt);
}

// "m16n8k16".
static bool readShape(StringRef word, WarpOp &op) {
  return word.consume_front("m") && !word.consumeInteger(10, op.m) &&
         word.consume_front("n") && !word.consumeInteger(10, op.n) &&
         word.consume_front("k") && !word.consumeInteger(10, op.k) &&
         word.empty() && op.m && op.n && op.k && op.m <= 64 && op.n <= 64 &&
         op.k <= 256;
}

void Decoder::emitWarpOp(const WarpOp &op, ArrayRef<Comp> parts) {
  program.warpOps.push_back(op);
  Inst &inst = emit(Code::WarpCall);
  inst.imm = program.warpOps.size() - 1;
  inst.cls = op.kind <= WarpOpKind::Wmma || op.kind >= WarpOpKind::AmdWmma
                 ? Class::Matrix
             : op.kind <= WarpOpKind::WmmaStore ? Class::MatrixLoad
                                                : Class::Shuffle;
  inst.stat = program.numStats++;
  inst.align = 1;
  list(inst, parts);
}

/// The registers that an operand of `rows` x `cols` needs at least.
static size_t leastRegisters(unsigned rows, unsigned cols, Element e) {
  unsigned bits = bitsOf(e), word = bits == 64 ? 64 : 32;
  return std::max<size_t>(rows * cols / 32 * bits / word, 1);
}

// Gives an operation its products. The operands are those of A, B and C.
LogicalResult Decoder::decodeProduct(Operation *op, WarpOp w, ArrayRef<Value> a,
                                     ArrayRef<Value> b, ArrayRef<Value> c) {
  if (op->getNumResults() != 1)
    return unsupported(op, "this result");
  auto gather = [&](ArrayRef<Value> values) {
    Comps all;
    for (Value v : values)
      llvm::append_range(all, get(v));
    return all;
  };
  Comps result = allocate(op->getResult(0).getType()), as = gather(a),
        bs = gather(b), cs = gather(c);
  w.wideA = w.a == Element::F64;
  w.wideC = w.c == Element::F64;
  auto fits = [](const Comps &parts, size_t least, bool wide, bool exact) {
    return (exact ? parts.size() == least : parts.size() >= least) &&
           llvm::all_of(parts, [&](Comp p) { return p.wide == wide; });
  };
  // Fragments of wmma may be larger than they need be.
  bool exact = w.kind == WarpOpKind::Mma;
  if (!fits(as, leastRegisters(w.m, w.k, w.a), w.wideA, exact) ||
      !fits(bs, leastRegisters(w.k, w.n, w.b), w.wideA, exact) ||
      !fits(cs, leastRegisters(w.m, w.n, w.c), w.wideC, true) ||
      result.size() != cs.size() ||
      llvm::any_of(result, [&](Comp p) { return p.wide != w.wideC; }))
    return unsupported(op, "operands of these types");
  w.numD = result.size();
  w.numA = as.size();
  w.numB = bs.size();
  Comps parts = result;
  llvm::append_range(parts, as);
  llvm::append_range(parts, bs);
  llvm::append_range(parts, cs);
  emitWarpOp(w, parts);
  set(op->getResult(0), result);
  return success();
}

static Element accumulatorOf(Element a, Element named) {
  return isInteger(a) ? Element::S32 : a == Element::F64 ? Element::F64 : named;
}

// Whether the machine has the product, and the layout of its operands is known.
static bool isProduct(const WarpOp &w) {
  if (w.kind == WarpOpKind::Mma) {
    if (w.n != 8 || (w.m != 8 && w.m != 16))
      return false;
    unsigned step = w.a == Element::F64 ? 4 : 128 / bitsOf(w.a);
    // m8n8k4 of 16 bits has a layout of its own.
    return w.k % step == 0 && (w.m == 16 || w.k == step) && w.k / step <= 4 &&
           bitsOf(w.a) == bitsOf(w.b);
  }
  return (w.m * w.k) % 32 == 0 && (w.k * w.n) % 32 == 0 &&
         (w.m * w.n) % 32 == 0 && bitsOf(w.a) == bitsOf(w.b);
}

LogicalResult Decoder::decodeMatrixIntrinsic(LLVM::CallIntrinsicOp op,
                                             StringRef name, bool &known) {
  known = true;
  SmallVector<StringRef> words;
  name.split(words, '.');
  auto refuse = [&] {
    return unsupported(op, "intrinsic 'llvm.nvvm." + name + "'");
  };
  WarpOp w{};
  w.kind = words.front() == "mma" ? WarpOpKind::Mma : WarpOpKind::Wmma;
  size_t next = 1;
  auto word = [&] { return next < words.size() ? words[next] : StringRef(); };
  if (word() == "xor" || word() == "and") {
    w.detail = word() == "and";
    next += 2;
  }
  if (!readShape(word(), w))
    return refuse();
  ++next;
  auto splitProducts = [&](Element a, Element b, Element c) -> LogicalResult {
    w.a = a;
    w.b = b;
    w.c = c;
    if (!isProduct(w))
      return refuse();
    // A and B have as many operands as C leaves to them.
    SmallVector<Value> all(op.getArgs());
    auto count = [&](unsigned rows, unsigned cols, Element e, bool isC) {
      size_t n = leastRegisters(rows, cols, e);
      bool large = w.kind == WarpOpKind::Wmma && !isC && bitsOf(e) == 16;
      // Those of f16 have 8 registers always, of bf16 what they need.
      return large && e == Element::F16 ? size_t(8) : n;
    };
    size_t numA = count(w.m, w.k, w.a, false),
           numB = count(w.k, w.n, w.b, false),
           numC = count(w.m, w.n, w.c, true);
    if (all.size() != numA + numB + numC)
      return refuse();
    ArrayRef<Value> values(all);
    return decodeProduct(op, w, values.take_front(numA),
                         values.slice(numA, numB), values.take_back(numC));
  };
  if (w.kind == WarpOpKind::Wmma && (word() == "load" || word() == "store")) {
    bool store = word() == "store";
    w.kind = store ? WarpOpKind::WmmaStore : WarpOpKind::WmmaLoad;
    // <operand>.<layout>[.stride].<type>
    if (words.size() < next + 4 || words[next + 1].size() != 1)
      return refuse();
    w.operand = words[next + 1].front();
    w.columns = words[next + 2] == "col";
    bool hasStride = words[next + 3] == "stride";
    size_t at = next + 3 + hasStride;
    auto element = at < words.size() ? elementNamed(words[at]) : std::nullopt;
    if (!element || !StringRef("abcd").contains(w.operand))
      return refuse();
    w.a = w.b = w.c = *element;
    return decodeFragment(
        op, w, op.getArgs().front(),
        store ? op.getArgs().slice(1, op.getArgs().size() - 1 - hasStride)
              : ValueRange(),
        hasStride ? op.getArgs().back() : Value());
  }
  if (w.kind == WarpOpKind::Wmma) {
    if (word() != "mma")
      return refuse();
    ++next;
    if (word() == "xor" || word() == "and") {
      w.detail = word() == "and";
      next += 2;
    }
  }
  // Fragments of wmma have no layout to tell; mma.sync has one form.
  StringRef layoutA = word();
  ++next;
  StringRef layoutB = word();
  ++next;
  if (w.kind == WarpOpKind::Mma && (layoutA != "row" || layoutB != "col"))
    return refuse();
  SmallVector<Element> types;
  for (; next < words.size(); ++next) {
    if (words[next] == "satfinite") {
      w.saturates = true;
      continue;
    }
    auto element = elementNamed(words[next]);
    if (!element)
      return refuse();
    types.push_back(*element);
  }
  using E = Element;
  // "f32.f32", "f16.f16": D and C, of f16; "bf16": A and B; "s8.u8"; D.A.B.C.
  auto isAccumulator = [](E e) { return e == E::F16 || e == E::F32; };
  if (types.size() == 4 && types[0] == types[3])
    return splitProducts(types[1], types[2], types[0]);
  if (types.size() == 2 && isAccumulator(types[0]) && isAccumulator(types[1]))
    return types[0] == types[1] ? splitProducts(E::F16, E::F16, types[0])
                                : refuse();
  if (types.size() == 1 || types.size() == 2)
    return splitProducts(types[0], types.back(),
                         accumulatorOf(types[0], E::F32));
  return refuse();
}

// A load or store of a fragment.
LogicalResult Decoder::decodeFragment(Operation *op, WarpOp w, Value pointer,
                                      ValueRange data, Value stride) {
  Comp address = getScalar(pointer);
  unsigned space =
      cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace();
  if (!address.wide) {
    auto [base, offset] = getAddress(pointer);
    (void)base;
    (void)offset;
    address =
        emitFree(Code::ToGeneric, true, address, {}, {}, space == 5 ? 5 : 3);
  }
  if (space == 5)
    return unsupported(op, "in private memory");
  char operand = w.operand == 'd' ? 'c' : w.operand;
  unsigned rows = operand == 'b' ? w.k : w.m, cols = operand == 'a' ? w.k : w.n;
  Element element = operand == 'a' ? w.a : operand == 'b' ? w.b : w.c;
  bool wide = element == Element::F64, store = w.kind == WarpOpKind::WmmaStore;
  Comps parts;
  if (store)
    for (Value v : data)
      llvm::append_range(parts, get(v));
  else
    parts = allocate(op->getResult(0).getType());
  if (rows * cols % 32 || parts.size() < leastRegisters(rows, cols, element) ||
      parts.size() > 64 ||
      llvm::any_of(parts, [&](Comp c) { return c.wide != wide; }) ||
      (store && bitsOf(element) < 8))
    return unsupported(op, "a fragment of this type");
  Comps result = parts;
  parts.push_back(address);
  parts.push_back(stride ? getNarrow(stride)
                         : constant(w.columns ? rows : cols));
  emitWarpOp(w, parts);
  if (!store)
    set(op->getResult(0), result);
  return success();
}

static std::optional<Element> elementOfMma(NVVM::MMATypes type) {
  return elementNamed(NVVM::stringifyMMATypes(type));
}

LogicalResult Decoder::decodeMatrixOp(Operation *op, bool &known) {
  known = true;
  WarpOp w{};
  auto shape = [&](int64_t m, int64_t n, int64_t k) {
    w.m = m;
    w.n = n;
    w.k = k;
    return m > 0 && n > 0 && k > 0 && m <= 64 && n <= 64 && k <= 256;
  };
  if (auto x = dyn_cast<NVVM::MmaOp>(op)) {
    auto a = x.getMultiplicandAPtxType()
                 ? elementOfMma(*x.getMultiplicandAPtxType())
                 : std::nullopt,
         b = x.getMultiplicandBPtxType()
                 ? elementOfMma(*x.getMultiplicandBPtxType())
                 : std::nullopt;
    w.kind = WarpOpKind::Mma;
    if (!a || !b ||
        !shape(x.getShape().getM(), x.getShape().getN(), x.getShape().getK()) ||
        x.getLayoutA() != NVVM::MMALayout::row ||
        x.getLayoutB() != NVVM::MMALayout::col)
      return unsupported(op, "this form");
    w.a = *a;
    w.b = *b;
    // Packed pairs of f16, or what the multiplicands make.
    Type c = x.getOperandC().empty() ? Type() : x.getOperandC()[0].getType();
    w.c = accumulatorOf(w.a,
                        c && isa<VectorType>(c) ? Element::F16 : Element::F32);
    w.saturates = x.getIntOverflowBehavior() == NVVM::MMAIntOverflow::satfinite;
    w.detail = x.getB1Op() == NVVM::MMAB1Op::and_popc;
    if (!isProduct(w))
      return unsupported(op, "this shape");
    return decodeProduct(op, w, SmallVector<Value>(x.getOperandA()),
                         SmallVector<Value>(x.getOperandB()),
                         SmallVector<Value>(x.getOperandC()));
  }
  auto elementOfWmma = [](NVVM::MMATypes t) { return elementOfMma(t); };
  if (auto x = dyn_cast<NVVM::WMMALoadOp>(op)) {
    auto e = elementOfWmma(x.getEltype());
    w.kind = WarpOpKind::WmmaLoad;
    if (!e || !shape(x.getM(), x.getN(), x.getK()))
      return unsupported(op, "this type");
    w.a = w.b = w.c = *e;
    w.operand = x.getFrag() == NVVM::MMAFrag::a   ? 'a'
                : x.getFrag() == NVVM::MMAFrag::b ? 'b'
                                                  : 'c';
    w.columns = x.getLayout() == NVVM::MMALayout::col;
    return decodeFragment(op, w, x.getPtr(), {}, x.getStride());
  }
  if (auto x = dyn_cast<NVVM::WMMAStoreOp>(op)) {
    auto e = elementOfWmma(x.getEltype());
    w.kind = WarpOpKind::WmmaStore;
    if (!e || !shape(x.getM(), x.getN(), x.getK()))
      return unsupported(op, "this type");
    w.a = w.b = w.c = *e;
    w.operand = 'd';
    w.columns = x.getLayout() == NVVM::MMALayout::col;
    return decodeFragment(op, w, x.getPtr(), x.getArgs(), x.getStride());
  }
  if (auto x = dyn_cast<NVVM::WMMAMmaOp>(op)) {
    auto a = elementOfWmma(x.getEltypeA()), b = elementOfWmma(x.getEltypeB());
    w.kind = WarpOpKind::Wmma;
    if (!a || !b || !shape(x.getM(), x.getN(), x.getK()))
      return unsupported(op, "this type");
    // Of f16 the second type is the accumulator's; else A's and B's are equal.
    w.a = w.b = *a;
    w.c = accumulatorOf(*a, *a == Element::F16 ? *b : Element::F32);
    SmallVector<Value> all(x.getArgs());
    size_t c = leastRegisters(w.m, w.n, w.c), rest = all.size() - c;
    if (all.size() < c + 2)
      return unsupported(op, "this number of operands");
    size_t forA = leastRegisters(w.m, w.k, w.a),
           forB = leastRegisters(w.k, w.n, w.b);
    size_t numA = w.a == Element::F16 ? rest / 2 : forA;
    (void)forB;
    if (!isProduct(w) || numA >= rest)
      return unsupported(op, "this shape");
    ArrayRef<Value> values(all);
    return decodeProduct(op, w, values.take_front(numA),
                         values.slice(numA, rest - numA), values.take_back(c));
  }
  if (auto x = dyn_cast<NVVM::ReduxOp>(op)) {
    using K = NVVM::ReduxKind;
    std::optional<Redux> kind;
    switch (x.getKind()) {
    case K::ADD:
      kind = Redux::Add;
      break;
    case K::AND:
      kind = Redux::And;
      break;
    case K::OR:
      kind = Redux::Or;
      break;
    case K::XOR:
      kind = Redux::Xor;
      break;
    case K::MIN:
      kind = Redux::SMin;
      break;
    case K::MAX:
      kind = Redux::SMax;
      break;
    case K::UMIN:
      kind = Redux::UMin;
      break;
    case K::UMAX:
      kind = Redux::UMax;
      break;
    case K::FMIN:
      kind = Redux::FMin;
      break;
    case K::FMAX:
      kind = Redux::FMax;
      break;
    }
    if (!kind || x.getAbs() || x.getNan())
      return unsupported(op, "of absolute values, or with NaN");
    return decodeRedux(op, *kind, x.getVal(), x.getMaskAndClamp());
  }
  if (auto x = dyn_cast<NVVM::MatchSyncOp>(op))
    return decodeMatch(op, x.getKind() == NVVM::MatchSyncKind::all, x.getVal(),
                       x.getThreadMask());
  known = false;
  return success();
}

LogicalResult Decoder::decodeRedux(Operation *op, Redux kind, Value value,
                                   Value mask) {
  WarpOp w{};
  w.kind = WarpOpKind::Redux;
  w.detail = static_cast<uint8_t>(kind);
  Comp v = getNarrow(value), m = getNarrow(mask), result = allocate(false);
  emitWarpOp(w, {result, v, m});
  set(op->getResult(0), {result});
  return success();
}

LogicalResult Decoder::decodeMatch(Operation *op, bool all, Value value,
                                   Value mask) {
  WarpOp w{};
  w.kind = WarpOpKind::Match;
  w.detail = all;
  Comp v = getScalar(value), m = getNarrow(mask);
  w.wideA = v.wide;
  Comps result = allocate(op->getResult(0).getType());
  if (result.size() != (all ? 2u : 1u) ||
      llvm::any_of(result, [](Comp c) { return c.wide; }))
    return unsupported(op, "this result");
  Comps parts = result;
  parts.push_back(v);
  parts.push_back(m);
  emitWarpOp(w, parts);
  set(op->getResult(0), result);
  return success();
}
