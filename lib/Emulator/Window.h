//===- Window.h - The blocks that run at once -------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A machine holds many blocks at once, starts them in any order, and lets each
// of them go on as it likes. So does the emulator: a *window* of blocks runs in
// *rounds*. In a round each block (or cluster) executes a stretch for itself,
// up to its next operation by which blocks tell each other something, or to
// the end of its turn. What it writes meanwhile stays in its journal. Then the
// blocks settle one after the other, in an order that the seed decides: what
// the journal holds becomes true, and the operation is executed.
//
// No stretch depends on another one of its round, so that they may run on
// several threads of the host, and nothing depends on how many those are. A
// block that reads what another one has written in the same round sees the old
// value; it has had no reason to expect the new one, and that is a race.
//
// Few blocks are enough to find what there is; where all of them wait for
// others, more are started, up to as many as the chip could hold. The clusters
// of a grid are started in a seeded order too: with few of them in the window,
// any of them may nevertheless be the last one.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_WINDOW_H
#define KVBUF_LIB_EMULATOR_WINDOW_H

#include "GlobalMemory.h"
#include "Launch.h"
#include "Workers.h"

#include <deque>

namespace kvbuf::emu {

/// The blocks that run at once, of one launch or of several.
class Window {
public:
  Window(const Options &options, std::vector<Range> &ranges);
  ~Window();

  /// Takes part in what `execute` does. The launch has been prepared.
  void add(Launch &launch);
  /// Executes all blocks of all launches.
  void execute(const std::function<void(uint64_t, uint64_t)> &progress);

  /// Counts what others may wait for: changes of global memory, and the ends of
  /// blocks.
  uint64_t epoch = 0;
  /// Who accessed what kernels may write.
  GlobalMemory memory;

private:
  struct Grid {
    Launch *launch;
    /// Clusters that have been started, of how many.
    uint64_t started = 0, clusters = 0;
    /// Clusters that have been given a place in the order.
    uint64_t taken = 0;
    /// The order in which they start: multiples of `step` from `first` on.
    uint64_t first = 0, step = 1;
    uint64_t resident = 0;
    /// Blocks that have ended, to be used again.
    std::vector<std::unique_ptr<Run>> idle;
    /// Clusters whose place another one keeps: they start before new ones.
    std::deque<uint64_t> deferred;
  };
  /// A block, or a cluster, that has begun and not ended.
  struct Resident {
    Grid *grid;
    /// Null before its first stretch, unless one that ended is used again.
    std::unique_ptr<Run> run;
    /// Those that are to start, one when the other has ended, and the number
    /// of the first one's events.
    std::deque<uint64_t> clusters;
    uint32_t serial;
    bool started = false;
    /// Its last stretch ended where blocks tell each other something.
    bool told = false;
    /// After a stretch: it has not ended.
    bool goesOn = true;
    /// Stretches that were nothing but polls, one after the other, and the
    /// round up to which it rests because of that: others come first, or every
    /// block of a grid would look at a barrier whenever one arrives.
    uint32_t inVain = 0;
    uint64_t rests = 0;
    /// Those that ended in the last stretch.
    uint64_t ended = 0;
  };

  bool admit();
  void admitMore(size_t places);
  uint64_t take(Grid &grid);
  std::vector<size_t> choose();
  void stretch(Resident &r, bool apart);
  bool settle(Resident &r);
  void retire(Resident &r);
  /// Whether a block has begun, and waits or rests.
  bool isIdle(const Resident &r) const;
  /// Whether some rested for whom something has changed; all go on.
  bool wake();
  void deadlock();
  void collect();
  uint64_t next();

  const Options &options;
  std::deque<Grid> grids;
  std::vector<Resident> resident;
  /// Blocks that may run at once before others have to wait for them, and the
  /// host's memory that one takes.
  size_t wanted = 8, hostBytes = 1;
  /// Blocks that one after the other may execute in a round, in the same
  /// memory of the host: it is in the caches then.
  size_t inRow = 1;
  uint64_t round = 0;
  Workers workers;
  uint64_t random;
};

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_WINDOW_H
