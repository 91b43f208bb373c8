//===- Workers.cpp - Threads that execute stretches -----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Workers.h"

#include "llvm/Support/Threading.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

using namespace kvbuf::emu;

/// To wake a thread and to hear from it takes about as long.
static constexpr std::chrono::microseconds kWorthThreads(50);

static unsigned defaultJobs() {
  if (const char *text = std::getenv("KVBUF_THREADS"))
    if (int n = std::atoi(text); n > 0)
      return std::min(n, 1024);
  return std::max(1u, llvm::hardware_concurrency().compute_thread_count());
}

Workers::Workers(unsigned jobs) : jobs(jobs ? jobs : defaultJobs()) {}

Workers::~Workers() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ends = true;
  }
  wake.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

void Workers::takePart(const std::function<void(size_t)> &f, size_t n) {
  for (;;) {
    size_t index = nextOne.fetch_add(1, std::memory_order_relaxed);
    if (index >= n)
      return;
    f(index);
  }
}

void Workers::work() {
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    wake.wait(lock, [&] { return ends || round != seen; });
    if (ends)
      return;
    seen = round;
    if (!body)
      continue; // the round is over
    const std::function<void(size_t)> &f = *body;
    size_t n = count;
    ++busy;
    lock.unlock();
    takePart(f, n);
    lock.lock();
    if (!--busy)
      done.notify_one();
  }
}

void Workers::run(size_t n, const std::function<void(size_t)> &f) {
  auto start = std::chrono::steady_clock::now();
  if (jobs == 1 || n == 1 || isShort) {
    for (size_t k = 0; k < n; ++k)
      f(k);
  } else {
    {
      std::lock_guard<std::mutex> lock(mutex);
      body = &f;
      count = n;
      nextOne.store(0, std::memory_order_relaxed);
      ++round;
    }
    while (threads.size() + 1 < std::min<size_t>(jobs, n))
      threads.emplace_back([this] { work(); });
    wake.notify_all();
    takePart(f, n);
    // Who has not begun by now finds nothing to do.
    std::unique_lock<std::mutex> lock(mutex);
    body = nullptr;
    done.wait(lock, [&] { return !busy; });
  }
  isShort = std::chrono::steady_clock::now() - start < kWorthThreads;
}
