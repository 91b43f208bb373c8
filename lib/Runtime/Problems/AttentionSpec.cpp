//===- AttentionSpec.cpp - What attention asks of a manifest and a launch -===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../ManifestReader.h"
#include "Indices.h"
#include "kvbuffer/Runtime/Workload.h"

#include <algorithm>
#include <cstdio>

using namespace kvbuf::rt;

namespace {

/// Further windows could overflow sums of positions.
constexpr int64_t kMostWindow = int64_t(1) << 62;

int64_t parseWindow(const Reader &r, const char *key) {
  int64_t window = r.integer(key, -1);
  if (window > kMostWindow)
    throw Error("manifest: " + r.at(key) +
                " is out of range: " + std::to_string(window));
  return window;
}

/// The elements of a head, as the manifest says at `key`.
void checkHeadSize(const Reader &r, const char *key, int64_t size) {
  if (size < 8 || size % 8 != 0)
    throw Error("manifest: " + r.at(key) + " is " + std::to_string(size) +
                "; expected a multiple of 8");
}

/// How the cache `name` is stored, if not in elements of `all`, the queries'
/// type, or if that has 8 bits.
std::optional<QuantizedSpec> parseQuantized(const Reader &r,
                                            const std::string &name, DType all,
                                            int64_t headSize) {
  std::string dtype = name + "_dtype", granularity = name + "_granularity";
  QuantizedSpec spec;
  spec.dtype = all;
  if (r.has(dtype.c_str()))
    spec.dtype = parseDType(r.string(dtype.c_str()));
  else if (!isFloat8(all))
    return std::nullopt;
  if (!isFloat8(spec.dtype))
    throw Error("manifest: " + r.at(dtype.c_str()) + " is '" +
                nameOf(spec.dtype) + "'; expected an 8-bit float");
  if (!r.has(granularity.c_str()))
    return spec;
  spec.granularity = r.integer(granularity.c_str(), 0);
  if (*spec.granularity < -1 || *spec.granularity > headSize)
    throw Error("manifest: " + r.at(granularity.c_str()) + " is " +
                std::to_string(*spec.granularity) +
                "; expected -1 to head_size");
  return spec;
}

PackedPart parsePart(const Reader &r) {
  PackedPart part;
  part.count = r.natural("count");
  part.at = r.natural("at");
  part.element = parseDType(r.string("element"));
  if (part.element == DType::F32 || sizeOf(part.element) > 2)
    throw Error("manifest: " + r.at("element") + " is '" +
                nameOf(part.element) +
                "'; expected bf16, f16 or an 8-bit float");
  if (!r.has("scale"))
    return part;
  std::string scale = r.string("scale");
  if (scale != "f8E8M0FNU")
    part.scale = parseDType(scale);
  part.granularity = r.natural("granularity");
  part.scaleAt = r.natural("scale_at");
  if (part.granularity < 1 || part.count < 1)
    throw Error("manifest: " + r.path + " has scales of no elements");
  return part;
}

/// How rows of the cache are packed; the elements of all parts are a head's.
std::optional<PackedRow> parsePacked(const Reader &r, int64_t headSize) {
  if (!r.has("k_row"))
    return std::nullopt;
  Reader row(r.get("k_row"), r.at("k_row"));
  PackedRow packed;
  packed.bytes = row.natural("bytes");
  packed.tail = row.natural("tail", 0);
  packed.rows = row.natural("rows", 0);
  packed.stride = row.natural("stride", 0);
  int64_t elements = 0;
  const nlohmann::json &parts = row.get("parts");
  if (!parts.is_array())
    throw Error("manifest: " + row.at("parts") + " is not a list");
  for (const auto &part : parts) {
    packed.parts.push_back(parsePart(Reader(part, row.at("parts"))));
    const PackedPart &last = packed.parts.back();
    elements += last.count;
    int64_t end =
        last.at + last.count * static_cast<int64_t>(sizeOf(last.element));
    if (last.granularity)
      end = std::max(
          end,
          last.scaleAt +
              (last.count + last.granularity - 1) / last.granularity *
                  (last.scale ? static_cast<int64_t>(sizeOf(*last.scale)) : 1));
    if (end > packed.bytes + packed.tail)
      throw Error("manifest: " + row.path + " has a part that ends at byte " +
                  std::to_string(end) + " of " +
                  std::to_string(packed.bytes + packed.tail));
  }
  if (elements != headSize || packed.bytes < 1 ||
      (packed.tail &&
       (packed.rows < 1 ||
        packed.stride < packed.rows * (packed.bytes + packed.tail))))
    throw Error("manifest: " + row.path + " has parts of " +
                std::to_string(elements) + " elements; expected head_size = " +
                std::to_string(headSize) + ", and room for tails");
  return packed;
}

AttentionProblem parseFields(const Reader &r) {
  AttentionProblem p;
  parseRoles(
      r, {"q", "k", "v", "o", "q_offsets", "lse", "sink", "k_new", "v_new"}, p);
  p.dtype = parseDType(r.string("dtype"));
  if (p.dtype != DType::F16 && p.dtype != DType::BF16 && !isFloat8(p.dtype))
    throw Error("manifest: " + r.at("dtype") + " is '" + nameOf(p.dtype) +
                "'; expected bf16, f16 or an 8-bit float");
  p.outDtype = r.has("o_dtype") ? parseDType(r.string("o_dtype")) : p.dtype;
  if (p.outDtype != DType::F16 && p.outDtype != DType::BF16 &&
      p.outDtype != DType::F32 && p.outDtype != p.dtype)
    throw Error("manifest: " + r.at("o_dtype") + " is '" + nameOf(p.outDtype) +
                "'; expected f32, bf16" +
                (isFloat8(p.dtype) ? std::string(", f16 or ") + nameOf(p.dtype)
                                   : " or f16"));
  p.heads = r.natural("heads");
  p.kvHeads = r.natural("kv_heads");
  p.headSize = r.natural("head_size");
  p.valueHeadSize =
      r.has("v_head_size") ? r.natural("v_head_size") : p.headSize;
  if (p.heads < 1 || p.kvHeads < 1 || p.heads % p.kvHeads != 0)
    throw Error("manifest: " + r.path + " has " + std::to_string(p.heads) +
                " heads and " + std::to_string(p.kvHeads) +
                " kv_heads; expected a positive multiple");
  checkHeadSize(r, "head_size", p.headSize);
  checkHeadSize(r, "v_head_size", p.valueHeadSize);
  p.query = parseLayout(r, "query", /*cache=*/false);
  p.cache = parseLayout(r, "cache", /*cache=*/true);
  if (p.cache == Layout::Paged)
    p.pageSize = parsePageSize(r);
  std::string lengths = r.has("lengths") ? r.string("lengths") : "cached";
  if (lengths != "cached" && lengths != "all")
    throw Error("manifest: " + r.at("lengths") + " is '" + lengths +
                "'; expected cached or all");
  p.lengthsCountNew = lengths == "all";
  p.latent = r.boolean("latent", false);
  if (p.latent && p.valueHeadSize > p.headSize)
    throw Error("manifest: " + r.at("v_head_size") + " is " +
                std::to_string(p.valueHeadSize) +
                "; expected at most head_size = " + std::to_string(p.headSize) +
                ", as values are a part of keys");
  p.k = parseRow(r, "k", p.headSize);
  p.v = p.latent ? p.k : parseRow(r, "v", p.valueHeadSize);
  p.packed = parsePacked(r, p.headSize);
  if (p.packed && !p.latent)
    throw Error("manifest: " + r.at("k_row") +
                " packs rows; expected latent = true");
  p.kQuantized = parseQuantized(r, "k", p.dtype, p.headSize);
  p.vQuantized = p.latent ? p.kQuantized
                          : parseQuantized(r, "v", p.dtype, p.valueHeadSize);
  p.causal = r.boolean("causal", false);
  p.windowLeft = parseWindow(r, "window_left");
  p.windowRight = parseWindow(r, "window_right");
  p.softcap = r.number("softcap", 0);
  p.sink = r.boolean("sink", false);
  p.lse = r.boolean("lse", false);
  p.scale = r.number("scale", 1);
  p.batchInvariant = r.boolean("batch_invariant", false);
  return p;
}

/// The harness indexes these without looking further, so a manifest that
/// claims to be attention must have them.
void checkTensors(const AttentionProblem &p, const Manifest &m) {
  auto need = [&](const std::string &role, size_t rank, DType dtype) {
    std::string name = p.tensor(role);
    const TensorSpec *t = m.findTensor(name);
    if (!t)
      throw Error("manifest: the attention problem needs a tensor '" + name +
                  "'");
    // Indices may be wide.
    bool fits =
        t->dtype == dtype || (dtype == DType::I32 && t->dtype == DType::I64);
    if (t->shape.size() != rank || !fits)
      throw Error("manifest: tensor '" + name + "' is " + nameOf(t->dtype) +
                  " of rank " + std::to_string(t->shape.size()) +
                  "; the problem needs " + nameOf(dtype) + " of rank " +
                  std::to_string(rank));
  };
  bool raggedQ = p.query == Layout::Ragged, raggedK = p.cache == Layout::Ragged;
  need("q", raggedQ ? 3 : 4, p.dtype);
  need("o", raggedQ ? 3 : 4, p.outDtype);
  if (raggedQ)
    need("q_offsets", 1, DType::I32);
  if (p.lse)
    need("lse", raggedQ ? 2 : 3, DType::F32);
  if (p.sink)
    need("sink", 1, DType::F32);
  for (const std::string &name : p.caches()) {
    const auto &quantized = name == "k" ? p.kQuantized : p.vQuantized;
    need(name, raggedK ? 3 : 4, quantized ? quantized->dtype : p.dtype);
    if (quantized && quantized->granularity) {
      std::string scales = name + ".scales";
      const TensorSpec *t = m.findTensor(p.tensor(scales));
      need(scales, *quantized->granularity > 0 ? (raggedK ? 3 : 4) : 1,
           t && (t->dtype == DType::F16 || t->dtype == DType::BF16)
               ? t->dtype
               : DType::F32);
    }
    int64_t depth = (name == "k" ? p.k : p.v).cacheDepth;
    const SizeExpr &extent = m.findTensor(p.tensor(name))->shape.back();
    if (extent.kind != SizeExpr::Kind::Constant || extent.constant != depth)
      throw Error("manifest: tensor '" + p.tensor(name) + "' has rows of " +
                  extent.str() + " elements; the problem needs " +
                  std::to_string(depth));
    if (raggedK)
      need(name + ".offsets", 1, DType::I32);
    if (p.cache == Layout::Continuous || p.cache == Layout::Paged) {
      need(name + ".table", p.cache == Layout::Paged ? 2 : 1, DType::I32);
      need(name + ".lengths", 1, DType::I32);
    }
  }
}

std::string maskString(const AttentionProblem &p) {
  std::string text;
  char softcap[32];
  std::snprintf(softcap, sizeof(softcap), "%.4g", p.softcap);
  if (p.causal)
    text += ", causal";
  if (p.windowLeft >= 0 || p.windowRight >= 0)
    text += ", window " + std::to_string(p.windowLeft) + ":" +
            std::to_string(p.windowRight);
  if (p.softcap > 0)
    text += std::string(", softcap ") + softcap;
  if (p.sink)
    text += ", sink";
  if (p.batchInvariant)
    text += ", batch invariant";
  return text;
}

/// Types and head sizes, those of values and the output where they differ.
std::string typesString(const AttentionProblem &p) {
  std::string text = nameOf(p.dtype);
  if (p.outDtype != p.dtype)
    text += std::string(" to ") + nameOf(p.outDtype);
  return text;
}

std::string headSizeString(const AttentionProblem &p) {
  if (p.valueHeadSize == p.headSize)
    return "head size " + std::to_string(p.headSize);
  return "head sizes " + std::to_string(p.headSize) + " and " +
         std::to_string(p.valueHeadSize) + " of values";
}

} // namespace

