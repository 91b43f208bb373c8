//===- Machine.h - A block, its warps and its memory ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The interpreter's inner loops are compiled for several instruction sets
// (see CMakeLists.txt). They read the plain structs here and call `Run` for
// everything that is rare.
//
// Shared memory has a shadow that orders accesses by *clocks*. One counter
// serves a whole launch: at every barrier the warps that pass it take new
// clocks from it, and learn the clocks of the warps they met. An access is
// ordered before a warp's next one if its clock is not above what that warp
// knows of the other. `Warp::known` is the least such knowledge, so that one
// comparison clears the usual case.
//
// Lanes of an NVIDIA warp are threads of their own: `bar.warp.sync` and what is
// like it orders them (Lanes.cpp). Where lanes meet, their warp takes a new
// clock, so that `Warp::lanes` can say up to which clock they know each other's
// accesses. Cells note the lane that wrote and those that read.
//
// What copy engines and matrix units do in the background has no warp. Each of
// them is an *agent* with a number above those of the warps, and clocks of its
// own; a wait teaches the waiting warp the agent's clock (see Async.h). A
// warp's `fenced` is what it knows to lie before a fence between the generic
// and the asynchronous proxy.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_MACHINE_H
#define KVBUF_LIB_EMULATOR_MACHINE_H

#include "Program.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace kvbuf::emu {

struct Options;
enum class Severity;
enum class Landing;

constexpr unsigned maxLanes = 64;
constexpr unsigned maxWarps = 32;
/// Warps, and agents from number `maxWarps` on.
constexpr unsigned maxActors = 64;
/// Copies or products of one warp, or of one mbarrier, that nothing has waited
/// for. No machine holds as many.
constexpr size_t maxInFlight = 4096;

/// Blocks of a cluster share one line of shared memory, in which each begins at
/// a multiple of this; matrix descriptors leave out what lies above.
constexpr uint32_t clusterSpan = 1 << 18;

/// Clocks with a meaning of their own, above all real ones.
constexpr uint32_t clockUnwritten = 0xFFFFFFFF; // nothing wrote this yet
constexpr uint32_t clockInFlight = 0xFFFFFFFE;  // an async copy owes it
constexpr uint32_t clockSplit = 0xFFFFFFFD;     // see the bytes' own cells
constexpr uint32_t clockMBarrier = 0xFFFFFFFC;  // part of a live mbarrier
constexpr uint32_t clockLimit = 0xFFFFFFF0;

/// Counters of one memory operation, in units of a warp's execution of it.
struct MemStat {
  uint64_t accesses = 0;
  uint64_t bytes = 0;
  /// Shared memory: passes through the banks, and how many there would be
  /// without conflicts. Global memory: 32-byte sectors touched and needed.
  uint64_t cost = 0, ideal = 0;
  /// Copies from global into shared memory: the passes of their shared side.
  uint64_t passes = 0, idealPasses = 0;
};

/// Global memory that kernels may touch.
struct Range {
  uint64_t begin, end;
  /// A flag for each byte: written. Null: all of it counts as written.
  uint8_t *written;
  bool readable, writable;
  std::string name;
  /// It has a shadow: kernels may write it.
  bool watched = false;
};

/// The shadow of shared memory, by words or by bytes.
struct Shadow {
  uint32_t *writeClock; // when it was last written, or a special clock
  uint32_t *writer;     // instruction * 64 + actor
  uint32_t *readMax;    // the latest read by anyone
  uint64_t *reads;      // [row of the actor][cell]: clock << 32 | instruction
  uint8_t *writeLane;   // the lane that wrote it last
  uint32_t *readLanes;  // as `reads`: those that read it at that clock
  uint32_t cells;
};

/// Lanes that took another way and wait.
struct Frame {
  uint32_t block, join;
  uint64_t mask;
};

