//===- include/kvbuffer/Runtime/Npy.h - NumPy's array files -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// The .npy format, versions 1 to 3, for the element types that kernels take.
// NumPy has no bfloat16: it is read from '<u2' and from the two-byte void type
// '|V2' that other libraries save it as, and written as '<u2'.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_NPY_H
#define KVBUFFER_RUNTIME_NPY_H

#include "kvbuffer/Runtime/DType.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kvbuf::rt {

/// An array in row-major order.
struct NpyArray {
  /// NumPy's type string: "<f2", "<u2", ...
  std::string descr;
  std::vector<int64_t> shape;
  std::string data;
};

/// Reads a .npy file whose elements can stand for `dtype`. Throws Error that
/// names the path and says what was expected: another type, Fortran order, a
/// truncated or damaged file.
NpyArray readNpy(const std::string &path, DType dtype);

/// The file image of a row-major array.
std::string formatNpy(DType dtype, const std::vector<int64_t> &shape,
                      const std::string &data);

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_NPY_H
