//===- BarrierNumbers.h - Named barriers of a block ------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_BARRIERNUMBERS_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_BARRIERNUMBERS_H

#include <cstdint>

namespace kvbuf {

/// Which of a block's named barriers are taken. Number 0 is the whole block's.
/// How many there are is the target's; who takes them checks it.
class BarrierNumbers {
public:
  /// The first of `count` numbers in a row, which nobody has.
  int64_t take(int64_t count = 1) {
    int64_t first = next;
    next += count;
    return first;
  }
  /// How many are taken, with the block's own.
  int64_t taken() const { return next; }

private:
  int64_t next = 1;
};

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_BARRIERNUMBERS_H