/// One cp.async of a warp.
struct AsyncCopy {
  uint32_t inst;
  uint32_t bytes;
  uint64_t mask; // lanes whose copy is not waited for yet
  bool landed;   // the bytes have been moved
  uint32_t serial;
  uint32_t dst[maxLanes];
  uint64_t src[maxLanes];
  uint32_t srcBytes[maxLanes];
  uint32_t group[maxLanes];
  bool byTensor = false; // counted by `Warp::tensors`
  uint64_t issued = 0;   // see Trace.h
};

/// An LDS operation of an AMD wave that no wait has completed.
struct LdsOp {
  uint32_t inst;
  uint32_t bytes;
  uint64_t mask; // lanes with an address; none for exchanges between lanes
  uint64_t number;
  bool store;
  uint32_t address[maxLanes];
};

enum class Stop : uint8_t { Yield, Blocked, Exited, Abort };

/// What a blocked warp waits for that is no barrier with a number. It executes
/// the instruction again when that may have happened.
/// Global memory is what other blocks may write: a warp that waits for it
/// polls.
enum class WaitFor : uint8_t {
  Nothing,
  MBarrier,
  Registers,
  Product,
  Cluster,
  Global,
  Lds
};

/// What the lanes of a warp know of each other.
struct LaneOrder {
  /// All know of all up to this clock.
  uint32_t known = 0;
  /// Some lanes have met after that: each knows those `with` it `until` a
  /// clock.
  bool apart = false;
  uint32_t with[32] = {}, until[32] = {};

  /// Whether what lane `other` did at a clock is ordered before what `lane`
  /// does now.
  bool ordered(unsigned lane, unsigned other, uint32_t clock) const {
    return lane == other || clock <= known ||
           (apart && with[lane] >> other & 1 && clock <= until[lane]);
  }
};

/// An arrival at an mbarrier by some lanes of a warp, which tells nothing of
/// what others have done since they met.
struct LaneRelease {
  /// The warp's clock then.
  uint32_t clock;
  /// What all lanes did up to this clock others may know.
  uint32_t floor;
  /// Lanes whose accesses up to `clock` they know.
  uint32_t lanes;
};

class Known;
/// What a warp knows of other blocks (GlobalMemory.h); null: nothing.
using KnownPtr = std::shared_ptr<const Known>;
struct WarpOrder;

struct WarpAsync;
struct AsyncState;
struct LdsOrder;
struct MatrixJob;

struct Warp {
  uint32_t *regs;
  uint32_t id;
  /// The number of its block in the cluster. Warps of a cluster count on.
  uint32_t rank;
  Stop state;
  // Control flow: next instruction, the current block and where the active
  // lanes meet the waiting ones.
  uint32_t pc, block, join;
  uint64_t mask, live, full;
  Frame *frames;
  uint32_t depth;
  std::vector<Frame> frameStore;
  // Order.
  uint32_t clock, known;
  uint32_t seen[maxActors], fenced[maxActors];
  uint32_t lastRead; // clock of its last access to shared memory
  uint32_t loaded;   // its loads up to this clock are done: it met others
  LaneOrder lanes;
  /// Arrivals of some lanes, oldest first.
  std::vector<LaneRelease> releases;
  /// From the one clock to the other nothing but these, meetings of lanes and
  /// fences of proxies has made the warp's clock go on.
  uint32_t apartFrom, apartTo;
  /// Clock of its last access to memory that others may access.
  uint32_t touched;
  /// Lanes that have read something atomically: their next fence acquires.
  uint32_t observing;
  /// At the next block other lanes of the warp get their turn; some have.
  bool yieldLanes, lanesYielded;
  // The same among blocks: see GlobalMemory.h.
  KnownPtr others;
  std::shared_ptr<WarpOrder> order;
  uint32_t lastEvents[16];
  // Asynchronous copies in flight, and each lane's committed groups.
  std::vector<AsyncCopy> copies;
  /// How many vector memory operations there were at the ends of groups.
  std::vector<uint32_t> marks;
  uint32_t committed[maxLanes];
  /// How many tensor copies there were (TENSORcnt of gfx1250).
  uint32_t tensors;
  // LDS operations on their way, oldest first, how many there were, and the
  // number of the last execution of each operation (by its statistic).
  std::vector<LdsOp> ldsOps;
  uint64_t ldsIssued;
  std::vector<uint64_t> ldsLast;
  uint32_t copySerial;
  WarpAsync *async; // null unless the kernel uses what Async.h describes
  // Where it waits.
  uint32_t barrier, barrierInst;
  WaitFor wait;
  /// Accesses to global memory since anything happened there that somebody may
  /// wait for, and the window's count of such events.
  uint32_t polls, pollInst;
  uint64_t pollEpoch;
  /// Lanes that have arrived in the present phase of the cluster's barrier, and
  /// lanes that have arrived at it and not waited.
  uint64_t clusterArrived, clusterOwing;
  uint64_t executed;
};

