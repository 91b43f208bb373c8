//===- Manifest.cpp - What an artifact's kernels expect -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ManifestKernels.h"

#include <algorithm>

using namespace kvbuf::rt;

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {

/// The most dimensions of a tensor; kvbufArtifactInferShape writes as many.
constexpr size_t kMostDimensions = 16;

/// What tensors of users and scratch memory have alike.
void parseShape(const Reader &r, TensorSpec &t) {
  t.name = r.string("name");
  t.dtype = parseDType(r.string("dtype"));
  for (const json &dim : r.array("shape"))
    t.shape.push_back(parseExpr(dim, r.at("shape")));
  if (t.shape.empty())
    throw Error("manifest: " + r.at("shape") + " is empty");
  if (t.shape.size() > kMostDimensions)
    throw Error("manifest: " + r.at("shape") + " has " +
                std::to_string(t.shape.size()) +
                " dimensions; expected at most " +
                std::to_string(kMostDimensions));
}

ScratchSpec parseScratch(const Reader &r) {
  ScratchSpec t;
  parseShape(r, t);
  std::string access = r.string("access");
  if (access != "workspace" && access != "counter")
    throw Error("manifest: " + r.at("access") + " is '" + access +
                "'; expected workspace or counter");
  t.input = t.output = true;
  t.counter = access == "counter";
  if (t.counter && t.dtype != DType::I32)
    throw Error("manifest: " + r.at("dtype") + " is '" + nameOf(t.dtype) +
                "'; counters are i32");
  return t;
}

TensorSpec parseTensor(const Reader &r) {
  TensorSpec t;
  parseShape(r, t);
  std::set<std::string> names;
  for (const SizeExpr &e : t.shape)
    e.collectNames(names);
  if (names.count(kMultiprocessors))
    throw Error("manifest: " + r.at("shape") + " mentions '" +
                kMultiprocessors +
                "', which is the device's number of multiprocessors and for "
                "grids and arguments alone");
  std::string access = r.string("access");
  if (access != "read" && access != "write" && access != "read_write")
    throw Error("manifest: " + r.at("access") + " is '" + access +
                "'; expected read, write or read_write");
  t.output = access != "read";
  t.input = access != "write";
  t.cache = r.boolean("cache", false);
  return t;
}

/// Says of the tensors that are written in rows with tails what these are:
/// ROLE_tail_block and ROLE_tail_row of a role.
void parseTails(const Reader &problem, Manifest &m) {
  const std::string ending = "_tail_block";
  for (const std::string &block : problem.keys()) {
    if (block.size() <= ending.size() ||
        block.compare(block.size() - ending.size(), ending.size(), ending))
      continue;
    std::string role = block.substr(0, block.size() - ending.size()),
                row = role + "_tail_row", name = role;
    if (problem.has("tensors")) {
      Reader names(problem.get("tensors"), problem.at("tensors"));
      if (names.has(role.c_str()))
        name = names.string(role.c_str());
    }
    for (TensorSpec &t : m.tensors)
      if (t.name == name && t.shape.size() > 2) {
        t.tailBlock = problem.natural(block.c_str());
        t.tailRow = problem.natural(row.c_str());
      }
  }
}

} // namespace

void kvbuf::rt::parseRoles(const Reader &r,
                           const std::vector<std::string> &roles,
                           ProblemSpec &problem) {
  if (!r.has("tensors"))
    return;
  Reader names(r.get("tensors"), r.at("tensors"));
  for (const auto &[role, name] : names.value.items()) {
    if (std::find(roles.begin(), roles.end(), role) == roles.end())
      throw Error("manifest: " + names.path + " names the unknown part '" +
                  role + "'; expected " + quotedList(roles, "or"));
    problem.tensors[role] = names.string(role.c_str());
  }
}

Layout kvbuf::rt::parseLayout(const Reader &r, const char *key, bool cache) {
  std::string name = r.string(key);
  for (Layout layout :
       {Layout::Dense, Layout::Ragged, Layout::Continuous, Layout::Paged})
    if (name == nameOf(layout) &&
        (cache || layout == Layout::Dense || layout == Layout::Ragged))
      return layout;
  throw Error(
      "manifest: " + r.at(key) + " is '" + name + "'; expected " +
      (cache ? "dense, ragged, continuous or paged" : "dense or ragged"));
}

