//===- include/kvbuffer/Runtime/Parallel.h - Loops over threads -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_PARALLEL_H
#define KVBUFFER_RUNTIME_PARALLEL_H

#include <cstdint>
#include <functional>

namespace kvbuf::rt {

/// Threads that parallelFor uses: $KVBUF_THREADS, else the machine's.
unsigned threadCount();

/// Calls `body(begin, end)` for ranges that cover [0, count), on several
/// threads; ranges are at most `grain` long. The first exception is rethrown
/// after all threads stopped. `progress`, if any, is called on the calling
/// thread with (done, count).
void parallelFor(int64_t count, int64_t grain,
                 const std::function<void(int64_t, int64_t)> &body,
                 const std::function<void(uint64_t, uint64_t)> &progress = {});

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_PARALLEL_H