/// What the interpreter reads and writes directly.
struct Hot {
  const Inst *insts;
  const uint32_t *lists;
  const CodeBlock *blocks;
  uint64_t *blockRuns, *blockLanes;
  uint8_t *shared;
  /// Shared memory of the running warp's block.
  uint32_t sharedBegin, sharedBytes;
  bool checkShadow;
  bool cutSums; // see Options
  Shadow words;
  uint8_t *local; // [warp][lane][localBytes]
  uint32_t localBytes;
  const Range *ranges;
  uint32_t numRanges;
  uint32_t *rangeOf; // the range that each statistic met last
  MemStat *stats;
  uint32_t banks;
  uint32_t quantum;
  /// Counts changes of global memory by this block.
  uint64_t *changes;
  bool stop;      // too many errors: end the launch
  bool giveWay;   // let another block run
  bool apart;     // others run meanwhile: what all share is the journal's
  bool hold;      // stop before an operation by which blocks tell others
  bool held;      // stopped there
  bool isAMD;     // LDS operations are counted
  bool tracing;   // `Run::trace` is not null
  bool watching;  // some ranges have shadows
  bool laneOrder; // lanes of a warp are ordered by what they say only
  bool forgiving; // what executes as a whole warp also orders its lanes
  /// While a lane stores to shared memory: the value is there already.
  bool storesSame;
};

enum class FaultKind : uint8_t {
  Race,
  StoreConflict,
  Unwritten,
  InFlight,
  Bounds,
  Misaligned,
  Access,
  Barrier,
  Deadlock,
  Divergence,
  Trap,
  Proxy,
  MBarrier,
  Accumulator,
  Descriptor,
  Registers,
  Limit,
};
/// The kind's name in the report, "race".
const char *faultName(FaultKind kind);

struct Finding {
  FaultKind kind;
  std::string op, location, text;
  uint64_t count;
};

/// Receives a message and the location that it is about.
using MessageAt = std::function<void(Severity, const std::string &location,
                                     const std::string &text)>;

class Journal;
class Launch;
class Run;
class Trace;
class Window;

/// Executes a warp until it yields, blocks or exits.
using RunWarpFn = Stop (*)(Run &, Warp &);

/// A block, or a cluster of blocks, in execution. It is used for one after the
/// other.
class Run {
public:
  Run(Launch &launch, Window &window);
  ~Run();

  /// Takes up the block with a number, or the cluster that begins with it, and
  /// the number that the window gives it.
  void start(uint64_t index, uint32_t serial);
  /// Executes some of it, on any thread. False: it has ended.
  bool turn();
  /// Others run during the next turn: what it does with what they share goes
  /// into its journal, and it ends before an operation by which blocks tell
  /// each other something.
  void setApart(bool apart);
  /// The block has ended, and another one is to follow before `commit`.
  void keepJournal();
  /// After a turn, while no other block runs: makes what it did true.
  void commit();
  /// Whether its turn ended before such an operation.
  bool isHeld() const { return heldWarp; }
  /// Executes that operation, after `commit`. False: the block has ended.
  bool executeHeld();
  /// Adds what it has counted to the launch, once.
  void collect();
  /// Whether its warps have asked for other blocks' doings and go on with that.
  bool onlyPolls() const;
  /// Whether all its warps wait, some of them for other blocks.
  bool waits() const;
  /// A warp that polls global memory; null: none.
  const Warp *polling() const;

