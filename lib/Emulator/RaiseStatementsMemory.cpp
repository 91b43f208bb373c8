//===- RaiseStatementsMemory.cpp - Memory and matrices in PTX -------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RaiseStatements.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace kvbuf::emu;

namespace {
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
} // namespace

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
  bool saturates = w.size() == 11 && w[6] == "satfinite";
  if (saturates)
    w.erase(w.begin() + 6);
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
  // The dialect's operation has no 8-bit floats; by the name that their
  // intrinsic would have.
  auto isFloat8 = [](NVVM::MMATypes type) {
    return type == NVVM::MMATypes::e4m3 || type == NVVM::MMATypes::e5m2;
  };
  Value d;
  if (isFloat8(*typeA) || isFloat8(*typeB))
    d = LLVM::CallIntrinsicOp::create(
            b, loc, result,
            b.getStringAttr("llvm.nvvm.mma." +
                            llvm::join(ArrayRef(w).drop_front(3), ".")),
            operands)
            .getResult(0);
  else {
    SmallVector<NamedAttribute> attributes = {
        attr("shape", NVVM::MMAShapeAttr::get(context, m, n, k)),
        attr("layoutA", NVVM::MMALayoutAttr::get(context, *layoutA)),
        attr("layoutB", NVVM::MMALayoutAttr::get(context, *layoutB)),
        attr("multiplicandAPtxType", NVVM::MMATypesAttr::get(context, *typeA)),
        attr("multiplicandBPtxType", NVVM::MMATypesAttr::get(context, *typeB)),
        attr("operandSegmentSizes", b.getDenseI32ArrayAttr(sizes))};
    bool isInteger = w[6] == "s32";
    if (isInteger)
      attributes.push_back(
          attr("intOverflowBehavior",
               NVVM::MMAIntOverflowAttr::get(
                   context, saturates ? NVVM::MMAIntOverflow::satfinite
                                      : NVVM::MMAIntOverflow::wrapped)));
    d = make("nvvm.mma.sync", operands, attributes, result)->getResult(0);
  }
  for (auto [i, part] : llvm::enumerate(o[0].parts))
    if (!set(part, LLVM::ExtractValueOp::create(b, loc, d,
                                                ArrayRef<int64_t>{int64_t(i)})))
      return false;
  return true;
}

bool StatementRaiser::raiseCopy(StringRef opcode,
                                const std::vector<PtxOperand> &o) {
  if (opcode == "cp.async.bulk.commit_group" && o.empty())
    return make("nvvm.cp.async.bulk.commit.group", {});
  StringRef bulk = opcode;
  if (bulk.consume_front("cp.async.bulk.wait_group") && o.size() == 1) {
    auto n = constant(o[0]);
    SmallVector<NamedAttribute> attributes;
    if (bulk == ".read")
      attributes.push_back(attr("read", b.getUnitAttr()));
    else if (!bulk.empty())
      return false;
    if (!n)
      return false;
    attributes.push_back(attr("group", b.getI32IntegerAttr(*n)));
    return make("nvvm.cp.async.bulk.wait_group", {}, attributes);
  }
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
  if ((opcode == "bar.arrive" || opcode == "barrier.arrive" ||
       opcode == "barrier.arrive.aligned") &&
      o.size() == 2) {
    Value id = get(o[0], b.getI32Type()), threads = get(o[1], b.getI32Type());
    return id && threads && make("nvvm.barrier.arrive", {id, threads});
  }
  for (auto [name, action] : {std::pair("setmaxnreg.inc.sync.aligned.u32",
                                        NVVM::SetMaxRegisterAction::increase),
                              std::pair("setmaxnreg.dec.sync.aligned.u32",
                                        NVVM::SetMaxRegisterAction::decrease)})
    if (opcode == name && o.size() == 1) {
      std::optional<int64_t> n = constant(o[0]);
      return n && make("nvvm.setmaxregister", {},
                       {attr("regCount", b.getI32IntegerAttr(*n)),
                        attr("action", NVVM::SetMaxRegisterActionAttr::get(
                                           op.getContext(), action))});
    }
  if (opcode == "wgmma.wait_group.sync.aligned")
    return raiseGroupWait(o);
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