CacheRow kvbuf::rt::parseRow(const Reader &r, const std::string &name,
                             int64_t headSize) {
  std::string depth = name + "_cache_depth", offset = name + "_head_dim_offset";
  CacheRow row{r.integer(depth.c_str(), headSize),
               r.integer(offset.c_str(), 0)};
  if (row.headDimOffset < 0 || row.headDimOffset > row.cacheDepth - headSize)
    throw Error("manifest: " + r.at(offset.c_str()) + " is " +
                std::to_string(row.headDimOffset) + "; expected " +
                std::to_string(headSize) + " elements from there on in " +
                depth + " = " + std::to_string(row.cacheDepth));
  return row;
}

int64_t kvbuf::rt::parsePageSize(const Reader &r) {
  int64_t size = r.natural("page_size");
  if (size < 1)
    throw Error("manifest: " + r.at("page_size") + " is not positive");
  return size;
}

const char *kvbuf::rt::nameOf(Layout layout) {
  constexpr const char *names[] = {"dense", "ragged", "continuous", "paged"};
  return names[static_cast<size_t>(layout)];
}

const TensorSpec *Manifest::findTensor(const std::string &name) const {
  for (const TensorSpec &t : tensors)
    if (t.name == name)
      return &t;
  return nullptr;
}

const ProblemSpec *Manifest::problem() const {
  return stated && stated->isKnown() ? stated.get() : nullptr;
}

std::string ProblemSpec::tensor(const std::string &role) const {
  // A cache's own tensors have its name: "k.table".
  size_t dot = role.find('.');
  auto it = tensors.find(role.substr(0, dot));
  if (it == tensors.end())
    return role;
  return it->second + (dot == role.npos ? "" : role.substr(dot));
}

std::string ProblemSpec::roleOf(const std::string &name) const {
  size_t dot = name.find('.');
  std::string own = dot == name.npos ? "" : name.substr(dot);
  for (const auto &[role, tensor] : tensors)
    if (name == tensor || (!own.empty() && name == tensor + own))
      return role + (name == tensor ? "" : own);
  // Another tensor may have the part's own name.
  return tensors.count(name.substr(0, dot)) ? "" : name;
}

const ScratchSpec *Manifest::findScratch(const std::string &name) const {
  for (const ScratchSpec &t : scratch)
    if (t.name == name)
      return &t;
  return nullptr;
}

bool KernelSpec::takesTensorMaps() const {
  return std::any_of(args.begin(), args.end(), [](const KernelArg &arg) {
    return arg.kind == KernelArg::Kind::TensorMap;
  });
}

const KernelSpec *Manifest::findKernel(const std::string &entry) const {
  for (const KernelSpec &k : kernels)
    if (k.entry == entry)
      return &k;
  return nullptr;
}

const KernelSpec *Manifest::findCopier(const std::string &tensor) const {
  for (const KernelSpec &k : kernels)
    if (k.copies == tensor)
      return &k;
  return nullptr;
}

bool Manifest::isAlternative(const KernelSpec &kernel) const {
  return !kernel.copies.empty() ||
         std::any_of(kernels.begin(), kernels.end(), [&](const KernelSpec &k) {
           return k.instead == kernel.entry ||
                  std::count(k.ahead.begin(), k.ahead.end(), kernel.entry) > 0;
         });
}

std::set<std::string> Manifest::sizeNames() const {
  std::set<std::string> names;
  for (const TensorSpec &t : tensors)
    for (const SizeExpr &e : t.shape)
      e.collectNames(names);
  for (const ScratchSpec &t : scratch)
    for (const SizeExpr &e : t.shape)
      e.collectNames(names);
  for (const KernelSpec &k : kernels) {
    for (const SizeExpr &e : k.grid)
      e.collectNames(names);
    if (k.launchIf)
      k.launchIf->collectNames(names);
    if (k.copiesIf)
      k.copiesIf->collectNames(names);
    for (const KernelArg &arg : k.args)
      if (arg.kind == KernelArg::Kind::Size)
        arg.value.collectNames(names);
  }
  names.erase(kMultiprocessors);
  return names;
}

