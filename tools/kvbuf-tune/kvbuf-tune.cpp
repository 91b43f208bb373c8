//===- kvbuf-tune.cpp - Measure schedules and rank them -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../support/Print.h"
#include "../support/Record.h"
#include "Tuner.h"
#include "kvbuffer/Runtime/Error.h"

#include <algorithm>
#include <cstdio>

using namespace kvbuf;
using namespace kvbuf::rt;
using namespace kvbuf::tune;
using namespace kvbuf::run;

namespace {

std::string format(const char *pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

/// Those that run, the best first. A model says nothing of what spills cost:
/// where nothing is timed, those that spill come last, and are not offered.
std::vector<const Candidate *> ranking(const Tuner &tuner) {
  std::vector<const Candidate *> order;
  for (const Candidate &candidate : tuner.candidates())
    if (candidate.runs())
      order.push_back(&candidate);
  std::sort(order.begin(), order.end(),
            [&](const Candidate *a, const Candidate *b) {
              if (tuner.counts() && a->spills() != b->spills())
                return b->spills();
              // Times of short and of long turns do not compare.
              if (a->final != b->final)
                return a->final;
              return a->median != b->median ? a->median < b->median : a < b;
            });
  return order;
}

/// A number of the first kernel that the compiler found out; negative if it did
/// not.
int64_t resource(const Candidate &candidate, const char *key) {
  Json manifest = Json::parse(candidate.artifact.manifest, nullptr, false);
  return manifest["kernels"][0].value(key, int64_t(-1));
}

void printRanking(const Tuner &tuner, const Options &options) {
  std::vector<const Candidate *> order = ranking(tuner);
  size_t width = 8;
  for (const Candidate *c : order)
    width = std::max(width, c->label().size());
  int w = static_cast<int>(width);
  const Candidate &own = tuner.candidates().front();
  double flops = operations(tuner.workload());
  std::printf("%4s  %-*s  %s  registers  spilled%s\n", "rank", w, "schedule",
              tuner.models() ? " modelled cycles  of compiler's"
              : tuner.counts()
                  ? "warp instructions  of compiler's"
                  : "    median         middle half        TFLOP/s  "
                    "vs compiler's",
              tuner.models() ? "  busiest unit" : "");
  for (size_t i = 0; i < order.size() && i < options.top; ++i) {
    const Candidate &c = *order[i];
    // Less time is a speed-up; a model's cycles and counts are no time.
    double share =
        tuner.counts() ? c.median / own.median : own.median / c.median;
    std::string ratio = own.runs() ? format("%.3f", share) : "-";
    auto known = [&](const char *key) {
      int64_t value = resource(c, key);
      return value < 0 ? std::string("-") : std::to_string(value);
    };
    std::string numbers;
    if (tuner.counts())
      numbers = format("%17.0f", c.median);
    else
      numbers = format("%7.2f us", c.median * 1e6) + "  " +
                format("%8.2f", c.lowerQuartile * 1e6) + " .." +
                format("%8.2f us", c.upperQuartile * 1e6) + "  " +
                format("%9.1f", flops / c.median * 1e-12);
    std::string rank = tuner.offers(c) ? std::to_string(i + 1) : "-";
    std::string remark = !c.spills()      ? ""
                         : tuner.counts() ? "  (spills: not offered)"
                                          : "  (spills)";
    if (!c.bound.empty())
      remark = "  " + c.bound + remark;
    std::printf("%4s  %-*s  %s  %13s  %9s  %7s%s\n", rank.c_str(), w,
                c.label().c_str(), numbers.c_str(), ratio.c_str(),
                known("registers").c_str(), known("spill_bytes").c_str(),
                remark.c_str());
  }
  if (tuner.models())
    std::printf("      a model, no measurement: cycles of the busiest unit for "
                "what the "
                "emulator counted; fewer need not be faster\n");
  else if (tuner.counts())
    std::printf("      counted on the emulator, which knows no time: fewer "
                "instructions need not be faster\n");
  if (tuner.counts() && !order.empty() && order.front()->spills())
    std::printf("      every schedule spills registers\n");
  size_t finals = 0;
  for (const Candidate *c : order)
    finals += c->final;
  if (finals && finals < order.size())
    std::printf("      the first %zu by turns of %g ms, the others by turns of "
                "%g ms, which compare less well\n",
                finals, options.finalTurn, options.turn);
  if (order.size() > options.top)
    std::printf("      and %zu more (--top)\n", order.size() - options.top);
}

/// What did not make it into the ranking. Returns whether a result was wrong.
bool printRest(const Tuner &tuner, const Options &options) {
  size_t refused = 0, wrong = 0;
  for (const Candidate &c : tuner.candidates()) {
    refused += !c.refused.empty();
    wrong += !c.wrong.empty();
    if (!c.wrong.empty())
      std::printf("WRONG %s: %s\n", c.label().c_str(), c.wrong.c_str());
    if (!options.verbose)
      continue;
    if (!c.refused.empty())
      std::printf("left out %s: %s\n", c.label().c_str(), c.refused.c_str());
    for (const std::string &warning : c.warnings)
      std::printf("%s: %s\n", c.label().c_str(), warning.c_str());
  }
  if (refused)
    std::printf("%zu of %zu schedules were refused, or repeat another%s\n",
                refused, tuner.candidates().size(),
                options.verbose ? "" : " (--verbose tells why)");
  return wrong > 0;
}

/// What was measured and with what; a result for each kernel, the best first,
/// with what an entry of a table of schedules needs.
Json recordOf(const Tuner &tuner, const Options &options) {
  Json record = Json::object();
  run::addOrigin(record);
  record["file"] = options.file;
  record["chip"] = tuner.target();
  record["device"] = tuner.device().description();
  record["sizes"] = tuner.workload().sizes();
  record["ranked_by"] = tuner.models()   ? "model"
                        : tuner.counts() ? "instructions"
                                         : "time";
  if (tuner.multiprocessors())
    record["multiprocessors"] = tuner.multiprocessors();
  Json &results = record["results"] = Json::array();
  const Candidate &own = tuner.candidates().front();
  double flops = operations(tuner.workload());
  for (const Candidate *c : ranking(tuner)) {
    Json manifest = Json::parse(c->artifact.manifest, nullptr, false);
    record["problem"] = manifest["problem"];
    Json line = {{"schedule", c->schedule}, {"full_schedule", c->full}};
    if (tuner.counts()) {
      line["warp_instructions"] = c->instructions;
      if (!c->bound.empty()) {
        line["modelled_cycles"] = c->cycles;
        line["blocks"] = c->blocks;
        line["bound_by"] = c->bound;
      }
      line["offered"] = tuner.offers(*c);
    } else {
      line["median_us"] = c->median * 1e6;
      line["lower_quartile_us"] = c->lowerQuartile * 1e6;
      line["upper_quartile_us"] = c->upperQuartile * 1e6;
      line["launches"] = c->samples.size();
      line["final"] = c->final;
      line["short_turns_us"] = c->shortMedian * 1e6;
      line["tflops"] = flops / c->median * 1e-12;
    }
    if (own.runs())
      line[tuner.models()   ? "share_of_cycles"
           : tuner.counts() ? "share_of_instructions"
                            : "speedup"] =
          tuner.counts() ? c->median / own.median : own.median / c->median;
    for (const char *key : {"registers", "spill_bytes"})
      if (int64_t value = resource(*c, key); value >= 0)
        line[key] = value;
    results.push_back(std::move(line));
  }
  Json &refused = record["refused"] = Json::array();
  for (const Candidate &c : tuner.candidates())
    if (!c.runs())
      refused.push_back({{"schedule", c.schedule},
                         {"reason", c.refused.empty() ? c.wrong : c.refused}});
  return record;
}

/// The results as comma-separated values, all of them with the same fields.
std::string csvOf(const Json &record) {
  std::vector<std::string> keys;
  for (const Json &result : record["results"])
    for (const auto &[key, value] : result.items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        keys.push_back(key);
  std::string text = csvLine(keys);
  for (const Json &result : record["results"]) {
    std::vector<std::string> fields;
    for (const std::string &key : keys)
      fields.push_back(!result.contains(key) ? ""
                       : result[key].is_string()
                           ? result[key].get<std::string>()
                           : result[key].dump());
    text += csvLine(fields);
  }
  return text;
}

void writeResults(const Tuner &tuner, const Options &options) {
  Json record = recordOf(tuner, options);
  std::string error;
  if (!options.json.empty() &&
      !writeWholeFile(options.json, run::toText(record, 1) + "\n", error))
    throw Error(error);
  if (!options.csv.empty() &&
      !writeWholeFile(options.csv, csvOf(record), error))
    throw Error(error);
}

ExitStatus tuneAll(const Options &options) {
  Tuner tuner(options);
  tuner.run();
  std::vector<const Candidate *> order = ranking(tuner);
  std::printf("%s for %s on %s, %s\n", options.file.c_str(),
              tuner.target().c_str(), tuner.device().description().c_str(),
              tuner.workload().describe().c_str());
  printRanking(tuner, options);
  bool wrong = printRest(tuner, options);
  writeResults(tuner, options);
  std::string error;
  if (!options.best.empty() && !order.empty() && tuner.counts() &&
      order.front()->spills())
    throw Error(
        "every schedule spills registers, which only a GPU can weigh: '" +
        options.best + "' is not written");
  if (!options.best.empty() && !order.empty() &&
      !writeWholeFile(options.best, tuner.finalArtifact(*order.front()), error))
    throw Error(error);
  return wrong ? kFailed : order.empty() ? kBadInput : kDone;
}

} // namespace

int main(int argc, char **argv) {
  return runTool("kvbuf-tune", [&] {
    std::optional<tune::Options> options = tune::parseCommandLine(argc, argv);
    return options ? tuneAll(*options) : kDone;
  });
}
