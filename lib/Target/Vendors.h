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
#include "llvm/Support/MathExtras.h"
#include <utility>

namespace kvbuf::detail {

/// A vendor's chip of that name; nothing if it is not this vendor's.
std::optional<TargetInfo> lookupNVIDIA(llvm::StringRef chip);
std::optional<TargetInfo> lookupAMD(llvm::StringRef chip);

/// TargetInfo::swizzle on AMD's chips.
Swizzle swizzleAMD(const TargetInfo &target, const MatrixInstruction &mma,
                   int64_t rowBytes, int64_t elementBytes, bool transposed,
                   bool direct);

/// The head sizes of Q and K, and of V and O, padded to whole LDS blocks of
/// `BK` columns.
inline std::pair<int64_t, int64_t>
paddedHeadSizes(const ScheduleRequest &request, int64_t BK) {
  return {llvm::alignTo(request.headSize, BK),
          llvm::alignTo(request.valueHeadSize, BK)};
}

/// A vendor's default schedule.
ScheduleChoice scheduleNVIDIA(const TargetInfo &target,
                              const ScheduleRequest &request);
/// Fills in a schedule with a team that moves, where the chip and the problem
/// allow one; else returns false and, where only the problem is in the way,
/// says why in `choice.note`. Expects `choice.mma` and `choice.BK`.
bool chooseMovingTeam(const TargetInfo &target, const ScheduleRequest &request,
                      ScheduleChoice &choice);
/// The same for quantized caches, whose elements one more team widens.
bool chooseWideningTeam(const TargetInfo &target,
                        const ScheduleRequest &request, ScheduleChoice &choice);
/// The same for products of bytes, whose values one more team turns.
bool chooseTurningTeam(const TargetInfo &target, const ScheduleRequest &request,
                       ScheduleChoice &choice);
ScheduleChoice scheduleAMD(const TargetInfo &target,
                           const ScheduleRequest &request);

/// AMD's gfx1250, whose waves have 32 lanes, but for what all of the vendor's
/// chips have alike.
TargetInfo describeGFX1250();
/// Its default schedule.
ScheduleChoice scheduleGFX1250(const TargetInfo &target,
                               const ScheduleRequest &request);

/// The default schedule of latent attention on any chip.
ScheduleChoice scheduleLatent(const TargetInfo &target,
                              const ScheduleRequest &request);

/// See TargetInfo::whyNot.
std::optional<std::string> whyNotAMD(const TargetInfo &target,
                                     llvm::StringRef op);
std::optional<std::string> whyNotNVIDIA(const TargetInfo &target,
                                        llvm::StringRef op);

} // namespace kvbuf::detail

#endif // KVBUFFER_LIB_TARGET_VENDORS_H
