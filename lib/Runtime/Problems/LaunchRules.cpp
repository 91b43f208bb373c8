//===- LaunchRules.cpp - What launches ask of any kernel's tensors --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// By what tensors are and what is done with them; a problem says more, where
// there is one.
//
//===----------------------------------------------------------------------===//

#include "../ManifestReader.h"
#include "Indices.h"
#include "kvbuffer/Runtime/Error.h"

using namespace kvbuf::rt;

namespace {

/// Whether a tensor holds a cache's rows, or what belongs to a cache.
bool isOfCache(const Manifest &m, const TensorSpec &t) {
  if (t.cache)
    return true;
  const TensorSpec *data = m.findTensor(t.name.substr(0, t.name.find('.')));
  return data && data->cache;
}

/// Lengths of sequences that a cache's tables have room for.
void checkCacheLengths(const Integers &lengths, const TensorArg &data,
                       const TensorArg &table) {
  int64_t room =
      table.shape.size() == 2 ? table.shape[1] * data.shape[1] : data.shape[1];
  for (int64_t b = 0; b < lengths.arg->shape[0]; ++b)
    if (int64_t length = lengths[b]; length < 0 || length > room)
      throw Error("tensor '" + lengths.arg->name + "' holds " +
                  std::to_string(length) + " at " + std::to_string(b) +
                  "; expected 0 to " + std::to_string(room) +
                  ", the tokens that a sequence has room for");
}

} // namespace

std::vector<Manifest::Apart> kvbuf::rt::findApart(const Manifest &m) {
  const ProblemSpec *rules = m.launchRules();
  // Of an append, and of other programs that store in caches, only the tables'
  // entries say what is written where: caches may lie in one tensor.
  if (rules && rules->writesByTables())
    rules = nullptr;
  std::vector<Manifest::Apart> apart;
  for (auto written = m.tensors.begin(); written != m.tensors.end();
       ++written) {
    if (!written->output)
      continue;
    if (isOfCache(m, *written)) {
      // New tokens go into it, and where their own rows lie in it, or a
      // query's, a block may read them when another has stored already.
      for (const TensorSpec &other : m.tensors)
        if (other.input && !isOfCache(m, other))
          apart.push_back({written->name, other.name, /*inPlace=*/!m.stated});
      continue;
    }
    if (written->input)
      continue;
    for (auto other = m.tensors.begin(); other != m.tensors.end(); ++other) {
      if (other == written)
        continue;
      // Of other programs nobody knows which block reads what; one that changes
      // a tensor in place may be right, half beside it none is.
      if (other->input)
        apart.push_back({written->name, other->name,
                         rules
                             ? rules->isReadInPlace(rules->roleOf(other->name))
                             : !isOfCache(m, *other)});
      else if (!other->input && rules && other > written)
        apart.push_back({written->name, other->name});
    }
  }
  return apart;
}

std::vector<Manifest::StoredBoth> kvbuf::rt::findStoredBoth(const Manifest &m) {
  const ProblemSpec *rules = m.launchRules();
  if (!rules)
    return {};
  std::string k = rules->tensor("k"), v = rules->tensor("v"),
              kNew = rules->tensor("k_new"), vNew = rules->tensor("v_new");
  if (!m.findTensor(kNew) || !m.findTensor(vNew))
    return {};
  bool made = m.findTensor(rules->tensor("cos"));
  for (const std::string &cache : {k, v})
    made |= m.findTensor(cache + ".scales") != nullptr;
  std::vector<Manifest::StoredBoth> both;
  for (const char *part : {"", ".scales"}) {
    const TensorSpec *keys = m.findTensor(k + part),
                     *values = m.findTensor(v + part);
    if (keys && values && keys->output && values->output)
      both.push_back({values->name, keys->name, vNew, kNew, v + ".table",
                      k + ".table", made});
  }
  return both;
}

void kvbuf::rt::checkLengths(const Manifest &manifest,
                             const std::vector<TensorArg> &tensors,
                             const Sizes &sizes) {
  if (const ProblemSpec *problem = manifest.launchRules())
    return problem->checkLengths(manifest, tensors, sizes);
  auto of = [&](const TensorArg &data, const char *what) {
    return findIntegers(tensors, data.name + what);
  };
  for (const TensorSpec &t : manifest.tensors) {
    const TensorArg *data = findIntegers(tensors, t.name).arg;
    if (!t.cache || !data)
      continue;
    if (Integers offsets = of(*data, ".offsets"); offsets.arg)
      checkOffsets(offsets, offsets.arg->shape[0] - 1, data->shape[0], t.name);
    if (Integers lengths = of(*data, ".lengths"), table = of(*data, ".table");
        lengths.arg && table.arg)
      checkCacheLengths(lengths, *data, *table.arg);
  }
}
