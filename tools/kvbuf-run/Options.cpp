//===- tools/kvbuf-run/Options.cpp - Command line of kvbuf-run --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "kvbuffer/Runtime/Error.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

using namespace kvbuf::run;
using kvbuf::rt::Error;

namespace {

constexpr const char *kDescription =
    R"(Runs an attention kernel on a GPU, or on the emulator where there is none.

FILE is an artifact (.kvbuf), which needs no compiler here, or an .mlir file
with a kvbuffer.attention problem, which is compiled first. Tensors are filled
with seeded random numbers, or read from .npy files; memory that the kernel has
no business with holds NaN.)";

constexpr const char *kExamples = R"(
Examples:
  kvbuf-run examples/prefill.mlir --check
      compile for the GPU at hand, or emulate an sm_80, and compare with a
      float64 reference
  kvbuf-run examples/prefill.mlir --device=emulator --target=sm_80 \
      --size batch=2 --size seq=300 --check --report
  kvbuf-run prefill.kvbuf --device=cuda --size batch=4 --size seq=4096 \
      --check --bench --json result.json
  kvbuf-run paged.kvbuf --cache-lengths 0,17,300 --size seq_q=5 --share-pages \
      --check
  kvbuf-run examples/prefill.mlir --input q=q.npy --input k=k.npy \
      --input v=v.npy --output o=o.npy

Sizes: batch; seq_q (queries a sequence; the longest if they are ragged); seq_k
(keys a sequence; the longest if ragged); seq (both); cache (longest cache
before the new tokens); total_q, total_k (rows in all, ragged); num_blocks,
pages_per_seq, max_seq (extents of the cache and its table).

Exit status: 0 passed; 1 the check failed or the kernel misbehaved; 2 bad usage
or bad input.)";

/// Splits "name=value".
std::pair<std::string, std::string> splitPair(const std::string &option,
                                              const std::string &text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw Error(option + " " + text + ": expected NAME=VALUE");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

int64_t parseInteger(const std::string &option, const std::string &text) {
  int64_t value = 0;
  const char *end = text.data() + text.size();
  auto [at, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || at != end)
    throw Error(option + ": '" + text + "' is no integer");
  return value;
}

std::vector<int64_t> parseIntegers(const std::string &option,
                                   const std::string &text, bool negative) {
  std::vector<int64_t> values;
  std::string item;
  std::istringstream in(text);
  while (std::getline(in, item, ',')) {
    values.push_back(parseInteger(option, item));
    if (values.back() > INT32_MAX && !negative)
      throw Error(option + ": " + item + " exceeds 2147483647");
    if (values.back() < 0)
      throw Error(option + ": " + item + " is negative");
  }
  if (values.empty())
    throw Error(option + ": expected numbers separated by commas");
  return values;
}

/// --emulator key=value: numbers and booleans as such, all else as text.
std::string emulatorOptions(const std::vector<std::string> &pairs) {
  nlohmann::json object = nlohmann::json::object();
  for (const std::string &text : pairs) {
    auto [key, value] = splitPair("--emulator", text);
    nlohmann::json parsed = nlohmann::json::parse(value, nullptr, false);
    if (parsed.is_boolean() || parsed.is_number())
      object[key] = parsed;
    else
      object[key] = value;
  }
  return object.dump();
}

} // namespace