json kvbuf::rt::parseJson(const std::string &text, int around) {
  auto limitDepth = [&](int depth, json::parse_event_t, json &) {
    if (depth > kMostNesting + around)
      throw Error("manifest: objects and arrays nest deeper than " +
                  std::to_string(kMostNesting));
    return true;
  };
  json root = json::parse(text, limitDepth, /*allow_exceptions=*/false);
  if (root.is_discarded())
    throw Error("manifest: not valid JSON");
  return root;
}

static constexpr ParseProblem kProblems[] = {
#define KVBUF_PROBLEM(NAME) parse##NAME,
#include "kvbuffer/Problems.def"
};

Manifest kvbuf::rt::parseManifest(const std::string &text) {
  json root = parseJson(text);
  Reader r(root, "manifest");
  int64_t version = r.integer("kvbuf");
  // 2: kernels that share a launch ("beside").
  if (version == kSeveralFunctions)
    throw Error("manifest version 3 is of several functions; expected one");
  if (version != 1 && version != 2)
    throw Error(
        "manifest version " + std::to_string(version) +
        ", but this runtime reads versions 1 to 3; compile the kernel again");
  Manifest m;
  m.name = r.string("name");
  if (r.has("producer"))
    m.producer = r.string("producer");
  Reader target(r.get("target"), "target");
  m.target.vendor = target.string("vendor");
  m.target.chip = target.string("chip");
  m.target.wave = target.natural("wave", 32);
  size_t i = 0;
  if (target.has("peaks"))
    for (const json &p : target.array("peaks")) {
      Reader peak(p, "target.peaks[" + std::to_string(i++) + "]");
      m.target.peaks.push_back({peak.string("device"),
                                peak.number("matrix_flops", 0),
                                peak.number("memory_bytes", 0)});
    }
  i = 0;
  for (const json &t : r.array("tensors"))
    m.tensors.push_back(
        parseTensor(Reader(t, "tensors[" + std::to_string(i++) + "]")));
  i = 0;
  if (r.has("scratch"))
    for (const json &t : r.array("scratch"))
      m.scratch.push_back(
          parseScratch(Reader(t, "scratch[" + std::to_string(i++) + "]")));
  std::set<std::string> names;
  for (const ScratchSpec &t : m.scratch)
    if (!names.insert(t.name).second)
      throw Error("manifest: \"scratch\" has two of the name '" + t.name + "'");
  for (const TensorSpec &t : m.tensors)
    if (!names.insert(t.name).second)
      throw Error("manifest: \"tensors\" has two of the name '" + t.name + "'");
  i = 0;
  for (const json &k : r.array("kernels"))
    m.kernels.push_back(
        parseKernel(Reader(k, "kernels[" + std::to_string(i++) + "]"), m));
  if (m.kernels.empty())
    throw Error("manifest: \"kernels\" is empty");
  i = 0;
  if (r.has("copies"))
    for (const json &k : r.array("copies"))
      m.kernels.push_back(
          parseCopy(Reader(k, "copies[" + std::to_string(i++) + "]"), m));
  checkAlternatives(m);
  if (r.has("problem")) {
    Reader problem(r.get("problem"), "problem");
    std::string op = problem.string("op");
    for (ParseProblem parse : kProblems)
      if (!m.stated)
        m.stated = parse(op, problem, m);
    parseTails(problem, m);
  }
  m.apart = findApart(m);
  m.storedBoth = findStoredBoth(m);
  return m;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

std::vector<int64_t> kvbuf::rt::evaluateShape(const TensorSpec &tensor,
                                              const Sizes &sizes) {
  std::vector<int64_t> shape;
  for (const SizeExpr &e : tensor.shape) {
    shape.push_back(evaluate(e, sizes));
    if (shape.back() < 0)
      throw Error("tensor '" + tensor.name + "': extent " + e.str() + " is " +
                  std::to_string(shape.back()) + "; expected 0 or more");
  }
  return shape;
}

namespace {
template <typename T, typename F>
std::string joinShape(const std::vector<T> &shape, F text) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + text(shape[i]);
  return out + "]";
}
} // namespace

std::string kvbuf::rt::shapeString(const std::vector<int64_t> &shape) {
  return joinShape(shape, [](int64_t n) { return std::to_string(n); });
}

std::string kvbuf::rt::shapeString(const std::vector<SizeExpr> &shape) {
  return joinShape(shape, [](const SizeExpr &e) { return e.str(); });
}
