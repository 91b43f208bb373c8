//===- Functions.h - The functions of an artifact ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An artifact holds one function or several: each is what one launch computes,
// with kernels, arguments and code of its own. The manifest of an artifact with
// one is that function's (Manifest.h). With several it is
//   {"kvbuf": 3, "producer": ..., "name": ...,
//    "functions": [{"manifest": {...}, "sections": [0, 1]}, ...]}
// where each "manifest" is that of an artifact with this function alone, whose
// "name" is the function's, and "sections" are the numbers of the artifact's
// sections that are this function's, and no other's.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_FUNCTIONS_H
#define KVBUFFER_RUNTIME_FUNCTIONS_H

#include "kvbuffer/Runtime/Artifact.h"
#include "kvbuffer/Runtime/Manifest.h"

#include <string>
#include <vector>

namespace kvbuf::rt {

/// One function of an artifact.
struct ArtifactFunction {
  /// What an artifact of this function alone has for its manifest, as text and
  /// parsed; `manifest.name` is the function's name.
  std::string text;
  Manifest manifest;
  /// Numbers of the artifact's sections that are its own.
  std::vector<size_t> sections;
};

/// The most functions of an artifact, and the longest name of one of several.
inline constexpr size_t kMostFunctions = 1024, kLongestName = 1024;

/// Parses and validates the manifest of an artifact: at least one function.
/// Throws Error that names the offending field.
std::vector<ArtifactFunction> parseFunctions(const Artifact &artifact);

/// The function of this name; throws Error that lists those that there are.
const ArtifactFunction &
findFunction(const std::vector<ArtifactFunction> &functions,
             const std::string &name);

/// The only function; throws Error that lists them if there are several, and
/// says `how` to choose one.
const ArtifactFunction &
onlyFunction(const std::vector<ArtifactFunction> &functions,
             const std::string &how);

/// An artifact of one function alone.
Artifact extractFunction(const Artifact &artifact,
                         const ArtifactFunction &function);

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_FUNCTIONS_H
