//===- Tuner.cpp - Compiles, checks and times schedules -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tuner.h"
#include "../support/Print.h"
#include "Candidates.h"
#include "kvbuffer/Runtime/Check.h"
#include "kvbuffer/Runtime/CompilerLibrary.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Functions.h"
#include "kvbuffer/Runtime/Parallel.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

using namespace kvbuf;
using namespace kvbuf::rt;
using namespace kvbuf::tune;

namespace {

/// The clock of a GPU rises over the first tenths of a second.
constexpr double kWarmUpSeconds = 1;
constexpr unsigned kMostLaunches = 1000;
/// Operations of both products that the emulator executes in a second of one
/// core, about: 268e6 took 0.2 to 0.6 (head size 64, 1024 rows on 1024 keys).
constexpr double kEmulatedOperations = 5e8;
/// What would take longer is done at smaller sizes.
constexpr double kLongSeconds = 30;
/// Rows and keys are not halved below this.
constexpr int64_t kFewRows = 128;

/// The first line, without the location in front: "error: ..." is known.
std::string brief(const std::string &message) {
  std::string line = message.substr(0, message.find('\n'));
  size_t at = line.find("error: ");
  return at == std::string::npos ? line : line.substr(at + 7);
}

/// "#kvbuffer.schedule<...>" in a remark on the choice of a schedule, else "".
std::string chosenSchedule(const std::string &remark) {
  constexpr const char *before = "schedule: chose ";
  size_t at = remark.find(before);
  size_t end = remark.find(" for ", at);
  if (at == std::string::npos || end == std::string::npos)
    return "";
  at += std::char_traits<char>::length(before);
  return remark.substr(at, end - at);
}

/// Counts by the names that the manifest's `issue_cycles` use, and the blocks
/// of the kernel with the most instructions.
struct Counts {
  std::map<std::string, double> byName;
  double blocks = 0;
};

/// What the emulator counted in the last launch: instructions of warps by
/// class, "all" of them, passes of accesses to shared memory, products of the
/// matrix unit.
Counts countsOf(const Module &module) {
  nlohmann::json report =
      nlohmann::json::parse(module.report(), nullptr, false);
  Counts found;
  std::map<std::string, double> &counts = found.byName;
  if (!report.is_object())
    return found;
  if (!report.contains("kernels")) {
    counts["all"] = report.value("lane_instructions", 0.0);
    return found;
  }
  double most = -1;
  for (const nlohmann::json &kernel : report["kernels"]) {
    double all = kernel.value("warp_instructions", 0.0);
    if (all > most) {
      most = all;
      found.blocks = kernel.value("blocks", 0.0);
    }
    counts["all"] += all;
    counts["matrix_product"] += kernel.value("matrix_products", 0.0);
    if (kernel.contains("instructions"))
      for (const auto &[name, count] : kernel["instructions"].items())
        counts[name] += count.value("warp", 0.0);
    if (kernel.contains("memory"))
      for (const nlohmann::json &access : kernel["memory"])
        counts["shared_pass"] += access.value("passes", 0.0);
  }
  return found;
}

/// The unit of a multiprocessor that takes most cycles for the counts, and
/// these cycles, by the rates in the manifest (`issue_cycles` of the target);
/// "" if it has none. Blocks are dealt to `units` multiprocessors; where there
/// are fewer, some have nothing to do.
std::pair<std::string, double>
boundOf(const Counts &counted, const std::string &manifest, unsigned units) {
  const std::map<std::string, double> &counts = counted.byName;
  double busy = std::max(1.0, std::min(double(units), counted.blocks));
  nlohmann::json root = nlohmann::json::parse(manifest, nullptr, false);
  std::pair<std::string, double> most;
  if (!root.is_object() || !root.contains("target") ||
      !root["target"].contains("issue_cycles"))
    return most;
  for (const auto &[unit, rates] : root["target"]["issue_cycles"].items()) {
    double cycles = 0;
    for (const auto &[what, each] : rates.items())
      if (auto it = counts.find(what); it != counts.end())
        cycles += it->second * each.get<double>() / busy;
    if (most.first.empty() || cycles > most.second)
      most = {unit, cycles};
  }
  return most;
}

double quantile(const std::vector<double> &sorted, double q) {
  double at = q * static_cast<double>(sorted.size() - 1);
  size_t below = static_cast<size_t>(at);
  size_t above = std::min(below + 1, sorted.size() - 1);
  double part = at - std::floor(at);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

} // namespace

double tune::operations(const Problem &w) { return w.operations(); }

bool Candidate::spills() const {
  nlohmann::json text =
      nlohmann::json::parse(artifact.manifest, nullptr, false);
  if (!text.is_object() || !text.contains("kernels"))
    return false;
  for (const nlohmann::json &kernel : text["kernels"])
    if (kernel.value("spill_bytes", int64_t(0)) > 0)
      return true;
  return false;
}

Tuner::Tuner(const Options &options)
    : options(options), workloadOptions(options.workload) {
  deviceOptions.emulator = options.emulator;
  deviceOptions.message = [this](Severity severity, const std::string &text) {
    if (severity == Severity::Error && lastMessage.empty())
      lastMessage = text;
  };
}

Tuner::~Tuner() {
  // What lives on the device goes before it.
  execution.reset();
  all.clear();
}

void Tuner::run() {
  std::string error;
  if (!readWholeFile(options.file, source, error))
    throw Error(error);
  if (looksLikeArtifact(source))
    throw Error("'" + options.file +
                "' is compiled already; give the .mlir file it was made from");
  open();
  if (counts() && !options.turnOption.empty())
    throw Error(options.turnOption +
                " is for what a GPU is timed by; the emulator has no time, and "
                "runs each schedule once");
  chooseCandidates();
  compile();
  fitTime();
  fitDevice();
  tryOut();
  if (!counts())
    takeTurns();
  bar.clear();
  summarize();
}

void Tuner::open() {
  // Without a target the module's chip counts, then the device's.
  if (options.target.empty())
    chip = moduleTarget(source, options.file, {});
  std::string note;
  gpu = run::openDevice(options, nullptr, nullptr, deviceOptions, note);
  if (chip.empty())
    chip = run::chipToCompileFor(options, *gpu);
}

void Tuner::chooseCandidates() {
  std::vector<std::string> schedules = options.schedules;
  if (schedules.empty()) {
    const CompilerLibrary &lib = compilerLibrary();
    char *text = lib.problemCandidates(source.data(), source.size(),
                                       options.file.c_str(), chip.c_str());
    if (!text)
      throw Error("the compiler does not know the chip '" + chip + "'");
    std::istringstream lines(text);
    lib.free(text);
    std::vector<std::string> lists;
    for (std::string line; std::getline(lines, line);)
      lists.push_back(line);
    schedules = parseCandidates(lists);
  }
  for (const std::string &schedule : schedules)
    all.emplace_back().schedule = schedule;
  bar.add(all.size() * (2 + options.rounds));
}

void Tuner::compileOne(Candidate &candidate) const {
  // The remark on the choice of a schedule tells it in full. Of the compiler's
  // own, times are those that users get, with the kernels that its launches
  // choose between; the model ranks schedules, of which a kernel has one.
  bool asUsersGetIt = candidate.schedule.empty() && !counts();
  nlohmann::json request = {
      {"target", chip}, {"remarks", true}, {"alternatives", asUsersGetIt}};
  if (!candidate.schedule.empty())
    request["schedule"] = candidate.schedule;
  if (!options.function.empty())
    request["function"] = options.function;
  std::string reason;
  try {
    std::string bytes = compileSource(
        source, options.file, run::toText(request),
        [&](Severity severity, const std::string &text) {
          if (severity == Severity::Error && reason.empty())
            reason = brief(text);
          if (severity == Severity::Warning)
            candidate.warnings.push_back(text);
          if (severity == Severity::Remark && candidate.full.empty())
            candidate.full = chosenSchedule(text);
        });
    if (!parseArtifact(bytes, candidate.artifact, reason))
      throw Error("the compiler's artifact is unreadable: " + reason);
    std::vector<ArtifactFunction> functions =
        parseFunctions(candidate.artifact);
    candidate.manifest = onlyFunction(functions, "--function=NAME").manifest;
  } catch (const Error &e) {
    candidate.refused = reason.empty() ? e.what() : reason;
  }
}

std::string Tuner::finalArtifact(const Candidate &candidate) const {
  nlohmann::json request = {{"target", chip}};
  if (!candidate.schedule.empty())
    request["schedule"] = candidate.schedule;
  if (!options.function.empty())
    request["function"] = options.function;
  return compileSource(source, options.file, run::toText(request), {});
}

/// Parameters may say what the compiler would have chosen anyway.
void Tuner::dropRepetitions() {
  for (auto it = all.begin(); it != all.end(); ++it)
    for (auto other = all.begin(); other != it && it->refused.empty(); ++other)
      if (other->refused.empty() && !it->full.empty() &&
          other->full == it->full)
        it->refused = "the same schedule as " + other->label();
}

void Tuner::compile() {
  compilerLibrary(); // a missing library is no schedule's fault
  parallelFor(
      static_cast<int64_t>(all.size()), 1,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          compileOne(all[static_cast<size_t>(i)]);
      },
      [&](uint64_t compiled, uint64_t) { bar.show(compiled, "compiling"); });
  done = all.size();
  dropRepetitions();
  for (const Candidate &candidate : all)
    if (!candidate.refused.empty())
      bar.drop(1 + options.rounds);
  if (std::none_of(all.begin(), all.end(),
                   [](const Candidate &c) { return c.runs(); }))
    throw Error(
        "'" + options.file + "' does not compile for " + chip +
        " with any schedule; with the compiler's own: " + all.front().refused);
}

