//===- lib/Runtime/Lengths.cpp - Lengths that the host can read -*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Launch.h"

#include <algorithm>

using namespace kvbuf::rt;

namespace {

/// A tensor of integers in host memory; absent tensors are null.
struct Integers {
  const TensorArg *arg = nullptr;

  int64_t operator[](int64_t i) const {
    int64_t stride = arg->strides.empty() ? 1 : arg->strides[0];
    uint64_t at = arg->address + static_cast<uint64_t>(i * stride) *
                                     static_cast<uint64_t>(sizeOf(arg->dtype));
    return arg->dtype == DType::I64 ? *reinterpret_cast<const int64_t *>(at)
                                    : *reinterpret_cast<const int32_t *>(at);
  }
};

Integers find(const std::vector<TensorArg> &tensors, const std::string &name) {
  for (const TensorArg &arg : tensors)
    if (arg.name == name)
      return {&arg};
  return {};
}

void checkOffsets(const Integers &offsets, int64_t batch, int64_t rows,
                  const std::string &of) {
  if (!offsets.arg)
    return;
  for (int64_t b = 0; b <= batch; ++b)
    if (int64_t least = b ? offsets[b - 1] : 0, at = offsets[b];
        at < least || at > rows)
      throw Error("tensor '" + offsets.arg->name + "' holds " +
                  std::to_string(at) + " at " + std::to_string(b) +
                  "; expected offsets that never fall, here from " +
                  std::to_string(least) + " to " + std::to_string(rows) +
                  ", the rows of '" + of + "'");
}

/// The entries from `first` to `last`, included, of sequence `b` in a table of
/// pages, or of whole sequences (`paged` false, entry 0): blocks of `data`.
/// `where` says in a message what they are of.
void checkBlocks(const TensorArg &table, const TensorArg &data, bool paged,
                 int64_t b, int64_t first, int64_t last, const char *where) {
  int64_t stride = !table.strides.empty() ? table.strides[0]
                   : paged                ? table.shape[1]
                                          : 1;
  TensorArg flat = table;
  flat.strides = {1};
  Integers entries{&flat};
  int64_t step = paged && table.strides.size() > 1 ? table.strides[1] : 1;
  for (int64_t page = first; page <= last; ++page)
    if (int64_t block = entries[b * stride + page * step];
        block < 0 || block >= data.shape[0])
      throw Error("tensor '" + table.name + "' holds " + std::to_string(block) +
                  " at " + std::to_string(b) +
                  (paged ? ", " + std::to_string(page) : std::string()) +
                  where + "; expected 0 to " +
                  std::to_string(data.shape[0] - 1) + ", a block of '" +
                  data.name + "'");
}

/// An append's offsets, lengths and the pages of its new tokens. Where
/// positions are given besides lengths, any may be: what has no row is left
/// out.
void checkAppend(const Manifest &manifest,
                 const std::vector<TensorArg> &tensors) {
  const AppendSpec &p = *manifest.append;
  const TensorArg *tokens = find(tensors, "k_new").arg;
  Integers offsets = find(tensors, "offsets");
  int64_t batch = tokens->shape[0];
  if (offsets.arg) {
    batch = offsets.arg->shape[0] - 1;
    checkOffsets(offsets, batch, tokens->shape[0], "k_new");
  }
  for (std::string cache : {"k", "v"}) {
    const TensorArg *data = find(tensors, cache).arg;
    if (!data)
      continue;
    checkOffsets(find(tensors, cache + ".offsets"), batch, data->shape[0],
                 cache);
    // Both go where the keys' lengths say.
    Integers lengths = find(tensors, "k.lengths");
    Integers table = find(tensors, cache + ".table");
    if (p.at || !lengths.arg || !table.arg)
      continue;
    bool paged = p.cache == Layout::Paged;
    int64_t room = paged ? table.arg->shape[1] * p.pageSize : data->shape[1];
    for (int64_t b = 0; b < batch; ++b) {
      int64_t added =
          offsets.arg ? offsets[b + 1] - offsets[b] : tokens->shape[1];
      int64_t length = lengths[b];
      if (length < 0 || length > room - added)
        throw Error("tensor 'k.lengths' holds " + std::to_string(length) +
                    " at " + std::to_string(b) + "; expected 0 to " +
                    std::to_string(room) + " - " + std::to_string(added) +
                    ", the tokens that a sequence has room for in '" + cache +
                    "' less the new ones");
      int64_t size = paged ? p.pageSize : room;
      if (size && added > 0)
        checkBlocks(*table.arg, *data, paged, b, paged ? length / size : 0,
                    paged ? (length + added - 1) / size : 0,
                    ", where new tokens go");
    }
  }
}

} // namespace

void kvbuf::rt::checkLengths(const Manifest &manifest,
                             const std::vector<TensorArg> &tensors,
                             const Sizes &sizes) {
  if (manifest.append)
    return checkAppend(manifest, tensors);
  if (!manifest.attention)
    return;
  const AttentionProblem &p = *manifest.attention;
  Integers queries = find(tensors, "q_offsets");
  const TensorArg *q = find(tensors, "q").arg;
  int64_t batch = q->shape[0];
  if (p.query == Layout::Ragged) {
    batch = queries.arg->shape[0] - 1;
    checkOffsets(queries, batch, q->shape[0], "q");
    auto longest = sizes.find("seq_q");
    bool asks = longest != sizes.end() && manifest.sizeNames().count("seq_q");
    for (int64_t b = 0; asks && b < batch; ++b)
      if (int64_t rows = queries[b + 1] - queries[b]; rows > longest->second)
        throw Error("size 'seq_q' is " + std::to_string(longest->second) +
                    ", but tensor 'q_offsets' gives " + std::to_string(rows) +
                    " rows to sequence " + std::to_string(b));
  }
  for (std::string cache : {"k", "v"}) {
    const TensorArg *data = find(tensors, cache).arg;
    checkOffsets(find(tensors, cache + ".offsets"), batch, data->shape[0],
                 cache);
    Integers lengths = find(tensors, cache + ".lengths");
    const TensorArg *table = find(tensors, cache + ".table").arg;
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
                  paged ? (keys - 1) / p.pageSize : 0,
                  ", which is looked up");
    }
  }
}
