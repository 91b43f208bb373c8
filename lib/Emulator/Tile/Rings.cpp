//===- Rings.cpp - Rings and mailboxes between teams ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rings.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu::tile;

unsigned Rings::add(TeamChannelInterface op, int64_t slots) {
  Channel &channel = channels.emplace_back();
  channel.op = op;
  channel.slots = slots;
  return channels.size() - 1;
}

std::string Rings::name(unsigned channel, int64_t fill) const {
  std::string text = "filling " + std::to_string(fill) + " of the ";
  if (auto ring = dyn_cast<RingOp>(*channels[channel].op)) {
    StringRef label = ring.getRing().getType().getParams().getLabel();
    return text + label.str() + (label.empty() ? "ring" : " ring");
  }
  return text + "mailbox";
}

LogicalResult Rings::fill(Operation *op, unsigned number, int64_t fill,
                          Matrix data, int64_t value, ErrorFn error) {
  Channel &channel = channels[number];
  if (fill != int64_t(channel.fillings.size()))
    return error() << "makes " << name(number, fill) << ", expected number "
                   << channel.fillings.size();
  Filling &filling = channel.fillings.emplace_back();
  filling.op = op;
  filling.data = std::move(data);
  filling.number = value;
  filling.by.resize(channel.op.getTo().size());
  Order &order = orders[channel.op.getFrom()];
  filling.position = order.fillings.size();
  order.fillings.push_back({number, fill});
  return success();
}

/// The name of the team that takes from a channel as the one of that number.
static StringRef nameOf(TeamChannelInterface channel, unsigned taker) {
  return cast<FlatSymbolRefAttr>(channel.getTo()[taker]).getValue();
}

LogicalResult Rings::wait(unsigned number, int64_t fill, unsigned taker,
                          ErrorFn error) {
  Channel &channel = channels[number];
  StringRef filler = channel.op.getFrom(), me = nameOf(channel.op, taker);
  if (fill < 0 || fill >= int64_t(channel.fillings.size()))
    return error() << "waits for ever: " << name(number, fill)
                   << " is never made, @" << filler << " makes "
                   << channel.fillings.size();
  Filling &filling = channel.fillings[fill];
  if (Operation *released = filling.by[taker].released) {
    InFlightDiagnostic diag = error() << "waits for " << name(number, fill)
                                      << ", which was released already";
    diag.attachNote(released->getLoc()) << "it was released here";
    return diag;
  }
  Order &order = orders[filler];
  for (size_t &issued = order.issued[me]; issued <= filling.position;
       ++issued) {
    auto [c, f] = order.fillings[issued];
    int64_t before = f - channels[c].slots, place = channels[c].op.getTaker(me);
    if (before < 0 || place < 0 ||
        channels[c].fillings[before].by[place].released)
      continue;
    InFlightDiagnostic diag = error() << "waits for ever: @" << filler
                                      << " cannot make " << name(number, fill)
                                      << " before " << name(c, before)
                                      << " is released";
    diag.attachNote(channels[c].fillings[f].op->getLoc())
        << "it waits for a slot here";
    return diag;
  }
  filling.by[taker].awaited = true;
  return success();
}

FailureOr<int64_t> Rings::posted(unsigned number, int64_t fill,
                                 ErrorFn error) const {
  const Channel &channel = channels[number];
  if (fill < 0 || fill >= int64_t(channel.fillings.size()))
    return error() << "waits for ever: " << name(number, fill)
                   << " is not posted in front of it";
  return channel.fillings[fill].number;
}

FailureOr<const Matrix *> Rings::read(unsigned number, int64_t fill,
                                      unsigned taker, ErrorFn error) {
  Filling &filling = channels[number].fillings[fill];
  if (Operation *released = filling.by[taker].released) {
    InFlightDiagnostic diag = error() << "reads " << name(number, fill)
                                      << " after its release";
    diag.attachNote(released->getLoc()) << "it was released here";
    return failure();
  }
  return &filling.data;
}

LogicalResult Rings::release(Operation *op, unsigned number, int64_t fill,
                             unsigned taker, ErrorFn error) {
  Channel &channel = channels[number];
  if (fill < 0 || fill >= int64_t(channel.fillings.size()) ||
      !channel.fillings[fill].by[taker].awaited)
    return error() << "releases " << name(number, fill)
                   << ", which was not awaited";
  Taken &taken = channel.fillings[fill].by[taker];
  if (taken.released) {
    InFlightDiagnostic diag = error()
                              << "releases " << name(number, fill) << " again";
    diag.attachNote(taken.released->getLoc()) << "it was released here";
    return diag;
  }
  taken.released = op;
  return success();
}

LogicalResult
Rings::finish(function_ref<InFlightDiagnostic(Operation *)> error) {
  for (auto [number, channel] : llvm::enumerate(channels))
    for (auto [fill, filling] : llvm::enumerate(channel.fillings))
      for (auto [taker, taken] : llvm::enumerate(filling.by)) {
        if (!taken.awaited)
          return error(filling.op)
                 << "makes " << name(number, fill) << ", for which @"
                 << nameOf(channel.op, taker) << " does not wait";
        if (!taken.released)
          return error(filling.op)
                 << "makes " << name(number, fill) << ", which @"
                 << nameOf(channel.op, taker) << " does not release";
      }
  return success();
}