  Hot hot{};

  /// Of the launch, while this block is the one that is traced; else null.
  Trace *trace = nullptr;
  /// Called by the interpreter while `hot.tracing`.
  void traceEnter(const Warp &w, uint32_t block);
  void traceShared(const Warp &w, const Inst &inst, const uint32_t *address,
                   uint32_t bytes, uint64_t mask, bool store);

  /// Adds a frame of waiting lanes.
  void push(Warp &w, Frame frame);
  // Called by the interpreter. Those that return a mask return the lanes that
  // may go on with the access.
  uint64_t checkShared(Warp &w, const Inst &inst, const uint32_t *address,
                       uint32_t bytes, uint64_t mask, bool store);
  uint64_t checkGlobal(Warp &w, const Inst &inst, const uint64_t *address,
                       uint32_t bytes, uint64_t mask, bool store);
  uint64_t checkLocal(Warp &w, const Inst &inst, const uint32_t *address,
                      uint32_t bytes, uint64_t mask, bool store);
  void readUnwritten(Warp &w, const Inst &inst, unsigned lane,
                     uint64_t address);
  void storeConflict(Warp &w, const Inst &inst, unsigned lane, uint64_t address,
                     const char *space);
  /// After an access to global memory by which blocks tell each other
  /// something; `changed`: it left another value there.
  void communicate(Warp &w, const Inst &inst, bool changed);
  // Global memory as this block sees it. What is accessed is in bounds, and
  // `range` is where it lies.
  void readGlobal(void *to, uint64_t address, uint64_t bytes);
  void writeGlobal(uint64_t address, const void *from, uint64_t bytes);
  bool isWritten(const Range &range, uint64_t address, uint64_t bytes);
  void setWritten(const Range &range, uint64_t address, uint64_t bytes);
  // Orders accesses to global memory that are in bounds.
  void orderGlobal(Warp &w, const Inst &inst, const uint64_t *address,
                   uint32_t bytes, uint64_t mask, bool store);
  void orderAtomic(Warp &w, const Inst &inst, const uint64_t *address,
                   uint64_t mask, bool reads, bool writes);
  void fence(Warp &w, const Inst &inst);
  // Bulk copies: a number for one that stores, bytes of any (number 0: of one
  // that loads), and the end of one that stores.
  uint32_t beginStore(Warp &w, const Inst &inst);
  void orderBulk(Warp &w, const Inst &inst, unsigned lane, uint64_t address,
                 uint32_t bytes, bool store, uint32_t copy);
  void endStore(Warp &w, uint32_t copy);
  /// A wait is over that caches which were written back waited for.
  void writtenBack(Warp &w);
  /// What the warp does from here on has a later clock.
  void tick(Warp &w);
  void shadowRead(Warp &w, const Inst &inst, unsigned lane, uint32_t address,
                  uint32_t bytes);
  void shadowWrite(Warp &w, const Inst &inst, unsigned lane, uint32_t address,
                   uint32_t bytes);
  void asyncIssue(Warp &w, const Inst &inst, const uint32_t *dst,
                  const uint64_t *src, const uint32_t *srcBytes, uint64_t mask);
  void asyncCommit(Warp &w);
  /// Lets the copies land that are due for some lanes when each of those may
  /// have `pending` groups in flight.
  void asyncWait(Warp &w, const Inst &inst, uint32_t pending, uint64_t lanes,
                 bool ofTensors = false);
  // Counters.cpp: AMD's counters of memory operations.
  void vmCount(Warp &w);
  /// Ends a group of a wave's vector memory operations, or waits for all but
  /// the last `imm` groups.
  void vmMark(Warp &w, const Inst &inst);
  void ldsIssue(Warp &w, const Inst &inst, const uint32_t *address,
                uint64_t mask, bool store);
  void ldsWait(Warp &w, uint32_t pending);
  void ldsUse(Warp &w, const Inst &inst);
  /// True: the warp goes on.
  bool barrier(Warp &w, const Inst &inst, const uint32_t *id,
               const uint32_t *threads, bool arriveOnly);

