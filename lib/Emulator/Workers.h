//===- Workers.h - Threads that execute stretches ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_WORKERS_H
#define KVBUF_LIB_EMULATOR_WORKERS_H

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kvbuf::emu {

/// Threads of the host that wait for work from round to round.
class Workers {
public:
  /// `jobs`: threads in all, the caller's included; 0: the host's cores, or as
  /// many as KVBUF_THREADS says.
  explicit Workers(unsigned jobs);
  ~Workers();

  /// Calls `body` once with each number below `count`, on any of the threads,
  /// and returns when all calls have. What was done before is visible to them,
  /// and what they do to the caller. Threads are not woken for what took too
  /// little time when it was done last.
  void run(size_t count, const std::function<void(size_t)> &body);

private:
  void work();
  void takePart(const std::function<void(size_t)> &f, size_t n);

  unsigned jobs;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable wake, done;
  /// Of the present round: its number, what is to be done, how many of it, the
  /// next one, and threads that may still be at it.
  uint64_t round = 0;
  const std::function<void(size_t)> *body = nullptr;
  size_t count = 0;
  std::atomic<size_t> nextOne{0};
  size_t busy = 0;
  bool ends = false;
  /// The last round was too short for more than one thread.
  bool isShort = false;
};

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_WORKERS_H
