//===- Print.cpp - What tools that run kernels print ----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Print.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace kvbuf::run;
using namespace kvbuf::rt;

namespace {

constexpr const char *kRed = "31", *kGreen = "32", *kYellow = "33",
                     *kBold = "1";

std::string format(const char *pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

std::string number(double x) { return format("%.4g", x); }

std::string padded(std::string text, size_t width) {
  if (text.size() < width)
    text.resize(width, ' ');
  return text;
}

/// 1234567 as "1,234,567".
std::string grouped(uint64_t value) {
  std::string digits = std::to_string(value), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0)
      out += ',';
    out += digits[i];
  }
  return out;
}

std::string scalar(const Json &v) {
  if (v.is_string())
    return v.get<std::string>();
  if (v.is_number_unsigned() || (v.is_number_integer() && v >= 0))
    return grouped(v.get<uint64_t>());
  if (v.is_number_float())
    return number(v.get<double>());
  return v.dump();
}

bool isFlat(const Json &v) {
  return v.is_object() &&
         std::all_of(v.begin(), v.end(),
                     [](const Json &field) { return field.is_primitive(); });
}

/// Records that agree in all their texts (the same operation, unrolled) become
/// one with the sums of their numbers, and `sites` says how many they were.
std::vector<Json> mergeRecords(const Json &records) {
  std::vector<Json> merged;
  std::vector<uint64_t> sites;
  auto sameTexts = [](const Json &a, const Json &b) {
    return a.size() == b.size() &&
           std::all_of(a.items().begin(), a.items().end(), [&](const auto &f) {
             return b.contains(f.key()) &&
                    (f.value().is_string() ? b[f.key()] == f.value()
                                           : !b[f.key()].is_string());
           });
  };
  for (const Json &record : records) {
    size_t i = 0;
    while (i < merged.size() && !sameTexts(merged[i], record))
      ++i;
    if (i == merged.size()) {
      merged.push_back(record);
      sites.push_back(1);
      continue;
    }
    ++sites[i];
    for (const auto &[key, value] : record.items())
      if (value.is_number_integer())
        merged[i][key] = merged[i][key].get<uint64_t>() + value.get<uint64_t>();
  }
  if (merged.size() < records.size())
    for (size_t i = 0; i < merged.size(); ++i)
      merged[i]["sites"] = sites[i];
  return merged;
}

/// Flat records as a table, texts before numbers.
void printTable(const std::vector<Json> &rows, int indent) {
  std::vector<std::string> columns;
  for (bool texts : {true, false})
    for (const Json &row : rows)
      for (const auto &[key, value] : row.items())
        if (value.is_string() == texts &&
            std::find(columns.begin(), columns.end(), key) == columns.end())
          columns.push_back(key);
  std::vector<size_t> widths;
  for (const std::string &column : columns) {
    size_t width = column.size();
    for (const Json &row : rows)
      if (row.contains(column))
        width = std::max(width, scalar(row[column]).size());
    widths.push_back(width);
  }
  auto print = [&](auto cell) {
    std::string text(indent, ' ');
    for (size_t c = 0; c < columns.size(); ++c)
      text += padded(cell(columns[c]), widths[c] + 2);
    text.resize(text.find_last_not_of(' ') + 1);
    std::printf("%s\n", text.c_str());
  };
  print([](const std::string &column) { return column; });
  for (const Json &row : rows)
    print([&](const std::string &column) {
      return row.contains(column) ? scalar(row[column]) : std::string();
    });
}

/// Any JSON value: scalars aligned, tables for lists of flat records.
void printTree(const Json &object, int indent) {
  size_t width = 0;
  for (const auto &[key, value] : object.items())
    if (value.is_primitive())
      width = std::max(width, key.size());
  for (const auto &[key, value] : object.items())
    if (value.is_primitive())
      std::printf("%*s%s  %s\n", indent, "", padded(key, width).c_str(),
                  scalar(value).c_str());
  for (const auto &[key, value] : object.items()) {
    if (value.is_primitive() || value.empty())
      continue;
    std::printf("%*s%s\n", indent, "", key.c_str());
    if (value.is_object() && std::all_of(value.begin(), value.end(), isFlat)) {
      std::vector<Json> rows;
      for (const auto &[name, row] : value.items()) {
        rows.push_back({{"class", name}});
        rows.back().update(row);
      }
      printTable(rows, indent + 2);
    } else if (value.is_object()) {
      printTree(value, indent + 2);
    } else if (std::all_of(value.begin(), value.end(), isFlat)) {
      printTable(mergeRecords(value), indent + 2);
    } else {
      const char *separator = "";
      for (const Json &v : value) {
        std::printf("%s", separator);
        if (v.is_object())
          printTree(v, indent + 2);
        else
          std::printf("%*s%s\n", indent + 2, "", scalar(v).c_str());
        separator = "\n";
      }
    }
  }
}

