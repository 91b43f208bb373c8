//===- Vendors.h - The vendors' parts of TargetInfo -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_TARGET_VENDORS_H
#define KVBUFFER_LIB_TARGET_VENDORS_H

#include "kvbuffer/Target/TargetInfo.h"

namespace kvbuf::detail {

/// A vendor's chip of that name; nothing if it is not this vendor's.
std::optional<TargetInfo> lookupNVIDIA(llvm::StringRef chip);
std::optional<TargetInfo> lookupAMD(llvm::StringRef chip);

/// TargetInfo::swizzle on AMD's chips.
Swizzle swizzleAMD(const TargetInfo &target, const MatrixInstruction &mma,
                   int64_t rowBytes, int64_t elementBytes, bool transposed,
                   bool direct);

/// AMD's gfx1250, whose waves have 32 lanes, but for what all of the vendor's
/// chips have alike.
TargetInfo describeGFX1250();

/// See TargetInfo::whyNot.
std::optional<std::string> whyNotAMD(const TargetInfo &target,
                                     llvm::StringRef op);
std::optional<std::string> whyNotNVIDIA(const TargetInfo &target,
                                        llvm::StringRef op);

} // namespace kvbuf::detail

#endif // KVBUFFER_LIB_TARGET_VENDORS_H