  // Lanes.cpp.
  /// These lanes of a warp meet, which orders what they did before what they
  /// do from here on.
  void meetLanes(Warp &w, uint64_t mask);
  /// The same in one direction: these lanes have waited for something that
  /// others told.
  void teachLanes(Warp &w, uint64_t mask);
  /// The clock goes on behind what tells others nothing of all lanes.
  void tickApart(Warp &w);
  /// These lanes arrive at an mbarrier.
  void releaseLanes(Warp &w, uint64_t mask);
  /// Up to which clock a warp knows what all lanes of another one did.
  uint32_t heardOf(const Warp &w, uint32_t actor) const;
  /// The lane of those in `lanes` of another warp whose access at a clock no
  /// lane has released of which `w` has heard; -1: none.
  int unreleasedLane(const Warp &w, uint32_t clock, uint32_t actor,
                     uint32_t lanes) const;
  /// These lanes accessed something atomically or executed a fence.
  void observe(Warp &w, const Inst &inst, uint64_t mask, bool reads);
  // Atomic operations on shared memory: LdsOrder.h.
  void startLdsOrder();
  void orderShared(Warp &w, const Inst &inst, const uint32_t *address,
                   uint64_t mask, bool reads, bool writes);
  void fenceShared(Warp &w, const Inst &inst);
  /// Whether all warps that run ask for words of shared memory that nobody
  /// changes; an error that says so.
  bool pollsInVain() const;
  void pollDeadlock();
  /// Lets lanes go on that wait for those which poll in vain, as lanes of
  /// NVIDIA's GPUs do. False: there are none.
  bool yieldLanes();
  /// Before the warp starts a block: others of its lanes do.
  void exchangeLanes(Warp &w, uint32_t block);
  /// Reports an access that is not ordered after one by another lane of the
  /// warp; `what` is "write" or "read".
  void laneRace(Warp &w, const Inst &inst, unsigned lane, bool store,
                const std::string &place, const char *what, unsigned other,
                const Inst &earlier);
  /// Whether an ordinary store to global memory, not yet done, leaves there
  /// what is there; `isOwnWrite`: what is there was written by this stretch of
  /// the block.
  bool storesSame(Warp &w, const Inst &inst, unsigned lane, uint64_t address,
                  uint32_t size, bool isOwnWrite);
  /// Reports a race, or only remarks on one that stores what is there already.
  void storeRace(bool same, Warp &w, const Inst &inst, int lane,
                 const std::string &text, const std::string &note,
                 const Inst *other, const Program *of = nullptr);

  // HostCalls.cpp, WarpOps.cpp.
  void laneCall(Warp &w, const Inst &inst);
  void warpCall(Warp &w, const Inst &inst);
  void print(Warp &w, const Inst &inst);
  void moveElement(Warp &w, const Inst &inst, unsigned lane, uint64_t address,
                   unsigned bytes, bool store, void *data);

