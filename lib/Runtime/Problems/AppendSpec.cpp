//===- AppendSpec.cpp - What an append asks of a manifest and a launch ----===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ManifestReader.h"
#include "Indices.h"
#include "kvbuffer/Runtime/AppendProblem.h"

#include <algorithm>

using namespace kvbuf::rt;

namespace {

AppendSpec parseFields(const Reader &r) {
  AppendSpec p;
  parseRoles(
      r, {"k", "v", "k_new", "v_new", "offsets", "at", "cos", "sin", "rope_at"},
      p);
  p.heads = r.natural("heads");
  p.headSize = r.natural("head_size");
  p.valueHeadSize =
      r.has("v_head_size") ? r.natural("v_head_size") : p.headSize;
  for (int64_t size : {p.headSize, p.valueHeadSize})
    if (p.heads < 1 || size < 1)
      throw Error("manifest: " + r.path + " has " + std::to_string(p.heads) +
                  " heads of " + std::to_string(size) +
                  " elements; expected at least one of each");
  p.tokens = parseLayout(r, "new", /*cache=*/false);
  p.cache = parseLayout(r, "cache", /*cache=*/true);
  if (p.cache == Layout::Paged)
    p.pageSize = parsePageSize(r);
  p.values = r.boolean("values", true);
  p.at = r.boolean("at", false);
  p.ropeAt = r.boolean("rope_at", false);
  if (r.has("rope")) {
    std::string rope = r.string("rope");
    if (rope != "half" && rope != "interleaved")
      throw Error("manifest: " + r.at("rope") + " is '" + rope +
                  "'; expected half or interleaved");
    p.rope =
        rope == "half" ? AppendSpec::Rope::Half : AppendSpec::Rope::Interleaved;
  }
  p.k = parseRow(r, "k", p.headSize);
  p.v = parseRow(r, "v", p.valueHeadSize);
  auto granularity = [&](const char *key,
                         int64_t most) -> std::optional<int64_t> {
    if (!r.has(key))
      return std::nullopt;
    int64_t elements = r.integer(key, 0);
    if (elements < -1 || elements > most)
      throw Error("manifest: " + r.at(key) + " is " + std::to_string(elements) +
                  "; expected -1 to head_size");
    return elements;
  };
  p.kGranularity = granularity("k_granularity", p.headSize);
  p.vGranularity = granularity("v_granularity", p.valueHeadSize);
  return p;
}

/// The harness indexes these without looking further.
void checkTensors(const AppendSpec &p, const Manifest &m) {
  auto need = [&](const std::string &role, size_t rank,
                  const std::vector<DType> &dtypes, int64_t columns = -1) {
    std::string name = p.tensor(role);
    const TensorSpec *t = m.findTensor(name);
    if (!t)
      throw Error("manifest: the append needs a tensor '" + name + "'");
    bool fits = std::count(dtypes.begin(), dtypes.end(), t->dtype) > 0;
    if (t->shape.size() != rank || !fits)
      throw Error("manifest: tensor '" + name + "' is " + nameOf(t->dtype) +
                  " of rank " + std::to_string(t->shape.size()) +
                  ", which the append does not take there");
    const SizeExpr &extent = t->shape.back();
    if (columns >= 0 &&
        (extent.kind != SizeExpr::Kind::Constant || extent.constant != columns))
      throw Error("manifest: tensor '" + name + "' has rows of " +
                  extent.str() + " elements; the append needs " +
                  std::to_string(columns));
  };
  const std::vector<DType> indices = {DType::I32, DType::I64},
                           floats = {DType::F16, DType::BF16, DType::F32};
  std::vector<DType> stored = floats;
  stored.insert(stored.end(), {DType::F8E4M3FN, DType::F8E5M2,
                               DType::F8E4M3FNUZ, DType::F8E5M2FNUZ});
  bool ragged = p.tokens == Layout::Ragged;
  if (ragged)
    need("offsets", 1, indices);
  if (p.at)
    need("at", 1, indices);
  if (p.rope != AppendSpec::Rope::None)
    for (const char *name : {"cos", "sin"})
      need(name, 2, floats);
  if (p.ropeAt)
    need("rope_at", 1, indices);
  for (std::string name : {"k", "v"}) {
    if (name == "v" && !p.values)
      continue;
    need(name + "_new", ragged ? 3 : 4, floats,
         name == "k" ? p.headSize : p.valueHeadSize);
    size_t rank = p.cache == Layout::Ragged ? 3 : 4;
    need(name, rank, stored, (name == "k" ? p.k : p.v).cacheDepth);
    if (p.cache == Layout::Ragged)
      need(name + ".offsets", 1, indices);
    if (p.cache == Layout::Continuous || p.cache == Layout::Paged) {
      need(name + ".table", p.cache == Layout::Paged ? 2 : 1, indices);
      need(name + ".lengths", 1, indices);
    }
    if (auto granularity = name == "k" ? p.kGranularity : p.vGranularity)
      need(name + ".scales", *granularity > 0 ? rank : 1, floats);
  }
}

} // namespace

