//===- ManifestKernels.h - Kernels of a manifest ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_RUNTIME_MANIFESTKERNELS_H
#define KVBUFFER_LIB_RUNTIME_MANIFESTKERNELS_H

#include "ManifestReader.h"

namespace kvbuf::rt {

/// An extent or an argument: a number, the name of a size, or an operation on
/// such. `path` names the field in errors.
SizeExpr parseExpr(const json &v, const std::string &path);

/// An entry of "kernels", whose arguments are tensors and scratch memory that
/// the manifest has already. Throws Error.
KernelSpec parseKernel(const Reader &r, Manifest &m);

/// An entry of "copies": a kernel that copies a tensor for others.
KernelSpec parseCopy(const Reader &r, Manifest &m);

/// Checks that every "instead" names a kernel, and that following them comes to
/// an end; and that every "beside" does, which nothing runs beside.
void checkAlternatives(const Manifest &m);

} // namespace kvbuf::rt

#endif // KVBUFFER_LIB_RUNTIME_MANIFESTKERNELS_H
