//===- Functions.h - The functions of an artifact, for tools ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TOOLS_SUPPORT_FUNCTIONS_H
#define KVBUF_TOOLS_SUPPORT_FUNCTIONS_H

#include "kvbuffer/Runtime/Artifact.h"

#include <string>
#include <vector>

namespace kvbuf::run {

/// A function, as an artifact of its own.
struct FunctionAlone {
  std::string name;
  Artifact artifact;
};

/// The functions of an artifact (kvbuffer/Runtime/Functions.h), or the one
/// called `name` alone. For code without exceptions: on failure returns false
/// with a message.
bool splitArtifact(const Artifact &artifact, const std::string &name,
                   std::vector<FunctionAlone> &functions, std::string &error);

} // namespace kvbuf::run

#endif // KVBUF_TOOLS_SUPPORT_FUNCTIONS_H
