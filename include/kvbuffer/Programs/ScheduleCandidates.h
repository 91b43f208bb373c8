//===- ScheduleCandidates.h - Schedules worth measuring ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_PROGRAMS_SCHEDULECANDIDATES_H
#define KVBUFFER_PROGRAMS_SCHEDULECANDIDATES_H

#include "kvbuffer/Target/TargetInfo.h"

namespace kvbuf {

/// What to measure when a chip's schedules are tuned: lists as kvbuf-tune takes
/// them ("BM=64,128;BN=32,64"), each of which stands for its Cartesian product.
/// They span the chip's table of schedules; what does not fit a problem is left
/// to the verifier of schedules.
llvm::ArrayRef<llvm::StringLiteral>
scheduleCandidates(const TargetInfo &target);

/// The same for problems of so few rows that their keys are split over blocks,
/// of which `scheduleCandidates` has none.
llvm::ArrayRef<llvm::StringLiteral>
splitKeysCandidates(const TargetInfo &target);

} // namespace kvbuf

#endif // KVBUFFER_PROGRAMS_SCHEDULECANDIDATES_H