std::shared_ptr<const ProblemSpec>
kvbuf::rt::parseAppend(const std::string &op, const Reader &r, Manifest &m) {
  if (op != "cache_append" || !r.has("cache"))
    return nullptr;
  AppendSpec p = parseFields(r);
  checkTensors(p, m);
  return std::make_shared<AppendSpec>(std::move(p));
}

std::string AppendSpec::describe() const {
  const AppendSpec &p = *this;
  std::string text = "append of " + std::string(nameOf(p.tokens)) +
                     " tokens, " + std::to_string(p.heads) + " heads of " +
                     std::to_string(p.headSize);
  if (p.values && p.valueHeadSize != p.headSize)
    text += ", of values " + std::to_string(p.valueHeadSize);
  text += std::string(", ") + nameOf(p.cache) + " cache";
  if (p.cache == Layout::Paged)
    text += " of " + std::to_string(p.pageSize) + "-token pages";
  if (p.rope != AppendSpec::Rope::None)
    text += p.rope == AppendSpec::Rope::Half ? ", rotated by halves"
                                             : ", rotated by neighbours";
  for (auto [name, group] :
       {std::pair("keys", p.kGranularity), std::pair("values", p.vGranularity)})
    if (group)
      text += std::string(", ") + name + " with scales by " +
              (*group > 0    ? std::to_string(*group) + " elements"
               : *group == 0 ? "tensor"
                             : "head");
  return text;
}

std::string AppendSpec::facts() const {
  nlohmann::ordered_json facts = {{"op", "cache_append"},
                                  {"heads", heads},
                                  {"head_size", headSize},
                                  {"cache", nameOf(cache)},
                                  {"page_size", pageSize}};
  if (valueHeadSize != headSize)
    facts["v_head_size"] = valueHeadSize;
  return facts.dump();
}

std::unique_ptr<Problem>
AppendSpec::fill(const Manifest &manifest,
                 const WorkloadOptions &options) const {
  return std::make_unique<AppendProblem>(manifest, options);
}

/// The new tokens' offsets, the lengths before them and the pages where they
/// go. Where positions are given besides lengths, any may be: what has no row
/// is left out.
void AppendSpec::checkLengths(const Manifest &,
                              const std::vector<TensorArg> &tensors,
                              const Sizes &) const {
  const AppendSpec &p = *this;
  auto find = [&](const std::string &role) {
    return findIntegers(tensors, p.tensor(role));
  };
  const TensorArg *tokens = find("k_new").arg;
  Integers offsets = find("offsets");
  int64_t batch = tokens->shape[0];
  if (offsets.arg) {
    batch = offsets.arg->shape[0] - 1;
    checkOffsets(offsets, batch, tokens->shape[0], tokens->name);
  }
  for (std::string cache : {"k", "v"}) {
    const TensorArg *data = find(cache).arg;
    if (!data)
      continue;
    checkOffsets(find(cache + ".offsets"), batch, data->shape[0], data->name);
    // Both go where the keys' lengths say.
    Integers lengths = find("k.lengths");
    Integers table = find(cache + ".table");
    if (p.at || !lengths.arg || !table.arg)
      continue;
    bool paged = p.cache == Layout::Paged;
    int64_t room = paged ? table.arg->shape[1] * p.pageSize : data->shape[1];
    for (int64_t b = 0; b < batch; ++b) {
      int64_t added =
          offsets.arg ? offsets[b + 1] - offsets[b] : tokens->shape[1];
      int64_t length = lengths[b];
      if (length < 0 || length > room - added)
        throw Error("tensor '" + lengths.arg->name + "' holds " +
                    std::to_string(length) + " at " + std::to_string(b) +
                    "; expected 0 to " + std::to_string(room) + " - " +
                    std::to_string(added) +
                    ", the tokens that a sequence has room for in '" +
                    data->name + "' less the new ones");
      int64_t size = paged ? p.pageSize : room;
      if (size && added > 0)
        checkBlocks(*table.arg, *data, paged, b, paged ? length / size : 0,
                    paged ? (length + added - 1) / size : 0,
                    ", where new tokens go");
    }
  }
}