  // Hopper: MBarriers.cpp, BulkCopies.cpp, MatrixAsync.cpp, AsyncBlock.cpp.
  void mbarrierInit(Warp &w, const Inst &inst, const uint32_t *address,
                    const uint32_t *count, uint64_t mask);
  void mbarrierInval(Warp &w, const Inst &inst, const uint32_t *address,
                     uint64_t mask);
  /// `count` and `bytes` may be null. `state`, if not, receives the phase.
  void mbarrierArrive(Warp &w, const Inst &inst, const uint32_t *address,
                      const uint32_t *count, const uint32_t *bytes,
                      uint64_t *state, uint64_t mask);
  void mbarrierOwe(Warp &w, const Inst &inst, const uint32_t *address,
                   uint64_t mask);
  /// The lanes whose phase is complete. `phase` or `state` is not null.
  uint64_t mbarrierTest(Warp &w, const Inst &inst, const uint32_t *address,
                        const uint32_t *phase, const uint64_t *state,
                        uint64_t mask);
  /// Before the warp stops at a wait, or at a test that failed.
  void block(Warp &w, const Inst &inst, WaitFor what);
  void proxyFence(Warp &w, const Inst &inst);
  void bulkLoad(Warp &w, const Inst &inst, unsigned lane, uint32_t dst,
                uint64_t source, uint32_t mbarrier, const int32_t *coordinates,
                uint32_t bytes, bool count = true);
  /// The same into each block of the cluster whose bit is set.
  void bulkMulticast(Warp &w, const Inst &inst, unsigned lane, uint32_t dst,
                     uint64_t source, uint32_t mbarrier,
                     const int32_t *coordinates, uint32_t bytes,
                     uint32_t blocks);
  void bulkStore(Warp &w, const Inst &inst, unsigned lane, uint32_t src,
                 uint64_t target, const int32_t *coordinates, uint32_t bytes);
  void bulkCommit(Warp &w);
  void bulkWait(Warp &w, const Inst &inst);
  /// Records a group of matrix instructions; null after a fault. The caller
  /// computes the job if `now`.
  MatrixJob *matrixIssue(Warp &w, const Inst &inst, bool &now);
  void matrixFence(Warp &w);
  void matrixCommit(Warp &w);
  /// Whether the warp's warpgroup has issued all that a wait for all but
  /// `pending` groups asks for. False: the warp waits.
  bool matrixReady(Warp &w, const Inst &inst, uint32_t pending);
  /// The next job that a wait for all but `pending` groups has to compute, with
  /// what it accumulates onto in place, and then null.
  MatrixJob *matrixDue(Warp &w, uint32_t pending);
  void matrixRetire(Warp &w, const Inst &inst);
  void matrixCheck(Warp &w, const Inst &inst);
  /// False: the warp waits.
  bool setMaxRegisters(Warp &w, const Inst &inst);

  // Clusters.cpp.
  /// The barrier of a cluster. False: the warp waits.
  void clusterArrive(Warp &w, const Inst &inst);
  bool clusterWait(Warp &w, const Inst &inst);
  /// Where `address` of the own block lies in block `rank` of the cluster,
  /// which the warp is about to access. False: nowhere.
  bool reach(Warp &w, const Inst &inst, unsigned lane, uint32_t address,
             uint32_t rank, uint32_t &there);
  void clusterCopy(Warp &w, const Inst &inst, unsigned lane, uint32_t address,
                   uint32_t bytes, uint32_t mbarrier, uint32_t rank);
  void clusterStore(Warp &w, const Inst &inst, unsigned lane, uint32_t address,
                    const std::array<uint32_t, 4> &words, uint32_t mbarrier,
                    uint32_t rank);

  /// Reports, and ends the launch, when `count` has come to `maxInFlight`.
  bool tooMany(Warp &w, const Inst &inst, size_t count, const char *what);
  void faultText(FaultKind kind, const Warp &w, const Inst &inst, int lane,
                 const char *text);
  /// Counts one more of what has been reported of this kind between these
  /// operations; false: nothing has. Before a text that takes time to put
  /// together, as a place in shared memory does.
  bool isCounted(FaultKind kind, const Inst &inst, const Inst *other = nullptr,
                 uint64_t count = 1);
  /// Reports once for each kind and pair of operations. `text` follows
  /// "'op' by thread N: "; `note` goes to the other operation, of this kernel
  /// or of another one. It happened `count` times.
  void fault(FaultKind kind, const Warp &w, const Inst &inst, int lane,
             const std::string &text, const std::string &note = "",
             const Inst *other = nullptr, const Program *of = nullptr,
             uint64_t count = 1);

