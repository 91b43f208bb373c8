//===- lib/Runtime/Execution.cpp - A workload on a device -------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Execution.h"
#include "kvbuffer/Runtime/Check.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace kvbuf::rt;

Execution::Execution(Device &device, Module &module, Problem &workload)
    : device(device), module(&module), workload(workload) {
  try {
    for (HostTensor &t : workload.tensors()) {
      uint64_t address = reinterpret_cast<uint64_t>(t.memory->data());
      if (!device.isHost()) {
        uint64_t region = device.allocate(t.memory->regionSize());
        regions.push_back(region);
        device.upload(region, t.memory->region(), t.memory->regionSize());
        address = region + t.memory->payloadStart();
      }
      args.push_back({t.name, address, t.dtype, t.shape, t.strides});
    }
    if (device.isHost())
      digests = digestInputs(workload);
    use(module, workload.manifest());
  } catch (...) {
    for (uint64_t region : regions)
      device.free(region);
    throw;
  }
}

Execution::~Execution() {
  for (uint64_t region : regions)
    device.free(region);
}

void Execution::use(Module &next, const Manifest &manifest) {
  Sizes sizes = workload.sizes();
  launch = bindLaunch(manifest, args, sizes, device.multiprocessors());
  module = &next;
}

void Execution::poisonOutputs() {
  workload.poisonOutputs();
  if (device.isHost())
    return;
  for (size_t i = 0; i < regions.size(); ++i)
    if (GuardedMemory &memory = *workload.tensors()[i].memory;
        workload.tensors()[i].output)
      device.upload(regions[i], memory.region(), memory.regionSize());
}

void Execution::run() {
  module->launch(launch);
  device.synchronize();
}

std::vector<double> Execution::time(unsigned runs) {
  return device.time(*module, launch, runs);
}

std::vector<std::string> Execution::fetch() {
  std::vector<std::string> changed;
  std::vector<HostTensor> &tensors = workload.tensors();
  if (device.isHost()) {
    std::vector<uint64_t> now = digestInputs(workload);
    for (size_t i = 0; i < tensors.size(); ++i)
      if (now[i] != digests[i])
        changed.push_back(tensors[i].name);
    return changed;
  }
  constexpr uint64_t kChunk = uint64_t(64) << 20;
  std::string chunk;
  for (size_t i = 0; i < tensors.size(); ++i) {
    GuardedMemory &memory = *tensors[i].memory;
    if (tensors[i].output) {
      device.download(memory.region(), regions[i], memory.regionSize());
      continue;
    }
    for (uint64_t at = 0; at < memory.regionSize(); at += kChunk) {
      uint64_t bytes = std::min(kChunk, memory.regionSize() - at);
      chunk.resize(bytes);
      device.download(chunk.data(), regions[i] + at, bytes);
      if (std::memcmp(chunk.data(), memory.region() + at, bytes) != 0) {
        changed.push_back(tensors[i].name);
        break;
      }
    }
  }
  return changed;
}

BenchResult kvbuf::rt::bench(Execution &execution, unsigned runs,
                             double warmup) {
  // The clock of a GPU rises over the first tenths of a second.
  double one = execution.time(1)[0];
  double spent = one;
  for (unsigned i = 0; spent < warmup && i < 10000;) {
    unsigned batch = static_cast<unsigned>(
        std::clamp(0.1 / std::max(one, 1e-7), 1.0, 1000.0));
    for (double seconds : execution.time(batch)) {
      spent += seconds;
      one = std::min(one, seconds);
    }
    i += batch;
  }
  if (runs == 0)
    runs = static_cast<unsigned>(
        std::clamp(1.0 / std::max(one, 1e-7), 5.0, 1000.0));
  std::vector<double> times = execution.time(runs);
  std::sort(times.begin(), times.end());
  auto quantile = [&](double q) {
    double at = q * static_cast<double>(times.size() - 1);
    size_t below = static_cast<size_t>(at);
    size_t above = std::min(below + 1, times.size() - 1);
    double part = at - std::floor(at);
    return times[below] * (1 - part) + times[above] * part;
  };
  return {runs,         quantile(0.5),  times.front(),
          times.back(), quantile(0.25), quantile(0.75)};
}