Json comparisonJson(const Comparison &c) {
  return {{"value", c.value},
          {"baseline", c.baseline},
          {"limit", c.limit},
          {"pass", c.pass}};
}

Json rowJson(const RowId &row) {
  return {{"batch", row.b}, {"query", row.i}, {"head", row.h}};
}

} // namespace

std::string kvbuf::run::secondsString(double seconds) {
  if (seconds >= 1)
    return format("%.3f s", seconds);
  if (seconds >= 1e-3)
    return format("%.3f ms", seconds * 1e3);
  return format("%.2f us", seconds * 1e6);
}

Printer::Printer()
    : outIsTerminal(isatty(STDOUT_FILENO)),
      errIsTerminal(isatty(STDERR_FILENO)) {
  // https://no-color.org
  if (const char *no = std::getenv("NO_COLOR"); no && *no)
    outIsTerminal = false;
}

std::string Printer::color(const char *code, const std::string &text) const {
  return outIsTerminal ? "\033[" + std::string(code) + "m" + text + "\033[0m"
                       : text;
}

void Printer::line(const std::string &name, const std::string &value) {
  std::printf("%s %s\n", padded(name, 9).c_str(), value.c_str());
  std::fflush(stdout);
}

void Printer::message(Severity severity, const std::string &text) {
  endProgress();
  std::fflush(stdout);
  constexpr const char *names[] = {"note", "remark", "warning", "error"};
  const char *name = names[std::clamp(static_cast<int>(severity), 0, 3)];
  bool named = text.find(std::string(name) + ":") != std::string::npos;
  std::string prefix = named ? "" : std::string(name) + ": ";
  if (errIsTerminal && !named)
    prefix = "\033[" +
             std::string(severity == Severity::Error ? kRed : kYellow) + "m" +
             prefix + "\033[0m";
  std::fprintf(stderr, "%s%s\n", prefix.c_str(), text.c_str());
}

void Printer::progress(const std::string &what, uint64_t done, uint64_t total) {
  if (!errIsTerminal || total == 0)
    return;
  double now = std::chrono::duration<double>(
                   std::chrono::steady_clock::now().time_since_epoch())
                   .count();
  if (now - lastProgress < 0.1)
    return;
  lastProgress = now;
  progressShown = true;
  std::fprintf(stderr, "\r\033[K%s %3.0f%%", what.c_str(),
               100.0 * static_cast<double>(done) / static_cast<double>(total));
  std::fflush(stderr);
}

void Printer::endProgress() {
  if (progressShown)
    std::fprintf(stderr, "\r\033[K");
  progressShown = false;
}

void Printer::problem(const Manifest &m, const std::string &file) {
  const ProblemSpec &problem = *m.problem();
  line("kernel", m.name + " (" + file + "): " + problem.describe());
  root["file"] = file;
  root["kernel"] = {{"name", m.name}};
  root["kernel"].update(Json::parse(problem.facts()));
  root["target"] = m.target.chip;
}