  /// The same for what GPUs forgive: once for each kind and operation, and the
  /// launch is none the worse for it.
  void warning(FaultKind kind, const Warp &w, const Inst &inst, int lane,
               const std::string &text, const std::string &note = "",
               const Inst *other = nullptr);
  /// Says which operation it is, where nothing says where that is.
  void describe(const Origin &origin);
  /// Lanes of a warp that have nothing left to do but to end; `alone`: or that
  /// come to nothing any more that lanes do together.
  uint64_t goneOf(const Warp &w, bool alone = false) const;
  /// Reports a member mask that leaves out lanes that execute the operation.
  void leavesOut(const Warp &w, const Inst &inst);
  /// Reports a lane of AMD's that reads what a lane has which is not here.
  void readsNobody(const Warp &w, const Inst &inst, int lane);

  /// "block 0,1,0", of the launch.
  std::string blockName(uint32_t rank) const;

  Launch &launch;
  const Program &program;
  /// Its block's number among all that have run.
  uint32_t serial = 0;

private:
  struct BarrierState {
    uint32_t arrived = 0, expected = 0;
    uint32_t inst = 0;
    uint64_t waiting = 0, participants = 0;
    /// It names a number of threads: it waits for so many, whoever has ended.
    bool counted = false;
    /// How many lanes have brought a predicate, and how many a true one.
    uint32_t asked = 0, yes = 0;
    uint32_t seen[maxActors] = {}, fenced[maxActors] = {};
    KnownPtr others;
  };
  friend struct AsyncState;
  friend class GlobalMemory;
  friend class Journal;

  /// Executes some of a warp. False: the launch ends.
  bool step(Warp &w);
  /// After a warp's turn: whether the launch goes on, or has been asked to end
  /// or the warp has executed too much.
  bool goesOn(Warp &w);
  void release(BarrierState &b);
  bool completes(const BarrierState &b) const;
  uint64_t endedOf(const BarrierState &b) const;
  void tell(Warp &w, const BarrierState &b);
  void deadlock();
  void updateKnown(Warp &w);
  void land(Warp &w, AsyncCopy &copy, uint64_t lanes);
  void landRandom();
  void ldsRetire(Warp &w, uint64_t number);
  void ldsCarryOver(Warp &w);
  void endOfWave(Warp &w);
  uint64_t next();

  // HostCalls.cpp.
  const uint8_t *readable(Warp &w, const Inst &inst, unsigned lane,
                          uint64_t address, uint64_t bytes);
  bool readText(Warp &w, const Inst &inst, unsigned lane, uint64_t address,
                std::string &text);
  void amdMultiply(Warp &w, const WarpOp &op, const uint32_t *slots);
  void say(bool onStderr, const std::string &text);
  void printLane(Warp &w, const Inst &inst, unsigned lane);
  /// Where the block of a rank lies in the grid.
  void blockPosition(uint32_t rank, unsigned at[3]) const;

  // AsyncBlock.cpp.
  void startAsync();
  bool mayGoOn(Warp &w);
  bool waitsInVain(const Warp &w, uint32_t times) const;
  bool spinning();
  void asyncDeadlock();
  void exitAsync(Warp &w);
  void endAsync();
  void landRandomBulk();

  // Clusters.cpp.
  void completeCluster();
  void endOfBlock(Warp &last);
  /// The first byte of the block that an address belongs to.
  uint32_t blockBegin(uint32_t address) const {
    return clusterSize > 1 ? address / clusterSpan * clusterSpan : 0;
  }

