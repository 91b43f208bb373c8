//===- Main.cpp - Property tests of the layout algebra --------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Properties.h"
#include <cstdio>
#include <cstdlib>

using namespace kvbuf::test;

void Properties::holds(const std::string &name, const std::string &failure) {
  if (failure.empty()) {
    std::printf("ok: %s\n", name.c_str());
    return;
  }
  ++failures;
  std::printf("FAILED: %s: %s\n", name.c_str(), failure.c_str());
}

void Properties::catches(const std::string &name, const std::string &failure) {
  holds("caught: " + name,
        failure.empty() ? "the planted fault was not noticed" : "");
}

void Properties::skip(const std::string &name, const std::string &why) {
  std::printf("skipped: %s: %s\n", name.c_str(), why.c_str());
}

int main() {
  const char *fromUser = std::getenv("KVBUF_MFMA_TABLES");
  Properties properties;
  algebraProperties(properties);
  fragmentProperties(properties, fromUser ? fromUser : KVBUF_MFMA_TABLES);
  sharedProperties(properties);
  contractionProperties(properties);
  return properties.status();
}
