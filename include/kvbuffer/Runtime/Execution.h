//===- include/kvbuffer/Runtime/Execution.h - A workload on a device *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_EXECUTION_H
#define KVBUFFER_RUNTIME_EXECUTION_H

#include "kvbuffer/Runtime/Device.h"
#include "kvbuffer/Runtime/Problem.h"

#include <memory>
#include <string>
#include <vector>

namespace kvbuf::rt {

/// A problem's tensors in a device's memory, bound to a module. On a device
/// that works on host memory the problem's own memory is used.
class Execution {
public:
  /// Uploads everything, outputs with their poison. All three must outlive
  /// this object.
  Execution(Device &device, Module &module, Problem &workload);
  ~Execution();
  Execution(const Execution &) = delete;
  Execution &operator=(const Execution &) = delete;

  /// Launches `module` from now on, another kernel of the same problem, whose
  /// manifest has the same tensors. Both must outlive this object, or the next
  /// call. Throws Error as bindLaunch.
  void use(Module &module, const Manifest &manifest);
  /// Fills the outputs with NaN again.
  void poisonOutputs();
  /// Launches once and waits.
  void run();
  /// Seconds of each of `runs` launches.
  std::vector<double> time(unsigned runs);
  /// Brings the outputs, red zones included, back into the workload, and
  /// returns the names of inputs that are no longer as they were uploaded.
  std::vector<std::string> fetch();

  /// The launches that `run` and `time` make.
  const BoundLaunch &bound() const { return launch; }

private:
  Device &device;
  Module *module;
  Problem &workload;
  std::vector<TensorArg> args;
  BoundLaunch launch;
  std::vector<uint64_t> regions;
  std::vector<uint64_t> digests;
};

/// Timing of repeated launches, in seconds.
struct BenchResult {
  unsigned runs = 0;
  double median = 0, least = 0, most = 0;
  /// First and third quartile.
  double lowerQuartile = 0, upperQuartile = 0;
};

/// Warms up for at most `warmup` seconds, then measures `runs` launches, or as
/// many as fit about one second (at least 5, at most 1000) if `runs` is 0.
BenchResult bench(Execution &execution, unsigned runs, double warmup = 1.0);

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_EXECUTION_H
