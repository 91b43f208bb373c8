//===- Candidates.cpp - Sets of schedules ---------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Candidates.h"
#include "kvbuffer/Runtime/Error.h"

#include <algorithm>
#include <sstream>

using kvbuf::rt::Error;

namespace {

/// More than this is a slip: compiling alone would take hours.
constexpr size_t kMost = 4096;

std::string trimmed(const std::string &text) {
  size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos)
    return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> items;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, separator);)
    items.push_back(trimmed(item));
  return items;
}

constexpr const char *kParameters[] = {
#define KVBUF_SCHEDULE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)  \
  NAME,
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def"
};

bool isParameter(const std::string &name) {
  return std::find(std::begin(kParameters), std::end(kParameters), name) !=
         std::end(kParameters);
}

std::string parameterList() {
  std::string list;
  for (const char *name : kParameters)
    list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

} // namespace

std::vector<std::string>
kvbuf::tune::parseCandidates(const std::vector<std::string> &lists) {
  std::vector<std::string> all = {""};
  for (const std::string &list : lists) {
    std::vector<std::string> product = {""}, named;
    for (const std::string &parameter : split(list, ';')) {
      if (parameter.empty()) // a trailing semicolon
        continue;
      size_t equals = parameter.find('=');
      std::vector<std::string> values =
          equals == std::string::npos
              ? std::vector<std::string>()
              : split(parameter.substr(equals + 1), ',');
      std::string name = trimmed(parameter.substr(0, equals));
      bool bad = values.empty() || name.empty();
      for (const std::string &value : values)
        bad |= value.empty() || value.find('=') != std::string::npos;
      if (bad)
        throw Error("--candidates: '" + parameter +
                    "'; expected NAME=VALUE,VALUE,... and a semicolon between "
                    "parameters");
      if (std::find(named.begin(), named.end(), name) != named.end())
        throw Error("--candidates: '" + list + "' names " + name +
                    " twice; expected all of its values in one place, as " +
                    name + "=VALUE,VALUE,...");
      if (!isParameter(name))
        throw Error("--candidates: a schedule has no parameter '" + name +
                    "'; expected one of " + parameterList());
      named.push_back(name);
      std::vector<std::string> longer;
      for (const std::string &begun : product)
        for (const std::string &value : values)
          longer.push_back(begun + (begun.empty() ? "" : ",") + name + "=" +
                           value);
      product = std::move(longer);
      if (product.size() > kMost)
        throw Error("--candidates: '" + list + "' stands for more than " +
                    std::to_string(kMost) + " schedules");
    }
    for (std::string &schedule : product)
      if (std::find(all.begin(), all.end(), schedule) == all.end())
        all.push_back(std::move(schedule));
  }
  if (all.size() > kMost)
    throw Error("--candidates: more than " + std::to_string(kMost) +
                " schedules in all");
  return all;
}
