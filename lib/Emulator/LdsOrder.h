//===- LdsOrder.h - What waves tell each other by words of LDS --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Atomic operations on shared memory order the warps of a block as those on
/// global memory order blocks (GlobalMemory.h): an operation that writes a word
/// passes on what it releases, or what the warp's last fence that releases has;
/// who reads the word learns it when it acquires, at once or by its next fence.
/// What is read, changed and written in one goes on with what earlier ones have
/// passed on.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_LDSORDER_H
#define KVBUFFER_LIB_EMULATOR_LDSORDER_H

#include "Async.h"
#include <unordered_map>

namespace kvbuf::emu {

struct LdsOrder {
  /// What is known to whoever reads a word and acquires.
  std::unordered_map<uint32_t, Knowledge> words;
  struct Own {
    /// What the warp's last fence that releases has passed on, and what its
    /// next one that acquires learns.
    std::unique_ptr<Knowledge> released, read;
    /// The same of the last one that releases to the cluster.
    std::unique_ptr<Knowledge> releasedToCluster;
    /// Reads in vain since a word has changed, and the last of them.
    uint32_t polls = 0, pollInst = 0;
    uint64_t pollEpoch = 0;
  };
  Own own[maxWarps];
  /// Counts changes of words.
  uint64_t epoch = 1;
};

} // namespace kvbuf::emu

#endif // KVBUFFER_LIB_EMULATOR_LDSORDER_H
