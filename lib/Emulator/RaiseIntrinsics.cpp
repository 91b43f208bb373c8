//===- RaiseIntrinsics.cpp - Operations in place of intrinsics ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's import leaves most of NVVM's intrinsics as calls by name. Here they
// become the operations that MLIR's own export makes them of. Operations are
// made by name and without checks: the module's verifier has the last word.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Emulator/Import.h"

#include "RaisePtx.h"
#include "Spaces.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace kvbuf::emu;

namespace {

/// Raises one call.
class IntrinsicRaiser {
public:
  explicit IntrinsicRaiser(LLVM::CallIntrinsicOp call)
      : call(call), builder(call), args(call.getArgs()) {}

  /// Whether the call has been replaced.
  bool run();

private:
  /// Replaces the call by an operation with the same results.
  bool replace(StringRef name, ValueRange operands,
               ArrayRef<NamedAttribute> attributes = {});
  NamedAttribute attr(StringRef name, Attribute value) {
    return builder.getNamedAttr(name, value);
  }
  NamedAttribute flag(StringRef name) {
    return attr(name, builder.getUnitAttr());
  }
  /// "operandSegmentSizes".
  NamedAttribute segments(ArrayRef<int32_t> sizes) {
    return attr("operandSegmentSizes", builder.getDenseI32ArrayAttr(sizes));
  }
  std::optional<int64_t> constant(unsigned operand) {
    APInt value;
    if (operand < args.size() &&
        matchPattern(args[operand], m_ConstantInt(&value)) &&
        value.getSignificantBits() <= 64)
      return value.getSExtValue();
    return std::nullopt;
  }

  bool raiseBarrier(StringRef name);
  bool raiseWarp(StringRef name);
  bool raiseCpAsync(StringRef name);
  bool raiseMBarrier(StringRef name);
  bool raiseBulk(StringRef name);
  bool raiseTensor(StringRef name);
  bool raiseMatrix(StringRef name);
  bool raiseOther(StringRef name);
  bool raiseAmd(StringRef name);
  /// Which memory a generic pointer lies in.
  bool raiseSpace(ArrayRef<uint64_t> windows, bool inside);
  bool raiseNumber(bool larger);

  LLVM::CallIntrinsicOp call;
  OpBuilder builder;
  SmallVector<Value> args;
};

} // namespace

bool IntrinsicRaiser::replace(StringRef name, ValueRange operands,
                              ArrayRef<NamedAttribute> attributes) {
  OperationState state(call.getLoc(), name);
  state.addOperands(operands);
  state.addAttributes(attributes);
  // Calls without a result have none, and operations may have one more.
  state.addTypes(call->getResultTypes());
  Operation *op = builder.create(state);
  call->replaceAllUsesWith(op->getResults());
  return true;
}

bool IntrinsicRaiser::raiseBarrier(StringRef name) {
  name.consume_front("barrier.cta.");
  if (name == "sync.aligned.all" || name == "sync.all")
    return args.size() == 1 &&
           replace("nvvm.barrier", args, segments({1, 0, 0}));
  if (name == "sync.aligned.count" || name == "sync.count")
    return args.size() == 2 &&
           replace("nvvm.barrier", args, segments({1, 1, 0}));
  if (name == "arrive.aligned.count" || name == "arrive.count")
    return args.size() == 2 && replace("nvvm.barrier.arrive", args);
  return false;
}