Problem &Tuner::workloadFor(const Candidate &candidate) {
  if (!data) {
    workloadOptions.large = !gpu->isHost();
    data = makeProblem(candidate.manifest, workloadOptions);
  }
  return *data;
}

bool Tuner::halveSizes(const Candidate &candidate) {
  WorkloadOptions &now = workloadOptions;
  // Lengths and tensors that are given say their sizes themselves.
  if (now.lengthsQ || now.lengthsK || now.cacheLengths || !now.inputs.empty())
    return false;
  using Names = std::vector<const char *>;
  for (const Names &names :
       {Names{"batch"}, Names{"seq", "seq_q", "seq_k", "cache", "max_seq"}}) {
    Sizes before = now.sizes;
    int64_t least = names.size() == 1 ? 1 : kFewRows;
    for (const char *name : names)
      if (auto it = now.sizes.find(name);
          it != now.sizes.end() && it->second >= 2 * least)
        it->second /= 2;
    if (now.sizes == before)
      continue;
    data.reset();
    auto fewer = [&](const char *name) {
      auto is = now.sizes.find(name), was = before.find(name);
      return is != now.sizes.end() && was != before.end() &&
             is->second < was->second;
    };
    try {
      workloadFor(candidate);
      if (fewer("batch") || fewer("seq") || fewer("seq_q"))
        fewerRows *= 2;
      return true;
    } catch (const Error &) {
      // The kernel's types may fix what the options say once more.
      now.sizes = before;
    }
  }
  return false;
}

