//===- MapCoordinates.h - Which indices are coordinates ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_MAPCOORDINATES_H
#define KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_MAPCOORDINATES_H

#include "mlir/IR/Value.h"

namespace kvbuf {

/// Whether an index outside of a map's region is a row, a key, a size or a
/// number of these's kind, by where it comes from: regions compute with such
/// numbers in 32 bits. What a tensor holds may be any number, unless it is
/// clamped on both sides, and so may a product of two numbers.
bool isCoordinate(mlir::Value value);

} // namespace kvbuf

#endif // KVBUFFER_LIB_CONVERSION_KVBUFFERTOGPU_MAPCOORDINATES_H
