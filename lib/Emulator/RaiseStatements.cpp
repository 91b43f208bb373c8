//===- RaiseStatements.cpp - Operations for PTX, statement by statement ---===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compilers and headers write short pieces of PTX: a load behind a predicate, a
// special register, an atomic operation of some scope, a product. Each
// statement becomes operations of the LLVM and NVVM dialects. Registers are
// values of as many bits, whatever their type: `get` makes them what a
// statement wants.
//
//===----------------------------------------------------------------------===//

#include "PtxText.h"
#include "RaisePtx.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace kvbuf::emu;

namespace {

/// "u32", "b16", "f64", "f16x2", "pred".
struct PtxType {
  char kind; // b, u, s or f
  unsigned bits;
  bool pair = false;
};

/// What stands between the name of a memory operation and its type.
struct MemoryWords {
  unsigned space = 0, vector = 1;
  bool isVolatile = false;
  LLVM::AtomicOrdering order = LLVM::AtomicOrdering::not_atomic;
  StringRef scope = "device";
  /// Others: the operation of an atomic one.
  StringRef what;
  std::optional<PtxType> type;
};

class StatementRaiser {
public:
  StatementRaiser(LLVM::InlineAsmOp op, ArrayRef<Value> numbered)
      : op(op), loc(op.getLoc()), b(op), numbered(numbered) {}

