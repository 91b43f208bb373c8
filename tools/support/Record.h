//===- Record.h - What a measurement was made with --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TOOLS_SUPPORT_RECORD_H
#define KVBUF_TOOLS_SUPPORT_RECORD_H

#include "Print.h"

#include <string>
#include <vector>

namespace kvbuf::run {

/// What every file of results says of its origin: `version`, `commit` (of the
/// tree that the tools were built from; left out where it is not known) and
/// `date` (UTC, "2026-11-22T18:05:00Z").
void addOrigin(Json &record);

/// A field of a CSV file (RFC 4180).
std::string csvField(const std::string &text);
/// A line of them.
std::string csvLine(const std::vector<std::string> &fields);

} // namespace kvbuf::run

#endif // KVBUF_TOOLS_SUPPORT_RECORD_H
