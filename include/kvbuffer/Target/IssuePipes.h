//===- IssuePipes.h - What a multiprocessor issues, by unit -----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A coarse model of a kernel's work where nothing is timed. The emulator
/// counts instructions of warps by class, and each unit of a multiprocessor
/// (NVIDIA) or compute unit (AMD) takes a fixed part of a cycle for one. The
/// unit with the most cycles bounds the kernel. Left out: device memory,
/// dependences, waiting, how many warps there are to hide it, how blocks share
/// out the multiprocessors, and what the backend makes of the instructions.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_TARGET_ISSUEPIPES_H
#define KVBUFFER_TARGET_ISSUEPIPES_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <utility>
#include <vector>

namespace kvbuf {

/// One unit of a multiprocessor.
struct IssuePipe {
  /// For people: "shared memory".
  std::string name;
  /// Cycles for one of what the emulator counts: an instruction of a warp by
  /// its class; "all", one of any class; "shared_pass", one pass of an access
  /// to shared memory; "matrix_product", one multiplication of 16-bit operands
  /// in the matrix unit.
  std::vector<std::pair<std::string, double>> cycles;
};

/// The units of a chip; empty where they are not described.
std::vector<IssuePipe> issuePipes(llvm::StringRef chip);

} // namespace kvbuf

#endif // KVBUFFER_TARGET_ISSUEPIPES_H
