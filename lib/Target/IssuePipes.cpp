//===- IssuePipes.cpp - What a multiprocessor issues, by unit -------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Target/IssuePipes.h"
#include "kvbuffer/Target/IssueModel.h"

using namespace kvbuf;

namespace {

/// Results in a cycle of a multiprocessor: CUDA C++ Programming Guide,
/// "Arithmetic Instructions", table of throughputs by compute capability.
struct NvidiaRates {
  double float32, integer, transcendental, convert, shuffle;
  /// Multiplications of 16-bit operands: the rate of the data sheets of the
  /// A100 (312e12 operations) and the H100 (989.4e12) over multiprocessors
  /// (108, 132) and clock (1410, 1830 MHz).
  double matrix;
};

} // namespace

static std::vector<IssuePipe> nvidiaPipes(const NvidiaRates &rates) {
  constexpr double lanes = 32;
  // Four schedulers issue one instruction a cycle each, and 32 lanes' addresses
  // go to memory in one (whitepapers of the A100 and the H100, "SM").
  constexpr double schedulers = 4, addresses = 32;
  return {
      {"issue", {{"all", 1 / schedulers}}},
      {"float", {{"float", lanes / rates.float32}}},
      {"integer", {{"integer", lanes / rates.integer}}},
      {"convert", {{"convert", lanes / rates.convert}}},
      {"transcendental", {{"transcendental", lanes / rates.transcendental}}},
      {"shuffle", {{"shuffle", lanes / rates.shuffle}}},
      {"load/store",
       {{"shared_load", lanes / addresses},
        {"shared_store", lanes / addresses},
        {"matrix_load", lanes / addresses},
        {"global_load", lanes / addresses},
        {"global_store", lanes / addresses},
        {"async_copy", lanes / addresses}}},
      {"shared memory", {{"shared_pass", 1}}},
      {"matrix", {{"matrix_product", 1 / rates.matrix}}}};
}

/// A compute unit's SIMDs each issue for waves of their own. An MFMA holds up
/// the vector unit while it issues; shuffles within a wave are vector
/// instructions.
static std::vector<IssuePipe> amdPipes(const IssueModel &model,
                                       const WaveLimits &limits) {
  double simds = limits.simdsPerUnit, plain = model.vector / simds;
  return {{"vector",
           {{"float", plain},
            {"integer", plain},
            {"shuffle", plain},
            {"convert", model.convertsPairs ? plain / 2 : plain},
            {"transcendental", model.transcendental / simds},
            {"matrix", model.matrixIssue / simds}}},
          {"LDS", {{"shared_pass", 1}}},
          {"matrix", {{"matrix_product", 1 / (model.matrixMacs * simds)}}}};
}

std::vector<IssuePipe> kvbuf::issuePipes(llvm::StringRef chip) {
  if (chip == "sm_80")
    return nvidiaPipes({/*float32=*/64, /*integer=*/64, /*transcendental=*/16,
                        /*convert=*/16, /*shuffle=*/32, /*matrix=*/1024});
  if (chip == "sm_90" || chip == "sm_90a")
    return nvidiaPipes({/*float32=*/128, /*integer=*/64, /*transcendental=*/16,
                        /*convert=*/64, /*shuffle=*/32, /*matrix=*/2048});
  std::optional<IssueModel> model = lookupIssueModel(chip);
  std::optional<WaveLimits> limits = lookupWaveLimits(chip);
  if (model && limits)
    return amdPipes(*model, *limits);
  return {};
}