  bool run(ArrayRef<PtxInstruction> instructions);

private:
  bool guarded(const PtxInstruction &inst);
  bool raise(const PtxInstruction &inst);
  bool raiseMove(const std::vector<PtxOperand> &o);
  bool raiseConvert(StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseAddress(StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseInteger(StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseAccess(StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseAtomic(StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseMatrixLoad(StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseProduct(StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseCopy(StringRef opcode, const std::vector<PtxOperand> &o);
  bool raiseSync(StringRef opcode, const std::vector<PtxOperand> &o);
  bool finish();

  Type integer(unsigned bits) { return b.getIntegerType(bits); }
  Type typeOf(const PtxType &t) {
    if (t.kind != 'f' || t.pair)
      return integer(t.bits);
    return t.bits == 64   ? Type(b.getF64Type())
           : t.bits == 32 ? Type(b.getF32Type())
                          : Type(b.getF16Type());
  }
  Value number(Type type, int64_t n) {
    return LLVM::ConstantOp::create(b, loc, type, b.getIntegerAttr(type, n));
  }
  /// A value of as many bits as an integer.
  Value bitsOf(Value v);
  Value convert(Value v, Type type);
  Value raw(const PtxOperand &o);
  Value special(StringRef name);
  Value get(const PtxOperand &o, Type type) { return convert(raw(o), type); }
  std::optional<int64_t> constant(const PtxOperand &o);
  bool set(const PtxOperand &o, Value v);
  /// The pointer of "[...]".
  Value pointer(const PtxOperand &o, unsigned space);
  Operation *make(StringRef name, ValueRange operands,
                  ArrayRef<NamedAttribute> attributes = {},
                  TypeRange results = {}) {
    OperationState state(loc, name);
    state.addOperands(operands);
    state.addAttributes(attributes);
    state.addTypes(results);
    return b.create(state);
  }
  NamedAttribute attr(StringRef name, Attribute a) {
    return b.getNamedAttr(name, a);
  }

  LLVM::InlineAsmOp op;
  Location loc;
  OpBuilder b;
  /// Outputs, null until they are set, and inputs: "$3".
  SmallVector<Value> numbered;
  llvm::StringMap<Value> names;
};

} // namespace

static std::optional<PtxType> parseType(StringRef text) {
  if (text == "pred")
    return PtxType{'b', 1};
  if (text == "f16x2")
    return PtxType{'f', 32, true};
  char kind = text.empty() ? ' ' : text.front();
  unsigned bits;
  if (!StringRef("busf").contains(kind) ||
      text.drop_front().getAsInteger(10, bits) ||
      !llvm::is_contained({8u, 16u, 32u, 64u}, bits) ||
      (kind == 'f' && bits == 8))
    return std::nullopt;
  return PtxType{kind, bits};
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

Value StatementRaiser::bitsOf(Value v) {
  Type type = v.getType();
  if (isa<IntegerType>(type))
    return v;
  if (auto pointer = dyn_cast<LLVM::LLVMPointerType>(type)) {
    unsigned space = pointer.getAddressSpace();
    bool narrow = space == 3 || space == 5;
    return LLVM::PtrToIntOp::create(b, loc, integer(narrow ? 32 : 64), v);
  }
  unsigned bits = 0;
  if (auto vector = dyn_cast<VectorType>(type); vector && vector.getRank() == 1)
    bits = vector.getNumElements() *
           vector.getElementType().getIntOrFloatBitWidth();
  else if (isa<FloatType>(type))
    bits = type.getIntOrFloatBitWidth();
  return bits ? Value(LLVM::BitcastOp::create(b, loc, integer(bits), v))
              : Value();
}

Value StatementRaiser::convert(Value v, Type type) {
  if (!v || v.getType() == type)
    return v;
  Value bits = bitsOf(v);
  if (!bits)
    return nullptr;
  if (auto pointer = dyn_cast<LLVM::LLVMPointerType>(type))
    return LLVM::IntToPtrOp::create(b, loc, pointer, bits);
  unsigned wanted = 0;
  if (auto vector = dyn_cast<VectorType>(type))
    wanted = vector.getNumElements() *
             vector.getElementType().getIntOrFloatBitWidth();
  else if (type.isIntOrFloat())
    wanted = type.getIntOrFloatBitWidth();
  if (!wanted)
    return nullptr;
  unsigned has = bits.getType().getIntOrFloatBitWidth();
  if (has > wanted)
    bits = LLVM::TruncOp::create(b, loc, integer(wanted), bits);
  else if (has < wanted)
    bits = LLVM::ZExtOp::create(b, loc, integer(wanted), bits);
  if (bits.getType() == type)
    return bits;
  return LLVM::BitcastOp::create(b, loc, type, bits);
}

Value StatementRaiser::special(StringRef name) {
  if (!name.consume_front("%"))
    return nullptr;
  std::string dotted = name.str();
  std::replace(dotted.begin(), dotted.end(), '_', '.');
  auto isOneOf = [&](std::initializer_list<StringRef> list) {
    return llvm::is_contained(list, StringRef(dotted));
  };
  auto [base, dimension] = StringRef(dotted).split('.');
  bool place = (base == "tid" || base == "ntid" || base == "ctaid" ||
                base == "nctaid") &&
               (dimension == "x" || dimension == "y" || dimension == "z");
  if (!place &&
      !isOneOf({"laneid", "warpid", "nwarpid", "lanemask.eq", "lanemask.lt",
                "lanemask.le", "lanemask.gt", "lanemask.ge"}))
    return nullptr;
  return make("nvvm.read.ptx.sreg." + dotted, {}, {}, b.getI32Type())
      ->getResult(0);
}

std::optional<int64_t> StatementRaiser::constant(const PtxOperand &o) {
  int64_t n;
  uint64_t large;
  if (o.kind == PtxOperand::Word) {
    if (!o.word.getAsInteger(0, n))
      return n;
    if (!o.word.getAsInteger(0, large))
      return static_cast<int64_t>(large);
    return std::nullopt;
  }
  Value v = o.kind == PtxOperand::Number && o.number < numbered.size()
                ? numbered[o.number]
                : Value();
  auto made = v ? v.getDefiningOp<LLVM::ConstantOp>() : LLVM::ConstantOp();
  auto value = made ? dyn_cast<IntegerAttr>(made.getValue()) : IntegerAttr();
  return value ? std::optional<int64_t>(value.getValue().getSExtValue())
               : std::nullopt;
}

Value StatementRaiser::raw(const PtxOperand &o) {
  if (o.offset)
    return nullptr;
  if (o.kind == PtxOperand::Number)
    return o.number < numbered.size() ? numbered[o.number] : Value();
  if (o.kind != PtxOperand::Word)
    return nullptr;
  if (Value v = names.lookup(o.word))
    return v;
  StringRef text = o.word;
  uint64_t bits;
  if (text.size() == 10 && text.consume_front_insensitive("0f") &&
      !text.getAsInteger(16, bits))
    return number(integer(32), static_cast<int32_t>(bits));
  if (text.size() == 18 && text.consume_front_insensitive("0d") &&
      !text.getAsInteger(16, bits))
    return number(integer(64), static_cast<int64_t>(bits));
  if (std::optional<int64_t> n = constant(o))
    return number(integer(64), *n);
  return special(o.word);
}

bool StatementRaiser::set(const PtxOperand &o, Value v) {
  if (!v)
    return false;
  if (o.kind == PtxOperand::Word)
    names[o.word] = v;
  else if (o.kind == PtxOperand::Number && o.number < numbered.size())
    numbered[o.number] = v;
  else
    return false;
  return true;
}

Value StatementRaiser::pointer(const PtxOperand &o, unsigned space) {
  if (o.kind != PtxOperand::Memory || o.parts.size() != 1)
    return nullptr;
  PtxOperand base = o.parts[0];
  base.offset = 0;
  Value v = raw(base);
  if (!v)
    return nullptr;
  auto type = LLVM::LLVMPointerType::get(op.getContext(), space);
  bool narrow = space == 3 || space == 5;
  // Shared memory's part of a generic address is its lower half.
  v = convert(convert(v, integer(narrow ? 32 : 64)), type);
  if (!v || !o.parts[0].offset)
    return v;
  return LLVM::GEPOp::create(
      b, loc, type, b.getI8Type(), v,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(o.parts[0].offset)});
}

//===----------------------------------------------------------------------===//
// Statements without memory
//===----------------------------------------------------------------------===//

bool StatementRaiser::raiseMove(const std::vector<PtxOperand> &o) {
  if (o.size() != 2)
    return false;
  if (o[0].kind == PtxOperand::List && !o[0].parts.empty()) {
    // A register into its parts, the lowest first.
    Value v = raw(o[1]);
    Value bits = v ? bitsOf(v) : Value();
    if (!bits)
      return false;
    unsigned width = bits.getType().getIntOrFloatBitWidth(),
             part = width / o[0].parts.size();
    for (auto [i, to] : llvm::enumerate(o[0].parts)) {
      Value shifted = LLVM::LShrOp::create(
          b, loc, bits, number(bits.getType(), static_cast<int64_t>(i) * part));
      if (!set(to, convert(shifted, integer(part))))
        return false;
    }
    return true;
  }
  if (o[1].kind == PtxOperand::List && !o[1].parts.empty()) {
    Value whole;
    unsigned part = 0;
    for (auto [i, from] : llvm::enumerate(o[1].parts)) {
      Value v = raw(from);
      Value bits = v ? bitsOf(v) : Value();
      if (!bits)
        return false;
      if (i == 0)
        part = bits.getType().getIntOrFloatBitWidth();
      Type type = integer(part * o[1].parts.size());
      Value at =
          LLVM::ShlOp::create(b, loc, convert(bits, type),
                              number(type, static_cast<int64_t>(i) * part));
      whole = whole ? Value(LLVM::OrOp::create(b, loc, whole, at)) : at;
    }
    return set(o[0], whole);
  }
  return set(o[0], raw(o[1]));
}

// "cvt.u64.u32": integers only.
bool StatementRaiser::raiseConvert(StringRef opcode,
                                   const std::vector<PtxOperand> &o) {
  auto [first, second] = opcode.split('.');
  auto to = parseType(first), from = parseType(second);
  if (!to || !from || to->kind == 'f' || from->kind == 'f' || o.size() != 2)
    return false;
  Value v = get(o[1], integer(from->bits));
  if (!v)
    return false;
  if (from->kind == 's' && to->bits > from->bits)
    return set(o[0], LLVM::SExtOp::create(b, loc, integer(to->bits), v));
  return set(o[0], convert(v, integer(to->bits)));
}

// "cvta.to.shared.u64"; an address of global memory is generic as it is.
bool StatementRaiser::raiseAddress(StringRef opcode,
                                   const std::vector<PtxOperand> &o) {
  bool to = opcode.consume_front("to.");
  StringRef space = opcode.split('.').first;
  if (o.size() != 2 || !opcode.ends_with("u64"))
    return false;
  Value v = get(o[1], integer(64));
  if (!v)
    return false;
  if (space == "global" || space == "const")
    return set(o[0], v);
  if (space != "shared")
    return false;
  auto shared = LLVM::LLVMPointerType::get(op.getContext(), 3),
       generic = LLVM::LLVMPointerType::get(op.getContext());
  if (to)
    return set(o[0], convert(convert(v, integer(32)), integer(64)));
  Value pointer = convert(convert(v, integer(32)), shared);
  return set(o[0],
             convert(LLVM::AddrSpaceCastOp::create(b, loc, generic, pointer),
                     integer(64)));
}

bool StatementRaiser::raiseInteger(StringRef opcode,
                                   const std::vector<PtxOperand> &o) {
  auto [head, last] = opcode.rsplit('.');
  auto type = parseType(last);
  if (!type || type->kind == 'f')
    return false;
  Type of = integer(type->bits);
  bool isSigned = type->kind == 's';
  if (head.consume_front("setp.") && o.size() == 3) {
    using P = LLVM::ICmpPredicate;
    auto p = llvm::StringSwitch<std::optional<P>>(head)
                 .Case("eq", P::eq)
                 .Case("ne", P::ne)
                 .Case("lt", isSigned ? P::slt : P::ult)
                 .Case("le", isSigned ? P::sle : P::ule)
                 .Case("gt", isSigned ? P::sgt : P::ugt)
                 .Case("ge", isSigned ? P::sge : P::uge)
                 .Default(std::nullopt);
    Value x = get(o[1], of), y = get(o[2], of);
    return p && x && y && set(o[0], LLVM::ICmpOp::create(b, loc, *p, x, y));
  }
  if (head == "selp" && o.size() == 4) {
    Value x = get(o[1], of), y = get(o[2], of), p = get(o[3], b.getI1Type());
    return x && y && p && set(o[0], LLVM::SelectOp::create(b, loc, p, x, y));
  }
  if (head == "not" && o.size() == 2) {
    Value x = get(o[1], of);
    return x && set(o[0], LLVM::XOrOp::create(b, loc, x, number(of, -1)));
  }
  if (o.size() != 3)
    return false;
  Value x = get(o[1], of), y = get(o[2], of);
  if (!x || !y)
    return false;
  if (head == "add")
    return set(o[0], LLVM::AddOp::create(b, loc, x, y));
  if (head == "sub")
    return set(o[0], LLVM::SubOp::create(b, loc, x, y));
  if (head == "mul.lo")
    return set(o[0], LLVM::MulOp::create(b, loc, x, y));
  if (head == "and")
    return set(o[0], LLVM::AndOp::create(b, loc, x, y));
  if (head == "or")
    return set(o[0], LLVM::OrOp::create(b, loc, x, y));
  if (head == "xor")
    return set(o[0], LLVM::XOrOp::create(b, loc, x, y));
  if (head == "shl")
    return set(o[0], LLVM::ShlOp::create(b, loc, x, y));
  if (head == "shr")
    return set(o[0], isSigned ? Value(LLVM::AShrOp::create(b, loc, x, y))
                              : Value(LLVM::LShrOp::create(b, loc, x, y)));
  return false;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Null: a word that is not known.
static std::optional<MemoryWords> parseMemory(StringRef opcode, bool isAtomic) {
  MemoryWords m;
  SmallVector<StringRef> words;
  opcode.split(words, '.');
  using Order = LLVM::AtomicOrdering;
  if (isAtomic)
    m.order = Order::monotonic;
  for (StringRef w : words) {
    if (w == "global")
      m.space = 1;
    else if (w == "shared" || w == "shared::cta")
      m.space = 3;
    else if (w == "const")
      m.space = 4;
    else if (w == "local")
      m.space = 5;
    else if (w == "volatile")
      m.isVolatile = true;
    else if (w == "relaxed")
      m.order = Order::monotonic;
    else if (w == "acquire")
      m.order = Order::acquire;
    else if (w == "release")
      m.order = Order::release;
    else if (w == "acq_rel")
      m.order = Order::acq_rel;
    else if (w == "cta")
      m.scope = "block";
    else if (w == "cluster")
      m.scope = "cluster";
    else if (w == "gpu")
      m.scope = "device";
    else if (w == "sys")
      m.scope = "";
    else if (w == "v2" || w == "v4" || w == "v8")
      m.vector = w[1] - '0';
    else if (auto type = parseType(w))
      m.type = type;
    // How caches are used.
    else if (w == "weak" || w == "nc" || w.starts_with("L1::") ||
             w.starts_with("L2::") || w == "noftz" ||
             (!isAtomic && (w == "ca" || w == "cg" || w == "cs" || w == "lu" ||
                            w == "cv" || w == "wb" || w == "wt")))
      continue;
    else if (isAtomic && m.what.empty())
      m.what = w;
    else
      return std::nullopt;
  }
  return m.type ? std::optional<MemoryWords>(m) : std::nullopt;
}

bool StatementRaiser::raiseAccess(StringRef opcode,
                                  const std::vector<PtxOperand> &o) {
  bool store = opcode.consume_front("st.");
  if (!store && !opcode.consume_front("ld."))
    return false;
  auto m = parseMemory(opcode, /*isAtomic=*/false);
  // A cache's policy may follow.
  if (!m || m->type->bits == 1 || o.size() < 2 || o.size() > 3)
    return false;
  const PtxOperand &data = o[store ? 1 : 0];
  bool listed = data.kind == PtxOperand::List;
  ArrayRef<PtxOperand> parts =
      listed ? ArrayRef<PtxOperand>(data.parts) : ArrayRef<PtxOperand>(data);
  Value address = pointer(o[store ? 0 : 1], m->space);
  if (!address || parts.size() != m->vector)
    return false;
  Type element = integer(m->type->bits);
  Type type = m->vector == 1 ? element : VectorType::get({m->vector}, element);
  unsigned align = m->vector * m->type->bits / 8;
  auto at = [&](unsigned i) { return number(b.getI32Type(), i); };
  if (store) {
    Value value;
    if (m->vector > 1)
      value = LLVM::PoisonOp::create(b, loc, type);
    for (auto [i, part] : llvm::enumerate(parts)) {
      Value v = get(part, element);
      if (!v)
        return false;
      value =
          m->vector == 1
              ? v
              : Value(LLVM::InsertElementOp::create(b, loc, value, v, at(i)));
    }
    LLVM::StoreOp::create(
        b, loc, value, address, align, m->isVolatile,
        /*isNonTemporal=*/false, /*isInvariantGroup=*/false, m->order,
        m->order == LLVM::AtomicOrdering::not_atomic ? StringRef() : m->scope);
    return true;
  }
  Value value = LLVM::LoadOp::create(
      b, loc, type, address, align, m->isVolatile, /*isNonTemporal=*/false,
      /*isInvariant=*/false, /*isInvariantGroup=*/false, m->order,
      m->order == LLVM::AtomicOrdering::not_atomic ? StringRef() : m->scope);
  for (auto [i, part] : llvm::enumerate(parts)) {
    Value v = m->vector == 1
                  ? value
                  : Value(LLVM::ExtractElementOp::create(b, loc, value, at(i)));
    // A register is larger than a byte.
    if (m->type->kind == 's' && m->type->bits < 32)
      v = LLVM::SExtOp::create(b, loc, b.getI32Type(), v);
    if (!set(part, v))
      return false;
  }
  return true;
}

bool StatementRaiser::raiseAtomic(StringRef opcode,
                                  const std::vector<PtxOperand> &o) {
  bool returns = opcode.consume_front("atom.");
  if (!returns && !opcode.consume_front("red."))
    return false;
  auto m = parseMemory(opcode, /*isAtomic=*/true);
  size_t first = returns ? 1 : 0;
  bool exchange = m && m->what == "cas";
  if (!m || m->vector != 1 || o.size() != first + (exchange ? 3 : 2))
    return false;
  Value address = pointer(o[first], m->space);
  if (!address)
    return false;
  unsigned align = m->type->bits / 8;
  if (exchange) {
    Type type = integer(m->type->bits);
    Value compare = get(o[first + 1], type), value = get(o[first + 2], type);
    if (!compare || !value)
      return false;
    auto failure = m->order == LLVM::AtomicOrdering::acq_rel ||
                           m->order == LLVM::AtomicOrdering::acquire
                       ? LLVM::AtomicOrdering::acquire
                       : LLVM::AtomicOrdering::monotonic;
    Value pair = LLVM::AtomicCmpXchgOp::create(
        b, loc, address, compare, value, m->order, failure, m->scope, align);
    return !returns || set(o[0], LLVM::ExtractValueOp::create(
                                     b, loc, pair, ArrayRef<int64_t>{0}));
  }
  using Op = LLVM::AtomicBinOp;
  bool isFloat = m->type->kind == 'f', isSigned = m->type->kind == 's';
  auto kind = llvm::StringSwitch<std::optional<Op>>(m->what)
                  .Case("add", isFloat ? Op::fadd : Op::add)
                  .Case("min", isFloat    ? Op::fmin
                               : isSigned ? Op::min
                                          : Op::umin)
                  .Case("max", isFloat    ? Op::fmax
                               : isSigned ? Op::max
                                          : Op::umax)
                  .Case("and", Op::_and)
                  .Case("or", Op::_or)
                  .Case("xor", Op::_xor)
                  .Case("exch", Op::xchg)
                  .Case("inc", Op::uinc_wrap)
                  .Case("dec", Op::udec_wrap)
                  .Default(std::nullopt);
  Type type = m->type->pair ? Type(VectorType::get({2}, b.getF16Type()))
              : isFloat     ? typeOf(*m->type)
                            : integer(m->type->bits);
  Value value = get(o[first + 1], type);
  if (!kind || !value)
    return false;
  Value old = LLVM::AtomicRMWOp::create(b, loc, *kind, address, value, m->order,
                                        m->scope, align);
  return !returns || set(o[0], old);
}

//===----------------------------------------------------------------------===//
// Matrices, copies, barriers
//===----------------------------------------------------------------------===//

bool StatementRaiser::raiseMatrixLoad(StringRef opcode,
                                      const std::vector<PtxOperand> &o) {
  MLIRContext *context = op.getContext();
  if (!opcode.consume_front("ldmatrix.sync.aligned.m8n8.x") || opcode.empty() ||
      o.size() != 2 || o[0].kind != PtxOperand::List)
    return false;
  unsigned count = opcode.front() - '0';
  opcode = opcode.drop_front();
  bool transposed = opcode.consume_front(".trans");
  opcode.consume_front(".shared");
  opcode.consume_front("::cta");
  Value address = pointer(o[1], 3);
  if (opcode != ".b16" || !address || o[0].parts.size() != count ||
      (count != 1 && count != 2 && count != 4))
    return false;
  Type word = b.getI32Type(),
       type = count == 1 ? word
                         : Type(LLVM::LLVMStructType::getLiteral(
                               context, SmallVector<Type>(count, word)));
  Value all =
      make("nvvm.ldmatrix", address,
           {attr("layout", NVVM::MMALayoutAttr::get(
                               context, transposed ? NVVM::MMALayout::col
                                                   : NVVM::MMALayout::row)),
            attr("shape", NVVM::LdStMatrixShapeAttr::get(context, 8, 8)),
            attr("eltType", NVVM::LdStMatrixEltTypeAttr::get(
                                context, NVVM::LdStMatrixEltType::B16)),
            attr("num", b.getI32IntegerAttr(count))},
           type)
          ->getResult(0);
  if (count == 1)
    return set(o[0].parts[0], all);
  for (int64_t i = 0; i < count; ++i)
    if (!set(o[0].parts[i],
             LLVM::ExtractValueOp::create(b, loc, all, ArrayRef<int64_t>{i})))
      return false;
  return true;
}

// "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d}, {a}, {b}, {c}".
bool StatementRaiser::raiseProduct(StringRef opcode,
                                   const std::vector<PtxOperand> &o) {
  MLIRContext *context = op.getContext();
  SmallVector<StringRef> w;
  opcode.split(w, '.');
  if (w.size() != 10 || w[1] != "sync" || w[2] != "aligned" || o.size() != 4)
    return false;
  unsigned m, n, k;
  StringRef shape = w[3];
  if (!shape.consume_front("m") || shape.consumeInteger(10, m) ||
      !shape.consume_front("n") || shape.consumeInteger(10, n) ||
      !shape.consume_front("k") || shape.consumeInteger(10, k))
    return false;
  auto layoutA = NVVM::symbolizeMMALayout(w[4]),
       layoutB = NVVM::symbolizeMMALayout(w[5]);
  auto typeA = NVVM::symbolizeMMATypes(w[7]),
       typeB = NVVM::symbolizeMMATypes(w[8]);
  if (!layoutA || !layoutB || !typeA || !typeB)
    return false;
  Type pair = VectorType::get({2}, b.getF16Type());
  auto registerOf = [&](StringRef name) -> Type {
    return name == "f16"   ? pair
           : name == "f32" ? Type(b.getF32Type())
           : name == "f64" ? Type(b.getF64Type())
                           : Type(b.getI32Type());
  };
  SmallVector<Value> operands;
  SmallVector<int32_t> sizes;
  for (unsigned i = 1; i < 4; ++i) {
    // Multiplicands of all types but f16 and f64 lie in words.
    StringRef name = w[6 + i];
    Type type =
        i < 3 && name == "f32" ? Type(b.getI32Type()) : registerOf(name);
    ArrayRef<PtxOperand> parts = o[i].kind == PtxOperand::List
                                     ? ArrayRef<PtxOperand>(o[i].parts)
                                     : ArrayRef<PtxOperand>(o[i]);
    for (const PtxOperand &part : parts) {
      Value v = get(part, type);
      if (!v)
        return false;
      operands.push_back(v);
    }
    sizes.push_back(static_cast<int32_t>(parts.size()));
  }
  auto result = LLVM::LLVMStructType::getLiteral(
      context, SmallVector<Type>(o[0].parts.size(), registerOf(w[6])));
  Value d = make("nvvm.mma.sync", operands,
                 {attr("shape", NVVM::MMAShapeAttr::get(context, m, n, k)),
                  attr("layoutA", NVVM::MMALayoutAttr::get(context, *layoutA)),
                  attr("layoutB", NVVM::MMALayoutAttr::get(context, *layoutB)),
                  attr("multiplicandAPtxType",
                       NVVM::MMATypesAttr::get(context, *typeA)),
                  attr("multiplicandBPtxType",
                       NVVM::MMATypesAttr::get(context, *typeB)),
                  attr("operandSegmentSizes", b.getDenseI32ArrayAttr(sizes))},
                 result)
                ->getResult(0);
  for (auto [i, part] : llvm::enumerate(o[0].parts))
    if (!set(part, LLVM::ExtractValueOp::create(b, loc, d,
                                                ArrayRef<int64_t>{int64_t(i)})))
      return false;
  return true;
}

bool StatementRaiser::raiseCopy(StringRef opcode,
                                const std::vector<PtxOperand> &o) {
  if (opcode == "cp.async.commit_group" && o.empty())
    return make("nvvm.cp.async.commit.group", {});
  if (opcode == "cp.async.wait_all" && o.empty())
    return make("nvvm.cp.async.wait.group", {},
                attr("n", b.getI32IntegerAttr(0)));
  if (opcode == "cp.async.wait_group" && o.size() == 1) {
    auto n = constant(o[0]);
    return n && make("nvvm.cp.async.wait.group", {},
                     attr("n", b.getI32IntegerAttr(*n)));
  }
  // The size to read and a cache's policy may follow.
  if ((!opcode.starts_with("cp.async.ca.") &&
       !opcode.starts_with("cp.async.cg.")) ||
      o.size() < 3 || o.size() > 5)
    return false;
  SmallVector<StringRef> words;
  opcode.split(words, '.');
  bool hint = false;
  for (StringRef word : llvm::drop_begin(words, 3)) {
    hint |= word == "L2::cache_hint";
    if (word != "shared" && word != "shared::cta" && word != "global" &&
        !word.starts_with("L2::"))
      return false;
  }
  auto kind = words[2] == "cg" ? NVVM::LoadCacheModifierKind::CG
                               : NVVM::LoadCacheModifierKind::CA;
  std::optional<int64_t> size = constant(o[2]);
  Value to = pointer(o[0], 3), from = pointer(o[1], 1);
  if (!size || !to || !from)
    return false;
  SmallVector<Value> operands = {to, from};
  if (o.size() == 4u + hint) {
    operands.push_back(get(o[3], b.getI32Type()));
    if (!operands.back())
      return false;
  }
  return make("nvvm.cp.async.shared.global", operands,
              {attr("size", b.getI32IntegerAttr(*size)),
               attr("modifier", NVVM::LoadCacheModifierKindAttr::get(
                                    op.getContext(), kind))});
}

bool StatementRaiser::raiseSync(StringRef opcode,
                                const std::vector<PtxOperand> &o) {
  if (opcode == "bar.warp.sync" && o.size() == 1) {
    Value mask = get(o[0], b.getI32Type());
    return mask && make("nvvm.bar.warp.sync", mask);
  }
  if ((opcode == "bar.sync" || opcode == "barrier.sync" ||
       opcode == "barrier.sync.aligned") &&
      (o.size() == 1 || o.size() == 2)) {
    SmallVector<Value> operands;
    for (const PtxOperand &part : o) {
      operands.push_back(get(part, b.getI32Type()));
      if (!operands.back())
        return false;
    }
    return make("nvvm.barrier", operands,
                attr("operandSegmentSizes",
                     b.getDenseI32ArrayAttr({1, int32_t(o.size()) - 1, 0})));
  }
  bool fence = opcode.consume_front("fence.acq_rel.") ||
               opcode.consume_front("fence.sc.");
  if ((fence || opcode.consume_front("membar.")) && o.empty()) {
    auto scope = llvm::StringSwitch<std::optional<StringRef>>(opcode)
                     .Case("cta", StringRef("block"))
                     .Case("cluster", StringRef("cluster"))
                     .Cases({"gpu", "gl"}, StringRef("device"))
                     .Case("sys", StringRef(""))
                     .Default(std::nullopt);
    return scope &&
           LLVM::FenceOp::create(b, loc, LLVM::AtomicOrdering::acq_rel, *scope);
  }
  return false;
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

bool StatementRaiser::raise(const PtxInstruction &inst) {
  StringRef opcode = inst.opcode;
  const std::vector<PtxOperand> &o = inst.operands;
  if (opcode.starts_with("mov."))
    return raiseMove(o);
  // Hints.
  if (opcode.starts_with("createpolicy.") && !o.empty())
    return set(o[0], number(integer(64), 0));
  if (opcode.starts_with("prefetch.") || opcode.starts_with("nanosleep."))
    return true;
  StringRef rest = opcode;
  if (rest.consume_front("cvt."))
    return raiseConvert(rest, o);
  if (rest.consume_front("cvta."))
    return raiseAddress(rest, o);
  if (opcode.starts_with("ld.") || opcode.starts_with("st."))
    return raiseAccess(opcode, o);
  if (opcode.starts_with("atom.") || opcode.starts_with("red."))
    return raiseAtomic(opcode, o);
  if (opcode.starts_with("ldmatrix."))
    return raiseMatrixLoad(opcode, o);
  if (opcode.starts_with("mma.sync."))
    return raiseProduct(opcode, o);
  if (opcode.starts_with("cp.async."))
    return raiseCopy(opcode, o);
  return raiseInteger(opcode, o) || raiseSync(opcode, o);
}

// A branch around a statement behind a predicate.
bool StatementRaiser::guarded(const PtxInstruction &inst) {
  if (!inst.predicate && inst.predicateName.empty())
    return raise(inst);
  PtxOperand p;
  p.kind = inst.predicate ? PtxOperand::Number : PtxOperand::Word;
  p.number = inst.predicate.value_or(0);
  p.word = inst.predicateName;
  Value condition = get(p, b.getI1Type());
  if (!condition)
    return false;
  SmallVector<Value> before = numbered;
  llvm::StringMap<Value> namesBefore = names;
  Block *head = op->getBlock(), *tail = head->splitBlock(op),
        *body = b.createBlock(tail);
  bool good = raise(inst);
  // What it has set is what it was where the predicate is not.
  SmallVector<Value> set, unset;
  SmallVector<Value *> merged;
  auto merge = [&](Value &now, Value was) {
    if (now == was)
      return;
    set.push_back(now);
    unset.push_back(was);
    merged.push_back(&now);
  };
  for (auto [now, was] : llvm::zip_equal(numbered, before))
    merge(now, was);
  for (auto &entry : names)
    merge(entry.second, namesBefore.lookup(entry.first()));
  LLVM::BrOp::create(b, loc, set, tail);
  b.setInsertionPointToEnd(head);
  for (auto [now, was] : llvm::zip_equal(set, unset)) {
    was = was ? convert(was, now.getType())
              : Value(LLVM::ZeroOp::create(b, loc, now.getType()));
    good &= static_cast<bool>(was);
  }
  if (!good)
    unset = set; // it is refused anyway
  if (inst.negated)
    LLVM::CondBrOp::create(b, loc, condition, tail, unset, body, ValueRange());
  else
    LLVM::CondBrOp::create(b, loc, condition, body, ValueRange(), tail, unset);
  for (auto [place, value] : llvm::zip_equal(merged, set))
    *place = tail->addArgument(value.getType(), loc);
  b.setInsertionPoint(op);
  return good;
}

bool StatementRaiser::finish() {
  if (op.getNumResults() == 0)
    return true;
  Type type = op->getResult(0).getType();
  Value result;
  if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
    result = LLVM::PoisonOp::create(b, loc, type);
    for (auto [i, part] : llvm::enumerate(record.getBody())) {
      Value v = i < numbered.size() ? convert(numbered[i], part) : Value();
      if (!v)
        return false;
      result = LLVM::InsertValueOp::create(b, loc, result, v,
                                           ArrayRef<int64_t>{int64_t(i)});
    }
  } else if (!isa<LLVM::LLVMVoidType>(type)) {
    result = numbered.empty() ? Value() : convert(numbered[0], type);
    if (!result)
      return false;
  }
  if (result)
    op->getResult(0).replaceAllUsesWith(result);
  return true;
}

/// Whether statements of this kind are known. What is made of others before one
/// of them is found to be of an unknown form stays, and the kernel is refused.
static bool isKnown(const PtxInstruction &inst) {
  static constexpr StringRef kinds[] = {"mov.",
                                        "createpolicy.",
                                        "prefetch.",
                                        "nanosleep.",
                                        "cvt.",
                                        "cvta.",
                                        "ld.",
                                        "st.",
                                        "atom.",
                                        "red.",
                                        "ldmatrix.",
                                        "mma.sync.",
                                        "cp.async.c",
                                        "cp.async.wait_",
                                        "setp.",
                                        "selp.",
                                        "not.",
                                        "add.",
                                        "sub.",
                                        "mul.lo.",
                                        "and.",
                                        "or.",
                                        "xor.",
                                        "shl.",
                                        "shr.",
                                        "bar.warp.sync",
                                        "bar.sync",
                                        "barrier.sync",
                                        "fence.acq_rel.",
                                        "fence.sc.",
                                        "membar."};
  return llvm::any_of(kinds,
                      [&](StringRef k) { return inst.opcode.starts_with(k); });
}

StringRef kvbuf::emu::unknownStatement(StringRef text) {
  SmallVector<PtxInstruction> instructions;
  if (PtxParser(text).run(instructions))
    for (const PtxInstruction &inst : instructions)
      if (!isKnown(inst))
        return inst.opcode;
  return "";
}

bool StatementRaiser::run(ArrayRef<PtxInstruction> instructions) {
  if (!llvm::all_of(instructions, isKnown))
    return false;
  // A fence alone is decoded as it is.
  if (instructions.size() == 1 && !instructions[0].predicate &&
      (instructions[0].opcode.starts_with("fence.") ||
       instructions[0].opcode.starts_with("membar.")))
    return false;
  for (const PtxInstruction &inst : instructions)
    if (!guarded(inst))
      return false;
  return finish();
}

bool kvbuf::emu::raiseStatements(LLVM::InlineAsmOp op,
                                 ArrayRef<PtxInstruction> instructions,
                                 ArrayRef<Value> numbered) {
  return StatementRaiser(op, numbered).run(instructions);
}