bool IntrinsicRaiser::raiseWarp(StringRef name) {
  MLIRContext *context = builder.getContext();
  if (name.consume_front("shfl.sync.")) {
    auto [kindName, type] = name.split('.');
    auto kind = NVVM::symbolizeShflKind(kindName);
    if (!kind || args.size() != 4)
      return false;
    SmallVector<NamedAttribute> attributes = {
        attr("kind", NVVM::ShflKindAttr::get(context, *kind))};
    if (type.ends_with("p"))
      attributes.push_back(flag("return_value_and_is_valid"));
    return replace("nvvm.shfl.sync", args, attributes);
  }
  if (name.consume_front("vote.") && name.consume_back(".sync")) {
    auto kind = NVVM::symbolizeVoteSyncKind(name);
    return kind && args.size() == 2 &&
           replace("nvvm.vote.sync", args,
                   attr("kind", NVVM::VoteSyncKindAttr::get(context, *kind)));
  }
  if (name == "elect.sync" && args.size() == 1) {
    // The operation tells whether this lane is the leader, the intrinsic also
    // who is: the first of the lanes that the mask names.
    Location loc = call.getLoc();
    OperationState state(loc, "nvvm.elect.sync");
    state.addOperands(args);
    state.addTypes(builder.getI1Type());
    Value leads = builder.create(state)->getResult(0);
    Value first = LLVM::CountTrailingZerosOp::create(
        builder, loc, args[0].getType(), args[0], /*is_zero_poison=*/true);
    Value both =
        LLVM::PoisonOp::create(builder, loc, call->getResult(0).getType());
    both = LLVM::InsertValueOp::create(builder, loc, both, first,
                                       ArrayRef<int64_t>{0});
    both = LLVM::InsertValueOp::create(builder, loc, both, leads,
                                       ArrayRef<int64_t>{1});
    call->getResult(0).replaceAllUsesWith(both);
    return true;
  }
  if (name == "bar.warp.sync")
    return args.size() == 1 && replace("nvvm.bar.warp.sync", args);
  return false;
}

bool IntrinsicRaiser::raiseCpAsync(StringRef name) {
  if (name == "cp.async.commit.group")
    return replace("nvvm.cp.async.commit.group", {});
  if (name == "cp.async.wait.group" || name == "cp.async.wait.all") {
    std::optional<int64_t> n = name.ends_with("all") ? 0 : constant(0);
    return n && replace("nvvm.cp.async.wait.group", {},
                        attr("n", builder.getI32IntegerAttr(*n)));
  }
  if (name.consume_front("cp.async.mbarrier.arrive")) {
    name.consume_back(".shared");
    bool noinc = name == ".noinc";
    return args.size() == 1 &&
           replace("nvvm.cp.async.mbarrier.arrive", args,
                   attr("noinc",
                        builder.getIntegerAttr(builder.getI1Type(), noinc)));
  }
  if (!name.consume_front("cp.async."))
    return false;
  auto modifier = name.starts_with("ca.") ? NVVM::LoadCacheModifierKind::CA
                                          : NVVM::LoadCacheModifierKind::CG;
  if (!name.consume_front("ca.shared.global.") &&
      !name.consume_front("cg.shared.global."))
    return false;
  bool partial = name.consume_back(".s");
  int64_t size;
  if (name.getAsInteger(10, size) || args.size() != (partial ? 3u : 2u))
    return false;
  return replace("nvvm.cp.async.shared.global", args,
                 {attr("size", builder.getI32IntegerAttr(size)),
                  attr("modifier", NVVM::LoadCacheModifierKindAttr::get(
                                       builder.getContext(), modifier))});
}

bool IntrinsicRaiser::raiseMBarrier(StringRef name) {
  if (!name.consume_front("mbarrier."))
    return false;
  name.consume_back(".shared");
  if (name == "init" && args.size() == 2)
    return replace("nvvm.mbarrier.init", args);
  if (name == "inval" && args.size() == 1)
    return replace("nvvm.mbarrier.inval", args);
  if (name == "arrive" && args.size() == 1)
    return replace("nvvm.mbarrier.arrive", args);
  if (name == "arrive.drop" && args.size() == 1)
    return replace("nvvm.mbarrier.arrive_drop", args);
  if (name == "arrive.noComplete" && args.size() == 2)
    return replace("nvvm.mbarrier.arrive.nocomplete", args);
  if (name == "arrive.drop.noComplete" && args.size() == 2)
    return replace("nvvm.mbarrier.arrive_drop.nocomplete", args);
  if (name == "test.wait" && args.size() == 2)
    return replace("nvvm.mbarrier.test.wait", args);
  // "<what>[.relaxed].scope.<scope>.space.<space>", where the scopes say who is
  // ordered; on this machine everybody is.
  auto [what, where] = name.split(".scope.");
  if (where.empty())
    return false;
  SmallVector<NamedAttribute> attributes;
  if (what.consume_back(".relaxed"))
    attributes.push_back(attr("relaxed", builder.getBoolAttr(true)));
  auto scope = where.starts_with("cluster") ? NVVM::MemScopeKind::CLUSTER
                                            : NVVM::MemScopeKind::CTA;
  attributes.push_back(
      attr("scope", NVVM::MemScopeKindAttr::get(builder.getContext(), scope)));
  // Barriers of other blocks are refused where they are decoded.
  StringRef raised =
      llvm::StringSwitch<StringRef>(what)
          .Case("arrive", "nvvm.mbarrier.arrive")
          .Case("arrive.drop", "nvvm.mbarrier.arrive_drop")
          .Case("arrive.expect.tx", "nvvm.mbarrier.arrive.expect_tx")
          .Case("arrive.drop.expect.tx", "nvvm.mbarrier.arrive_drop.expect_tx")
          .Case("expect.tx", "nvvm.mbarrier.expect_tx")
          .Case("complete.tx", "nvvm.mbarrier.complete_tx")
          .Case("test.wait", "nvvm.mbarrier.test.wait")
          .Case("test.wait.parity", "nvvm.mbarrier.test.wait")
          .Case("try.wait", "nvvm.mbarrier.try_wait")
          .Case("try.wait.parity", "nvvm.mbarrier.try_wait")
          .Default("");
  if (raised.empty() || args.size() != 2)
    return false;
  return replace(raised, args, attributes);
}

