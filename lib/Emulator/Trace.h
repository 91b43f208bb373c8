//===- Trace.h - What one block does, in order ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For pictures of a kernel: when copies, products, waits and barriers of one
// block (or cluster) begin and end, and which bytes of shared memory each
// operation touches.
//
// The emulator knows no cycles. A warp's time is the number of instructions
// that it has executed. Where it waits for others, its clock is put forward to
// the time at which the last of those has come, so that the order of events is
// one that the program forces.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_TRACE_H
#define KVBUF_LIB_EMULATOR_TRACE_H

#include "Machine.h"

#include "llvm/Support/JSON.h"

#include <map>
#include <vector>

namespace kvbuf::emu {

/// The times of a block's warps, and what happened in them.
class Trace {
public:
  enum class Kind : uint8_t { Copy, Product, Wait, Barrier };

  Trace(const Program &program, unsigned warps);

  /// A warp begins to execute a basic block.
  void enter(const Warp &w, uint32_t block);
  /// The time of an instruction that a warp is at.
  uint64_t time(const Warp &w, const Inst &inst) const;

  /// A warp has come to a barrier of threads.
  void arriveAtBarrier(uint32_t barrier, const Warp &w, const Inst &inst);
  /// It lets these warps go on.
  void release(uint32_t barrier, uint64_t warps);

  /// A warp has arrived at an mbarrier; a phase of it is complete.
  void arrive(uint32_t mbarrier, const Warp &w, const Inst &inst);
  void complete(uint32_t mbarrier);
  /// A warp asks for a phase, by its number, and may go on or not.
  void test(const Warp &w, const Inst &inst, uint32_t mbarrier, uint64_t phase,
            bool done);

  /// A wait that needs nobody else.
  void wait(const Warp &w, const Inst &inst);
  /// What `copied` calls the end from here on.
  void moment(const Warp &w, const Inst &inst) { now = time(w, inst); }
  /// Bytes have arrived that a warp has asked for at `issued`.
  void copied(uint32_t warp, const Inst &inst, uint64_t issued, uint64_t bytes);
  /// The results of an asynchronous product that was issued at `issued`.
  void multiplied(const Warp &w, const Inst &product, uint64_t issued,
                  const Inst &wait);

  /// A warp's instruction touches `bytes` of shared memory at an address.
  void touch(uint32_t warp, const Inst &inst, uint32_t address, uint32_t bytes,
             bool store);

  /// All of it; `name` is the block's, `warpsPerBlock` those of one of a
  /// cluster's blocks.
  llvm::json::Value json(const std::string &name, unsigned warpsPerBlock);

private:
  struct Event {
    Kind kind;
    uint32_t warp, origin;
    uint64_t begin, end, count, bytes;
    /// Of the youngest of those that it stands for.
    uint64_t lastBegin;
  };
  struct WarpState {
    bool started = false;
    /// The block in execution, the time of its first instruction, and the
    /// first instruction that was not looked at for products.
    uint32_t block = 0, next = 0;
    int64_t base = 0;
    /// Time that instructions do not account for.
    int64_t delay = 0;
    /// Since when it asks for a phase in vain; negative: it does not.
    int64_t since = -1;
    /// The last product in `events`.
    size_t lastProduct = ~size_t(0);
  };
  struct Arrival {
    uint64_t time;
    uint32_t origin;
  };

  uint32_t indexOf(const Inst &inst) const;
  void add(Kind kind, uint32_t warp, uint32_t origin, uint64_t begin,
           uint64_t end, uint64_t bytes = 0);
  /// Notes the synchronous products before an instruction.
  void products(const Warp &w, uint32_t end);
  void putForward(uint32_t warp, int64_t by);

  const Program &program;
  /// Instructions that are synchronous products, in order.
  std::vector<uint32_t> multiplies;
  std::vector<WarpState> warps;
  std::vector<Event> events;
  bool truncated = false;
  uint64_t now = 0;
  std::map<uint32_t, uint64_t> barrierTime, phaseTime;
  std::map<uint32_t, Arrival> waiting;
  std::map<uint32_t, std::vector<uint64_t>> phases;
  /// Units of 16 bytes that a warp's operation (by origin) reads or writes.
  std::map<std::pair<uint32_t, bool>, std::vector<std::vector<bool>>> units;
};

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_TRACE_H
