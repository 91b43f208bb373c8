//===- Rings.cpp - Rings and mailboxes between roles ------------*- C++ -*-===//
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

unsigned Rings::add(Operation *op, int64_t slots) {
  Channel &channel = channels.emplace_back();
  channel.op = op;
  channel.slots = slots;
  return channels.size() - 1;
}

std::string Rings::name(unsigned channel, int64_t fill) const {
  std::string text = "filling " + std::to_string(fill) + " of the ";
  if (auto ring = dyn_cast<RingOp>(channels[channel].op)) {
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
  filling.position = order.size();
  order.push_back({number, fill});
  return success();
}

LogicalResult Rings::wait(unsigned number, int64_t fill, ErrorFn error) {
  Channel &channel = channels[number];
  if (fill < 0 || fill >= int64_t(channel.fillings.size()))
    return error() << "waits for ever: " << name(number, fill)
                   << " is never made, the producers make "
                   << channel.fillings.size();
  Filling &filling = channel.fillings[fill];
  if (filling.released) {
    InFlightDiagnostic diag = error() << "waits for " << name(number, fill)
                                      << ", which was released already";
    diag.attachNote(filling.released->getLoc()) << "it was released here";
    return diag;
  }
  for (; issued <= filling.position; ++issued) {
    auto [c, f] = order[issued];
    int64_t before = f - channels[c].slots;
    if (before < 0 || channels[c].fillings[before].released)
      continue;
    InFlightDiagnostic diag = error()
                              << "waits for ever: the producers cannot make "
                              << name(number, fill) << " before "
                              << name(c, before) << " is released";
    diag.attachNote(channels[c].fillings[f].op->getLoc())
        << "they wait for a slot here";
    return diag;
  }
  filling.awaited = true;
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
                                      ErrorFn error) {
  Filling &filling = channels[number].fillings[fill];
  if (filling.released) {
    InFlightDiagnostic diag = error() << "reads " << name(number, fill)
                                      << " after its release";
    diag.attachNote(filling.released->getLoc()) << "it was released here";
    return failure();
  }
  return &filling.data;
}

LogicalResult Rings::release(Operation *op, unsigned number, int64_t fill,
                             ErrorFn error) {
  Channel &channel = channels[number];
  if (fill < 0 || fill >= int64_t(channel.fillings.size()) ||
      !channel.fillings[fill].awaited)
    return error() << "releases " << name(number, fill)
                   << ", which was not awaited";
  Filling &filling = channel.fillings[fill];
  if (filling.released) {
    InFlightDiagnostic diag = error()
                              << "releases " << name(number, fill) << " again";
    diag.attachNote(filling.released->getLoc()) << "it was released here";
    return diag;
  }
  filling.released = op;
  return success();
}

LogicalResult
Rings::finish(function_ref<InFlightDiagnostic(Operation *)> error) {
  for (auto [number, channel] : llvm::enumerate(channels))
    for (auto [fill, filling] : llvm::enumerate(channel.fillings)) {
      if (!filling.awaited)
        return error(filling.op) << "makes " << name(number, fill)
                                 << ", for which no consumer waits";
      if (!filling.released)
        return error(filling.op) << "makes " << name(number, fill)
                                 << ", which the consumers do not release";
    }
  return success();
}