bool IntrinsicRaiser::raiseBulk(StringRef name) {
  if (!name.consume_front("cp.async.bulk."))
    return false;
  if (name == "commit.group")
    return replace("nvvm.cp.async.bulk.commit.group", {});
  if (name == "wait.group" || name == "wait.group.read") {
    SmallVector<NamedAttribute> attributes;
    std::optional<int64_t> n = constant(0);
    if (!n)
      return false;
    attributes.push_back(attr("group", builder.getI32IntegerAttr(*n)));
    if (name.ends_with("read"))
      attributes.push_back(flag("read"));
    return replace("nvvm.cp.async.bulk.wait_group", {}, attributes);
  }
  if (name == "global.to.shared.cluster" && args.size() == 8) {
    // dst, mbarrier, src, size, multicast, cache, and whether those are used.
    std::optional<int64_t> multicast = constant(6), cache = constant(7);
    if (!multicast || !cache)
      return false;
    SmallVector<Value> operands = {args[0], args[2], args[1], args[3]};
    if (*multicast)
      operands.push_back(args[4]);
    return replace("nvvm.cp.async.bulk.shared.cluster.global", operands,
                   segments({1, 1, 1, 1, *multicast ? 1 : 0, 0}));
  }
  if (name == "shared.cta.to.global" && args.size() == 5)
    return replace("nvvm.cp.async.bulk.global.shared.cta",
                   {args[0], args[1], args[2]}, segments({1, 1, 1, 0, 0}));
  if (name.consume_front("tensor."))
    return raiseTensor(name);
  return false;
}

bool IntrinsicRaiser::raiseTensor(StringRef name) {
  auto rankOf = [&](StringRef text) -> unsigned {
    unsigned rank;
    return text.consume_back("d") && !text.getAsInteger(10, rank) &&
                   rank >= 1 && rank <= 5
               ? rank
               : 0;
  };
  MLIRContext *context = builder.getContext();
  // Of gathered rows there are a column and four rows.
  auto modeOf = [&](StringRef &text, unsigned &coordinates) -> Attribute {
    bool gathers = text.consume_front("gather4.");
    coordinates = rankOf(text);
    if (gathers && coordinates)
      coordinates = 5;
    return NVVM::TMALoadModeAttr::get(context,
                                      gathers ? NVVM::TMALoadMode::TILE_GATHER4
                                              : NVVM::TMALoadMode::TILE);
  };
  unsigned rank;
  if (name.consume_front("g2s.tile.")) {
    // dst, mbarrier, map, coordinates, multicast, cache, and whether those are
    // used, and the group of blocks.
    Attribute mode = modeOf(name, rank);
    if (!rank || args.size() < rank + 7)
      return false;
    std::optional<int64_t> multicast = constant(rank + 5);
    if (!multicast)
      return false;
    SmallVector<Value> operands = {args[0], args[2]};
    operands.append(args.begin() + 3, args.begin() + 3 + rank);
    operands.push_back(args[1]);
    if (*multicast)
      operands.push_back(args[3 + rank]);
    return replace(
        "nvvm.cp.async.bulk.tensor.shared.cluster.global", operands,
        {attr("mode", mode), segments({1, 1, static_cast<int32_t>(rank), 1, 0,
                                       *multicast ? 1 : 0, 0, 0})});
  }
  if (name.consume_front("g2s.cta.tile.")) {
    // Into the block's own memory: dst, mbarrier, map, coordinates, cache, and
    // whether that is used.
    Attribute mode = modeOf(name, rank);
    if (!rank || args.size() < rank + 5)
      return false;
    SmallVector<Value> operands = {args[0], args[2]};
    operands.append(args.begin() + 3, args.begin() + 3 + rank);
    operands.push_back(args[1]);
    return replace(
        "nvvm.cp.async.bulk.tensor.shared.cluster.global", operands,
        {attr("mode", mode), attr("isCTAOnly", builder.getBoolAttr(true)),
         segments({1, 1, static_cast<int32_t>(rank), 1, 0, 0, 0, 0})});
  }
  if (name.consume_front("s2g.tile.")) {
    rank = rankOf(name);
    if (!rank || args.size() < rank + 2)
      return false;
    SmallVector<Value> operands = {args[1], args[0]};
    operands.append(args.begin() + 2, args.begin() + 2 + rank);
    return replace("nvvm.cp.async.bulk.tensor.global.shared.cta", operands,
                   {attr("mode", NVVM::TMAStoreModeAttr::get(
                                     context, NVVM::TMAStoreMode::TILE)),
                    segments({1, 1, static_cast<int32_t>(rank), 0, 0})});
  }
  return false;
}