std::optional<Options> kvbuf::run::parseCommandLine(int argc, char **argv) {
  Options o;
  CLI::App app(kDescription, "kvbuf-run");
  app.footer(kExamples);
  app.set_version_flag("--version", "kvbuf-run " KVBUF_VERSION);
  app.get_formatter()->column_width(30);

  std::vector<std::string> sizes, inputs, outputs, strides, emulator;
  std::string lengthsQ, lengthsK, cacheLengths,
      init = "normal", layout = "seq-major", checkRows = "auto";
  // Options that may be repeated take one value each time, so that a value is
  // never mistaken for FILE.
  auto repeated = [&](const char *name, std::vector<std::string> &to,
                      const char *help, const char *what) {
    app.add_option(name, to, help)->allow_extra_args(false)->type_name(what);
  };
  app.add_option("FILE", o.file, "artifact or .mlir file")->required();
  app.add_option("--device", o.device,
                 "auto, emulator, cuda, cuda:N, hip or hip:N [auto]")
      ->type_name("NAME");
  app.add_option("--target", o.target,
                 "chip to compile for [the GPU's, or sm_80]")
      ->type_name("CHIP");
  app.add_option("--schedule", o.schedule,
                 "schedule for the compiler, as BM=128,BN=64,...")
      ->type_name("LIST");
  repeated("--size", sizes, "a size of the problem; may be repeated", "NAME=N");
  app.add_option("--lengths-q", lengthsQ,
                 "queries of each sequence (ragged queries) [random]")
      ->type_name("N,N,...");
  app.add_option("--lengths-k", lengthsK,
                 "keys of each sequence (ragged cache) [random]")
      ->type_name("N,N,...");
  app.add_option("--cache-lengths", cacheLengths,
                 "cached tokens of each sequence before the new ones "
                 "(continuous and paged caches) [random]")
      ->type_name("N,N,...");
  repeated("--input", inputs, "read a tensor; may be repeated",
           "NAME=FILE.npy");
  repeated("--output", outputs, "write a tensor; may be repeated",
           "NAME=FILE.npy");
  app.add_option("--init", init,
                 "distribution of q, k and v: normal, outliers, octaves or "
                 "ramp [normal]")
      ->type_name("NAME");
  app.add_option("--seed", o.workload.seed, "seed of everything random [1]")
      ->type_name("N");
  app.add_flag("--share-pages", o.workload.sharePages,
               "let sequences share pages or slots of the cache");
  app.add_flag("--separate-tables", o.workload.separateTables,
               "give V a page table of its own");
  app.add_option("--layout", layout,
                 "order in memory: seq-major ([batch, seq, heads, size]) or "
                 "heads-major ([batch, heads, seq, size]) [seq-major]")
      ->type_name("NAME");
  app.add_option("--row-pad", o.workload.memory.rowPad,
                 "elements of poison after each row of head_size elements [0]")
      ->type_name("N");
  repeated("--strides", strides,
           "strides of a tensor in elements; may be repeated",
           "NAME=S0,S1,...");
  app.add_flag("--check", o.check, "compare with a float64 reference");
  app.add_option("--check-rows", checkRows,
                 "rows to compare: a number, all, or auto [auto]")
      ->type_name("N");
  app.add_flag("--bench", o.bench, "measure time, TFLOP/s and GB/s");
  app.add_option("--repeat", o.repeat,
                 "launches that --bench measures [about a second's]")
      ->type_name("N");
  app.add_flag("--report", o.report, "print what the emulator counted");
  repeated("--emulator", emulator,
           "an option of the emulator, as landing=late; may be repeated",
           "KEY=VALUE");
  app.add_option("--json", o.json, "write all that is printed to a file")
      ->type_name("FILE");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &e) { // --help, --version
    app.exit(e);
    return std::nullopt;
  } catch (const CLI::ParseError &e) {
    throw Error(std::string(e.what()) +
                " (kvbuf-run --help lists the options)");
  }

  for (const std::string &text : sizes) {
    auto [name, value] = splitPair("--size", text);
    o.workload.sizes[name] = parseInteger("--size " + name, value);
  }
  auto lengths = [](const char *option, const std::string &text,
                    std::optional<std::vector<int64_t>> &to) {
    if (!text.empty())
      to = parseIntegers(option, text, false);
  };
  lengths("--lengths-q", lengthsQ, o.workload.lengthsQ);
  lengths("--lengths-k", lengthsK, o.workload.lengthsK);
  lengths("--cache-lengths", cacheLengths, o.workload.cacheLengths);
  for (const std::string &text : inputs)
    o.workload.inputs.insert(splitPair("--input", text));
  for (const std::string &text : outputs)
    o.outputs.insert(splitPair("--output", text));
  for (const std::string &text : strides) {
    auto [name, value] = splitPair("--strides", text);
    o.workload.memory.strides[name] =
        parseIntegers("--strides " + name, value, true);
  }
  o.workload.init = rt::parseInit(init);
  if (layout != "seq-major" && layout != "heads-major")
    throw Error("--layout " + layout + ": expected seq-major or heads-major");
  o.workload.memory.headsMajor = layout == "heads-major";
  if (o.workload.memory.rowPad < 0 || o.workload.memory.rowPad > (1 << 20))
    throw Error("--row-pad: expected 0 to 1048576");
  if (checkRows == "all") {
    o.checkRows = -1;
  } else if (checkRows != "auto") {
    o.checkRows = parseInteger("--check-rows", checkRows);
    if (o.checkRows < 1)
      throw Error("--check-rows: expected a positive number, all or auto");
  }
  o.emulator = emulatorOptions(emulator);
  return o;
}
