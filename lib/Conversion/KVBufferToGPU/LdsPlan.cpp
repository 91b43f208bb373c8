//===- LdsPlan.cpp - What lies in a kernel's LDS ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LdsPlan.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

int64_t LdsPlan::take(int64_t count) {
  int64_t offset = end;
  end += llvm::alignTo(count, kBufferAlignment);
  return offset;
}

int64_t LdsPlan::reserveBarriers(int64_t count) {
  // What barriers are cut from serves all the rings of a kernel.
  int64_t bytes = count * kBarrierBytes;
  if (barrierNext + bytes > barrierEnd) {
    barrierNext = take(bytes);
    barrierEnd = end;
  }
  int64_t offset = barrierNext;
  barrierNext += bytes;
  return offset;
}

int64_t LdsPlan::addBarrier(int64_t arrivals) {
  int64_t offset = reserveBarriers(1);
  allBarriers.push_back({offset, arrivals});
  return offset;
}

int64_t LdsPlan::addBarriers(int64_t stages, int64_t releases, int64_t fills) {
  int64_t offset = reserveBarriers(2 * stages);
  for (int64_t i = 0; i < stages; ++i)
    allBarriers.push_back({offset + i * kBarrierBytes, fills});
  for (int64_t i = 0; i < stages; ++i)
    allBarriers.push_back({offset + (stages + i) * kBarrierBytes, releases});
  return offset;
}

int64_t LdsPlan::takeBesideBarriers(int64_t count) {
  int64_t bytes = llvm::alignTo(count, kBarrierBytes);
  if (barrierNext + bytes > barrierEnd)
    return take(bytes);
  int64_t offset = barrierNext;
  barrierNext += bytes;
  return offset;
}

std::optional<int64_t> LdsPlan::rowsOf(Value value) const {
  auto it = rows.find(value);
  if (it == rows.end())
    return std::nullopt;
  return it->second;
}