void Tuner::fitTime() {
  if (!counts())
    return;
  size_t runs = 0;
  const Candidate *first = nullptr;
  for (const Candidate &candidate : all)
    if (candidate.refused.empty() && ++runs == 1)
      first = &candidate;
  auto seconds = [&] {
    return static_cast<double>(runs) * operations(workloadFor(*first)) /
           (kEmulatedOperations * double(threadCount()));
  };
  double asked = seconds();
  if (asked < kLongSeconds)
    return;
  bool smaller = false;
  while (!options.fullSize && seconds() >= kLongSeconds && halveSizes(*first))
    smaller = true;
  bar.clear();
  std::string what = smaller
                         ? "; they run at " + workloadFor(*first).describe() +
                               " instead (--full-size keeps the sizes)"
                         : "; fewer rows and keys take less (--size)";
  std::fprintf(stderr,
               "kvbuf-tune: warning: without a GPU, the emulator executes %zu "
               "schedules, which takes about %.0f minutes at these sizes%s\n",
               runs, std::max(1.0, asked / 60), what.c_str());
}

void Tuner::fitDevice() {
  if (!counts())
    return;
  auto given = nlohmann::json::parse(deviceOptions.emulator, nullptr, false);
  auto first = std::find_if(all.begin(), all.end(), [](const Candidate &c) {
    return c.refused.empty();
  });
  auto manifest =
      nlohmann::json::parse(first->artifact.manifest, nullptr, false);
  // What is wrong with these others say.
  if (!given.is_object() || !manifest.is_object() ||
      !manifest.contains("target") ||
      !manifest["target"].contains("multiprocessors"))
    return;
  if (!given.contains("multiprocessors")) {
    given["multiprocessors"] = std::max(
        1u, manifest["target"]["multiprocessors"].get<unsigned>() / fewerRows);
    deviceOptions.emulator = given.dump();
    std::string note;
    gpu = run::openDevice(options, nullptr, nullptr, deviceOptions, note);
  }
  units = gpu->multiprocessors();
}

/// Makes the candidate the one that the execution launches.
void Tuner::prepare(Candidate &candidate) {
  if (!execution) {
    execution = std::make_unique<Execution>(*gpu, *candidate.module,
                                            workloadFor(candidate));
    return;
  }
  execution->use(*candidate.module, candidate.manifest);
}

