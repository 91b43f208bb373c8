//===- Tuner.h - Compiles, checks and times schedules -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TUNE_TUNER_H
#define KVBUF_TUNE_TUNER_H

#include "Options.h"
#include "ProgressBar.h"
#include "kvbuffer/Runtime/Device.h"
#include "kvbuffer/Runtime/Execution.h"

#include <memory>
#include <string>
#include <vector>

namespace kvbuf::tune {

/// One schedule and what became of it.
struct Candidate {
  /// For the compiler; empty: its own choice.
  std::string schedule;
  /// With every parameter, as the compiler writes it; empty if it did not tell.
  std::string full;
  /// Why it is not measured, why its result is no good; empty if it can and is.
  std::string refused, wrong;
  /// What the compiler warned of.
  std::vector<std::string> warnings;
  Artifact artifact;
  rt::Manifest manifest;
  std::unique_ptr<rt::Module> module;
  /// Seconds of each launch; on the emulator, modelled cycles, or instructions
  /// where the chip has no model.
  std::vector<double> samples;
  /// Of the emulator: instructions of warps, blocks of the kernel with the
  /// most, cycles of the unit of a multiprocessor that the model takes for the
  /// bound, and its name; "" without a model.
  double instructions = 0, blocks = 0, cycles = 0;
  std::string bound;
  /// Were its samples taken in the longer turns of the fastest?
  bool final = false;
  /// Of the samples.
  double median = 0, lowerQuartile = 0, upperQuartile = 0;
  /// The median of the turns that all schedules took.
  double shortMedian = 0;

  /// Whether the assembler or the backend moved registers to memory; false
  /// where that is not known.
  bool spills() const;
  bool runs() const { return refused.empty() && wrong.empty(); }
  /// The schedule's text for people.
  std::string label() const {
    return schedule.empty() ? "(compiler's choice)" : schedule;
  }
};

/// Operations of both products over the visible pairs.
double operations(const rt::Problem &workload);

/// Measures all schedules of the options. Throws rt::Error when there is
/// nothing to measure.
class Tuner {
public:
  explicit Tuner(const Options &options);
  ~Tuner();

  void run();

  /// The bytes of the artifact to use: as measured, and with a kernel for
  /// tensors that no tensor map can describe beside it.
  std::string finalArtifact(const Candidate &candidate) const;

  const std::vector<Candidate> &candidates() const { return all; }
  const rt::Device &device() const { return *gpu; }
  const std::string &target() const { return chip; }
  /// Those that launches were told of; 0 where that was not said.
  unsigned multiprocessors() const { return units; }
  const rt::Problem &workload() const { return *data; }
  /// Was nothing timed?
  bool counts() const { return gpu->isHost(); }
  /// Are samples cycles of a model?
  bool models() const {
    for (const Candidate &candidate : all)
      if (!candidate.samples.empty())
        return !candidate.bound.empty();
    return false;
  }
  /// Whether a schedule can be recommended: what spills cost, only a GPU can
  /// weigh.
  bool offers(const Candidate &candidate) const {
    return candidate.runs() && !(counts() && candidate.spills());
  }

private:
  void open();
  void chooseCandidates();
  void compile();
  void dropRepetitions();
  void compileOne(Candidate &candidate) const;
  void tryOut();
  bool tryOne(Candidate &candidate);
  /// Makes sizes smaller where the emulator would take minutes, and says so.
  void fitTime();
  /// Halves the batch, or rows and keys; false if nothing can be halved.
  bool halveSizes(const Candidate &candidate);
  /// Gives the emulator as many multiprocessors as the chip has, of a smaller
  /// problem as many fewer.
  void fitDevice();
  /// The tensors, made for the first candidate that asks.
  rt::Problem &workloadFor(const Candidate &candidate);
  void prepare(Candidate &candidate);
  unsigned launchesOfTurn(double milliseconds);
  void takeTurns();
  void takeFinalTurns();
  void summarize();

  const Options &options;
  /// The options', made smaller where the emulator would take minutes.
  rt::WorkloadOptions workloadOptions;
  /// By how much fewer rows of queries these have, of all sequences.
  unsigned fewerRows = 1;
  unsigned units = 0;
  ProgressBar bar;
  uint64_t done = 0;
  std::string source, chip;
  rt::DeviceOptions deviceOptions;
  /// What the emulator said of a fault.
  std::string lastMessage;
  std::unique_ptr<rt::Device> gpu;
  std::vector<Candidate> all;
  std::unique_ptr<rt::Problem> data;
  std::unique_ptr<rt::Execution> execution;
};

} // namespace kvbuf::tune

#endif // KVBUF_TUNE_TUNER_H
