//===- Functions.cpp - The functions of an artifact -----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Functions.h"
#include "ManifestReader.h"

#include <algorithm>

using namespace kvbuf;
using namespace kvbuf::rt;

namespace {

/// What stands around the manifest of a function: an object in an array in an
/// object.
constexpr int kNestingOfFunctions = 3;

std::vector<std::string>
namesOf(const std::vector<ArtifactFunction> &functions) {
  std::vector<std::string> names;
  for (const ArtifactFunction &function : functions)
    names.push_back(function.manifest.name);
  return names;
}

ArtifactFunction parseFunction(const Reader &r, std::vector<bool> &taken) {
  ArtifactFunction function;
  for (const json &v : r.array("sections")) {
    if (!v.is_number_integer() || !fits64(v) || v.get<int64_t>() < 0 ||
        v.get<uint64_t>() >= taken.size())
      throw Error("manifest: " + r.at("sections") + " holds " + v.dump() +
                  "; the artifact has " + std::to_string(taken.size()) +
                  " sections, from 0 on");
    size_t number = v.get<size_t>();
    if (taken[number])
      throw Error("manifest: " + r.at("sections") + " holds " + v.dump() +
                  ", a section that was named before");
    taken[number] = true;
    function.sections.push_back(number);
  }
  // What is wrong in it is told as of an artifact of its own.
  function.text = r.get("manifest").dump();
  try {
    function.manifest = parseManifest(function.text);
  } catch (const Error &e) {
    throw Error(r.path + ": " + e.what());
  }
  const std::string &name = function.manifest.name;
  if (name.empty() || name.size() > kLongestName)
    throw Error("manifest: " + r.at("manifest.name") + " has " +
                std::to_string(name.size()) + " bytes; expected 1 to " +
                std::to_string(kLongestName));
  // C strings tell functions apart.
  if (name.find('\0') != name.npos)
    throw Error("manifest: " + r.at("manifest.name") + " holds a zero");
  return function;
}

} // namespace

std::vector<ArtifactFunction> rt::parseFunctions(const Artifact &artifact) {
  std::vector<ArtifactFunction> functions;
  json root = parseJson(artifact.manifest, kNestingOfFunctions);
  Reader r(root, "manifest");
  if (r.integer("kvbuf") != kSeveralFunctions) {
    ArtifactFunction &only = functions.emplace_back();
    only.text = artifact.manifest;
    only.manifest = parseManifest(only.text);
    for (size_t i = 0; i < artifact.sections.size(); ++i)
      only.sections.push_back(i);
    return functions;
  }
  (void)r.string("name");
  const json &list = r.array("functions");
  if (list.size() < 2 || list.size() > kMostFunctions)
    throw Error("manifest: " + r.at("functions") + " has " +
                std::to_string(list.size()) + " entries; expected 2 to " +
                std::to_string(kMostFunctions));
  std::vector<bool> taken(artifact.sections.size());
  std::set<std::string> names;
  for (const json &entry : list) {
    std::string path =
        r.path + ".functions[" + std::to_string(functions.size()) + "]";
    functions.push_back(parseFunction(Reader(entry, path), taken));
    if (const std::string &name = functions.back().manifest.name;
        !names.insert(name).second)
      throw Error("manifest: " + path + " has the name '" + name +
                  "' of a function before it");
  }
  return functions;
}

const ArtifactFunction &
rt::findFunction(const std::vector<ArtifactFunction> &functions,
                 const std::string &name) {
  for (const ArtifactFunction &function : functions)
    if (function.manifest.name == name)
      return function;
  throw Error("there is no function '" + name + "'; the artifact has " +
              quotedList(namesOf(functions), "and"));
}

const ArtifactFunction &
rt::onlyFunction(const std::vector<ArtifactFunction> &functions,
                 const std::string &how) {
  if (functions.size() > 1)
    throw Error("the artifact has " + std::to_string(functions.size()) +
                " functions, " + quotedList(namesOf(functions), "and") +
                "; choose one with " + how);
  return functions.front();
}

Artifact rt::extractFunction(const Artifact &artifact,
                             const ArtifactFunction &function) {
  Artifact alone;
  alone.manifest = function.text;
  for (size_t number : function.sections)
    alone.sections.push_back(artifact.sections[number]);
  return alone;
}