bool IntrinsicRaiser::raiseMatrix(StringRef name) {
  MLIRContext *context = builder.getContext();
  if (name == "wgmma.fence.sync.aligned")
    return replace("nvvm.wgmma.fence.aligned", {});
  if (name == "wgmma.commit_group.sync.aligned")
    return replace("nvvm.wgmma.commit.group.sync.aligned", {});
  if (name == "wgmma.wait_group.sync.aligned") {
    std::optional<int64_t> n = constant(0);
    return n && replace("nvvm.wgmma.wait.group.sync.aligned", {},
                        attr("group", builder.getI64IntegerAttr(*n)));
  }
  bool load = name.consume_front("ldmatrix.sync.aligned.m8n8.x"),
       store = !load && name.consume_front("stmatrix.sync.aligned.m8n8.x");
  if (!load && !store)
    return false;
  unsigned num = name.empty() ? 0 : name.front() - '0';
  bool transposed = name.contains(".trans");
  SmallVector<NamedAttribute> attributes = {
      attr("layout", NVVM::MMALayoutAttr::get(
                         context, transposed ? NVVM::MMALayout::col
                                             : NVVM::MMALayout::row)),
      attr("shape", NVVM::LdStMatrixShapeAttr::get(context, 8, 8)),
      attr("eltType", NVVM::LdStMatrixEltTypeAttr::get(
                          context, NVVM::LdStMatrixEltType::B16))};
  if (store)
    return replace("nvvm.stmatrix", args, attributes);
  attributes.push_back(attr("num", builder.getI32IntegerAttr(num)));
  return args.size() == 1 && replace("nvvm.ldmatrix", args, attributes);
}

