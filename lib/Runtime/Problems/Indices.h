//===- Indices.h - Offsets, lengths and tables on the host ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_RUNTIME_PROBLEMS_INDICES_H
#define KVBUFFER_LIB_RUNTIME_PROBLEMS_INDICES_H

#include "kvbuffer/Runtime/Launch.h"

namespace kvbuf::rt {

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

/// The tensor of that name.
Integers findIntegers(const std::vector<TensorArg> &tensors,
                      const std::string &name);

/// Prefix sums of the rows of `batch` sequences, if they are there: they never
/// fall and end within the `rows` of the tensor `of`.
void checkOffsets(const Integers &offsets, int64_t batch, int64_t rows,
                  const std::string &of);

/// The entries from `first` to `last`, included, of sequence `b` in a table of
/// pages, or of whole sequences (`paged` false, entry 0): blocks of `data`.
/// `where` says in a message what they are of.
void checkBlocks(const TensorArg &table, const TensorArg &data, bool paged,
                 int64_t b, int64_t first, int64_t last, const char *where);

} // namespace kvbuf::rt

#endif // KVBUFFER_LIB_RUNTIME_PROBLEMS_INDICES_H
