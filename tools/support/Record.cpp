//===- Record.cpp - What a measurement was made with ----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Record.h"
#include "Commit.inc"

#include <ctime>

using namespace kvbuf;

void run::addOrigin(Json &record) {
  record["version"] = KVBUF_VERSION;
  if (std::string commit = KVBUF_COMMIT; !commit.empty())
    record["commit"] = commit;
  std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  record["date"] = text;
}

std::string run::csvField(const std::string &text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos)
    return text;
  std::string quoted = "\"";
  for (char c : text)
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string run::csvLine(const std::vector<std::string> &fields) {
  std::string line;
  for (const std::string &field : fields)
    line += (&field == &fields.front() ? "" : ",") + csvField(field);
  return line + "\n";
}
