//===- Spaces.h - Windows of the generic address space ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A global address is the host's address. Shared and private memory appear in
// the generic space at addresses that no host uses, the window in the upper
// half and the offset in the lower.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_SPACES_H
#define KVBUF_LIB_EMULATOR_SPACES_H

#include <cstdint>

namespace kvbuf::emu {

constexpr uint64_t sharedWindow = 0xE5000000ull << 32;
constexpr uint64_t localWindow = 0xE6000000ull << 32;
/// Functions have addresses here, and no memory behind them.
constexpr uint64_t codeWindow = 0xE7000000ull << 32;
constexpr uint64_t windowMask = 0xFFFFFFFFull << 32;

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_SPACES_H
