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

#include "RaiseStatements.h"
#include "RaisePtx.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace kvbuf::emu;

std::optional<PtxType> kvbuf::emu::parseType(StringRef text) {
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
  if (dotted == "clock64" || dotted == "globaltimer")
    return make("nvvm.read.ptx.sreg." + dotted, {}, {}, b.getI64Type())
        ->getResult(0);
  unsigned driver;
  bool isDrivers = base.consume_front("envreg") && dimension.empty() &&
                   !base.getAsInteger(10, driver) && driver < 32;
  if (!place && !isDrivers &&
      !isOneOf({"laneid", "warpid", "nwarpid", "lanemask.eq", "lanemask.lt",
                "lanemask.le", "lanemask.gt", "lanemask.ge", "clock"}))
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
  if (raiseBits(opcode, o))
    return true;
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
  if (o.size() == 2)
    return raiseCounts(head, *type, o);
  if (head.starts_with("mul.") || head.starts_with("mad."))
    return raiseWideProduct(head, *type, o);
  if (o.size() != 3)
    return false;
  Value x = get(o[1], of), y = get(o[2], of);
  if (!x || !y)
    return false;
  if (head == "add")
    return set(o[0], LLVM::AddOp::create(b, loc, x, y));
  if (head == "sub")
    return set(o[0], LLVM::SubOp::create(b, loc, x, y));
  if (head == "div")
    return set(o[0], isSigned ? Value(LLVM::SDivOp::create(b, loc, x, y))
                              : Value(LLVM::UDivOp::create(b, loc, x, y)));
  if (head == "rem")
    return set(o[0], isSigned ? Value(LLVM::SRemOp::create(b, loc, x, y))
                              : Value(LLVM::URemOp::create(b, loc, x, y)));
  if (head == "min")
    return set(o[0], isSigned ? Value(LLVM::SMinOp::create(b, loc, x, y))
                              : Value(LLVM::UMinOp::create(b, loc, x, y)));
  if (head == "max")
    return set(o[0], isSigned ? Value(LLVM::SMaxOp::create(b, loc, x, y))
                              : Value(LLVM::UMaxOp::create(b, loc, x, y)));
  if (head == "and")
    return set(o[0], LLVM::AndOp::create(b, loc, x, y));
  if (head == "or")
    return set(o[0], LLVM::OrOp::create(b, loc, x, y));
  if (head == "xor")
    return set(o[0], LLVM::XOrOp::create(b, loc, x, y));
  if (head != "shl" && head != "shr")
    return false;
  // By more than its width nothing is left of a number but its sign.
  Value by = get(o[2], b.getI32Type());
  auto known = constant(o[2]);
  bool less = known && *known >= 0 && *known < type->bits,
       keeps = isSigned && head == "shr";
  Value most = number(b.getI32Type(), type->bits - 1), inside;
  if (!less) {
    inside = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ule, by, most);
    by = LLVM::UMinOp::create(b, loc, by, most);
  }
  by = convert(by, of);
  Value r = head == "shl" ? Value(LLVM::ShlOp::create(b, loc, x, by))
            : isSigned    ? Value(LLVM::AShrOp::create(b, loc, x, by))
                          : Value(LLVM::LShrOp::create(b, loc, x, by));
  if (!less && !keeps)
    r = LLVM::SelectOp::create(b, loc, inside, r, number(of, 0));
  return set(o[0], r);
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
  if (opcode.starts_with("prefetch.") || opcode.starts_with("nanosleep.") ||
      opcode == "brkpt" || opcode.starts_with("pmevent"))
    return true;
  if (opcode == "trap" || opcode == "exit")
    return make(opcode == "trap" ? "llvm.intr.trap" : "nvvm.exit", {});
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
  if (opcode.starts_with("cp.async.bulk.shared") ||
      opcode.starts_with("cp.async.bulk.global"))
    return raiseBulk(opcode, o);
  if (opcode.starts_with("cp.async.") &&
      !opcode.starts_with("cp.async.mbarrier."))
    return raiseCopy(opcode, o);
  if (opcode.starts_with("tensormap.") ||
      opcode.starts_with("fence.proxy.tensormap"))
    return raiseMap(opcode, o);
  if (opcode.starts_with("mbarrier.") ||
      opcode.starts_with("cp.async.mbarrier."))
    return raiseBarrierObject(opcode, o);
  if (raiseAsyncFence(opcode, o))
    return true;
  return raiseFloat(opcode, o) || raiseInteger(opcode, o) ||
         raiseLanes(opcode, o) || raiseSync(opcode, o);
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
ArrayRef<StringRef> kvbuf::emu::knownStatements() {
  static constexpr StringRef kinds[] = {"mov.",
                                        "mbarrier.",
                                        "cp.async.mbarrier.",
                                        "cp.async.bulk.shared",
                                        "cp.async.bulk.global",
                                        "fence.proxy.async",
                                        "fence.mbarrier_init.",
                                        "wgmma.fence.",
                                        "wgmma.commit_group.",
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
                                        "set.",
                                        "selp.",
                                        "not.",
                                        "neg.",
                                        "abs.",
                                        "add.",
                                        "sub.",
                                        "mul.",
                                        "mad.lo.",
                                        "mad.wide.",
                                        "mad.hi.",
                                        "fma.",
                                        "div.",
                                        "rem.",
                                        "min.",
                                        "max.",
                                        "sqrt.",
                                        "rcp.",
                                        "rsqrt.",
                                        "sin.",
                                        "cos.",
                                        "ex2.",
                                        "lg2.",
                                        "tanh.",
                                        "copysign.",
                                        "and.",
                                        "or.",
                                        "xor.",
                                        "shl.",
                                        "shr.",
                                        "shf.",
                                        "lop3.",
                                        "prmt.",
                                        "bfe.",
                                        "bfi.",
                                        "popc.",
                                        "clz.",
                                        "brev.",
                                        "activemask.",
                                        "shfl.sync.",
                                        "vote.sync.",
                                        "redux.sync.",
                                        "elect.sync",
                                        "bar.warp.sync",
                                        "tensormap.",
                                        "fence.proxy.tensormap",
                                        "wgmma.wait_group.",
                                        "bar.sync",
                                        "barrier.sync",
                                        "fence.acq_rel.",
                                        "fence.sc.",
                                        "membar.",
                                        "cp.async.bulk.commit_group",
                                        "cp.async.bulk.wait_group",
                                        "bar.arrive",
                                        "barrier.arrive",
                                        "setmaxnreg.",
                                        "trap",
                                        "exit",
                                        "brkpt",
                                        "pmevent"};
  return kinds;
}

static bool isKnown(const PtxInstruction &inst) {
  return llvm::any_of(knownStatements(),
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
      instructions[0].operands.empty() &&
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
