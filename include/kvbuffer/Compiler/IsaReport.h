//===- IsaReport.h - What the code of an AMD kernel is made of --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A static report of a code object (HSACO): what its kernels take of a compute
/// unit, what their loops over MFMAs consist of, and how well these loops could
/// keep the matrix unit busy. Everything is read off the finished code, by
/// LLVM's disassembler: what is counted is what runs.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_COMPILER_ISAREPORT_H
#define KVBUFFER_COMPILER_ISAREPORT_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace kvbuf {

struct MemoryModel;

/// Instructions by class. Every instruction is in one of the classes up to
/// `other`; those after it are parts of the class they name.
struct IsaCounts {
  int64_t mfma = 0;
  /// Vector instructions other than MFMAs.
  int64_t valu = 0;
  int64_t ldsReads = 0, ldsWrites = 0;
  /// Of LDS, without a memory access to wait for (ds_bpermute, ds_swizzle).
  int64_t ldsExchanges = 0;
  /// Buffer, global and flat accesses, LDS-DMA among them.
  int64_t vmem = 0;
  /// Scratch memory: what did not fit into registers.
  int64_t scratch = 0;
  int64_t scalar = 0;
  int64_t waits = 0, nops = 0, barriers = 0, branches = 0, other = 0;

  /// Of `valu`: transcendental, packed fp32, dot products, and moves from and
  /// to accumulation registers.
  int64_t transcendental = 0, packed = 0, dot = 0, accMoves = 0;
  /// Of `vmem`: copies from DRAM into LDS.
  int64_t ldsDma = 0;
  /// Of `nops`: cycles that they wait, in units of 4 clocks.
  int64_t nopCycles = 0;

  /// All instructions.
  int64_t total() const {
    return mfma + valu + ldsReads + ldsWrites + ldsExchanges + vmem + scratch +
           scalar + waits + nops + barriers + branches + other;
  }
};

/// One s_waitcnt; a counter that it does not wait for is negative.
struct IsaWait {
  int vmcnt = -1, lgkmcnt = -1;
};

/// Bytes that a wave has on their way from memory in the steady state of a
/// loop, by its loads and the waits for them.
struct IsaFlight {
  /// Loaded in an iteration.
  int64_t loaded = 0;
  /// At most, which is before it waits; at least after a wait.
  int64_t most = 0, afterWaits = 0;
};

/// What lies between two barriers of a loop.
struct IsaStage {
  IsaCounts counts;
  /// Cycles of the stage's MFMAs, and those that issuing the stage takes by the
  /// model.
  int64_t mfmaCycles = 0, issueCycles = 0;
  /// The same, if transcendental instructions cannot run beside an MFMA.
  int64_t issueCyclesExposed = 0;
  /// Cycles that a wave takes of its SIMD's vector unit, and of its unit's LDS.
  int64_t vectorCycles = 0, ldsCycles = 0;
};

/// Cycles that each part of a compute unit needs for an iteration of all waves
/// that fit: parts that all of a unit's waves, or those of a SIMD, share.
struct IsaUnitCycles {
  double matrix = 0, vector = 0, lds = 0;

  /// Of the one that needs the most, and what it is called.
  double most() const { return std::max({matrix, vector, lds}); }
  llvm::StringRef binds() const;
  /// MFMA cycles over those: no order of instructions gives more.
  double mfmaShare() const { return most() > 0 ? matrix / most() : 0; }
};

/// A natural loop with MFMAs that are in no inner loop.
struct IsaLoop {
  /// Bytes from the kernel's first instruction.
  uint64_t begin = 0, end = 0;
  /// The steady state: the loop's blocks that lie between `begin` and `end`.
  IsaCounts counts;
  /// Blocks of the loop that LLVM has placed elsewhere, because it takes them
  /// to be rare.
  IsaCounts outOfLine;
  /// Cycles that these take to issue, all of them.
  int64_t outOfLineCycles = 0;
  IsaFlight flight;
  /// In program order.
  llvm::SmallVector<IsaWait> waits;
  /// In program order from the first barrier on; one, if there is no barrier.
  std::vector<IsaStage> stages;