bool IntrinsicRaiser::raiseOther(StringRef name) {
  MLIRContext *context = builder.getContext();
  if (name.consume_front("barrier.cluster.")) {
    bool aligned = name.consume_back(".aligned");
    SmallVector<NamedAttribute> attributes;
    if (aligned)
      attributes.push_back(flag("aligned"));
    if (name == "arrive")
      return replace("nvvm.cluster.arrive", {}, attributes);
    if (name == "arrive.relaxed")
      return replace("nvvm.cluster.arrive.relaxed", {}, attributes);
    return name == "wait" && replace("nvvm.cluster.wait", {}, attributes);
  }
  if (name == "fence.mbarrier_init.release.cluster")
    return replace("nvvm.fence.mbarrier.init", {});
  if (name == "fence.sc.cluster")
    return replace("nvvm.fence.sc.cluster", {});
  if (name.consume_front("fence.proxy.async")) {
    NVVM::ProxyKind kind = NVVM::ProxyKind::async;
    SmallVector<NamedAttribute> attributes;
    if (name == ".global") {
      kind = NVVM::ProxyKind::async_global;
    } else if (name == ".shared_cta" || name == ".shared_cluster") {
      kind = NVVM::ProxyKind::async_shared;
      auto space = name == ".shared_cta" ? NVVM::SharedSpace::shared_cta
                                         : NVVM::SharedSpace::shared_cluster;
      attributes.push_back(
          attr("space", NVVM::SharedSpaceAttr::get(context, space)));
    } else if (!name.empty()) {
      return false;
    }
    attributes.push_back(attr("kind", NVVM::ProxyKindAttr::get(context, kind)));
    return replace("nvvm.fence.proxy", {}, attributes);
  }
  if (name == "isspacep.shared" || name == "isspacep.shared.cluster")
    return raiseSpace(sharedWindow, true);
  if (name == "isspacep.local")
    return raiseSpace(localWindow, true);
  if (name == "isspacep.global")
    return raiseSpace({sharedWindow, localWindow}, false);
  if (name == "prmt" && args.size() == 3)
    return replace("nvvm.prmt", args,
                   attr("mode", NVVM::PermuteModeAttr::get(
                                    context, NVVM::PermuteMode::DEFAULT)));
  bool increases = name.consume_front("setmaxnreg.inc.");
  if (increases || name.consume_front("setmaxnreg.dec.")) {
    std::optional<int64_t> n = constant(0);
    auto action = increases ? NVVM::SetMaxRegisterAction::increase
                            : NVVM::SetMaxRegisterAction::decrease;
    return n && replace("nvvm.setmaxregister", {},
                        {attr("regCount", builder.getI32IntegerAttr(*n)),
                         attr("action", NVVM::SetMaxRegisterActionAttr::get(
                                            context, action))});
  }
  return false;
}

// AMD's buffers and copies into LDS, of which the operations are decoded; all
// else of AMD's is decoded by its name.
bool IntrinsicRaiser::raiseSpace(ArrayRef<uint64_t> windows, bool inside) {
  if (args.size() != 1 || call->getNumResults() != 1)
    return false;
  Location loc = call.getLoc();
  auto i64 = [&](uint64_t v) -> Value {
    return LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                                    builder.getI64IntegerAttr(v));
  };
  Value place =
      LLVM::PtrToIntOp::create(builder, loc, builder.getI64Type(), args[0]);
  Value window = LLVM::AndOp::create(builder, loc, place, i64(windowMask));
  Value all;
  for (uint64_t w : windows) {
    Value is = LLVM::ICmpOp::create(builder, loc,
                                    inside ? LLVM::ICmpPredicate::eq
                                           : LLVM::ICmpPredicate::ne,
                                    window, i64(w));
    all = all ? LLVM::AndOp::create(builder, loc, all, is).getResult() : is;
  }
  call->getResult(0).replaceAllUsesWith(all);
  return true;
}

bool IntrinsicRaiser::raiseAmd(StringRef name) {
  if (name == "is.shared" || name == "is.private")
    return raiseSpace(name == "is.shared" ? sharedWindow : localWindow, true);
  auto is = [&](StringRef what) {
    return name == what || name.starts_with((what + ".").str());
  };
  if (is("make.buffer.rsrc"))
    return args.size() == 4 && replace("rocdl.make.buffer.rsrc", args);
  if (is("raw.ptr.buffer.load.lds") || is("raw.ptr.buffer.load.async.lds"))
    return args.size() == 7 && replace("rocdl.raw.ptr.buffer.load.lds", args);
  if (is("raw.ptr.buffer.load"))
    return args.size() == 4 && replace("rocdl.raw.ptr.buffer.load", args);
  if (is("raw.ptr.buffer.store"))
    return args.size() == 5 && replace("rocdl.raw.ptr.buffer.store", args);
  if (is("ds.read.tr16.b64"))
    return args.size() == 1 && replace("rocdl.ds.read.tr16.b64", args);
  if (is("ds.read.tr8.b64"))
    return args.size() == 1 && replace("rocdl.ds.read.tr8.b64", args);
  bool toLds = is("load.to.lds");
  if (toLds || is("global.load.lds") || is("global.load.async.lds")) {
    auto size = constant(2), offset = constant(3), aux = constant(4);
    if (args.size() != 5 || !size || !offset || !aux)
      return false;
    return replace(toLds ? "rocdl.load.to.lds" : "rocdl.global.load.lds",
                   {args[0], args[1]},
                   {attr("size", builder.getI32IntegerAttr(*size)),
                    attr("offset", builder.getI32IntegerAttr(*offset)),
                    attr("aux", builder.getI32IntegerAttr(*aux))});
  }
  return false;
}