void Printer::check(const CheckResult &r) {
  bool all = r.rowsChecked == r.rowsTotal;
  line("check", (all ? "all " + std::to_string(r.rowsTotal)
                     : std::to_string(r.rowsChecked) + " of " +
                           std::to_string(r.rowsTotal)) +
                    " rows against float64" +
                    (r.emptyRows ? ", " + std::to_string(r.emptyRows) +
                                       " without a visible key"
                                 : ""));
  auto compare = [&](const char *what, const Comparison &c,
                     const std::string &where, bool baseline = true) {
    std::printf("  %s %s  %s%s%s%s\n", padded(what, 14).c_str(),
                padded(number(c.value), 10).c_str(),
                baseline
                    ? ("baseline " + padded(number(c.baseline), 10)).c_str()
                    : padded("", 19).c_str(),
                ("  limit " + padded(number(c.limit), 10)).c_str(),
                c.pass ? "" : color(kRed, "  EXCEEDED").c_str(),
                where.empty() ? "" : ("  " + where).c_str());
  };
  if (r.ofElements) {
    compare("share of limit", r.largest, r.largestWhere, /*baseline=*/false);
  } else if (r.rowsChecked > 0) {
    compare("largest error", r.largest,
            "at " + rowString(r.largestRow) + ", column " +
                std::to_string(r.largestColumn));
    compare("mean error", r.mean, "");
    compare("worst row", r.worstRow, "at " + rowString(r.worstRowId));
    if (r.hasLse)
      compare("log-sum-exp", r.lse, "at " + rowString(r.lseRow), false);
  }
  for (const std::string &failure : r.failures)
    std::printf("  %s %s\n", color(kRed, "FAILED:").c_str(), failure.c_str());

  Json j;
  j["pass"] = r.pass;
  j["rows_checked"] = r.rowsChecked;
  j["rows_total"] = r.rowsTotal;
  j["rows_without_key"] = r.emptyRows;
  j["largest_error"] = comparisonJson(r.largest);
  j["largest_error"]["row"] = rowJson(r.largestRow);
  j["largest_error"]["column"] = r.largestColumn;
  j["mean_error"] = comparisonJson(r.mean);
  j["worst_row"] = comparisonJson(r.worstRow);
  j["worst_row"]["row"] = rowJson(r.worstRowId);
  if (r.hasLse) {
    j["log_sum_exp"] = comparisonJson(r.lse);
    j["log_sum_exp"].erase("baseline");
    j["log_sum_exp"]["row"] = rowJson(r.lseRow);
  }
  j["failures"] = r.failures;
  root["check"] = j;
}

void Printer::peakShare(double flops, double bytes, double seconds,
                        const TargetSpec &target, const std::string &device) {
  auto peak = std::find_if(target.peaks.begin(), target.peaks.end(),
                           [&](const TargetSpec::Peak &p) {
                             return device.find(p.device) != std::string::npos;
                           });
  if (peak == target.peaks.end() || peak->matrixFlops <= 0 ||
      peak->memoryBytes <= 0)
    return;
  // The slower of the two is what no kernel can be faster than.
  double matrix = flops / peak->matrixFlops, memory = bytes / peak->memoryBytes;
  bool isMatrix = matrix >= memory;
  double share = std::max(matrix, memory) / seconds;
  line("", format("%.1f", 100 * share) + " % of " + peak->device + "'s peak (" +
               (isMatrix
                    ? "matrix unit, " +
                          format("%.4g", peak->matrixFlops * 1e-12) + " TFLOP/s"
                    : "memory, " + format("%.4g", peak->memoryBytes * 1e-9) +
                          " GB/s") +
               ")");
  root["bench"]["peak"] = {{"device", peak->device},
                           {"bound", isMatrix ? "matrix" : "memory"},
                           {"share", share},
                           {"matrix_flops", peak->matrixFlops},
                           {"memory_bytes", peak->memoryBytes}};
}

void Printer::bench(const BenchResult &r, const Problem &w,
                    const Device &device) {
  double flops = w.operations();
  double tflops = flops / r.median * 1e-12;
  double gbps = w.minimalBytes() / r.median * 1e-9;
  line("bench", "median " + secondsString(r.median) + ", " +
                    (flops > 0 ? format("%.4g", tflops) + " TFLOP/s, " : "") +
                    format("%.4g", gbps) + " GB/s");
  line("", "spread " + secondsString(r.least) + " to " + secondsString(r.most) +
               ", middle half " + secondsString(r.lowerQuartile) + " to " +
               secondsString(r.upperQuartile) + ", " + std::to_string(r.runs) +
               " launches");
  root["bench"] = {{"median_s", r.median},
                   {"min_s", r.least},
                   {"max_s", r.most},
                   {"lower_quartile_s", r.lowerQuartile},
                   {"upper_quartile_s", r.upperQuartile},
                   {"launches", r.runs},
                   {"flop", flops},
                   {"tflops", tflops},
                   {"bytes", w.minimalBytes()},
                   {"gb_per_s", gbps}};
  // The emulator has no time.
  if (!device.isHost())
    peakShare(flops, w.minimalBytes(), r.median, w.manifest().target,
              device.description());
}

void Printer::report(const std::string &text) {
  Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded() || !parsed.is_object())
    return;
  std::printf("%s\n", color(kBold, "report").c_str());
  printTree(parsed, 2);
  root["report"] = parsed;
}

void Printer::verdict(bool pass) {
  std::printf("%s\n", pass ? color(kGreen, "PASS").c_str()
                           : color(kRed, "FAIL").c_str());
}
