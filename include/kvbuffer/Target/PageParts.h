//===- PageParts.h - Tiles over pages of a few rows -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_TARGET_PAGEPARTS_H
#define KVBUFFER_TARGET_PAGEPARTS_H

#include <cstdint>

namespace kvbuf {

/// What a tile of `rows` rows over pages of `page` rows is made of.
struct PageParts {
  /// Pages that lie in the tile, and rows of the two pages that its ends
  /// divide. Where tiles are whole pages there are none of those; else there
  /// are always as many, since tiles begin anywhere in a page.
  int64_t whole, single;

  /// Of a tile of `rows` rows over pages of `page`. `anywhere`: it may begin
  /// within a page although pages divide it.
  PageParts(int64_t rows, int64_t page, bool anywhere = false)
      : whole(rows / page), single(0) {
    if (rows % page || anywhere) {
      whole = (rows - page + 1) / page;
      single = rows - whole * page;
    }
  }
  /// Boxes of a copy engine: one of each page and of each row beside pages.
  int64_t boxes() const { return whole + single; }
};

} // namespace kvbuf

#endif // KVBUFFER_TARGET_PAGEPARTS_H
