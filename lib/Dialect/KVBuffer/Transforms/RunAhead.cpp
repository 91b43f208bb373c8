//===- RunAhead.cpp - Say when the ops of loops run -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LostRequest.h"
#include "Orders/LoopOrder.h"
#include "PipelineLoop.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "mlir/IR/Remarks.h"

namespace kvbuf {
#define GEN_PASS_DEF_RUNAHEAD
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-run-ahead"

namespace {
struct RunAheadPass : kvbuf::impl::RunAheadBase<RunAheadPass> {
  using Base::Base;

  /// The orders that the option names, all if it names none, in their order.
  LogicalResult findOrders(SmallVectorImpl<const LoopOrder *> &found) {
    for (const std::string &name : orders)
      if (llvm::none_of(loopOrders(), [&](const LoopOrder *order) {
            return order->name == name;
          })) {
        InFlightDiagnostic diag = getOperation().emitError()
                                  << "no order is called '" << name
                                  << "'; expected one of ";
        llvm::interleaveComma(loopOrders(), diag, [&](const LoopOrder *order) {
          diag << order->name;
        });
        return diag;
      }
    for (const LoopOrder *order : loopOrders())
      if (orders.empty() || llvm::is_contained(orders, order->name.str()))
        found.push_back(order);
    return success();
  }

  /// Says what an order does not do.
  static void refuse(const LoopOrder &order, Operation *loop, bool asks,
                     const Refusal &refusal) {
    Operation *at = refusal.at ? refusal.at : loop;
    std::string text = (order.refusal + refusal.why).str();
    // What does not depend on slots is lost all the same.
    if (asks || refusal.at)
      warnLost(at, DEBUG_TYPE, order.remark, text);
    else
      remark::missed(
          at->getLoc(),
          remark::RemarkOpts::name(order.remark).category(DEBUG_TYPE))
          << text;
  }

  LogicalResult apply(const LoopOrder &order, const OrderedKernel &kernel,
                      OrderedLoop found) {
    scf::ForOp loop = found.loop;
    // The pipeliner takes one of them at a time.
    if (annotateOnly &&
        loop->walk([&](scf::ForOp inner) {
              return inner->hasAttr(KVBufferDialect::kPipelineAttr)
                         ? WalkResult::interrupt()
                         : WalkResult::advance();
            })
            .wasInterrupted())
      return success();
    IRRewriter rewriter(&getContext());
    Placement placement(loop);
    Refusal refusal;
    switch (order.place(kernel, loop, rewriter, placement, refusal)) {
    case Placed::NotMine:
      return success();
    case Placed::No:
      refuse(order, loop, found.asks, refusal);
      return success();
    case Placed::Yes:
      break;
    }
    Location loc = loop.getLoc();
    placement.annotate();
    if (annotateOnly)
      return success();
    if (failed(pipelineLoop(rewriter, loop, order.what)))
      return failure();
    remark::passed(loc,
                   remark::RemarkOpts::name(order.remark).category(DEBUG_TYPE))
        << placement.gain;
    return success();
  }

  void runOnOperation() override {
    SmallVector<const LoopOrder *> wanted;
    if (failed(findOrders(wanted)))
      return signalPassFailure();
    OrderedKernel kernel{getOperation(),
                         getOperation()->getAttrOfType<ScheduleAttr>(
                             KVBufferDialect::kScheduleAttr),
                         targetOf(getOperation())};
    for (const LoopOrder *order : wanted) {
      if (!order->asks(kernel))
        continue;
      FoundLoops found;
      order->find(kernel, found);
      if (found.loops.empty() && !order->none.empty())
        warnLost(getOperation(), DEBUG_TYPE, order->remark, order->none);
      for (const Refusal &refusal : found.refused)
        refuse(*order, getOperation(), /*asks=*/true, refusal);
      for (OrderedLoop loop : found.loops)
        if (failed(apply(*order, kernel, loop)))
          return signalPassFailure();
    }
  }
};
} // namespace