std::shared_ptr<const ProblemSpec>
kvbuf::rt::parseAttention(const std::string &op, const Reader &r, Manifest &m) {
  bool ownScores = op == "attention_of_own_scores";
  if (!ownScores && op != "attention" && op != "attention_after_append")
    return nullptr;
  AttentionProblem p = parseFields(r);
  p.ownScores = ownScores;
  checkTensors(p, m);
  p.appends = m.findTensor(p.tensor("k"))->output;
  // How long the longest sequence of a ragged batch is, only the device may
  // know; no shorter bound covers all rows.
  if (p.query == Layout::Ragged) {
    m.sizeDefaults.emplace("seq_q", m.findTensor(p.tensor("q"))->shape[0]);
    m.sizeDefaults.emplace(kShortestQuery, SizeExpr::number(0));
  }
  return std::make_shared<AttentionProblem>(std::move(p));
}

std::string AttentionProblem::describe() const {
  const AttentionProblem &p = *this;
  return typesString(p) + ", " + std::to_string(p.heads) + " heads on " +
         std::to_string(p.kvHeads) + ", " + headSizeString(p) + ", " +
         nameOf(p.query) + " query, " + nameOf(p.cache) + " cache" +
         (p.cache == Layout::Paged
              ? " of " + std::to_string(p.pageSize) + "-token pages"
              : "") +
         maskString(p) + (p.lse ? ", log-sum-exp" : "");
}

