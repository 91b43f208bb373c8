//===- Options.cpp - Options of a run, from JSON --------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Emulator/Emulator.h"

using namespace kvbuf::emu;
namespace json = llvm::json;

llvm::Expected<Options> Options::fromJSON(llvm::StringRef text) {
  return fromJSON(text, Options());
}

llvm::Expected<Options> Options::fromJSON(llvm::StringRef text, Options o) {
  if (text.trim().empty())
    return o;
  auto parsed = json::parse(text);
  if (!parsed)
    return parsed.takeError();
  auto bad = [](const llvm::Twine &why) {
    return llvm::createStringError("emulator options: " + why);
  };
  const json::Object *object = parsed->getAsObject();
  if (!object)
    return bad("not a JSON object");
  for (const auto &[key, value] : *object) {
    llvm::StringRef name = key;
    if (name == "landing") {
      llvm::StringRef s = value.getAsString().value_or("");
      if (s == "late")
        o.landing = Landing::Late;
      else if (s == "random")
        o.landing = Landing::Random;
      else if (s == "eager")
        o.landing = Landing::Eager;
      else
        return bad("'landing' is late, random or eager");
      continue;
    }
    bool *flag = name == "races"            ? &o.races
                 : name == "lanes"          ? &o.lanes
                 : name == "uninitialized"  ? &o.uninitialized
                 : name == "landing_checks" ? &o.landingChecks
                 : name == "portable"       ? &o.portable
                 : name == "cut_sums"       ? &o.cutSums
                 : name == "strict"         ? &o.strict
                 : name == "trace"          ? &o.trace
                                            : nullptr;
    if (flag) {
      if (auto b = value.getAsBoolean())
        *flag = *b;
      else
        return bad("'" + name + "' is true or false");
      continue;
    }
    if (name == "chip") {
      if (auto s = value.getAsString())
        o.chip = s->str();
      else
        return bad("'chip' is a name");
      continue;
    }
    auto n = value.getAsInteger();
    // Bounds cannot be switched off: the memory is the host's.
    if (name == "bounds") {
      if (value.getAsBoolean() != true)
        return bad("'bounds' is always on");
      continue;
    }
    if (!n || *n < 0)
      return bad("unknown name or value for '" + name + "'");
    if (name == "seed")
      o.seed = *n;
    else if (name == "trace_block")
      o.traceBlock = *n;
    else if (name == "max_errors")
      o.maxErrors = *n;
    else if (name == "max_blocks")
      o.maxBlocks = *n;
    else if (name == "window")
      o.window = *n;
    else if (name == "jobs")
      o.jobs = std::min<int64_t>(*n, 1024);
    else if (name == "max_shared")
      o.maxShared = *n;
    else if (name == "banks" && (*n == 32 || *n == 64))
      o.banks = *n;
    else if (name == "max_instructions")
      o.maxInstructions = *n;
    else if (name == "max_memory")
      o.maxMemory = *n;
    else if (name == "max_private")
      o.maxPrivate = *n;
    else if (name == "max_value")
      o.maxValue = *n;
    else if (name == "max_call_depth")
      o.maxCallDepth = *n;
    else if (name == "max_operations")
      o.maxOperations = *n;
    else
      return bad("unknown name or value for '" + name + "'");
  }
  return o;
}
