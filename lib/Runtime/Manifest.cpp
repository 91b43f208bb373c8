//===- Manifest.cpp - What an artifact's kernels expect -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ManifestReader.h"

#include <algorithm>

using namespace kvbuf::rt;

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {

/// The most dimensions of a tensor; kvbufArtifactInferShape writes as many.
constexpr size_t kMostDimensions = 16;

SizeExpr parseExpr(const json &v, const std::string &path) {
  if (v.is_number_integer() && fits64(v))
    return SizeExpr::number(v.get<int64_t>());
  if (v.is_string())
    return SizeExpr::size(v.get<std::string>());
  if (v.is_object() && v.size() == 1 && v.begin()->is_array()) {
    std::optional<SizeOperator> operation = sizeOperatorOf(v.begin().key());
    if (operation && takesOperands(*operation, v.begin()->size())) {
      std::vector<SizeExpr> operands;
      for (const json &operand : *v.begin())
        operands.push_back(parseExpr(operand, path));
      return SizeExpr::of(*operation, std::move(operands));
    }
  }
  throw Error("manifest: " + path + " holds " + v.dump() +
              "; expected an integer, a size name, or one of product, sum, "
              "ceildiv, floordiv, min, max with operands");
}

/// The numbers of an array, each from `least` to `most`.
std::vector<unsigned> parseNumbers(const Reader &r, const char *key,
                                   unsigned least, unsigned most) {
  std::vector<unsigned> numbers;
  for (const json &v : r.array(key)) {
    if (!v.is_number_integer() || !fits64(v) ||
        v.get<int64_t>() < int64_t(least) || v.get<int64_t>() > int64_t(most))
      throw Error("manifest: " + r.at(key) + " holds " + v.dump() +
                  "; expected integers from " + std::to_string(least) + " to " +
                  std::to_string(most));
    numbers.push_back(v.get<unsigned>());
  }
  return numbers;
}

/// A number out of a short list.
unsigned parseChoice(const Reader &r, const char *key, unsigned fallback,
                     std::initializer_list<unsigned> choices) {
  unsigned value = r.natural(key, fallback);
  std::string known;
  size_t i = 0;
  for (unsigned choice : choices) {
    if (value == choice)
      return value;
    known += (i == 0                    ? ""
              : i + 1 == choices.size() ? " or "
                                        : ", ") +
             std::to_string(choice);
    ++i;
  }
  throw Error("manifest: " + r.at(key) + " is " + std::to_string(value) +
              "; expected " + known);
}

/// A word of which this runtime knows one meaning.
void parseOnly(const Reader &r, const char *key, const char *word) {
  if (r.has(key) && r.string(key) != word)
    throw Error("manifest: " + r.at(key) + " is '" + r.string(key) +
                "'; this runtime knows " + word +
                " (the artifact may come from a newer compiler)");
}

/// The members of a map of a cache's rows (TensorMapRecipe::Flat).
TensorMapRecipe::Flat parseFlat(const Reader &r, const TensorSpec &tensor) {
  TensorMapRecipe::Flat flat;
  try {
    flat.view = parseDType(r.string("view"));
  } catch (const Error &error) {
    throw Error("manifest: " + r.at("view") + ": " + error.what());
  }
  if (r.has("fold")) {
    flat.fold = r.natural("fold", 0);
    if (*flat.fold >= tensor.shape.size())
      throw Error("manifest: " + r.at("fold") + " is " +
                  std::to_string(*flat.fold) + "; tensor '" + tensor.name +
                  "' has rank " + std::to_string(tensor.shape.size()));
  }
  flat.firstByte = r.natural("first_byte", 0);
  flat.columns = r.natural("columns", 0);
  flat.stride = r.natural("stride", 0);
  flat.cutRows = r.natural("cut_rows", 0);
  if (flat.firstByte % TensorMapRecipe::kAlignment)
    throw Error("manifest: " + r.at("first_byte") + " is " +
                std::to_string(flat.firstByte) + "; expected a multiple of 16");
  if (flat.cutRows > TensorMapRecipe::kBox)
    throw Error("manifest: " + r.at("cut_rows") + " is " +
                std::to_string(flat.cutRows) + "; expected at most 256");
  return flat;
}

/// What holds for the map of any tensor of this type and rank; what depends on
/// the tensor at hand is checked at the launch.
TensorMapRecipe parseTensorMap(const Reader &r, const TensorSpec &tensor) {
  TensorMapRecipe map;
  unsigned rank = static_cast<unsigned>(tensor.shape.size());
  map.dims = parseNumbers(r, "dims", 0, rank - 1);
  map.box =
      parseNumbers(r, "box", 1, static_cast<unsigned>(TensorMapRecipe::kBox));
  map.swizzle = parseChoice(r, "swizzle", 0, {0, 32, 64, 128});
  map.l2Promotion = parseChoice(r, "l2_promotion", 128, {0, 64, 128, 256});
  parseOnly(r, "interleave", "none");
  parseOnly(r, "oob_fill", "zero");
  std::string who = "manifest: " + r.path + ": the map of '" + tensor.name +
                    "' of rank " + std::to_string(rank);
  if (rank > TensorMapRecipe::kRank)
    throw Error(who + "; expected a rank of at most 5");
  size_t elementBytes = sizeOf(tensor.dtype), extents = rank;
  std::set<unsigned> distinct(map.dims.begin(), map.dims.end());
  if (r.has("flat")) {
    map.flat = parseFlat(Reader(r.get("flat"), r.at("flat")), tensor);
    elementBytes = sizeOf(map.flat->view);
    extents = map.dims.size() + (map.flat->cutRows != 0);
    if (distinct.size() != map.dims.size() || map.dims.size() < 2 ||
        extents > TensorMapRecipe::kRank ||
        (map.flat->fold && distinct.count(*map.flat->fold)))
      throw Error(
          who + " has \"dims\" " + r.get("dims").dump() +
          "; expected two to four of the tensor's dimensions, each once, "
          "and not the one that is folded");
  } else if (distinct.size() != rank || map.dims.size() != rank)
    throw Error(who + " has \"dims\" " + r.get("dims").dump() +
                "; expected each of the tensor's dimensions once");
  if (map.dims[0] + 1 != rank)
    throw Error(who + " begins with dimension " + std::to_string(map.dims[0]) +
                "; expected the innermost one, " + std::to_string(rank - 1));
  if (map.box.size() != extents)
    throw Error(who + " has a \"box\" of " + std::to_string(map.box.size()) +
                " extents; expected one for each dimension");
  if (r.has("columns")) {
    std::vector<unsigned> columns =
        parseNumbers(r, "columns", 0, std::numeric_limits<int32_t>::max());
    const SizeExpr &extent = tensor.shape.back();
    if (columns.size() != 2 || columns[1] == 0 ||
        columns[0] * sizeOf(tensor.dtype) % TensorMapRecipe::kAlignment != 0 ||
        extent.kind != SizeExpr::Kind::Constant ||
        int64_t(columns[0]) + columns[1] > extent.constant)
      throw Error(who + " has \"columns\" " + r.get("columns").dump() +
                  "; expected the first, at a multiple of 16 bytes, and how "
                  "many, of " +
                  extent.str());
    map.firstColumn = columns[0];
    map.columns = columns[1];
  }
  size_t row = map.box[0] * elementBytes;
  if (row % TensorMapRecipe::kAlignment != 0)
    throw Error(who + " has a box of " + std::to_string(row) +
                " contiguous bytes; expected a multiple of 16");
  if (map.swizzle && row > map.swizzle)
    throw Error(who + " has a box of " + std::to_string(row) +
                " contiguous bytes; a swizzle of " +
                std::to_string(map.swizzle) + " bytes takes at most as many");
  return map;
}

KernelArg parseArg(const Reader &r, Manifest &m) {
  KernelArg arg;
  std::string kind = r.string("kind");
  if (kind == "size") {
    arg.kind = KernelArg::Kind::Size;
    if (r.has("value")) {
      arg.value = parseExpr(r.get("value"), r.at("value"));
      return arg;
    }
    arg.name = r.string("name");
    arg.value = SizeExpr::size(arg.name);
    return arg;
  }
  // A "counter" was set back by the kernel itself; it is none the worse for
  // being cleared.
  if (kind == "launch_counter" || kind == "counter") {
    arg.kind = KernelArg::Kind::Counter;
    arg.counter = m.counters++;
    return arg;
  }
  if (kind != "pointer" && kind != "stride" && kind != "tensor_map")
    throw Error("manifest: " + r.path + " has kind '" + kind +
                "'; this runtime knows pointer, stride, size, tensor_map and "
                "launch_counter (the artifact may come from a newer compiler)");
  arg.tensor = r.string("tensor");
  const TensorSpec *tensor = m.findTensor(arg.tensor);
  if (!tensor && kind != "tensor_map")
    tensor = m.findScratch(arg.tensor);
  if (!tensor)
    throw Error("manifest: " + r.path + " names tensor '" + arg.tensor +
                "', which \"tensors\" lacks");
  arg.kind = KernelArg::Kind::Pointer;
  if (kind == "stride") {
    arg.kind = KernelArg::Kind::Stride;
    arg.dim = r.natural("dim", 0);
    if (arg.dim >= tensor->shape.size())
      throw Error("manifest: " + r.path + " asks for stride " +
                  std::to_string(arg.dim) + " of tensor '" + arg.tensor +
                  "' of rank " + std::to_string(tensor->shape.size()));
    arg.limit = r.natural("limit", 0);
  }
  if (kind == "pointer" && r.has("alignment"))
    arg.alignment = parseChoice(r, "alignment", 1, {1, 2, 4, 8, 16});
  if (kind == "tensor_map") {
    arg.kind = KernelArg::Kind::TensorMap;
    arg.map = parseTensorMap(r, *tensor);
  }
  return arg;
}

/// What sizes are that callers need not say: expressions over sizes that shapes
/// tell, the same for all kernels, of which a launch runs any.
void parseDefaults(const Reader &r, Manifest &m) {
  std::set<std::string> told;
  for (const TensorSpec &t : m.tensors)
    for (const SizeExpr &e : t.shape)
      e.collectNames(told);
  for (const auto &[name, value] : r.value.items()) {
    SizeExpr e = parseExpr(value, r.at(name.c_str()));
    std::set<std::string> names;
    e.collectNames(names);
    for (const std::string &other : names)
      if (!told.count(other))
        throw Error("manifest: " + r.at(name.c_str()) + " mentions '" + other +
                    "', which no shape of \"tensors\" does");
    auto [it, inserted] = m.sizeDefaults.emplace(name, e);
    if (!inserted && it->second.str() != e.str())
      throw Error("manifest: " + r.at(name.c_str()) + " is " + e.str() +
                  ", but " + it->second.str() + " in a kernel before");
  }
}

KernelSpec parseKernel(const Reader &r, Manifest &m) {
  KernelSpec k;
  k.entry = r.string("entry");
  const json &block = r.array("block"), &grid = r.array("grid");
  if (block.size() != 3 || grid.size() != 3)
    throw Error("manifest: " + r.path +
                " needs three numbers for \"block\" "
                "and \"grid\"");
  uint64_t threads = 1;
  for (size_t i = 0; i < 3; ++i) {
    if (!block[i].is_number_integer() || !fits64(block[i]) ||
        block[i].get<int64_t>() < 1 || block[i].get<int64_t>() > 1024)
      throw Error("manifest: " + r.at("block") + " holds " + block[i].dump() +
                  "; expected integers from 1 to 1024");
    k.block[i] = block[i].get<unsigned>();
    threads *= k.block[i];
    k.grid[i] = parseExpr(grid[i], r.at("grid"));
  }
  if (threads > 1024)
    throw Error("manifest: " + r.at("block") + " has " +
                std::to_string(threads) + " threads; expected at most 1024");
  k.dynamicSharedBytes = r.natural("dynamic_shared_bytes", 0);
  k.registers = r.natural("registers", 0);
  k.dependent = r.boolean("dependent_launch", false);
  k.dependentBeside = r.boolean("dependent_beside", false);
  size_t i = 0;
  for (const json &arg : r.array("args"))
    k.args.push_back(parseArg(
        Reader(arg, r.path + ".args[" + std::to_string(i++) + "]"), m));
  parseOnly(r, "requires", "tensor_maps");
  if (r.has("instead"))
    k.instead = r.string("instead");
  if (r.has("beside"))
    for (const json &name : r.array("beside")) {
      if (!name.is_string())
        throw Error("manifest: " + r.at("beside") + " holds " + name.dump() +
                    "; expected names of kernels");
      k.beside.push_back(name.get<std::string>());
    }
  k.alignment = parseChoice(r, "alignment", 16, {2, 4, 8, 16});
  if (r.has("requires") && !k.takesTensorMaps())
    throw Error("manifest: " + r.path +
                " has \"requires\", but no argument of kind tensor_map");
  if (r.has("launch_if"))
    k.launchIf = parseExpr(r.get("launch_if"), r.at("launch_if"));
  if (r.has("defaults"))
    parseDefaults(Reader(r.get("defaults"), r.at("defaults")), m);
  if (r.has("copies_if"))
    k.copiesIf = parseExpr(r.get("copies_if"), r.at("copies_if"));
  if (k.launchIf && k.instead.empty())
    throw Error("manifest: " + r.path +
                " has \"launch_if\", but no \"instead\" for launches that do "
                "not fulfil it");
  bool asks = k.alignment > 2 || std::any_of(k.args.begin(), k.args.end(),
                                             [](const KernelArg &arg) {
                                               return arg.alignment > 1;
                                             });
  if (r.has("instead") && !k.launchIf && !k.takesTensorMaps() && !asks)
    throw Error("manifest: " + r.path +
                " has \"instead\", but no argument of kind tensor_map, no "
                "\"launch_if\" and an alignment of 2, so that nothing can keep "
                "it from running");
  return k;
}

/// A kernel of "copies".
KernelSpec parseCopy(const Reader &r, Manifest &m) {
  KernelSpec k = parseKernel(r, m);
  k.copies = r.string("copies");
  const TensorSpec *tensor = m.findTensor(k.copies);
  if (!tensor || (tensor->input && tensor->output))
    throw Error("manifest: " + r.at("copies") + " is '" + k.copies +
                "'; expected one of \"tensors\" that is read or written");
  if (m.findCopier(k.copies))
    throw Error("manifest: " + r.at("copies") + " is '" + k.copies +
                "', as that of a kernel before");
  for (const KernelArg &arg : k.args)
    if (const ScratchSpec *scratch = m.findScratch(arg.tensor))
      if (scratch->dtype == tensor->dtype &&
          shapeString(scratch->shape) == shapeString(tensor->shape))
        k.copy = arg.tensor;
  if (k.copy.empty())
    throw Error("manifest: " + r.path + " copies '" + k.copies +
                "', but has no argument of \"scratch\" of its type and shape");
  return k;
}

/// Every "instead" names a kernel, and following them comes to an end; so does
/// every "beside", which nothing runs beside.
void checkAlternatives(const Manifest &m) {
  for (const KernelSpec &first : m.kernels) {
    for (const std::string &name : first.beside) {
      const KernelSpec *other = m.findKernel(name);
      if (!other || other == &first || !other->beside.empty())
        throw Error("manifest: kernel '" + first.entry + "' names '" + name +
                    "' as what runs beside it; expected another of "
                    "\"kernels\", with nothing beside that");
    }
    const KernelSpec *k = &first;
    for (size_t steps = 0; !k->instead.empty(); ++steps) {
      const KernelSpec *next = m.findKernel(k->instead);
      if (!next)
        throw Error("manifest: kernel '" + k->entry + "' names '" + k->instead +
                    "' as what runs instead, which \"kernels\" "
                    "lacks");
      if (steps == m.kernels.size())
        throw Error("manifest: following \"instead\" from kernel '" +
                    first.entry + "' comes back to where it was");
      k = next;
    }
  }
}

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
           return k.instead == kernel.entry;
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
