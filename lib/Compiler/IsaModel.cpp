//===- IsaModel.cpp - Issue cycles of a loop, waves of a SIMD -------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The issue model looks at one wave alone, in program order. An MFMA occupies
// the matrix unit for a fixed number of clocks (LLVM's scheduling model of the
// chip). Plain vector instructions after it issue in its shadow, except in the
// few clocks that the MFMA itself takes to issue; where they take longer than
// the shadow is, the matrix unit idles. Packed fp32 and dot products do not
// issue beside an MFMA at all (LLVM, SIInstrInfo::isNeverCoissue). That
// function names transcendental instructions too, while measurements of
// attention kernels that hide them exist: the model lets them run in the
// shadow, and gives a second figure for the case that they cannot.
//
// What waves share is added up beside it, in no order: cycles of the SIMD's
// matrix and vector units, and of the unit's LDS, one width of its banks a
// cycle. What comes to the most binds, whatever the order.
//
// What it leaves out: waiting for memory and for other waves, bank conflicts
// (which addresses decide; the emulator counts them), dependences, and power.
// It is an upper limit, to see what the order of instructions loses.
//
//===----------------------------------------------------------------------===//

#include "Isa.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <deque>
#include <limits>

using namespace kvbuf;

namespace {

/// Cycles of the vector unit that are this instruction's alone.
unsigned vectorCycles(const IsaInstruction &instruction,
                      const IssueModel &model) {
  if (instruction.kind == IsaClass::Mfma)
    return model.matrixIssue;
  if (instruction.kind != IsaClass::Valu)
    return 0;
  return instruction.packed           ? model.packed
         : instruction.transcendental ? model.transcendental
                                      : model.vector;
}

/// Adds up the cycles of one stage.
class StageClock {
public:
  StageClock(const IssueModel &model, bool exposeTranscendental)
      : model(model), expose(exposeTranscendental) {}

  void issue(const IsaInstruction &instruction) {
    if (instruction.kind == IsaClass::Mfma) {
      close();
      matrix = instruction.mfmaCycles;
    } else if (instruction.kind == IsaClass::Valu) {
      bool hidden = !instruction.packed && !instruction.dot &&
                    !(expose && instruction.transcendental);
      (hidden ? shadow : total) += vectorCycles(instruction, model);
    }
  }

  int64_t finish() {
    close();
    return total;
  }

private:
  /// Ends the shadow of the last MFMA.
  void close() {
    total += matrix ? std::max(matrix, model.matrixIssue + shadow) : shadow;
    matrix = shadow = 0;
  }

  const IssueModel &model;
  bool expose;
  int64_t total = 0, matrix = 0, shadow = 0;
};

} // namespace

int64_t kvbuf::issueCycles(llvm::ArrayRef<const IsaInstruction *> instructions,
                           const IssueModel &model) {
  StageClock clock(model, false);
  for (const IsaInstruction *instruction : instructions)
    clock.issue(*instruction);
  return clock.finish();
}

std::vector<IsaStage>
kvbuf::modelStages(llvm::ArrayRef<const IsaInstruction *> body,
                   const std::optional<IssueModel> &model, int64_t waveSize) {
  // A loop has no begin: what stands before its first barrier belongs to
  // the stage after the last one.
  auto first = llvm::find_if(body, [](const IsaInstruction *instruction) {
    return instruction->kind == IsaClass::Barrier;
  });
  llvm::SmallVector<const IsaInstruction *> rotated(first, body.end());
  rotated.append(body.begin(), first);

  std::vector<llvm::SmallVector<const IsaInstruction *>> parts;
  for (const IsaInstruction *instruction : rotated) {
    if (parts.empty() || instruction->kind == IsaClass::Barrier)
      parts.emplace_back();
    parts.back().push_back(instruction);
  }
  std::vector<IsaStage> stages;
  for (const auto &part : parts) {
    IsaStage &stage = stages.emplace_back();
    for (const IsaInstruction *instruction : part) {
      countInstruction(stage.counts, *instruction);
      stage.mfmaCycles += instruction->mfmaCycles;
    }
    if (!model)
      continue;
    StageClock clock(*model, false), exposed(*model, true);
    for (const IsaInstruction *instruction : part) {
      clock.issue(*instruction);
      exposed.issue(*instruction);
      stage.vectorCycles += vectorCycles(*instruction, *model);
      stage.ldsCycles +=
          llvm::divideCeil(instruction->ldsBytes * waveSize, model->ldsBytes);
    }
    stage.issueCycles = clock.finish();
    stage.issueCyclesExposed = exposed.finish();
  }
  return stages;
}

IsaFlight kvbuf::flightOf(llvm::ArrayRef<const IsaInstruction *> body,
                          int64_t waveSize) {
  // The counter's largest number: a wave does not issue more.
  constexpr size_t kMostOutstanding = 63;
  // Bytes of each access that is not waited for, oldest first.
  std::deque<int64_t> accesses;
  IsaFlight flight;
  int64_t bytes = 0;
  auto retire = [&](size_t left) {
    for (; accesses.size() > left; accesses.pop_front())
      bytes -= accesses.front();
  };
  // Iterations until what is on its way at the beginning repeats; the last one
  // counts.
  constexpr int kIterations = 8;
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    flight = IsaFlight();
    bool waits = false;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const IsaInstruction *instruction : body) {
      if (instruction->kind == IsaClass::Vmem) {
        retire(kMostOutstanding - 1);
        accesses.push_back(instruction->loadBytes * waveSize);
        bytes += accesses.back();
        flight.loaded += accesses.back();
        flight.most = std::max(flight.most, bytes);
      } else if (instruction->kind == IsaClass::Wait &&
                 instruction->wait.vmcnt >= 0) {
        retire(instruction->wait.vmcnt);
        least = std::min(least, bytes);
        waits = true;
      }
    }
    flight.most = std::max(flight.most, bytes);
    flight.afterWaits = waits ? least : flight.most;
  }
  return flight;
}

int64_t kvbuf::wavesPerUnit(const IsaKernel &kernel, int64_t ldsBytes,
                            const WaveLimits &limits) {
  auto fit = [](int64_t all, int64_t each, int64_t granule) {
    return each > 0 ? all / static_cast<int64_t>(llvm::alignTo(each, granule))
                    : std::numeric_limits<int64_t>::max();
  };
  int64_t waves = limits.wavesPerSimd;
  waves = std::min(
      waves, fit(limits.vectorRegisters, kernel.vgprs, limits.vectorGranule));
  waves = std::min(
      waves, fit(limits.scalarRegisters, kernel.sgprs, limits.scalarGranule));
  // Whole workgroups are placed; their waves are dealt to the SIMDs in turn.
  int64_t wavesPerGroup = std::max<int64_t>(
      1, llvm::divideCeil(std::max<int64_t>(1, kernel.threads),
                          std::max<int64_t>(1, kernel.waveSize)));
  int64_t groups = std::min(fit(limits.ldsBytes, ldsBytes, limits.ldsGranule),
                            waves * limits.simdsPerUnit / wavesPerGroup);
  return groups * wavesPerGroup;
}
