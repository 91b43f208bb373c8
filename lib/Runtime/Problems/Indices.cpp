//===- Indices.cpp - Offsets, lengths and tables on the host --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Indices.h"
#include "kvbuffer/Runtime/Error.h"

using namespace kvbuf::rt;

Integers kvbuf::rt::findIntegers(const std::vector<TensorArg> &tensors,
                                 const std::string &name) {
  for (const TensorArg &arg : tensors)
    if (arg.name == name)
      return {&arg};
  return {};
}

void kvbuf::rt::checkOffsets(const Integers &offsets, int64_t batch,
                             int64_t rows, const std::string &of) {
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

void kvbuf::rt::checkBlocks(const TensorArg &table, const TensorArg &data,
                            bool paged, int64_t b, int64_t first, int64_t last,
                            const char *where) {
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
