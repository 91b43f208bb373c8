//===- Candidates.cpp - Schedules worth measuring -------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Proposals.h"
#include "kvbuffer/Programs/ScheduleCandidates.h"

using namespace kvbuf;

/// Every warp loads and multiplies.
static constexpr llvm::StringLiteral kAlike[] = {
    "BM=64,128;BN=32,64,128;stages=2,3;warps=4,8"};

/// A team moves tiles for the others. Two groups of consumers with most of the
/// registers, three with a third each, one for few queries; then what changes
/// the order of work alone.
static constexpr llvm::StringLiteral kMovingTeam[] = {
    "BM=128;warps=8;producer_registers=24;consumer_registers=240;"
    "BN=64,80,96,112,128,144,160,176;q_in_regs=false,true;"
    "stage_output=false,true;tiles=grid,dynamic",
    "BM=192;warps=12;producer_registers=32;consumer_registers=160;"
    "BN=64,80,96,112,128;q_in_regs=false,true;tiles=grid,dynamic",
    "BM=64;warps=4;producer_registers=24;consumer_registers=240;"
    "BN=64,96,128,176;tiles=grid,dynamic",
    "ping_pong=true",
    "overlap_products=false",
    "cluster=2",
    "tiles=static",
    "stages=3"};

/// Tiles may go to LDS directly or through registers.
static constexpr llvm::StringLiteral kPaths[] = {
    "BM=64,128,256;BN=32,64,128;warps=4,8",
    "k_path=direct,registers;v_path=direct,registers;BN=32,64,128", "xcds=1"};

/// Blocks share the keys of few rows, whatever else: a warp has tiles of its
/// own, or several share them.
static constexpr llvm::StringLiteral kSplitKeys[] = {
    "split_keys=true;BN=16,32,64,128;stages=2,3,4",
    "split_keys=true;warps=1,2,4,8;BN=32,64", "split_keys=true;q_in_regs=false",
    "split_keys=true;equal_shares=false,true",
    "split_keys=true;split_size=256,512,1024"};
static constexpr llvm::StringLiteral kSplitKeysOfDies[] = {
    kSplitKeys[0], kSplitKeys[1], kSplitKeys[2],
    kSplitKeys[3], kSplitKeys[4], "split_keys=true;xcds=1"};

llvm::ArrayRef<llvm::StringLiteral>
kvbuf::splitKeysCandidates(const TargetInfo &target) {
  return target.dies > 1 ? llvm::ArrayRef(kSplitKeysOfDies)
                         : llvm::ArrayRef(kSplitKeys);
}

llvm::ArrayRef<llvm::StringLiteral>
kvbuf::scheduleCandidates(const TargetInfo &target) {
  if (target.warpsPerMatrixGroup())
    return kMovingTeam;
  return target.vendor == Vendor::AMD ? llvm::ArrayRef(kPaths)
                                      : llvm::ArrayRef(kAlike);
}

ScheduleChoice kvbuf::chooseSchedule(const TargetInfo &target,
                                     const ScheduleRequest &request) {
  if (request.latent)
    return kvbuf::detail::scheduleLatent(target, request);
  return target.vendor == Vendor::NVIDIA
             ? kvbuf::detail::scheduleNVIDIA(target, request)
             : kvbuf::detail::scheduleAMD(target, request);
}