  // Races.cpp.
  Shadow &byteCells();
  void split(uint32_t word);
  void cellRead(Shadow &s, Warp &w, const Inst &inst, unsigned lane,
                uint32_t cell, uint32_t address);
  void cellWrite(Shadow &s, Warp &w, const Inst &inst, unsigned lane,
                 uint32_t cell, uint32_t address, bool async);
  void writeAfterLanes(const Shadow &s, Warp &w, const Inst &inst,
                       unsigned lane, uint32_t cell, uint32_t address);
  bool unordered(const Warp &w, uint32_t clock, uint32_t other) const;
  /// The lane of those in `lanes` that did something at a clock which is not
  /// ordered before what `lane` does now; -1: none.
  int unorderedLane(const LaneOrder &order, unsigned lane, uint32_t lanes,
                    uint32_t clock) const;
  /// A race with a lane of another warp that did not arrive itself.
  void releaseRace(Warp &w, const Inst &inst, unsigned lane,
                   const std::string &access, const char *what, uint32_t actor,
                   unsigned by, const Inst &earlier);
  const char *missing(uint32_t inst) const;
  /// Whether two writes or reads are ordered only by a proxy fence that is
  /// missing: the write was generic, what comes now is not.
  bool unfenced(const Warp &w, uint32_t clock, uint32_t other) const;
  /// Where an actor's reads are in `Shadow::reads`.
  size_t row(uint32_t actor) const {
    return actor < maxWarps ? actor : warps.size() + actor - maxWarps;
  }
  unsigned rows() const;
  std::string actorName(uint32_t actor) const;
  std::string who(const Warp &w, int lane) const;
  std::string sharedPlace(uint32_t address) const;
  std::string globalPlace(uint64_t address, uint32_t bytes) const;

  Window &window;
  const Options &options;
  std::vector<Range> &ranges;
  const MessageAt &message;

  /// Of what it does while others run.
  std::unique_ptr<Journal> journal;
  /// A block that has ended, and what is left of it until `commit`.
  struct Ended {
    std::unique_ptr<Journal> journal;
    uint32_t serial;
    unsigned blockIndex[3];
    std::vector<uint32_t> storeEvents;
  };
  std::vector<Ended> ended;
  std::vector<std::unique_ptr<Journal>> spareJournals;
  /// The journal whose accesses are compared now; null: none.
  Journal *replaying = nullptr;
  /// Where its turn was ended; null: nowhere.
  Warp *heldWarp = nullptr;
  /// Changes of global memory that the window has not heard of.
  uint64_t changes = 0;
  /// Different faults of the present turn that no block has reported before.
  uint32_t newFaults = 0;
  /// Somebody asked the launch to end.
  bool interrupted = false;
  // What it has counted.
  std::vector<uint64_t> blockRuns, blockLanes;
  std::vector<MemStat> stats;
  uint64_t unwaitedCopies = 0;
  /// The range that each statistic met last.
  std::vector<uint32_t> rangeOf;
  /// LDS operations that some wave had on their way at a barrier.
  std::set<uint32_t> carriedOver;
  /// GlobalMemory's events of bulk copies that store, by their number.
  std::vector<uint32_t> storeEvents;

  std::vector<Warp> warps;
  std::vector<uint32_t> regs;
  std::vector<uint8_t> shared, local;
  std::vector<uint32_t> wordClock, wordWriter, wordReadMax;
  std::vector<uint64_t> wordReads;
  std::vector<uint8_t> wordLane;
  std::vector<uint32_t> wordLanes;
  std::vector<uint32_t> byteClock, byteWriter, byteReadMax;
  std::vector<uint64_t> byteReads;
  std::vector<uint8_t> byteLane;
  std::vector<uint32_t> byteLanes;
  Shadow bytes{};
  /// 16 for each block of the cluster.
  std::vector<BarrierState> barriers;
  /// Warps that have ended, which barriers of all threads do not wait for.
  uint64_t endedWarps = 0;
  uint32_t clockCounter = 1;
  uint64_t random = 0;
  unsigned lanes;
  /// Of a block.
  unsigned threads = 0, warpsPerBlock = 0;
  /// Blocks of the cluster.
  unsigned clusterSize = 1;
  /// Of the first block of the cluster.
  unsigned blockIndex[3] = {};
  /// Agents in use, one bit an actor.
  uint64_t agents = 0;
  std::unique_ptr<AsyncState> async;
  /// Null unless the kernel has such operations.
  std::shared_ptr<LdsOrder> ldsOrder;
  RunWarpFn interpret;
};

/// The fastest version for this host, or the portable one.
RunWarpFn selectInterpreter(bool portable, unsigned lanes);

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_MACHINE_H