// The larger or smaller of two numbers, of which -0 is the smaller zero: the
// one that is no NaN, if the other is one.
bool IntrinsicRaiser::raiseNumber(bool larger) {
  if (args.size() != 2)
    return false;
  Location loc = call.getLoc();
  Value x = args[0], y = args[1];
  auto isNaN = [&](Value v) -> Value {
    return LLVM::FCmpOp::create(builder, loc, LLVM::FCmpPredicate::uno, v, v);
  };
  Value both = larger ? Value(LLVM::MaximumOp::create(builder, loc, x, y))
                      : Value(LLVM::MinimumOp::create(builder, loc, x, y));
  both = LLVM::SelectOp::create(builder, loc, isNaN(y), x, both);
  both = LLVM::SelectOp::create(builder, loc, isNaN(x), y, both);
  call->getResult(0).replaceAllUsesWith(both);
  return true;
}

bool IntrinsicRaiser::run() {
  StringRef name = call.getIntrin();
  if (name.starts_with("llvm.maximumnum.") ||
      name.starts_with("llvm.minimumnum."))
    return raiseNumber(name.starts_with("llvm.maximumnum."));
  // Numbers are canonical here: denormals stay.
  if (name.starts_with("llvm.canonicalize.") && args.size() == 1 &&
      call->getNumResults() == 1) {
    call->getResult(0).replaceAllUsesWith(args[0]);
    return true;
  }
  if (name.consume_front("llvm.amdgcn."))
    return raiseAmd(name);
  if (!name.consume_front("llvm.nvvm."))
    return false;
  // Overloaded intrinsics carry their pointers' spaces at the end.
  while (true) {
    auto [front, back] = name.rsplit('.');
    if (back.size() < 2 || back[0] != 'p' ||
        back.drop_front().find_first_not_of("0123456789p") != StringRef::npos)
      break;
    name = front;
  }
  return raiseBarrier(name) || raiseWarp(name) || raiseCpAsync(name) ||
         raiseMBarrier(name) || raiseBulk(name) || raiseMatrix(name) ||
         raiseOther(name);
}

// Compilers load and store 16 bytes as i128 and look at them as something else:
// four words do as well.
static void splitWideWords(ModuleOp module) {
  MLIRContext *context = module.getContext();
  auto i128 = IntegerType::get(context, 128);
  auto words = VectorType::get({4}, IntegerType::get(context, 32));
  auto isCast = [](Operation *user) { return isa<LLVM::BitcastOp>(user); };
  auto isData = [](OpOperand &use) {
    StringRef name = use.getOwner()->getName().getStringRef();
    return use.getOperandNumber() == 0 &&
           (isa<LLVM::StoreOp>(use.getOwner()) ||
            name == "rocdl.raw.ptr.buffer.store");
  };
  module.walk([&](Operation *op) {
    if (op->getNumResults() != 1 || op->getResult(0).getType() != i128)
      return;
    Value v = op->getResult(0);
    bool loads = isa<LLVM::LoadOp>(op) ||
                 op->getName().getStringRef() == "rocdl.raw.ptr.buffer.load";
    if (loads && llvm::all_of(v.getUsers(), isCast))
      return v.setType(words);
    auto cast = dyn_cast<LLVM::BitcastOp>(op);
    if (cast && llvm::all_of(v.getUses(), isData))
      v.setType(words);
  });
}

void kvbuf::emu::raiseIntrinsics(ModuleOp module) {
  SmallVector<LLVM::CallIntrinsicOp> calls;
  SmallVector<LLVM::InlineAsmOp> texts;
  module.walk([&](Operation *op) {
    if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
      calls.push_back(call);
    else if (auto text = dyn_cast<LLVM::InlineAsmOp>(op))
      texts.push_back(text);
  });
  for (LLVM::CallIntrinsicOp call : calls)
    if (IntrinsicRaiser(call).run())
      call->erase();
  for (LLVM::InlineAsmOp text : texts)
    raisePtx(text);
  splitWideWords(module);
}
