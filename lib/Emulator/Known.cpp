//===- Known.cpp - What a warp knows of others ----------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GlobalMemory.h"

#include <algorithm>

using namespace kvbuf::emu;

const Known::Clocks *Known::clocksOf(uint32_t block) const {
  auto it = std::lower_bound(
      entries.begin(), entries.end(), block,
      [](const Entry &e, uint32_t number) { return e.block < number; });
  return it != entries.end() && it->block == block ? it->clocks.get() : nullptr;
}

uint32_t Known::clock(uint32_t block, uint32_t warp) const {
  const Clocks *clocks = clocksOf(block);
  return clocks ? (*clocks)[warp] : 0;
}

bool Known::holds(const Known &other) const {
  auto i = entries.begin(), iEnd = entries.end();
  for (const Entry &e : other.entries) {
    while (i != iEnd && i->block < e.block)
      ++i;
    if (i == iEnd || i->block != e.block)
      return false;
    if (i->clocks == e.clocks)
      continue;
    for (size_t v = 0; v < e.clocks->size(); ++v)
      if ((*i->clocks)[v] < (*e.clocks)[v])
        return false;
  }
  return true;
}

KnownPtr Known::join(const KnownPtr &a, const KnownPtr &b) {
  if (!b || a == b)
    return a;
  if (!a)
    return b;
  // One of them has all, more often than not.
  if (a->entries.size() <= b->entries.size() && b->holds(*a))
    return b;
  if (b->entries.size() <= a->entries.size() && a->holds(*b))
    return a;
  auto both = std::make_shared<Known>();
  both->entries.reserve(std::max(a->entries.size(), b->entries.size()));
  auto i = a->entries.begin(), iEnd = a->entries.end();
  auto k = b->entries.begin(), kEnd = b->entries.end();
  bool newer = false;
  while (i != iEnd || k != kEnd) {
    if (k == kEnd || (i != iEnd && i->block < k->block)) {
      both->entries.push_back(*i++);
      continue;
    }
    if (i == iEnd || k->block < i->block) {
      both->entries.push_back(*k++);
      newer = true;
      continue;
    }
    if (i->clocks != k->clocks) {
      Clocks clocks = *i->clocks;
      for (size_t v = 0; v < clocks.size(); ++v)
        clocks[v] = std::max(clocks[v], (*k->clocks)[v]);
      if (clocks != *i->clocks) {
        newer = true;
        both->entries.push_back(
            {i->block, std::make_shared<const Clocks>(std::move(clocks))});
        ++i, ++k;
        continue;
      }
    }
    both->entries.push_back(*i);
    ++i, ++k;
  }
  return newer ? both : a;
}

bool Known::isPartOf(const Known &other, uint32_t block, uint32_t warp) const {
  return clock(block, warp) <= other.clock(block, warp);
}

KnownPtr Known::with(const KnownPtr &known, uint32_t block, Clocks clocks) {
  auto result =
      known ? std::make_shared<Known>(*known) : std::make_shared<Known>();
  auto &entries = result->entries;
  auto it = std::lower_bound(
      entries.begin(), entries.end(), block,
      [](const Entry &e, uint32_t number) { return e.block < number; });
  if (it == entries.end() || it->block != block)
    it = entries.insert(it, {block, nullptr});
  it->clocks = std::make_shared<const Clocks>(std::move(clocks));
  return result;
}
