//===- kvbuf-compare.cpp - Compares two files of results ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../support/CommandLine.h"
#include "../support/Record.h"
#include "kvbuffer/Runtime/Error.h"

#include <algorithm>
#include <cstdio>
#include <map>

using namespace kvbuf;
using namespace kvbuf::rt;
using namespace kvbuf::run;

namespace {

constexpr const char *kDescription =
    R"(Compares what two runs measured: files of kvbuf-tune --json, or of
kvbuf-run --bench --json. Kernels with the same schedule are put side by side.)";

constexpr const char *kFooter = R"(
A difference counts where the middle halves of the two measurements do not
overlap. Counts of instructions, from the emulator, are compared as counts: they
are no times.

Examples:
  kvbuf-compare before.json after.json
  kvbuf-compare before.json after.json --csv
  kvbuf-compare before.json after.json --fail-above 1.03

Exit status: 0 compared; 1 some kernel is slower than --fail-above allows; 2 bad
usage or bad input.)";

/// One kernel's result.
struct Result {
  /// Seconds, cycles of a model, or instructions.
  double median = 0, low = 0, high = 0;
};

/// A file of results.
struct File {
  std::string path, chip, device, sizes, origin;
  bool isTime = true;
  /// Of numbers that are no times: "modelled cycles" or "instructions".
  std::string unit;
  /// By schedule; "" for the compiler's own choice, or the only kernel.
  std::map<std::string, Result> results;
};

/// A number of an object; throws Error naming the file.
double number(const Json &object, const char *key, const std::string &path) {
  auto it = object.find(key);
  if (it == object.end() || !it->is_number())
    throw Error("'" + path + "': a result has no number '" + key + "'");
  return it->get<double>();
}

std::string text(const Json &object, const char *key) {
  auto it = object.find(key);
  if (it == object.end() || it->is_null())
    return "";
  return it->is_string() ? it->get<std::string>() : it->dump();
}

File read(const std::string &path) {
  std::string bytes, error;
  if (!readWholeFile(path, bytes, error))
    throw Error(error);
  Json root = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object())
    throw Error("'" + path +
                "' is no JSON object; expected a file of "
                "kvbuf-tune --json or kvbuf-run --bench --json");
  File file;
  file.path = path;
  file.sizes = text(root, "sizes");
  file.origin = text(root, "version");
  for (const char *key : {"commit", "date"})
    if (std::string part = text(root, key); !part.empty())
      file.origin += (file.origin.empty() ? "" : ", ") + part;
  if (root.contains("bench") && root["bench"].is_object()) {
    const Json &bench = root["bench"];
    file.chip = text(root, "target");
    if (root.contains("device") && root["device"].is_object())
      file.device = text(root["device"], "name");
    file.results[""] = {number(bench, "median_s", path),
                        number(bench, "lower_quartile_s", path),
                        number(bench, "upper_quartile_s", path)};
    return file;
  }
  if (!root.contains("results") || !root["results"].is_array())
    throw Error("'" + path +
                "' has neither 'results' (kvbuf-tune) nor 'bench' "
                "(kvbuf-run --bench)");
  file.chip = text(root, "chip");
  file.device = text(root, "device");
  std::string rankedBy = text(root, "ranked_by");
  file.isTime = rankedBy == "time";
  bool models = rankedBy == "model";
  if (!file.isTime)
    file.unit = models ? "modelled cycles" : "instructions";
  for (const Json &result : root["results"]) {
    if (!result.is_object())
      throw Error("'" + path + "': a result is no object");
    Result r;
    if (file.isTime) {
      r.median = number(result, "median_us", path) * 1e-6;
      r.low = number(result, "lower_quartile_us", path) * 1e-6;
      r.high = number(result, "upper_quartile_us", path) * 1e-6;
    } else {
      r.median = r.low = r.high = number(
          result, models ? "modelled_cycles" : "warp_instructions", path);
    }
    file.results[text(result, "schedule")] = r;
  }
  return file;
}

std::string format(const char *pattern, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), pattern, value);
  return buffer;
}

/// How the second result stands to the first.
std::string verdict(const Result &a, const Result &b, bool isTime) {
  if (!isTime)
    return a.median == b.median  ? "same"
           : b.median < a.median ? "fewer"
                                 : "more";
  if (b.high < a.low)
    return "faster";
  if (b.low > a.high)
    return "slower";
  return "within the spread";
}

