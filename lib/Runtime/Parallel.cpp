//===- lib/Runtime/Parallel.cpp - Loops over threads ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Parallel.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

using namespace kvbuf::rt;

unsigned kvbuf::rt::threadCount() {
  if (const char *text = std::getenv("KVBUF_THREADS"))
    if (long n = std::strtol(text, nullptr, 10); n > 0)
      return static_cast<unsigned>(std::min(n, 1024l));
  return std::max(1u, std::thread::hardware_concurrency());
}

void kvbuf::rt::parallelFor(
    int64_t count, int64_t grain,
    const std::function<void(int64_t, int64_t)> &body,
    const std::function<void(uint64_t, uint64_t)> &progress) {
  std::atomic<int64_t> next{0}, done{0};
  std::atomic<bool> stop{false};
  std::exception_ptr failure;
  std::mutex mutex;
  auto work = [&](bool reports) {
    while (!stop) {
      int64_t begin = next.fetch_add(grain);
      if (begin >= count)
        return;
      int64_t end = std::min(begin + grain, count);
      try {
        body(begin, end);
      } catch (...) {
        std::lock_guard<std::mutex> lock(mutex);
        if (!failure)
          failure = std::current_exception();
        stop = true;
      }
      done += end - begin;
      if (reports && progress)
        progress(static_cast<uint64_t>(done), static_cast<uint64_t>(count));
    }
  };
  int64_t ranges = (count + grain - 1) / grain;
  int64_t wanted = std::min<int64_t>(threadCount(), ranges);
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < wanted; ++i)
    threads.emplace_back(work, false);
  work(true);
  for (std::thread &thread : threads)
    thread.join();
  if (failure)
    std::rethrow_exception(failure);
}
