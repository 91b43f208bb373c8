//===- RaiseStatementsAsync.cpp - mbarriers and bulk copies in PTX --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier",
// "Data Movement and Conversion Instructions: cp.async.bulk".
//
//===----------------------------------------------------------------------===//

#include "RaiseStatements.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace kvbuf::emu;

// "mbarrier.<what>[.<semantics>.<scope>].shared::cta.b64".
bool StatementRaiser::raiseBarrierObject(StringRef opcode,
                                         const std::vector<PtxOperand> &o) {
  Type word = b.getI32Type();
  bool copies = opcode.consume_front("cp.async.");
  if (!opcode.consume_front("mbarrier.") || !opcode.consume_back(".b64"))
    return false;
  if (!opcode.consume_back(".shared::cta"))
    opcode.consume_back(".shared");
  if (copies) {
    Value at = o.size() == 1 ? pointer(o[0], 3) : Value();
    bool noinc = opcode == "arrive.noinc";
    return at && (noinc || opcode == "arrive") &&
           make("nvvm.cp.async.mbarrier.arrive", at,
                attr("noinc", b.getIntegerAttr(b.getI1Type(), noinc)));
  }
  SmallVector<NamedAttribute> attributes;
  for (StringRef scope : {".cta", ".cluster"})
    opcode.consume_back(scope);
  for (StringRef order : {".acquire", ".release"})
    opcode.consume_back(order);
  if (opcode.consume_back(".relaxed"))
    attributes.push_back(attr("relaxed", b.getBoolAttr(true)));
  if (opcode == "init" && o.size() == 2) {
    Value at = pointer(o[0], 3), count = get(o[1], word);
    return at && count && make("nvvm.mbarrier.init", {at, count});
  }
  if (opcode == "inval" && o.size() == 1) {
    Value at = pointer(o[0], 3);
    return at && make("nvvm.mbarrier.inval", at);
  }
  attributes.push_back(
      attr("scope", NVVM::MemScopeKindAttr::get(op.getContext(),
                                                NVVM::MemScopeKind::CTA)));
  if (opcode == "expect_tx" && o.size() == 2) {
    Value at = pointer(o[0], 3), bytes = get(o[1], word);
    return at && bytes &&
           make("nvvm.mbarrier.expect_tx", {at, bytes}, attributes);
  }
  bool expects = opcode == "arrive.expect_tx";
  if ((expects && o.size() == 3) ||
      (opcode == "arrive" && (o.size() == 2 || o.size() == 3))) {
    SmallVector<Value> operands = {pointer(o[1], 3)};
    operands.push_back(o.size() == 3 ? get(o[2], word) : number(word, 1));
    if (!operands[0] || !operands[1])
      return false;
    Value state = make(expects ? "nvvm.mbarrier.arrive.expect_tx"
                               : "nvvm.mbarrier.arrive",
                       operands, attributes, integer(64))
                      ->getResult(0);
    return o[0].word == "_" || set(o[0], state);
  }
  bool parity = opcode.consume_back(".parity");
  bool tries = opcode == "try_wait";
  if ((tries || opcode == "test_wait") && o.size() >= 3 &&
      o.size() <= (tries ? 4u : 3u)) {
    Value at = pointer(o[1], 3), phase = get(o[2], integer(parity ? 32 : 64));
    return at && phase &&
           set(o[0], make(tries ? "nvvm.mbarrier.try_wait"
                                : "nvvm.mbarrier.test.wait",
                          {at, phase}, attributes, Type(b.getI1Type()))
                         ->getResult(0));
  }
  return false;
}

// Copies in a row; those of boxes are a text of their own.
bool StatementRaiser::raiseBulk(StringRef opcode,
                                const std::vector<PtxOperand> &o) {
  auto segments = [&](ArrayRef<int32_t> sizes) {
    return attr("operandSegmentSizes", b.getDenseI32ArrayAttr(sizes));
  };
  opcode.consume_front("cp.async.bulk.");
  bool hint = opcode.consume_back(".L2::cache_hint");
  if (opcode == "global.shared::cta.bulk_group" && o.size() == 3u + hint) {
    Value to = pointer(o[0], 1), from = pointer(o[1], 3),
          bytes = get(o[2], b.getI32Type());
    return to && from && bytes &&
           make("nvvm.cp.async.bulk.global.shared.cta", {to, from, bytes},
                segments({1, 1, 1, 0, 0}));
  }
  if ((opcode != "shared::cluster.global.mbarrier::complete_tx::bytes" &&
       opcode != "shared::cta.global.mbarrier::complete_tx::bytes") ||
      o.size() != 4u + hint)
    return false;
  Value to = pointer(o[0], 3), from = pointer(o[1], 1),
        bytes = get(o[2], b.getI32Type()), barrier = pointer(o[3], 3);
  return to && from && bytes && barrier &&
         make("nvvm.cp.async.bulk.shared.cluster.global",
              {to, from, barrier, bytes}, segments({1, 1, 1, 1, 0, 0}));
}

bool StatementRaiser::raiseAsyncFence(StringRef opcode,
                                      const std::vector<PtxOperand> &o) {
  if (!o.empty())
    return false;
  if (opcode == "fence.mbarrier_init.release.cluster")
    return make("nvvm.fence.mbarrier.init", {});
  if (opcode == "wgmma.fence.sync.aligned")
    return make("nvvm.wgmma.fence.aligned", {});
  if (opcode == "wgmma.commit_group.sync.aligned")
    return make("nvvm.wgmma.commit.group.sync.aligned", {});
  if (!opcode.consume_front("fence.proxy.async"))
    return false;
  auto kind = llvm::StringSwitch<std::optional<NVVM::ProxyKind>>(opcode)
                  .Case("", NVVM::ProxyKind::async)
                  .Case(".global", NVVM::ProxyKind::async_global)
                  .Cases({".shared::cta", ".shared::cluster"},
                         NVVM::ProxyKind::async_shared)
                  .Default(std::nullopt);
  if (!kind)
    return false;
  MLIRContext *context = op.getContext();
  SmallVector<NamedAttribute> attributes = {
      attr("kind", NVVM::ProxyKindAttr::get(context, *kind))};
  if (*kind == NVVM::ProxyKind::async_shared)
    attributes.push_back(
        attr("space", NVVM::SharedSpaceAttr::get(
                          context, opcode == ".shared::cta"
                                       ? NVVM::SharedSpace::shared_cta
                                       : NVVM::SharedSpace::shared_cluster)));
  return make("nvvm.fence.proxy", {}, attributes);
}