ExitStatus compare(int argc, char **argv) {
  std::string first, second;
  bool csv = false;
  double limit = 0;
  CommandLine line("kvbuf-compare", kDescription, kFooter);
  CLI::App &app = line.app;
  app.add_option("A", first, "file of results")->required();
  app.add_option("B", second, "file of results to compare with it")->required();
  app.add_flag("--csv", csv, "print comma-separated values");
  app.add_option("--fail-above", limit,
                 "end with status 1 where B / A is above this, and beyond the "
                 "spread")
      ->type_name("RATIO");
  if (!line.parse(argc, argv))
    return kDone;
  File a = read(first), b = read(second);
  auto holds = [](const File &file) {
    return file.isTime                   ? "times"
           : file.unit == "instructions" ? "counts of instructions"
                                         : "cycles of a model";
  };
  if (a.unit != b.unit) {
    const File &first = a.isTime ? b : a, &second = a.isTime ? a : b;
    throw Error("'" + first.path + "' holds " + holds(first) +
                ", the other file " + holds(second) +
                ": they cannot be compared");
  }
  for (auto [what, x, y] : {std::tuple("chips", &a.chip, &b.chip),
                            std::tuple("devices", &a.device, &b.device),
                            std::tuple("sizes", &a.sizes, &b.sizes)})
    if (*x != *y)
      std::fprintf(stderr, "kvbuf-compare: warning: the %s differ: %s and %s\n",
                   what, x->empty() ? "not told" : x->c_str(),
                   y->empty() ? "not told" : y->c_str());
  std::string unit = a.isTime ? "us" : a.unit;
  double scale = a.isTime ? 1e6 : 1;
  const char *pattern = a.isTime ? "%.2f" : "%.0f";
  bool failed = false, any = false;
  std::vector<std::vector<std::string>> rows;
  for (const auto &[schedule, x] : a.results) {
    auto it = b.results.find(schedule);
    if (it == b.results.end())
      continue;
    any = true;
    const Result &y = it->second;
    std::string name =
        schedule.empty()
            ? (a.results.size() == 1 ? "(the kernel)" : "(compiler's choice)")
            : schedule;
    std::string how = verdict(x, y, a.isTime);
    double ratio = x.median > 0 ? y.median / x.median : 0;
    failed |= limit > 0 && ratio > limit && (how == "slower" || how == "more");
    rows.push_back({name, format(pattern, x.median * scale),
                    format(pattern, y.median * scale), format("%.3f", ratio),
                    how});
  }
  if (!any)
    throw Error("the files have no schedule in common");
  std::vector<std::string> heads = {"schedule", "A (" + unit + ")",
                                    "B (" + unit + ")", "B / A", "B is"};
  if (csv) {
    std::printf("%s", csvLine(heads).c_str());
    for (const auto &row : rows)
      std::printf("%s", csvLine(row).c_str());
    return failed ? kFailed : kDone;
  }
  for (const auto &[name, file] : {std::pair("A", &a), std::pair("B", &b)})
    std::printf("%s  %s%s%s\n", name, file->path.c_str(),
                file->origin.empty() ? "" : ": ", file->origin.c_str());
  std::printf("on %s, %s\n", a.device.c_str(), a.chip.c_str());
  std::vector<size_t> widths;
  for (size_t c = 0; c < heads.size(); ++c) {
    widths.push_back(heads[c].size());
    for (const auto &row : rows)
      widths[c] = std::max(widths[c], row[c].size());
  }
  auto print = [&](const std::vector<std::string> &row) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      std::string space(widths[c] - row[c].size(), ' ');
      bool isNumber = c > 0 && c + 1 < row.size();
      line += (c ? "  " : "") + (isNumber ? space + row[c] : row[c] + space);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  };
  print(heads);
  for (const auto &row : rows)
    print(row);
  for (const auto &[from, to, file] :
       {std::tuple(&a, &b, "A"), std::tuple(&b, &a, "B")}) {
    size_t alone = 0;
    for (const auto &[schedule, result] : from->results)
      alone += !to->results.count(schedule);
    if (alone)
      std::printf("%zu schedules are in %s alone\n", alone, file);
  }
  if (!a.isTime)
    std::printf("%s\n", a.unit == "instructions"
                            ? "counted on the emulator, which knows no time"
                            : "a model of what the emulator counted, no "
                              "measurement");
  return failed ? kFailed : kDone;
}

} // namespace

int main(int argc, char **argv) {
  return runTool("kvbuf-compare", [&] { return compare(argc, argv); });
}
