//===- Functions.cpp - The functions of an artifact, for tools ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Functions.h"
#include "kvbuffer/Runtime/Functions.h"

using namespace kvbuf;

bool run::splitArtifact(const Artifact &artifact, const std::string &name,
                        std::vector<FunctionAlone> &functions,
                        std::string &error) {
  try {
    std::vector<rt::ArtifactFunction> all = rt::parseFunctions(artifact);
    auto add = [&](const rt::ArtifactFunction &function) {
      functions.push_back(
          {function.manifest.name, rt::extractFunction(artifact, function)});
    };
    if (!name.empty())
      add(rt::findFunction(all, name));
    else
      for (const rt::ArtifactFunction &function : all)
        add(function);
    return true;
  } catch (const std::exception &e) {
    error = e.what();
    return false;
  }
}
