//===- ExecControl.h - Diverging and meeting again --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Members of Exec. Lanes that diverge run one side after the other up to the
// branch's immediate post-dominator, where they wait for the rest.
//
//===----------------------------------------------------------------------===//

// Continues with a block; lanes that reach their meeting point there give way
// to those who still have to come.
void enter(uint32_t block) {
  while (block == w.join) {
    if (!resume())
      return; // cannot happen: a join has its frame
    block = w.block;
  }
  start(block);
}

void start(uint32_t block) {
  if (w.yieldLanes) {
    r.exchangeLanes(w, block);
    newMask();
    return enter(w.block);
  }
  if (h.tracing)
    r.traceEnter(w, block);
  w.block = block;
  w.pc = h.blocks[block].begin;
  ++h.blockRuns[block];
  h.blockLanes[block] += __builtin_popcountll(w.mask);
}

// Takes the youngest waiting frame that still has lanes.
bool resume() {
  while (w.depth) {
    Frame f = w.frames[--w.depth];
    f.mask &= w.live;
    if (!f.mask)
      continue;
    w.mask = f.mask;
    w.join = f.join;
    w.block = f.block;
    newMask();
    return true;
  }
  return false;
}

void branch(const Inst &i) {
  const uint32_t *c = reg<uint32_t>(i.a);
  uint64_t taken = 0;
  for (unsigned l = 0; l < W; ++l)
    taken |= static_cast<uint64_t>(c[l] & 1) << l;
  taken &= w.mask;
  uint32_t yes = h.lists[i.list], no = h.lists[i.list + 1];
  if (taken == w.mask)
    return enter(yes);
  if (taken == 0)
    return enter(no);
  uint32_t join = h.blocks[w.block].join;
  // With the same meeting point as before its frame is there already.
  if (join != w.join && join != noBlock)
    r.push(w, {join, w.join, w.mask});
  uint64_t rest = w.mask & ~taken;
  if (i.flags) { // orderSides
    std::swap(yes, no);
    std::swap(taken, rest);
  }
  if (no != join)
    r.push(w, {no, join, rest});
  if (yes != join) {
    w.mask = taken;
    w.join = join;
    newMask();
    return start(yes);
  }
  resume();
  enter(w.block);
}

// The active lanes end. False: the warp is done.
bool leave() {
  w.live &= ~w.mask;
  if (!resume())
    return false;
  enter(w.block);
  return true;
}
