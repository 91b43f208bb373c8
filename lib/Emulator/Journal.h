//===- Journal.h - What a block does apart from the others ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// While blocks execute stretches on their own (Window.h), none changes what
// others see. What one writes to global memory, the accesses whose order is to
// be checked and the faults that it finds go into its journal. `commit` makes
// all of that true, as if the block had done it then, in the order in which it
// was done.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_JOURNAL_H
#define KVBUF_LIB_EMULATOR_JOURNAL_H

#include "GlobalMemory.h"

namespace kvbuf::emu {

class Journal {
public:
  // Global memory as the block sees it. What is accessed is in bounds.
  void read(void *to, uint64_t address, uint64_t bytes);
  void write(uint64_t address, const void *from, uint64_t bytes);
  /// What a copy that has begun will write counts as written.
  void willWrite(uint64_t address, uint64_t bytes);
  /// Whether all of it was written; `flags` are those of the memory.
  bool isWritten(const uint8_t *flags, uint64_t address, uint64_t bytes);

  // What GlobalMemory is to be told.
  void access(Run &run, Warp &w, const Inst &inst, const uint64_t *address,
              uint32_t bytes, uint64_t mask, bool store);
  /// A bulk copy, by the number that the block gave it.
  void beginStore(Run &run, Warp &w, const Inst &inst, uint32_t copy);
  void bulk(Run &run, Warp &w, const Inst &inst, unsigned lane,
            uint64_t address, uint32_t bytes, bool store, uint32_t copy);
  void endStore(Run &run, Warp &w, uint32_t copy);

  /// Counts one more of a fault, or a warning, that the journal has of this
  /// kind between these operations; false: it has none.
  bool isCounted(bool isWarning, FaultKind kind, const Inst &inst,
                 const Inst *other);
  /// A fault, or a warning, in the words of `Run::fault`. False: the journal
  /// has one of this kind between these operations, which is counted.
  bool fault(bool isWarning, FaultKind kind, const Warp &w, const Inst &inst,
             int lane, const std::string &text, const std::string &note,
             const Inst *other, const Program *of);

  /// During `commit`: whether all that was written there is one value, which
  /// memory held before if `before` is set.
  bool isOneValue(uint64_t address, uint64_t bytes, bool before);

  /// Makes all of it true and forgets it, unless the launch ends meanwhile.
  void commit(Run &run);

private:
  /// Some consecutive bytes of memory, at a multiple of their number.
  struct Piece {
    static constexpr uint32_t bytes = 256;
    uint64_t begin;
    uint8_t data[bytes];
    /// Of each byte: `hasData`, `isWritten`; `rewritten` where it was written
    /// more than once and with different values; `changed` if that is not
    /// what memory held before.
    uint8_t state[bytes];
  };
  enum : uint8_t { hasData = 1, written = 2, rewritten = 4, changed = 8 };
  enum class What : uint8_t { Access, BeginStore, Bulk, EndStore, Report };
  struct Entry {
    What what;
    bool store;
    uint8_t warp, lane;
    uint32_t bytes, copy;
    const Inst *inst;
    /// Places in the lists below.
    uint32_t view, first;
    uint64_t mask;
  };
  /// A warp's knowledge: `View`, kept.
  struct Kept {
    uint32_t clock;
    KnownPtr others;
    size_t seen;
    LaneOrder lanes;
  };
  struct Report {
    bool isWarning;
    FaultKind kind;
    int lane;
    std::string text, note;
    const Inst *other;
    const Program *of;
    uint64_t count;
  };

  Piece *find(uint64_t begin);
  Piece &pieceAt(uint64_t begin);
  Entry &add(Run &run, What what, Warp &w, const Inst &inst);
  void commitMemory(Run &run);
  void forgetMemory();
  void replay(Run &run);

  std::vector<Piece> pieces;
  /// Where the pieces are, by a hash of their begin: number + 1, 0 for none.
  std::vector<uint32_t> table;
  uint64_t lastBegin = ~0ull;
  uint32_t lastPiece = 0;

  std::vector<Entry> entries;
  std::vector<uint64_t> addresses;
  std::vector<Kept> views;
  std::vector<uint32_t> seen;
  /// The last view of each warp, + 1.
  uint32_t lastView[maxWarps] = {};
  std::vector<Report> reports;
  std::map<std::tuple<bool, FaultKind, uint32_t, uint32_t>, size_t> known;
};

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_JOURNAL_H
