//===- ManifestReader.h - Fields of a manifest ------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_RUNTIME_MANIFESTREADER_H
#define KVBUFFER_LIB_RUNTIME_MANIFESTREADER_H

#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Manifest.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace kvbuf::rt {

using nlohmann::json;

/// Deeper manifests are damaged; readers of theirs call themselves.
inline constexpr int kMostNesting = 32;
/// The version of manifests with several functions (Functions.h); those of one
/// have an earlier one.
inline constexpr int64_t kSeveralFunctions = 3;

/// Parses text whose objects and arrays nest no deeper than that, but for
/// `around` of them that stand around a manifest; throws Error.
json parseJson(const std::string &text, int around = 0);

/// Does an integer fit into 64 bits with a sign?
inline bool fits64(const json &v) {
  return !v.is_number_unsigned() ||
         v.get<uint64_t>() <= uint64_t(std::numeric_limits<int64_t>::max());
}

/// Reads fields of one JSON object; errors name the path of the field.
class Reader {
public:
  Reader(const json &value, std::string path)
      : value(value), path(std::move(path)) {
    if (!value.is_object())
      fail("an object");
  }

  const json &get(const char *key) const {
    auto it = value.find(key);
    if (it == value.end())
      throw Error("manifest: " + path + " lacks \"" + key + "\"");
    return *it;
  }
  bool has(const char *key) const { return value.contains(key); }
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const auto &entry : value.items())
      names.push_back(entry.key());
    return names;
  }
  std::string at(const char *key) const { return path + "." + key; }

  std::string string(const char *key) const {
    const json &v = get(key);
    if (!v.is_string())
      throw Error("manifest: " + at(key) + " is not a string");
    return v.get<std::string>();
  }
  int64_t integer(const char *key) const {
    const json &v = get(key);
    if (!v.is_number_integer())
      throw Error("manifest: " + at(key) + " is not an integer");
    if (!fits64(v))
      throw Error("manifest: " + at(key) + " is out of range: " + v.dump());
    return v.get<int64_t>();
  }
  int64_t integer(const char *key, int64_t fallback) const {
    return has(key) ? integer(key) : fallback;
  }
  unsigned natural(const char *key, unsigned fallback) const {
    return has(key) ? natural(key) : fallback;
  }
  unsigned natural(const char *key) const {
    int64_t v = integer(key);
    if (v < 0 || v > std::numeric_limits<int32_t>::max())
      throw Error("manifest: " + at(key) +
                  " is out of range: " + std::to_string(v));
    return static_cast<unsigned>(v);
  }
  double number(const char *key, double fallback) const {
    if (!has(key))
      return fallback;
    const json &v = get(key);
    if (!v.is_number())
      throw Error("manifest: " + at(key) + " is not a number");
    return v.get<double>();
  }
  bool boolean(const char *key, bool fallback) const {
    if (!has(key))
      return fallback;
    const json &v = get(key);
    if (!v.is_boolean())
      throw Error("manifest: " + at(key) + " is not true or false");
    return v.get<bool>();
  }
  const json &array(const char *key) const {
    const json &v = get(key);
    if (!v.is_array())
      throw Error("manifest: " + at(key) + " is not an array");
    return v;
  }

  const json &value;
  std::string path;

private:
  [[noreturn]] void fail(const char *what) const {
    throw Error("manifest: " + path + " is not " + what);
  }
};

/// The names of tensors that play a part in a problem, where they are not the
/// parts' own ("tensors", a dictionary from parts to names); `roles` are the
/// parts that there are. Throws Error for others.
void parseRoles(const Reader &r, const std::vector<std::string> &roles,
                ProblemSpec &problem);
/// How tokens or a cache lie; a cache's may have tables.
Layout parseLayout(const Reader &r, const char *key, bool cache);
/// Which elements of a cache's rows of `name` are heads of `headSize`.
CacheRow parseRow(const Reader &r, const std::string &name, int64_t headSize);
/// Tokens of a page, which is positive.
int64_t parsePageSize(const Reader &r);

/// The problem of one kind that a manifest states by `op`; null where that
/// names another kind. It checks that the manifest's tensors are the problem's,
/// and adds the sizes that it gives defaults.
using ParseProblem = std::shared_ptr<const ProblemSpec> (*)(
    const std::string &op, const Reader &r, Manifest &m);
#define KVBUF_PROBLEM(NAME)                                                    \
  std::shared_ptr<const ProblemSpec> parse##NAME(                              \
      const std::string &op, const Reader &r, Manifest &m);
#include "kvbuffer/Problems.def"

/// The tensors of a manifest that share no memory, for Manifest::apart.
std::vector<Manifest::Apart> findApart(const Manifest &m);
/// The tensors of a manifest that have new tokens of both kinds, for
/// Manifest::storedBoth.
std::vector<Manifest::StoredBoth> findStoredBoth(const Manifest &m);

} // namespace kvbuf::rt

#endif // KVBUFFER_LIB_RUNTIME_MANIFESTREADER_H
