//===- MatrixAsync.cpp - Products in flight -------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions". Issuing a
// product leaves tokens in its result's registers and notes which bytes it
// reads; the wait computes it, in the order of issue, and hands the result out.
// Each warp computes its quarter, 16 of the 64 rows.
//
//===----------------------------------------------------------------------===//

#include "Async.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>

using namespace kvbuf::emu;

/// Finished products whose result may still be asked for.
static constexpr size_t maxRetired = 16;

// A kernel can compute any word: what looks like a token may name a register
// that its product does not have.
MatrixRecord *AsyncState::record(WarpAsync &a, uint32_t word) {
  if (!isToken(word))
    return nullptr;
  for (MatrixRecord &r : a.records)
    if (r.serial == tokenSerial(word))
      return tokenRegister(word) < r.job.n / 2 ? &r : nullptr;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Operands in shared memory
//===----------------------------------------------------------------------===//

// Checks what this warp reads: all of B, and its rows of A. The first warp of
// the group notes the reads of B for all.
void AsyncState::checkOperands(Run &run, Warp &w, const Inst &inst,
                               MatrixRecord &record, GroupStep &step) {
  const MatrixJob &job = record.job;
  uint32_t actor = matrixAgent[w.id / warpsPerGroup];
  lastRead[actor] = std::max(lastRead[actor], record.clock);
  uint32_t limit = run.hot.sharedBytes < 16 ? 0 : run.hot.sharedBytes - 16;
  uint32_t begin = run.hot.sharedBegin;
  bool good = true;
  auto read = [&](uint32_t address, bool stamp) {
    if (!good || run.hot.stop)
      return;
    if (address - run.hot.sharedBegin > limit || run.hot.sharedBytes < 16) {
      good = false;
      run.fault(FaultKind::Bounds, w, inst, -1,
                "out of bounds: the descriptor leads to " +
                    run.sharedPlace(address) + "; the block has " +
                    std::to_string(run.hot.sharedBytes));
      return;
    }
    if (run.trace)
      run.trace->touch(w.id, inst, address, 16, /*store=*/false);
    if (!run.hot.checkShadow)
      return;
    uint32_t first = address / 4;
    if (!quiet(run, w, first, 4, /*fresh=*/false)) {
      for (unsigned k = 0; k < 4; ++k)
        readWord(run, w, inst, first + k, actor, record.clock, stamp);
      return;
    }
    if (!stamp)
      return;
    uint64_t *reads =
        run.hot.words.reads + run.row(actor) * run.hot.words.cells + first;
    uint32_t *latest = run.wordReadMax.data() + first;
    uint64_t value = static_cast<uint64_t>(record.clock) << 32 | job.inst;
    for (unsigned k = 0; k < 4; ++k) {
      reads[k] = value;
      latest[k] = std::max(latest[k], record.clock);
    }
  };
  for (uint32_t s = 0; s < job.steps; ++s) {
    MatrixDescriptor b = decodeDescriptor(job.descriptorB[s], begin);
    if (job.flags & wgmmaTransposeB) {
      for (uint32_t e = 0; e < job.n / 8; ++e)
        for (uint32_t k = 0; k < 16; ++k)
          read(mnMajorAddress(b, e, k), !step.stamped);
    } else {
      for (uint32_t n = 0; n < job.n; ++n)
        for (uint32_t e = 0; e < 2; ++e)
          read(kMajorAddress(b, n, e), !step.stamped);
    }
    if (job.flags & wgmmaRegisterA)
      continue;
    MatrixDescriptor a = decodeDescriptor(job.descriptorA[s], begin);
    uint32_t quarter = w.id % warpsPerGroup;
    if (job.flags & wgmmaTransposeA) {
      for (uint32_t e = 0; e < 2; ++e)
        for (uint32_t k = 0; k < 16; ++k)
          read(mnMajorAddress(a, 2 * quarter + e, k), true);
    } else {
      for (uint32_t m = 0; m < 16; ++m)
        for (uint32_t e = 0; e < 2; ++e)
          read(kMajorAddress(a, 16 * quarter + m, e), true);
    }
  }
  step.stamped = true;
  // The computation must not leave the memory.
  if (!good)
    run.hot.stop = true;
}

//===----------------------------------------------------------------------===//
// Issue
//===----------------------------------------------------------------------===//

MatrixJob *Run::matrixIssue(Warp &w, const Inst &inst, bool &now) {
  WarpAsync &a = *w.async;
  unsigned group = w.id / warpsPerGroup;
  auto bad = [&](FaultKind kind, const std::string &why,
                 const std::string &note = "",
                 const Inst *other = nullptr) -> MatrixJob * {
    fault(kind, w, inst, -1, why, note, other);
    hot.stop = true;
    return nullptr;
  };
  if ((group + 1) * warpsPerGroup > warps.size())
    return bad(FaultKind::Divergence,
               "warpgroup " + std::to_string(group) + " has fewer than " +
                   std::to_string(warpsPerGroup) + " warps");
  if (!(inst.flags & wgmmaGroup) && a.needFence) {
    faultText(FaultKind::Accumulator, w, inst, -1,
              "no 'nvvm.wgmma.fence.aligned' between earlier accesses of its "
              "registers and it");
    a.needFence = false;
  }
  // Make room: results that are long finished cannot be asked for any more.
  if (tooMany(w, inst, a.records.size(), "products of a warp"))
    return nullptr;
  size_t retired = 0;
  for (const MatrixRecord &r : a.records)
    retired += r.retired;
  while (retired > maxRetired && a.records.front().retired) {
    const MatrixRecord &old = a.records.front();
    if (!old.taken && (old.job.flags & wgmmaGroup))
      fault(FaultKind::Accumulator, w, program.insts[old.job.inst], -1,
            "no wait took its result: its registers may be overwritten while "
            "it runs");
    a.records.pop_front();
    --retired;
  }

  GroupStep *step =
      async->step(*this, w, inst, async->matrix[group], a.matrixSteps);
  if (!step)
    return nullptr;
  if (!async->matrixAgent[group])
    async->matrixAgent[group] = async->newAgent(
        *this, "the matrix unit, for warpgroup " + std::to_string(group),
        /*generic=*/false);
  if (!step->clock)
    step->clock = ++clockCounter;

  MatrixRecord &r = a.records.emplace_back();
  MatrixJob &job = r.job;
  job.inst = &inst - program.insts.data();
  job.warp = w.id;
  job.n = wgmmaColumns(inst.imm);
  job.steps = wgmmaSteps(inst.imm);
  job.types = wgmmaTypes(inst.imm);
  job.flags = inst.flags;
  job.computed = false;
  r.serial = a.nextSerial;
  r.place = a.matrixSteps - 1;
  a.nextSerial = a.nextSerial == 0x7FFF ? 1 : a.nextSerial + 1;
  r.clock = step->clock;
  if (trace)
    r.issued = trace->time(w, inst);
  r.committed = false;
  r.group = 0;
  uint32_t results = job.n / 2, wordsA = 4 * job.steps;
  const uint32_t *slots = hot.lists + inst.list, *dst = slots;
  slots += results;
  const uint32_t *c = slots;
  slots += job.flags & wgmmaAccumulate ? results : 0;
  // A predicate says whether they are added.
  if (inst.c != noSlot && !w.regs[static_cast<size_t>(inst.c) * lanes])
    job.flags &= static_cast<uint8_t>(~wgmmaAccumulate);
  const uint32_t *regA = slots;
  slots += job.flags & wgmmaRegisterA ? wordsA : 0;
  auto reg = [&](uint32_t slot) {
    return w.regs + static_cast<size_t>(slot) * lanes;
  };

  // Descriptors: the same in all lanes and all warps.
  const uint64_t *baseA = job.flags & wgmmaRegisterA
                              ? nullptr
                              : reinterpret_cast<uint64_t *>(reg(inst.a));
  const uint64_t *baseB = reinterpret_cast<uint64_t *>(reg(inst.b));
  for (unsigned l = 1; l < lanes; ++l)
    if (baseB[l] != baseB[0] || (baseA && baseA[l] != baseA[0]))
      return bad(FaultKind::Descriptor,
                 "the lanes of the warp have different descriptors");
  r.descriptors.assign(2 * job.steps, 0);
  for (uint32_t s = 0; s < job.steps; ++s) {
    if (baseA)
      r.descriptors[s] = baseA[0] + slots[s];
    r.descriptors[job.steps + s] = baseB[0] + slots[job.steps + s];
  }
  for (uint64_t d : r.descriptors)
    if (d & descriptorReserved)
      return bad(FaultKind::Descriptor,
                 "reserved bits are set in the descriptor " +
                     std::to_string(d));
  if (step->descriptors.empty())
    step->descriptors = r.descriptors;
  else if (step->descriptors != r.descriptors)
    return bad(FaultKind::Descriptor,
               "the warps of a warpgroup have different descriptors");
  job.descriptorA = r.descriptors.data();
  job.descriptorB = job.descriptorA + job.steps;

  // Registers: what is added to, operand a, and the place of the result.
  r.registers.assign(static_cast<size_t>(results + wordsA) * lanes, 0);
  job.accumulators = r.registers.data();
  job.a = job.accumulators + static_cast<size_t>(results) * lanes;
  bool waits = false;
  if (job.flags & wgmmaAccumulate)
    for (uint32_t i = 0; i < results; ++i)
      for (unsigned l = 0; l < lanes; ++l) {
        uint32_t word = reg(c[i])[l];
        job.accumulators[i * lanes + l] = word;
        if (!isToken(word))
          continue;
        MatrixRecord *from = async->record(a, word);
        if (!from)
          continue;
        const Inst &other = program.insts[from->job.inst];
        if (from->retired && (from->job.flags & wgmmaGroup))
          return bad(FaultKind::Accumulator,
                     "accumulates onto a result that no wait handed out",
                     "the product", &other);
        if (!from->retired &&
            (tokenRegister(word) != i || from->job.n != job.n))
          return bad(FaultKind::Accumulator,
                     "accumulates onto other registers of a product in flight",
                     "the product", &other);
        from->taken = true;
        waits = true;
      }
  if (job.flags & wgmmaRegisterA)
    for (uint32_t i = 0; i < wordsA; ++i)
      for (unsigned l = 0; l < lanes; ++l) {
        uint32_t word = reg(regA[i])[l];
        const_cast<uint32_t *>(job.a)[i * lanes + l] = word;
        MatrixRecord *from = async->record(a, word);
        if (from && !from->retired)
          return bad(FaultKind::Accumulator,
                     "operand a is the result of a product in flight",
                     "the product", &program.insts[from->job.inst]);
      }
  for (uint32_t i = 0; i < results; ++i)
    for (unsigned l = 0; l < lanes; ++l)
      reg(dst[i])[l] = makeToken(r.serial, i);

  async->checkOperands(*this, w, inst, r, *step);
  if (hot.stop)
    return nullptr;
  if (job.flags & wgmmaGroup)
    matrixCommit(w);
  now = !waits && (options.landing == Landing::Eager ||
                   (options.landing == Landing::Random && next() % 4 == 0));
  return &job;
}

void Run::matrixFence(Warp &w) { w.async->needFence = false; }

void Run::matrixCommit(Warp &w) {
  WarpAsync &a = *w.async;
  for (MatrixRecord &r : a.records)
    if (!r.committed) {
      r.committed = true;
      r.group = a.groupsCommitted;
    }
  ++a.groupsCommitted;
}

//===----------------------------------------------------------------------===//
// Wait
//===----------------------------------------------------------------------===//

static bool isDue(const WarpAsync &a, const MatrixRecord &r, uint32_t pending) {
  return r.committed && r.group + pending < a.groupsCommitted;
}

// A product needs all four warps. So a warp that has waited for one knows that
// the others have issued it as well, and one of them may release its operands.
bool Run::matrixReady(Warp &w, const Inst &inst, uint32_t pending) {
  unsigned group = w.id / warpsPerGroup;
  uint64_t all = ((1ull << warpsPerGroup) - 1) << group * warpsPerGroup;
  for (const MatrixRecord &r : w.async->records)
    if (!r.retired && isDue(*w.async, r, pending) &&
        (AsyncState::arrived(async->matrix[group], r.place) & all) != all) {
      block(w, inst, WaitFor::Product);
      return false;
    }
  return true;
}

// A product that is over is over for all warps of the group, whether they have
// come to wait for it or not.
MatrixJob *Run::matrixDue(Warp &w, uint32_t pending) {
  uint64_t end = 0;
  for (const MatrixRecord &r : w.async->records)
    if (!r.retired && isDue(*w.async, r, pending))
      end = std::max(end, r.place + 1);
  unsigned first = w.id / warpsPerGroup * warpsPerGroup;
  for (unsigned v = first; v < first + warpsPerGroup && v < warps.size(); ++v) {
    WarpAsync &a = async->warps[v];
    for (MatrixRecord &r : a.records) {
      MatrixJob &job = r.job;
      if (job.computed || r.place >= end)
        continue;
      // Those before it have been computed.
      for (uint32_t i = 0; i < job.n / 2 * lanes; ++i) {
        uint32_t word = job.accumulators[i];
        MatrixRecord *from = async->record(a, word);
        if (from)
          job.accumulators[i] =
              from->job.accumulators[tokenRegister(word) * lanes + i % lanes];
      }
      return &job;
    }
  }
  return nullptr;
}

void Run::matrixRetire(Warp &w, const Inst &inst) {
  WarpAsync &a = *w.async;
  uint32_t actor = async->matrixAgent[w.id / warpsPerGroup];
  for (MatrixRecord &r : a.records) {
    if (r.retired || !isDue(a, r, inst.imm))
      continue;
    r.retired = true;
    if (trace)
      trace->multiplied(w, program.insts[r.job.inst], r.issued, inst);
    w.seen[actor] = std::max(w.seen[actor], r.clock);
    if (r.job.flags & wgmmaGroup)
      continue;
    // The registers have their values from here on.
    const uint32_t *dst = hot.lists + program.insts[r.job.inst].list;
    for (uint32_t i = 0; i < r.job.n / 2; ++i) {
      uint32_t *d = w.regs + static_cast<size_t>(dst[i]) * lanes;
      for (unsigned l = 0; l < lanes; ++l)
        if (d[l] == makeToken(r.serial, i))
          d[l] = r.job.accumulators[i * lanes + l];
    }
  }
  a.needFence = true;
  updateKnown(w);
  uint32_t count = inst.listSize / 2;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t *s =
        w.regs + static_cast<size_t>(hot.lists[inst.list + i]) * lanes;
    uint32_t *d =
        w.regs + static_cast<size_t>(hot.lists[inst.list + count + i]) * lanes;
    MatrixRecord *r = nullptr;
    for (unsigned l = 0; l < lanes; ++l) {
      uint32_t word = s[l];
      // All lanes hold the same one, but where control flow has mixed them.
      if (l == 0 || word != s[l - 1])
        r = async->record(a, word);
      if (r && !r->retired)
        fault(FaultKind::Accumulator, w, inst, -1,
              "hands out a result that may still be in flight: it waits for "
              "all but " +
                  std::to_string(inst.imm) + " groups",
              "the product", &program.insts[r->job.inst]);
      if (r) {
        r->taken = true;
        word = r->job.computed
                   ? r->job.accumulators[tokenRegister(word) * lanes + l]
                   : word;
      }
      d[l] = word;
    }
  }
}

// Before an instruction reads registers that a product may write.
void Run::matrixCheck(Warp &w, const Inst &inst) {
  WarpAsync &a = *w.async;
  if (a.records.empty())
    return;
  for (uint32_t i = 0; i < inst.listSize; ++i) {
    uint32_t *s =
        w.regs + static_cast<size_t>(hot.lists[inst.list + i]) * lanes;
    for (uint64_t rest = w.mask; rest; rest &= rest - 1) {
      unsigned l = __builtin_ctzll(rest);
      MatrixRecord *r = async->record(a, s[l]);
      if (!r)
        continue;
      const Inst &other = program.insts[r->job.inst];
      if (!r->retired)
        fault(FaultKind::Accumulator, w, inst, l,
              "reads the result of a product that may still be in flight",
              "the product", &other);
      else if (r->job.flags & wgmmaGroup)
        fault(FaultKind::Accumulator, w, inst, l,
              "reads the result of a product past the wait, not what the wait "
              "handed out",
              "the product", &other);
      else
        s[l] = r->job.accumulators[tokenRegister(s[l]) * lanes + l];
      r->taken = true;
    }
  }
}
