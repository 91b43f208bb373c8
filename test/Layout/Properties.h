//===- Properties.h - Reporting of checked properties -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TEST_LAYOUT_PROPERTIES_H
#define KVBUF_TEST_LAYOUT_PROPERTIES_H

#include <string>

namespace kvbuf::test {

/// Prints one line per property and remembers whether one failed.
class Properties {
public:
  /// `failure` describes a counterexample; empty: the property holds.
  void holds(const std::string &name, const std::string &failure);
  /// A planted fault: the same check applied to a wrong object must find a
  /// counterexample.
  void catches(const std::string &name, const std::string &failure);
  /// A property that cannot be checked here.
  void skip(const std::string &name, const std::string &why);
  /// The process's exit status.
  int status() const { return failures != 0; }

private:
  unsigned failures = 0;
};

void algebraProperties(Properties &properties);
/// `tables`: the folder of AMD's matrix calculator's output, or empty.
void fragmentProperties(Properties &properties, const std::string &tables);
void sharedProperties(Properties &properties);
void contractionProperties(Properties &properties);

} // namespace kvbuf::test

#endif // KVBUF_TEST_LAYOUT_PROPERTIES_H
