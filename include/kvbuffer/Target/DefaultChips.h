//===- DefaultChips.h - Chips where nothing names one -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The chips that are compiled for where neither the user nor the input names
/// one. No LLVM in it: tools without a compiler need them as well.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_TARGET_DEFAULTCHIPS_H
#define KVBUFFER_TARGET_DEFAULTCHIPS_H

namespace kvbuf {

/// Of the compiler, its passes and pipelines, and of tools with no GPU to ask.
inline constexpr char kDefaultChip[] = "sm_80";
/// Of pipelines that are AMD's alone.
inline constexpr char kDefaultAMDChip[] = "gfx950";

} // namespace kvbuf

#endif // KVBUFFER_TARGET_DEFAULTCHIPS_H
