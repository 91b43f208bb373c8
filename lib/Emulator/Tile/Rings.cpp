//===- Rings.cpp - Rings and mailboxes between teams ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rings.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace kvbuf;
using namespace kvbuf::emu;
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
    StringRef label = labelOf(ring.getRing());
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
  events[channel.op.getFrom()].push_back({Act::Fill, op, number, fill, 0});
  return success();
}

/// The name of the team that takes from a channel as the one of that number.
static StringRef nameOf(TeamChannelInterface channel, unsigned taker) {
  return cast<FlatSymbolRefAttr>(channel.getTo()[taker]).getValue();
}

LogicalResult Rings::wait(Operation *op, unsigned number, int64_t fill,
                          unsigned taker, ErrorFn error) {
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
  events[me].push_back({Act::Wait, op, number, fill, taker});
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

FailureOr<Matrix *> Rings::rewrite(unsigned number, int64_t fill,
                                   unsigned taker, ErrorFn error) {
  if (failed(read(number, fill, taker, error)))
    return failure();
  Filling &filling = channels[number].fillings[fill];
  if (filling.by.size() > 1)
    return error() << "changes " << name(number, fill)
                   << ", which another team reads, too";
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
  events[nameOf(channel.op, taker)].push_back(
      {Act::Release, op, number, fill, taker});
  return success();
}

struct Rings::Progress {
  /// Fillings that are made, and those that each team which takes has released.
  struct Channel {
    int64_t made = 0;
    SmallVector<llvm::DenseSet<int64_t>> released;
  };
  std::vector<Channel> channels;
};

bool Rings::isPossible(const Event &event, const Progress &done) const {
  const Progress::Channel &channel = done.channels[event.channel];
  if (event.act == Act::Wait)
    return event.fill < channel.made;
  int64_t before = event.fill - channels[event.channel].slots;
  return event.act == Act::Release || before < 0 ||
         llvm::all_of(
             channel.released,
             [&](const auto &released) { return released.contains(before); });
}

LogicalResult Rings::repeat(TileContext &context) {
  Progress done;
  for (Channel &channel : channels)
    done.channels.emplace_back().released.resize(channel.op.getTo().size());
  SmallVector<size_t> next(events.size());
  bool moves = true;
  while (moves) {
    moves = false;
    for (auto [at, team] : llvm::zip_equal(next, events)) {
      const std::vector<Event> &its = team.second;
      for (; at < its.size() && isPossible(its[at], done); ++at) {
        const Event &event = its[at];
        Progress::Channel &channel = done.channels[event.channel];
        if (event.act == Act::Fill)
          ++channel.made;
        else if (event.act == Act::Release)
          channel.released[event.taker].insert(event.fill);
        moves = true;
      }
    }
  }
  // What each team that cannot go on waits for; first those that take.
  SmallVector<std::pair<StringRef, const Event *>> stuck;
  for (Act act : {Act::Wait, Act::Fill})
    for (auto [at, team] : llvm::zip_equal(next, events))
      if (at < team.second.size() && team.second[at].act == act)
        stuck.push_back({team.first, &team.second[at]});
  if (stuck.empty())
    return success();
  auto say = [&](StringRef team, const Event &event) {
    std::string text = ("@" + team + " waits for ").str();
    if (event.act == Act::Wait)
      return text + name(event.channel, event.fill);
    return text + "the release of " +
           name(event.channel, event.fill - channels[event.channel].slots);
  };
  auto &[team, event] = stuck.front();
  InFlightDiagnostic diag = context.errorAt(event->op)
                            << "waits for ever, as teams wait for each other: "
                            << say(team, *event);
  for (auto &[other, its] : llvm::drop_begin(stuck))
    diag.attachNote(its->op->getLoc()) << say(other, *its) << " here";
  return diag;
}

LogicalResult Rings::finish(TileContext &context, StringRef) {
  for (auto [number, channel] : llvm::enumerate(channels))
    for (auto [fill, filling] : llvm::enumerate(channel.fillings))
      for (auto [taker, taken] : llvm::enumerate(filling.by)) {
        if (!taken.awaited)
          return context.errorAt(filling.op)
                 << "makes " << name(number, fill) << ", for which @"
                 << nameOf(channel.op, taker) << " does not wait";
        if (!taken.released)
          return context.errorAt(filling.op)
                 << "makes " << name(number, fill) << ", which @"
                 << nameOf(channel.op, taker) << " does not release";
      }
  return repeat(context);
}