std::string AttentionProblem::facts() const {
  const AttentionProblem &p = *this;
  nlohmann::ordered_json facts = {{"dtype", nameOf(p.dtype)},
                                  {"heads", p.heads},
                                  {"kv_heads", p.kvHeads},
                                  {"head_size", p.headSize},
                                  {"query", nameOf(p.query)},
                                  {"cache", nameOf(p.cache)},
                                  {"page_size", p.pageSize},
                                  {"k_cache_depth", p.k.cacheDepth},
                                  {"k_head_dim_offset", p.k.headDimOffset},
                                  {"v_cache_depth", p.v.cacheDepth},
                                  {"v_head_dim_offset", p.v.headDimOffset},
                                  {"causal", p.causal},
                                  {"window_left", p.windowLeft},
                                  {"window_right", p.windowRight},
                                  {"softcap", p.softcap},
                                  {"sink", p.sink},
                                  {"lse", p.lse},
                                  {"scale", p.scale},
                                  {"batch_invariant", p.batchInvariant}};
  if (p.outDtype != p.dtype)
    facts["o_dtype"] = nameOf(p.outDtype);
  if (p.valueHeadSize != p.headSize)
    facts["v_head_size"] = p.valueHeadSize;
  return facts.dump();
}

std::unique_ptr<Problem>
AttentionProblem::fill(const Manifest &manifest,
                       const WorkloadOptions &options) const {
  return std::make_unique<Workload>(manifest, options);
}

