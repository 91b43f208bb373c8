//===- kvbuf-inspect.cpp - What an artifact holds -------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../support/CommandLine.h"
#include "../support/Print.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Functions.h"

#include <cstdio>

using namespace kvbuf;
using namespace kvbuf::rt;
using namespace kvbuf::run;

namespace {

constexpr const char *kDescription =
    R"(Shows what an artifact (.kvbuf) holds: the problem, its kernels and how they are
launched, tensors, and the code for which chips. Needs neither a GPU nor the
compiler.)";

constexpr const char *kFooter = R"(
Examples:
  kvbuf-inspect prefill.kvbuf
  kvbuf-inspect prefill.kvbuf --json
  kvbuf-inspect prefill.kvbuf --extract cubin=prefill.cubin
  kvbuf-inspect model.kvbuf --function=decode    # one of several functions

Exit status: 0 done; 2 bad usage or no artifact.)";

std::string joined(const std::vector<std::string> &words,
                   const char *separator) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : separator) + word;
  return text;
}

template <typename T> std::string numbers(const std::vector<T> &list) {
  std::vector<std::string> words;
  for (const T &n : list)
    words.push_back(std::to_string(n));
  return joined(words, " x ");
}

/// "address of q", "stride 1 of k", "seq_q", "tensor map of k".
std::string describe(const KernelArg &arg) {
  switch (arg.kind) {
  case KernelArg::Kind::Pointer:
    return "address of " + arg.tensor;
  case KernelArg::Kind::Stride:
    return "stride " + std::to_string(arg.dim) + " of " + arg.tensor;
  case KernelArg::Kind::Size:
    return arg.name.empty() ? arg.value.str() : arg.name;
  case KernelArg::Kind::TensorMap:
    return "tensor map of " + arg.tensor;
  case KernelArg::Kind::Counter:
    return "counter " + std::to_string(arg.counter);
  }
  return "";
}

/// What the copy engine is told of a tensor.
std::string describe(const TensorMapRecipe &map) {
  std::string text = "boxes of " + numbers(map.box) + " elements, dimensions " +
                     numbers(map.dims) + ", swizzle of " +
                     std::to_string(map.swizzle) + " bytes, L2 promotion " +
                     std::to_string(map.l2Promotion);
  if (map.columns)
    text += ", columns " + std::to_string(map.firstColumn) + " to " +
            std::to_string(map.firstColumn + map.columns - 1);
  return text;
}

class Inspector {
public:
  Inspector(const Artifact &artifact, const Manifest &manifest)
      : artifact(artifact), manifest(manifest),
        raw(Json::parse(artifact.manifest)) {}

  void print(Printer &printer, const std::string &file) const;
  Json json() const;

private:
  /// A field of a kernel that only people read.
  std::string note(const KernelSpec &kernel, const char *key) const {
    for (const char *list : {"kernels", "copies"})
      for (const Json &entry : raw.value(list, Json::array()))
        if (entry.value("entry", "") == kernel.entry && entry.contains(key))
          return entry[key].is_string() ? entry[key].get<std::string>()
                                        : entry[key].dump();
    return "";
  }
  void printKernel(const KernelSpec &kernel) const;

  const Artifact &artifact;
  const Manifest &manifest;
  Json raw;
};

void row(const char *name, const std::string &value) {
  std::printf("  %-12s %s\n", name, value.c_str());
}

void Inspector::printKernel(const KernelSpec &k) const {
  std::printf("kernel    %s\n", k.entry.c_str());
  row("grid",
      joined({k.grid[0].str(), k.grid[1].str(), k.grid[2].str()}, " x "));
  row("block", numbers(std::vector<unsigned>(k.block.begin(), k.block.end())) +
                   " threads");
  if (std::string cluster = note(k, "cluster"); !cluster.empty())
    row("cluster", cluster + " blocks");
  std::string fixed = note(k, "static_shared_bytes");
  row("shared", std::to_string(k.dynamicSharedBytes) + " bytes at launch" +
                    (fixed.empty() ? "" : ", " + fixed + " of the code"));
  if (k.registers)
    row("registers",
        std::to_string(k.registers) + " a thread" +
            (note(k, "spill_bytes").empty()
                 ? ""
                 : ", " + note(k, "spill_bytes") + " bytes spilled"));
  if (std::string schedule = note(k, "schedule"); !schedule.empty())
    row("schedule", schedule);
  row("alignment", std::to_string(k.alignment) +
                       " bytes, of addresses and strides of 16-bit tensors");
  if (k.launchIf)
    row("launched if", k.launchIf->str() + " > 0");
  if (!k.instead.empty())
    row("else", k.instead);
  if (!k.beside.empty())
    row("with", joined(k.beside, ", "));
  if (k.copiesIf)
    row("copies if", k.copiesIf->str() + " > 0");
  if (!k.copies.empty())
    row("copies", manifest.findTensor(k.copies)->output
                      ? k.copies + " out of " + k.copy
                      : k.copies + " into " + k.copy);
  else if (manifest.isAlternative(k))
    row("launched", "in another kernel's place alone");
  std::vector<std::string> args;
  for (const KernelArg &arg : k.args)
    args.push_back(describe(arg));
  row("arguments", args.empty() ? "none" : joined(args, ", "));
  for (const KernelArg &arg : k.args)
    if (arg.kind == KernelArg::Kind::TensorMap)
      row("tensor map", arg.tensor + ": " + describe(arg.map));
}

