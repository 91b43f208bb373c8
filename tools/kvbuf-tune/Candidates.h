//===- Candidates.h - Sets of schedules -------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TUNE_CANDIDATES_H
#define KVBUF_TUNE_CANDIDATES_H

#include <string>
#include <vector>

namespace kvbuf::tune {

/// The schedules of lists such as "BM=128,192;BN=128,176", each of which stands
/// for its Cartesian product, as texts for the compiler: "BM=128,BN=128". The
/// first one is always "", the compiler's own choice; repetitions are left out.
/// Throws rt::Error for a list that cannot be read, and for too many schedules.
std::vector<std::string> parseCandidates(const std::vector<std::string> &lists);

} // namespace kvbuf::tune

#endif // KVBUF_TUNE_CANDIDATES_H