/// A block writes the rows whose queries it has read.
bool AttentionProblem::isReadInPlace(const std::string &role) const {
  return role == "q";
}

/// A row's tail is found by its place in a block, which strides must be those
/// of.
void AttentionProblem::checkStrides(const TensorArg &arg) const {
  if (!packed || !packed->tail || arg.name != tensor("k"))
    return;
  size_t rows = arg.shape.size() - 3;
  for (size_t d = 0; d <= rows; ++d) {
    int64_t stride = arg.strides[d];
    // Of pages of one token each is any row of a block, or its first one.
    bool isRow = d == rows || pageSize == 1, isBlock = d != rows;
    if (arg.shape[d] > 1 && !(isRow && stride == packed->bytes) &&
        !(isBlock && stride % packed->stride == 0))
      throw Error(
          "tensor '" + arg.name + "': stride " + std::to_string(stride) +
          " of dimension " + std::to_string(d) + "; expected " +
          (isRow ? std::to_string(packed->bytes) : "") +
          (isRow && isBlock ? " or " : "") +
          (isBlock ? "a multiple of " + std::to_string(packed->stride) : "") +
          ", as rows have tails behind those of their block");
  }
}

void AttentionProblem::checkLengths(const Manifest &manifest,
                                    const std::vector<TensorArg> &tensors,
                                    const Sizes &sizes) const {
  const AttentionProblem &p = *this;
  auto find = [&](const std::string &role) {
    return findIntegers(tensors, p.tensor(role));
  };
  Integers queries = find("q_offsets");
  const TensorArg *q = find("q").arg;
  int64_t batch = q->shape[0];
  if (p.query == Layout::Ragged) {
    batch = queries.arg->shape[0] - 1;
    checkOffsets(queries, batch, q->shape[0], q->name);
    auto longest = sizes.find("seq_q");
    bool asks = longest != sizes.end() && manifest.sizeNames().count("seq_q");
    for (int64_t b = 0; asks && b < batch; ++b)
      if (int64_t rows = queries[b + 1] - queries[b]; rows > longest->second)
        throw Error("size 'seq_q' is " + std::to_string(longest->second) +
                    ", but tensor '" + queries.arg->name + "' gives " +
                    std::to_string(rows) + " rows to sequence " +
                    std::to_string(b));
    auto least = sizes.find(kShortestQuery);
    for (int64_t b = 0; least != sizes.end() && b < batch; ++b)
      if (int64_t rows = queries[b + 1] - queries[b];
          rows > 0 && rows < least->second)
        throw Error("size '" + least->first + "' is " +
                    std::to_string(least->second) + ", but tensor '" +
                    queries.arg->name + "' gives " + std::to_string(rows) +
                    " rows to sequence " + std::to_string(b));
  }
  for (const std::string &cache : p.caches()) {
    const TensorArg *data = find(cache).arg;
    checkOffsets(find(cache + ".offsets"), batch, data->shape[0], data->name);
    Integers lengths = find(cache + ".lengths");
    const TensorArg *table = find(cache + ".table").arg;
    if (!lengths.arg)
      continue;
    int64_t room = p.cache == Layout::Paged ? table->shape[1] * p.pageSize
                                            : data->shape[1];
    for (int64_t b = 0; b < batch; ++b) {
      int64_t added = p.lengthsCountNew ? 0
                      : queries.arg     ? queries[b + 1] - queries[b]
                                        : q->shape[1];
      int64_t most = room - added;
      if (int64_t length = lengths[b]; length < 0 || length > most)
        throw Error("tensor '" + lengths.arg->name + "' holds " +
                    std::to_string(length) + " at " + std::to_string(b) +
                    "; expected 0 to " + std::to_string(room) +
                    (p.lengthsCountNew
                         ? ", the keys that a sequence has room for"
                         : " - " + std::to_string(added) +
                               ", the keys that a sequence has room for less "
                               "the new ones"));
      // The blocks of keys that some query may see: no other one is looked up.
      int64_t rows = queries.arg ? queries[b + 1] - queries[b] : q->shape[1];
      int64_t keys = lengths[b] + added;
      int64_t first =
          p.windowLeft < 0
              ? 0
              : std::clamp<int64_t>(keys - rows - p.windowLeft, 0, keys);
      if (rows < 1 || first >= keys)
        continue;
      bool paged = p.cache == Layout::Paged;
      checkBlocks(*table, *data, paged, b, paged ? first / p.pageSize : 0,
                  paged ? (keys - 1) / p.pageSize : 0, ", which is looked up");
    }
  }
}