/// Runs and checks a kernel; false if the device is of no use any more.
bool Tuner::tryOne(Candidate &candidate) {
  try {
    candidate.module = gpu->load(candidate.artifact, candidate.manifest);
  } catch (const Error &e) {
    candidate.refused = e.what();
    return true;
  }
  prepare(candidate);
  lastMessage.clear();
  try {
    execution->poisonOutputs();
    execution->run();
  } catch (const KernelFault &e) {
    candidate.wrong = lastMessage.empty() ? e.what() : brief(lastMessage);
    return gpu->isHost();
  }
  if (counts()) {
    Counts counted = countsOf(*candidate.module);
    candidate.instructions = counted.byName["all"];
    candidate.blocks = counted.blocks;
    std::tie(candidate.bound, candidate.cycles) =
        boundOf(counted, candidate.artifact.manifest, units);
    candidate.samples = {candidate.bound.empty() ? candidate.instructions
                                                 : candidate.cycles};
  }
  std::vector<std::string> changed = execution->fetch();
  if (!options.check)
    return true;
  CheckOptions check;
  check.seed = options.workload.seed;
  CheckResult result = data->check(check);
  for (const std::string &name : changed)
    result.failures.push_back("input '" + name + "' was changed");
  if (!result.failures.empty())
    candidate.wrong = result.failures.front();
  return true;
}

void Tuner::tryOut() {
  for (Candidate &candidate : all) {
    if (!candidate.refused.empty())
      continue;
    bar.show(done++, "trying " + candidate.label());
    if (!tryOne(candidate)) {
      // A fault leaves a GPU's context unusable.
      bar.clear();
      throw KernelFault("schedule " + candidate.label() + ": " +
                        candidate.wrong);
    }
    if (!candidate.runs())
      bar.drop(options.rounds);
    if (counts()) {
      // A decoded program is large, and has done its work.
      bar.drop(options.rounds);
      candidate.module.reset();
    }
  }
  if (counts())
    bar.show(done, "done");
}

/// Launches in a turn of `milliseconds` of what the execution launches now.
unsigned Tuner::launchesOfTurn(double milliseconds) {
  double one = std::max(execution->time(3).back(), 1e-7);
  return static_cast<unsigned>(
      std::clamp(milliseconds * 1e-3 / one, 1.0, double(kMostLaunches)));
}

void Tuner::takeTurns() {
  std::vector<std::pair<Candidate *, unsigned>> turns;
  for (Candidate &candidate : all) {
    if (!candidate.runs())
      continue;
    prepare(candidate);
    if (turns.empty())
      for (double spent = 0; spent < kWarmUpSeconds;)
        for (double seconds : execution->time(launchesOfTurn(options.turn)))
          spent += seconds;
    turns.push_back({&candidate, launchesOfTurn(options.turn)});
  }
  for (unsigned round = 0; round < options.rounds; ++round)
    for (auto [candidate, launches] : turns) {
      bar.show(done++, "measuring " + candidate->label());
      prepare(*candidate);
      execution->time(1);
      std::vector<double> seconds = execution->time(launches);
      candidate->samples.insert(candidate->samples.end(), seconds.begin(),
                                seconds.end());
    }
  summarize();
  for (Candidate &candidate : all)
    candidate.shortMedian = candidate.median;
  takeFinalTurns();
  bar.show(done, "done");
}

/// A GPU's clock follows what ran a moment before: turns of tens of
/// milliseconds had two names of one kernel 14 % apart (docs/tuning.md). Only
/// the fastest are worth longer ones, and what they are compared with.
void Tuner::takeFinalTurns() {
  std::vector<Candidate *> order;
  for (Candidate &candidate : all)
    if (candidate.runs())
      order.push_back(&candidate);
  std::sort(order.begin(), order.end(),
            [](const Candidate *a, const Candidate *b) {
              return a->median != b->median ? a->median < b->median : a < b;
            });
  if (!options.finals || order.size() < 2)
    return;
  std::vector<std::pair<Candidate *, unsigned>> turns;
  for (size_t i = 0; i < order.size(); ++i) {
    bool own = order[i]->schedule.empty();
    if (i >= options.finals && !own)
      continue;
    prepare(*order[i]);
    turns.push_back({order[i], launchesOfTurn(options.finalTurn)});
    order[i]->final = true;
    order[i]->samples.clear();
  }
  bar.add(turns.size() * options.rounds);
  for (unsigned round = 0; round < options.rounds; ++round)
    for (size_t i = 0; i < turns.size(); ++i) {
      // Nobody runs behind the same one each time, nor always first.
      size_t step = round % 2 ? turns.size() - 1 - i : i;
      auto [candidate, launches] = turns[(step + round) % turns.size()];
      bar.show(done++, "measuring longer " + candidate->label());
      prepare(*candidate);
      execution->time(launches);
      std::vector<double> seconds = execution->time(launches);
      candidate->samples.insert(candidate->samples.end(), seconds.begin(),
                                seconds.end());
    }
}

void Tuner::summarize() {
  for (Candidate &candidate : all) {
    if (candidate.samples.empty())
      continue;
    std::vector<double> sorted = candidate.samples;
    std::sort(sorted.begin(), sorted.end());
    candidate.lowerQuartile = quantile(sorted, 0.25);
    candidate.median = quantile(sorted, 0.5);
    candidate.upperQuartile = quantile(sorted, 0.75);
  }
}
