//===- WorkloadFlags.cpp - Options that describe a workload ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WorkloadFlags.h"
#include "Print.h"
#include "kvbuffer/Runtime/Error.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

using namespace kvbuf::run;
using kvbuf::rt::Error;

std::pair<std::string, std::string>
kvbuf::run::splitPair(const std::string &option, const std::string &text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw Error(option + " " + text + ": expected NAME=VALUE");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

int64_t kvbuf::run::parseInteger(const std::string &option,
                                 const std::string &text) {
  int64_t value = 0;
  const char *end = text.data() + text.size();
  auto [at, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || at != end)
    throw Error(option + ": '" + text + "' is no integer");
  return value;
}

void kvbuf::run::addRepeated(CLI::App &app, const char *name,
                             std::vector<std::string> &to, const char *help,
                             const char *typeName) {
  app.add_option(name, to, help)->allow_extra_args(false)->type_name(typeName);
}

namespace {

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

} // namespace

void WorkloadFlags::addTo(CLI::App &app) {
  addRepeated(app, "--size", sizes, "a size of the problem; may be repeated",
              "NAME=N");
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
  addRepeated(app, "--input", inputs, "read a tensor; may be repeated",
              "NAME=FILE.npy");
  app.add_option("--init", init,
                 "distribution of q, k and v: normal, outliers, octaves or "
                 "ramp [normal]")
      ->type_name("NAME");
  // Parsers of unsigned numbers wrap negative ones around.
  app.add_option("--seed", seed, "seed of everything random [1]")
      ->type_name("N")
      ->check(
          [](const std::string &text) {
            return text.find('-') == std::string::npos
                       ? ""
                       : "expected a number from 0 on, got " + text;
          },
          /*validator_description=*/"");
  app.add_flag("--share-pages", sharePages,
               "let sequences share pages or slots of the cache");
  app.add_flag("--separate-tables", separateTables,
               "give V a page table of its own");
  app.add_option("--layout", layout,
                 "order in memory: seq-major ([batch, seq, heads, size]) or "
                 "heads-major ([batch, heads, seq, size]) [seq-major]")
      ->type_name("NAME");
  app.add_option("--row-pad", rowPad,
                 "elements of poison after each row of head_size elements [0]")
      ->type_name("N");
  addRepeated(app, "--strides", strides,
              "strides of a tensor in elements; may be repeated",
              "NAME=S0,S1,...");
  addRepeated(app, "--offset", offsets,
              "elements from a multiple of 256 bytes to the first of a tensor "
              "[0]; may be repeated",
              "NAME=N");
  addRepeated(app, "--emulator", emulator,
              "an option of the emulator, as landing=late; may be repeated",
              "KEY=VALUE");
}

void WorkloadFlags::apply(rt::WorkloadOptions &to) const {
  to.seed = seed;
  to.sharePages = sharePages;
  to.separateTables = separateTables;
  for (const std::string &text : sizes) {
    auto [name, value] = splitPair("--size", text);
    to.sizes[name] = parseInteger("--size " + name, value);
  }
  auto lengths = [](const char *option, const std::string &text,
                    std::optional<std::vector<int64_t>> &list) {
    if (!text.empty())
      list = parseIntegers(option, text, false);
  };
  lengths("--lengths-q", lengthsQ, to.lengthsQ);
  lengths("--lengths-k", lengthsK, to.lengthsK);
  lengths("--cache-lengths", cacheLengths, to.cacheLengths);
  for (const std::string &text : inputs)
    to.inputs.insert(splitPair("--input", text));
  for (const std::string &text : strides) {
    auto [name, value] = splitPair("--strides", text);
    to.memory.strides[name] = parseIntegers("--strides " + name, value, true);
  }
  for (const std::string &text : offsets) {
    auto [name, value] = splitPair("--offset", text);
    to.memory.offsets[name] = parseInteger("--offset " + name, value);
  }
  to.init = rt::parseInit(init);
  if (layout != "seq-major" && layout != "heads-major")
    throw Error("--layout " + layout + ": expected seq-major or heads-major");
  to.memory.headsMajor = layout == "heads-major";
  if (rowPad < 0 || rowPad > (1 << 20))
    throw Error("--row-pad: expected 0 to 1048576");
  to.memory.rowPad = rowPad;
}

std::string WorkloadFlags::emulatorOptions() const {
  // Numbers and booleans as such, all else as text.
  nlohmann::json object = nlohmann::json::object();
  for (const std::string &text : emulator) {
    auto [key, value] = splitPair("--emulator", text);
    nlohmann::json parsed = nlohmann::json::parse(value, nullptr, false);
    if (parsed.is_boolean() || parsed.is_number())
      object[key] = parsed;
    else
      object[key] = value;
  }
  return toText(object);
}
