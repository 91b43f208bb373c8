//===- Manifest.cpp - What an artifact's kernels expect -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Manifest.h"
#include "kvbuffer/Runtime/Error.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

using namespace kvbuf::rt;
using nlohmann::json;

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {

/// Deeper manifests are damaged; readers of theirs call themselves.
constexpr int kMostNesting = 32;
/// The most dimensions of a tensor; kvbufArtifactInferShape writes as many.
constexpr size_t kMostDimensions = 16;
/// Further windows could overflow sums of positions.
constexpr int64_t kMostWindow = int64_t(1) << 62;

/// Does an integer fit into 64 bits with a sign?
bool fits64(const json &v) {
  return !v.is_number_unsigned() ||
         v.get<uint64_t>() <= uint64_t(std::numeric_limits<int64_t>::max());
}

/// Reads fields of one JSON object; errors name the path of the field.
class Reader {
public:
  Reader(const json &value, std::string path)
      : value(value), path(std::move(path)) {
    if (!value.is_object())
      fail("an object");
  }

  const json &get(const char *key) const {
    auto it = value.find(key);
    if (it == value.end())
      throw Error("manifest: " + path + " lacks \"" + key + "\"");
    return *it;
  }
  bool has(const char *key) const { return value.contains(key); }
  std::string at(const char *key) const { return path + "." + key; }

  std::string string(const char *key) const {
    const json &v = get(key);
    if (!v.is_string())
      throw Error("manifest: " + at(key) + " is not a string");
    return v.get<std::string>();
  }
  int64_t integer(const char *key) const {
    const json &v = get(key);
    if (!v.is_number_integer())
      throw Error("manifest: " + at(key) + " is not an integer");
    if (!fits64(v))
      throw Error("manifest: " + at(key) + " is out of range: " + v.dump());
    return v.get<int64_t>();
  }
  int64_t integer(const char *key, int64_t fallback) const {
    return has(key) ? integer(key) : fallback;
  }
  unsigned natural(const char *key, unsigned fallback) const {
    return has(key) ? natural(key) : fallback;
  }
  unsigned natural(const char *key) const {
    int64_t v = integer(key);
    if (v < 0 || v > std::numeric_limits<int32_t>::max())
      throw Error("manifest: " + at(key) +
                  " is out of range: " + std::to_string(v));
    return static_cast<unsigned>(v);
  }
  double number(const char *key, double fallback) const {
    if (!has(key))
      return fallback;
    const json &v = get(key);
    if (!v.is_number())
      throw Error("manifest: " + at(key) + " is not a number");
    return v.get<double>();
  }
  bool boolean(const char *key, bool fallback) const {
    if (!has(key))
      return fallback;
    const json &v = get(key);
    if (!v.is_boolean())
      throw Error("manifest: " + at(key) + " is not true or false");
    return v.get<bool>();
  }
  const json &array(const char *key) const {
    const json &v = get(key);
    if (!v.is_array())
      throw Error("manifest: " + at(key) + " is not an array");
    return v;
  }

  const json &value;
  std::string path;

private:
  [[noreturn]] void fail(const char *what) const {
    throw Error("manifest: " + path + " is not " + what);
  }
};

SizeExpr parseExpr(const json &v, const std::string &path) {
  SizeExpr e;
  if (v.is_number_integer() && fits64(v)) {
    e.constant = v.get<int64_t>();
    return e;
  }
  if (v.is_string()) {
    e.kind = SizeExpr::Kind::Name;
    e.name = v.get<std::string>();
    return e;
  }
  if (v.is_object() && v.size() == 1 && v.begin()->is_array()) {
    const std::string &op = v.begin().key();
    if (op == "product")
      e.kind = SizeExpr::Kind::Product;
    else if (op == "sum")
      e.kind = SizeExpr::Kind::Sum;
    else if (op == "ceildiv" && v.begin()->size() == 2)
      e.kind = SizeExpr::Kind::CeilDiv;
    else if (op == "floordiv" && v.begin()->size() == 2)
      e.kind = SizeExpr::Kind::FloorDiv;
    else if (op == "min" && !v.begin()->empty())
      e.kind = SizeExpr::Kind::Min;
    else if (op == "max" && !v.begin()->empty())
      e.kind = SizeExpr::Kind::Max;
    if (e.kind != SizeExpr::Kind::Constant) {
      for (const json &operand : *v.begin())
        e.operands.push_back(parseExpr(operand, path));
      return e;
    }
  }
  throw Error("manifest: " + path + " holds " + v.dump() +
              "; expected an integer, a size name, or one of product, sum, "
              "ceildiv, floordiv, min, max with operands");
}

Layout parseLayout(const Reader &r, const char *key, bool cache) {
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

int64_t parseWindow(const Reader &r, const char *key) {
  int64_t window = r.integer(key, -1);
  if (window > kMostWindow)
    throw Error("manifest: " + r.at(key) +
                " is out of range: " + std::to_string(window));
  return window;
}

/// Which elements of a cache's rows of `name` are heads of `headSize`.
CacheRow parseRow(const Reader &r, const std::string &name, int64_t headSize) {
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

int64_t parsePageSize(const Reader &r) {
  int64_t size = r.natural("page_size");
  if (size < 1)
    throw Error("manifest: " + r.at("page_size") + " is not positive");
  return size;
}

AppendSpec parseAppend(const Reader &r) {
  AppendSpec p;
  p.heads = r.natural("heads");
  p.headSize = r.natural("head_size");
  if (p.heads < 1 || p.headSize < 1)
    throw Error("manifest: " + r.path + " has " + std::to_string(p.heads) +
                " heads of " + std::to_string(p.headSize) +
                " elements; expected at least one of each");
  p.tokens = parseLayout(r, "new", /*cache=*/false);
  p.cache = parseLayout(r, "cache", /*cache=*/true);
  if (p.cache == Layout::Paged)
    p.pageSize = parsePageSize(r);
  p.values = r.boolean("values", true);
  p.at = r.boolean("at", false);
  if (r.has("rope")) {
    std::string rope = r.string("rope");
    if (rope != "half" && rope != "interleaved")
      throw Error("manifest: " + r.at("rope") + " is '" + rope +
                  "'; expected half or interleaved");
    p.rope =
        rope == "half" ? AppendSpec::Rope::Half : AppendSpec::Rope::Interleaved;
  }
  p.k = parseRow(r, "k", p.headSize);
  p.v = parseRow(r, "v", p.headSize);
  auto granularity = [&](const char *key) -> std::optional<int64_t> {
    if (!r.has(key))
      return std::nullopt;
    int64_t elements = r.integer(key, 0);
    if (elements < -1 || elements > p.headSize)
      throw Error("manifest: " + r.at(key) + " is " + std::to_string(elements) +
                  "; expected -1 to head_size");
    return elements;
  };
  p.kGranularity = granularity("k_granularity");
  p.vGranularity = granularity("v_granularity");
  return p;
}

/// How the cache `name` is stored, if not in elements of the queries' type.
std::optional<QuantizedSpec>
parseQuantized(const Reader &r, const std::string &name, int64_t headSize) {
  std::string dtype = name + "_dtype", granularity = name + "_granularity";
  if (!r.has(dtype.c_str()))
    return std::nullopt;
  QuantizedSpec spec;
  spec.dtype = parseDType(r.string(dtype.c_str()));
  if (!isFloat8(spec.dtype))
    throw Error("manifest: " + r.at(dtype.c_str()) + " is '" +
                nameOf(spec.dtype) + "'; expected an 8-bit float");
  if (!r.has(granularity.c_str()))
    return spec;
  spec.granularity = r.integer(granularity.c_str(), 0);
  if (*spec.granularity < -1 || *spec.granularity > headSize)
    throw Error("manifest: " + r.at(granularity.c_str()) + " is " +
                std::to_string(*spec.granularity) +
                "; expected -1 to head_size");
  return spec;
}

AttentionProblem parseProblem(const Reader &r) {
  AttentionProblem p;
  p.dtype = parseDType(r.string("dtype"));
  if (p.dtype != DType::F16 && p.dtype != DType::BF16)
    throw Error("manifest: " + r.at("dtype") + " is '" + nameOf(p.dtype) +
                "'; expected bf16 or f16");
  p.heads = r.natural("heads");
  p.kvHeads = r.natural("kv_heads");
  p.headSize = r.natural("head_size");
  if (p.heads < 1 || p.kvHeads < 1 || p.heads % p.kvHeads != 0)
    throw Error("manifest: " + r.path + " has " + std::to_string(p.heads) +
                " heads and " + std::to_string(p.kvHeads) +
                " kv_heads; expected a positive multiple");
  if (p.headSize < 8 || p.headSize % 8 != 0)
    throw Error("manifest: " + r.at("head_size") + " is " +
                std::to_string(p.headSize) + "; expected a multiple of 8");
  p.query = parseLayout(r, "query", /*cache=*/false);
  p.cache = parseLayout(r, "cache", /*cache=*/true);
  if (p.cache == Layout::Paged)
    p.pageSize = parsePageSize(r);
  std::string lengths = r.has("lengths") ? r.string("lengths") : "cached";
  if (lengths != "cached" && lengths != "all")
    throw Error("manifest: " + r.at("lengths") + " is '" + lengths +
                "'; expected cached or all");
  p.lengthsCountNew = lengths == "all";
  p.k = parseRow(r, "k", p.headSize);
  p.v = parseRow(r, "v", p.headSize);
  p.kQuantized = parseQuantized(r, "k", p.headSize);
  p.vQuantized = parseQuantized(r, "v", p.headSize);
  p.causal = r.boolean("causal", false);
  p.windowLeft = parseWindow(r, "window_left");
  p.windowRight = parseWindow(r, "window_right");
  p.softcap = r.number("softcap", 0);
  p.sink = r.boolean("sink", false);
  p.lse = r.boolean("lse", false);
  p.scale = r.number("scale", 1);
  p.batchInvariant = r.boolean("batch_invariant", false);
  return p;
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
      throw Error(who + " has \"dims\" " + r.get("dims").dump() +
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
    arg.value.kind = SizeExpr::Kind::Name;
    arg.value.name = arg.name;
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
  if (kind == "pointer")
    arg.alignment = parseChoice(r, "alignment", 1, {1, 2, 4, 8, 16});
  if (kind == "tensor_map") {
    arg.kind = KernelArg::Kind::TensorMap;
    arg.map = parseTensorMap(r, *tensor);
  }
  return arg;
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
  if (k.launchIf && k.instead.empty())
    throw Error("manifest: " + r.path +
                " has \"launch_if\", but no \"instead\" for launches that do "
                "not fulfil it");
  if (r.has("instead") && !k.launchIf && !k.takesTensorMaps() &&
      k.alignment == 2)
    throw Error("manifest: " + r.path +
                " has \"instead\", but no argument of kind tensor_map, no "
                "\"launch_if\" and an alignment of 2, so that nothing can keep "
                "it from running");
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
  return t;
}

/// The harness indexes these without looking further, so a manifest that
/// claims to be attention must have them.
void checkAttentionTensors(const Manifest &m) {
  const AttentionProblem &p = *m.attention;
  auto need = [&](const std::string &name, size_t rank, DType dtype) {
    const TensorSpec *t = m.findTensor(name);
    if (!t)
      throw Error("manifest: the attention problem needs a tensor '" + name +
                  "'");
    // Indices may be wide.
    bool fits =
        t->dtype == dtype || (dtype == DType::I32 && t->dtype == DType::I64);
    if (t->shape.size() != rank || !fits)
      throw Error("manifest: tensor '" + name + "' is " + nameOf(t->dtype) +
                  " of rank " + std::to_string(t->shape.size()) +
                  "; the problem needs " + nameOf(dtype) + " of rank " +
                  std::to_string(rank));
  };
  bool raggedQ = p.query == Layout::Ragged, raggedK = p.cache == Layout::Ragged;
  for (const char *name : {"q", "o"})
    need(name, raggedQ ? 3 : 4, p.dtype);
  if (raggedQ)
    need("q_offsets", 1, DType::I32);
  if (p.lse)
    need("lse", raggedQ ? 2 : 3, DType::F32);
  if (p.sink)
    need("sink", 1, DType::F32);
  for (std::string name : {"k", "v"}) {
    const auto &quantized = name == "k" ? p.kQuantized : p.vQuantized;
    need(name, raggedK ? 3 : 4, quantized ? quantized->dtype : p.dtype);
    if (quantized && quantized->granularity) {
      std::string scales = name + ".scales";
      const TensorSpec *t = m.findTensor(scales);
      need(scales, *quantized->granularity > 0 ? (raggedK ? 3 : 4) : 1,
           t && (t->dtype == DType::F16 || t->dtype == DType::BF16)
               ? t->dtype
               : DType::F32);
    }
    int64_t depth = (name == "k" ? p.k : p.v).cacheDepth;
    const SizeExpr &extent = m.findTensor(name)->shape.back();
    if (extent.kind != SizeExpr::Kind::Constant || extent.constant != depth)
      throw Error("manifest: tensor '" + name + "' has rows of " +
                  extent.str() + " elements; the problem needs " +
                  std::to_string(depth));
    if (raggedK)
      need(name + ".offsets", 1, DType::I32);
    if (p.cache == Layout::Continuous || p.cache == Layout::Paged) {
      need(name + ".table", p.cache == Layout::Paged ? 2 : 1, DType::I32);
      need(name + ".lengths", 1, DType::I32);
    }
  }
}

/// The same for an append.
void checkAppendTensors(const Manifest &m) {
  const AppendSpec &p = *m.append;
  auto need = [&](const std::string &name, size_t rank,
                  const std::vector<DType> &dtypes, int64_t columns = -1) {
    const TensorSpec *t = m.findTensor(name);
    if (!t)
      throw Error("manifest: the append needs a tensor '" + name + "'");
    bool fits = std::count(dtypes.begin(), dtypes.end(), t->dtype) > 0;
    if (t->shape.size() != rank || !fits)
      throw Error("manifest: tensor '" + name + "' is " + nameOf(t->dtype) +
                  " of rank " + std::to_string(t->shape.size()) +
                  ", which the append does not take there");
    const SizeExpr &extent = t->shape.back();
    if (columns >= 0 &&
        (extent.kind != SizeExpr::Kind::Constant || extent.constant != columns))
      throw Error("manifest: tensor '" + name + "' has rows of " +
                  extent.str() + " elements; the append needs " +
                  std::to_string(columns));
  };
  const std::vector<DType> indices = {DType::I32, DType::I64},
                           floats = {DType::F16, DType::BF16, DType::F32};
  std::vector<DType> stored = floats;
  stored.insert(stored.end(), {DType::F8E4M3FN, DType::F8E5M2,
                               DType::F8E4M3FNUZ, DType::F8E5M2FNUZ});
  bool ragged = p.tokens == Layout::Ragged;
  if (ragged)
    need("offsets", 1, indices);
  if (p.at)
    need("at", 1, indices);
  if (p.rope != AppendSpec::Rope::None)
    for (const char *name : {"cos", "sin"})
      need(name, 2, floats);
  for (std::string name : {"k", "v"}) {
    if (name == "v" && !p.values)
      continue;
    need(name + "_new", ragged ? 3 : 4, floats, p.headSize);
    size_t rank = p.cache == Layout::Ragged ? 3 : 4;
    need(name, rank, stored, (name == "k" ? p.k : p.v).cacheDepth);
    if (p.cache == Layout::Ragged)
      need(name + ".offsets", 1, indices);
    if (p.cache == Layout::Continuous || p.cache == Layout::Paged) {
      need(name + ".table", p.cache == Layout::Paged ? 2 : 1, indices);
      need(name + ".lengths", 1, indices);
    }
    if (auto granularity = name == "k" ? p.kGranularity : p.vGranularity)
      need(name + ".scales", *granularity > 0 ? rank : 1, floats);
  }
}

/// The same for a product.
void checkGemmTensors(const Manifest &m) {
  for (const char *name : {"a", "b", "c"}) {
    const TensorSpec *t = m.findTensor(name);
    if (!t)
      throw Error(std::string("manifest: the product needs a tensor '") + name +
                  "'");
    bool fits = t->dtype == DType::F16 || t->dtype == DType::BF16 ||
                t->dtype == DType::F32;
    if (t->shape.size() != 2 || !fits)
      throw Error(std::string("manifest: tensor '") + name + "' is " +
                  nameOf(t->dtype) + " of rank " +
                  std::to_string(t->shape.size()) +
                  "; the product needs f16, bf16 or f32 of rank 2");
  }
}

} // namespace

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

bool Manifest::isAlternative(const KernelSpec &kernel) const {
  return std::any_of(kernels.begin(), kernels.end(), [&](const KernelSpec &k) {
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
    for (const KernelArg &arg : k.args)
      if (arg.kind == KernelArg::Kind::Size)
        arg.value.collectNames(names);
  }
  names.erase(kMultiprocessors);
  return names;
}

Manifest kvbuf::rt::parseManifest(const std::string &text) {
  auto limitDepth = [](int depth, json::parse_event_t, json &) {
    if (depth > kMostNesting)
      throw Error("manifest: objects and arrays nest deeper than " +
                  std::to_string(kMostNesting));
    return true;
  };
  json root = json::parse(text, limitDepth, /*allow_exceptions=*/false);
  if (root.is_discarded())
    throw Error("manifest: not valid JSON");
  Reader r(root, "manifest");
  int64_t version = r.integer("kvbuf");
  // 2: kernels that share a launch ("beside").
  if (version != 1 && version != 2)
    throw Error(
        "manifest version " + std::to_string(version) +
        ", but this runtime reads versions 1 and 2; compile the kernel again");
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
  checkAlternatives(m);
  if (r.has("problem")) {
    Reader problem(r.get("problem"), "problem");
    std::string op = problem.string("op");
    if (op == "attention" || op == "attention_after_append") {
      m.attention = parseProblem(problem);
      m.attention->appends = op != "attention";
      checkAttentionTensors(m);
    } else if (problem.string("op") == "cache_append" && problem.has("cache")) {
      m.append = parseAppend(problem);
      checkAppendTensors(m);
    } else if (problem.string("op") == "gemm") {
      m.gemm = GemmSpec{problem.boolean("transpose_b", false)};
      checkGemmTensors(m);
    }
  }
  return m;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

std::vector<int64_t> kvbuf::rt::evaluateShape(const TensorSpec &tensor,
                                              const Sizes &sizes) {
  std::vector<int64_t> shape;
  for (const SizeExpr &e : tensor.shape) {
    shape.push_back(e.evaluate(sizes));
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
