//===- ManifestKernels.cpp - Kernels of a manifest ------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ManifestKernels.h"

#include <algorithm>

using namespace kvbuf::rt;

SizeExpr kvbuf::rt::parseExpr(const json &v, const std::string &path) {
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

namespace {

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
  if (!tensor)
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

} // namespace

KernelSpec kvbuf::rt::parseKernel(const Reader &r, Manifest &m) {
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
  auto parseNames = [&](const char *field, std::vector<std::string> &names) {
    if (!r.has(field))
      return;
    for (const json &name : r.array(field)) {
      if (!name.is_string())
        throw Error("manifest: " + r.at(field) + " holds " + name.dump() +
                    "; expected names of kernels");
      names.push_back(name.get<std::string>());
    }
  };
  parseNames("beside", k.beside);
  parseNames("ahead", k.ahead);
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

KernelSpec kvbuf::rt::parseCopy(const Reader &r, Manifest &m) {
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

void kvbuf::rt::checkAlternatives(const Manifest &m) {
  for (const KernelSpec &first : m.kernels) {
    for (const std::string &name : first.beside) {
      const KernelSpec *other = m.findKernel(name);
      if (!other || other == &first || !other->beside.empty())
        throw Error("manifest: kernel '" + first.entry + "' names '" + name +
                    "' as what runs beside it; expected another of "
                    "\"kernels\", with nothing beside that");
    }
    for (const std::string &name : first.ahead) {
      const KernelSpec *other = m.findKernel(name);
      if (!other || other == &first || !other->ahead.empty() ||
          !other->beside.empty() || !other->instead.empty())
        throw Error("manifest: kernel '" + first.entry + "' names '" + name +
                    "' as what runs ahead of it; expected another of "
                    "\"kernels\", with nothing ahead of that, beside it or in "
                    "its place");
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