void Inspector::print(Printer &printer, const std::string &file) const {
  if (manifest.problem())
    printer.problem(manifest, file);
  else
    printer.line("kernel", manifest.name + " (" + file +
                               "): a problem that the tools do not know");
  printer.line("target", manifest.target.chip + " (" + manifest.target.vendor +
                             ", " + std::to_string(manifest.target.wave) +
                             " lanes a warp)");
  printer.line("made by",
               manifest.producer.empty() ? "not told" : manifest.producer);
  std::vector<std::string> sections;
  for (const ArtifactSection &section : artifact.sections)
    sections.push_back(section.kind + " (" +
                       std::to_string(section.data.size()) + " bytes)");
  printer.line("holds", joined(sections, ", "));
  for (const KernelSpec &kernel : manifest.kernels)
    printKernel(kernel);
  std::printf("tensors\n");
  for (const TensorSpec &t : manifest.tensors)
    row(t.name.c_str(), std::string(nameOf(t.dtype)) + " " +
                            shapeString(t.shape) + ", " +
                            (!t.output ? "read"
                             : t.input ? "read and written"
                                       : "written"));
  for (const ScratchSpec &t : manifest.scratch)
    row(t.name.c_str(), std::string(nameOf(t.dtype)) + " " +
                            shapeString(t.shape) +
                            (t.counter ? ", counters of the launch"
                                       : ", workspace of the launch"));
  std::vector<std::string> sizes;
  for (const std::string &name : manifest.sizeNames())
    sizes.push_back(name);
  printer.line("sizes", joined(sizes, ", "));
}

Json Inspector::json() const {
  Json sections = Json::array();
  for (const ArtifactSection &section : artifact.sections)
    sections.push_back(
        {{"kind", section.kind}, {"bytes", section.data.size()}});
  Json out = {{"manifest", raw}, {"sections", sections}};
  // What expressions come to is easier read than parsed.
  Json grids = Json::object();
  for (const KernelSpec &k : manifest.kernels)
    grids[k.entry] = {k.grid[0].str(), k.grid[1].str(), k.grid[2].str()};
  out["grids"] = grids;
  out["sizes"] = manifest.sizeNames();
  return out;
}

/// Prints each of several functions.
void inspectAll(const Artifact &artifact,
                const std::vector<ArtifactFunction> &functions,
                const std::string &file, bool asJson) {
  Json all = Json::object();
  for (const ArtifactFunction &function : functions) {
    Artifact alone = extractFunction(artifact, function);
    Inspector inspector(alone, function.manifest);
    if (asJson) {
      all[function.manifest.name] = inspector.json();
      continue;
    }
    std::printf("%sfunction  %s\n", &function == &functions[0] ? "" : "\n",
                function.manifest.name.c_str());
    Printer printer;
    inspector.print(printer, file);
  }
  if (asJson)
    std::printf("%s\n", toText(Json{{"functions", all}}, 2).c_str());
}

ExitStatus inspect(int argc, char **argv) {
  std::string file, extract, name;
  bool asJson = false;
  CommandLine line("kvbuf-inspect", kDescription, kFooter);
  CLI::App &app = line.app;
  app.add_option("FILE", file, "artifact")->required();
  app.add_option("--function", name,
                 "which function, where FILE has several [all]")
      ->type_name("NAME");
  app.add_flag("--json", asJson, "print the manifest and the sections as JSON");
  app.add_option("--extract", extract, "write a section to a file")
      ->type_name("KIND=FILE");
  if (!line.parse(argc, argv))
    return kDone;
  std::string bytes, error;
  if (!readWholeFile(file, bytes, error))
    throw Error(error);
  Artifact artifact;
  if (!looksLikeArtifact(bytes))
    throw Error("'" + file + "' is no artifact; kvbuf-compile makes one");
  if (!parseArtifact(bytes, artifact, error))
    throw Error("'" + file + "': " + error);
  std::vector<ArtifactFunction> functions;
  try {
    functions = parseFunctions(artifact);
    if (!name.empty())
      functions = {findFunction(functions, name)};
    if (!extract.empty())
      onlyFunction(functions, "--function=NAME");
  } catch (const Error &e) {
    throw Error("'" + file + "': " + e.what());
  }
  if (functions.size() > 1) {
    inspectAll(artifact, functions, file, asJson);
    return kDone;
  }
  artifact = extractFunction(artifact, functions.front());
  const Manifest &manifest = functions.front().manifest;
  if (!extract.empty()) {
    auto [kind, path] = splitPair("--extract", extract);
    const std::string *data = artifact.find(kind);
    if (!data) {
      std::vector<std::string> kinds;
      for (const ArtifactSection &section : artifact.sections)
        kinds.push_back(section.kind);
      throw Error("--extract: '" + file + "' has no section '" + kind +
                  "'; it has " + joined(kinds, ", "));
    }
    if (!writeWholeFile(path, *data, error))
      throw Error(error);
    return kDone;
  }
  Inspector inspector(artifact, manifest);
  Printer printer;
  if (asJson)
    std::printf("%s\n", toText(inspector.json(), 2).c_str());
  else
    inspector.print(printer, file);
  return kDone;
}

} // namespace

int main(int argc, char **argv) {
  return runTool("kvbuf-inspect", [&] { return inspect(argc, argv); });
}