  /// Vector instructions that are no MFMA, per MFMA.
  double valuPerMfma() const;
  /// MFMA cycles over issue cycles; see `printIsaReport` for what it assumes.
  double mfmaShare() const;
  /// The same, if transcendental instructions cannot run beside an MFMA.
  double mfmaShareExposed() const;
  /// MFMA cycles over issue cycles of an iteration that goes through all that
  /// is out of line, too, with no MFMA beside it: none has less.
  double mfmaShareOutOfLine() const;
  /// Issue cycles over those in which the memory of a device brings what the
  /// iteration loads, when all SIMDs of a unit work: below 1 memory decides.
  double issueShare(const MemoryModel &memory) const;
  /// What `waves` of a compute unit need, as many on each SIMD.
  IsaUnitCycles unitCycles(int64_t waves) const;
  /// Whether a wait in the steady state lets no memory access stay in flight.
  bool drains() const;
};

/// One kernel of a code object. Registers and bytes are the metadata's.
struct IsaKernel {
  std::string name;
  /// ArchVGPRs and AccVGPRs together; the latter alone; SGPRs.
  int64_t vgprs = 0, agprs = 0, sgprs = 0;
  /// Registers that were spilled.
  int64_t vgprSpills = 0, sgprSpills = 0;
  /// Bytes a lane.
  int64_t scratchBytes = 0;
  /// Bytes a workgroup, without what the launch adds.
  int64_t ldsBytes = 0;
  int64_t kernargBytes = 0;
  int64_t threads = 0, waveSize = 64;
  /// Waves of this kernel that a SIMD can hold; 0 if one workgroup does not
  /// fit, negative if the chip's limits are not known.
  int64_t wavesPerSimd = -1;
  /// The same of a compute unit, in whole workgroups.
  int64_t wavesPerUnit = -1;
  int64_t codeBytes = 0;
  IsaCounts counts;
  /// By address.
  std::vector<IsaLoop> loops;

  /// The loop with the most MFMAs, and of equals the one with the fewest
  /// instructions: a loop that masks its tiles is a longer copy of the one that
  /// most tiles go through. Null if no loop has an MFMA.
  const IsaLoop *hotLoop() const;
};

/// The kernels of a code object, by address.
struct IsaReport {
  std::string chip;
  std::vector<IsaKernel> kernels;
};

/// True if these first bytes are those of an ELF file.
bool looksLikeElf(llvm::StringRef bytes);

/// Reads and disassembles a code object. Errors say what is missing: an ELF
/// file for another machine, metadata, a kernel's code, an instruction that the
/// disassembler does not know. `dynamicLdsBytes` is what a launch adds to each
/// kernel's LDS; it counts for the waves of a SIMD.
llvm::Expected<IsaReport> analyzeCodeObject(llvm::StringRef hsaco,
                                            int64_t dynamicLdsBytes = 0);

/// What is wrong with a code object of any compiler, a line each: releases and
/// acquires that do not wait as LLVM's AMDGPUUsage ("Memory Model GFX942")
/// asks, results that are read too early, instructions on pairs of f32 where
/// the chip gets them wrong, registers that were spilled, memory of lanes
/// (scratch). Fails where it cannot be read.
llvm::Expected<std::vector<std::string>> checkCodeObject(llvm::StringRef hsaco);

/// Prints the report for people, with the assumptions of its model.
void printIsaReport(const IsaReport &report, llvm::raw_ostream &os);

/// The report as JSON; keys are the members' names in snake case.
llvm::json::Value isaReportToJSON(const IsaReport &report);

} // namespace kvbuf

#endif // KVBUFFER_COMPILER_ISAREPORT_H
