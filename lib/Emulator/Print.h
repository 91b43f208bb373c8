//===- Print.h - Messages from kernels to the host --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_PRINT_H
#define KVBUF_LIB_EMULATOR_PRINT_H

#include <cstdint>
#include <string>
#include <vector>

namespace kvbuf::emu {

/// What the instruction Print does; its list holds addresses and numbers.
enum class PrintKind : uint8_t {
  /// CUDA's `vprintf(format, arguments)`; 0 or 1 into dst.
  Vprintf,
  /// `printf(format, ...)`; imm = a bit for each argument of 64 bits.
  Printf,
  /// CUDA's `__assertfail(message, file, line, function)`.
  AssertFail,
  /// HIP's `__ockl_[f]printf...`: begin (imm = 1: on stderr), append a string
  /// (address, bytes, whether it is the last part), append numbers (whether
  /// they are the last part, then the numbers).
  OcklBegin,
  OcklString,
  OcklNumbers,
};

/// A message of HIP's that a lane is about to make: the format, and what
/// follows.
struct OcklMessage {
  bool onStderr = false, hasFormat = false;
  std::string format;
  struct Part {
    bool isText;
    std::string text;
    uint64_t number;
  };
  std::vector<Part> parts;
};

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_PRINT_H
