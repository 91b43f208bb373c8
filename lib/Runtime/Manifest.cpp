//===- Manifest.cpp - What an artifact's kernels expect -------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Manifest.h"
#include "kvbuffer/Runtime/Error.h"

#include <limits>
#include <nlohmann/json.hpp>

using namespace kvbuf::rt;
using nlohmann::json;

//===----------------------------------------------------------------------===//
// Size expressions
//===----------------------------------------------------------------------===//

int64_t kvbuf::rt::sizeValue(const Sizes &sizes, const std::string &name) {
  auto it = sizes.find(name);
  if (it != sizes.end())
    return it->second;
  std::vector<std::string> known;
  for (const auto &[key, value] : sizes)
    known.push_back(key);
  throw Error(
      "missing size '" + name +
      "': it is not given, and follows from "
      "no tensor's shape" +
      (known.empty() ? "" : " (known: " + quotedList(known, "and") + ")"));
}

int64_t SizeExpr::evaluate(const Sizes &sizes) const {
  auto overflow = [&]() -> Error {
    return Error("size expression " + str() + " overflows 64 bits");
  };
  switch (kind) {
  case Kind::Constant:
    return constant;
  case Kind::Name:
    return sizeValue(sizes, name);
  case Kind::Product: {
    int64_t value = 1;
    for (const SizeExpr &e : operands)
      if (__builtin_mul_overflow(value, e.evaluate(sizes), &value))
        throw overflow();
    return value;
  }
  case Kind::Sum: {
    int64_t value = 0;
    for (const SizeExpr &e : operands)
      if (__builtin_add_overflow(value, e.evaluate(sizes), &value))
        throw overflow();
    return value;
  }
  case Kind::CeilDiv: {
    int64_t a = operands[0].evaluate(sizes), b = operands[1].evaluate(sizes);
    if (b <= 0 || a < 0)
      throw Error("size expression " + str() + " divides " + std::to_string(a) +
                  " by " + std::to_string(b));
    return a / b + (a % b != 0);
  }
  }
  return 0;
}

std::string SizeExpr::str() const {
  auto list = [&](const char *separator) {
    std::string out;
    for (size_t i = 0; i < operands.size(); ++i)
      out += (i ? separator : "") + operands[i].str();
    return out;
  };
  switch (kind) {
  case Kind::Constant:
    return std::to_string(constant);
  case Kind::Name:
    return name;
  case Kind::Product:
    return list("*");
  case Kind::Sum:
    return list("+");
  case Kind::CeilDiv:
    return "ceildiv(" + list(", ") + ")";
  }
  return "";
}

void SizeExpr::collectNames(std::set<std::string> &names) const {
  if (kind == Kind::Name)
    names.insert(name);
  for (const SizeExpr &e : operands)
    e.collectNames(names);
}

bool SizeExpr::unify(int64_t value, Sizes &sizes) const {
  if (kind == Kind::Name) {
    auto [it, inserted] = sizes.emplace(name, value);
    return inserted || it->second == value;
  }
  if (kind == Kind::Sum) {
    const SizeExpr *unknown = nullptr;
    int64_t rest = value;
    for (const SizeExpr &e : operands) {
      if (e.kind == Kind::Name && !sizes.count(e.name) && !unknown)
        unknown = &e;
      else
        rest -= e.evaluate(sizes);
    }
    return unknown ? rest >= 0 && unknown->unify(rest, sizes) : rest == 0;
  }
  return evaluate(sizes) == value;
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {

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
    return v.get<int64_t>();
  }
  int64_t integer(const char *key, int64_t fallback) const {
    return has(key) ? integer(key) : fallback;
  }
  unsigned natural(const char *key, unsigned fallback) const {
    int64_t v = integer(key, fallback);
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
  if (v.is_number_integer()) {
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
    if (e.kind != SizeExpr::Kind::Constant) {
      for (const json &operand : *v.begin())
        e.operands.push_back(parseExpr(operand, path));
      return e;
    }
  }
  throw Error("manifest: " + path + " holds " + v.dump() +
              "; expected an integer, a size name, or one of product, sum, "
              "ceildiv with operands");
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

AttentionProblem parseProblem(const Reader &r) {
  AttentionProblem p;
  p.dtype = parseDType(r.string("dtype"));
  if (p.dtype != DType::F16 && p.dtype != DType::BF16)
    throw Error("manifest: " + r.at("dtype") + " is '" + nameOf(p.dtype) +
                "'; expected bf16 or f16");
  p.heads = r.integer("heads");
  p.kvHeads = r.integer("kv_heads");
  p.headSize = r.integer("head_size");
  if (p.heads < 1 || p.kvHeads < 1 || p.heads % p.kvHeads != 0)
    throw Error("manifest: " + r.path + " has " + std::to_string(p.heads) +
                " heads and " + std::to_string(p.kvHeads) +
                " kv_heads; expected a positive multiple");
  if (p.headSize < 8 || p.headSize % 8 != 0)
    throw Error("manifest: " + r.at("head_size") + " is " +
                std::to_string(p.headSize) + "; expected a multiple of 8");
  p.query = parseLayout(r, "query", /*cache=*/false);
  p.cache = parseLayout(r, "cache", /*cache=*/true);
  if (p.cache == Layout::Paged) {
    p.pageSize = r.integer("page_size");
    if (p.pageSize < 1)
      throw Error("manifest: " + r.at("page_size") + " is not positive");
  }
  p.causal = r.boolean("causal", false);
  p.windowLeft = r.integer("window_left", -1);
  p.windowRight = r.integer("window_right", -1);
  p.softcap = r.number("softcap", 0);
  p.sink = r.boolean("sink", false);
  p.lse = r.boolean("lse", false);
  p.scale = r.number("scale", 1);
  return p;
}

KernelArg parseArg(const Reader &r, const Manifest &m) {
  KernelArg arg;
  std::string kind = r.string("kind");
  if (kind == "size") {
    arg.kind = KernelArg::Kind::Size;
    arg.name = r.string("name");
    return arg;
  }
  if (kind != "pointer" && kind != "stride")
    throw Error("manifest: " + r.path + " has kind '" + kind +
                "'; this runtime knows pointer, stride and size (the artifact "
                "may come from a newer compiler)");
  arg.tensor = r.string("tensor");
  const TensorSpec *tensor = m.findTensor(arg.tensor);
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
  }
  return arg;
}

KernelSpec parseKernel(const Reader &r, const Manifest &m) {
  KernelSpec k;
  k.entry = r.string("entry");
  const json &block = r.array("block"), &grid = r.array("grid");
  if (block.size() != 3 || grid.size() != 3)
    throw Error("manifest: " + r.path +
                " needs three numbers for \"block\" "
                "and \"grid\"");
  uint64_t threads = 1;
  for (size_t i = 0; i < 3; ++i) {
    if (!block[i].is_number_integer() || block[i].get<int64_t>() < 1 ||
        block[i].get<int64_t>() > 1024)
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
  size_t i = 0;
  for (const json &arg : r.array("args"))
    k.args.push_back(parseArg(
        Reader(arg, r.path + ".args[" + std::to_string(i++) + "]"), m));
  return k;
}

TensorSpec parseTensor(const Reader &r) {
  TensorSpec t;
  t.name = r.string("name");
  t.dtype = parseDType(r.string("dtype"));
  for (const json &dim : r.array("shape"))
    t.shape.push_back(parseExpr(dim, r.at("shape")));
  if (t.shape.empty())
    throw Error("manifest: " + r.at("shape") + " is empty");
  std::string access = r.string("access");
  if (access != "read" && access != "write")
    throw Error("manifest: " + r.at("access") + " is '" + access +
                "'; expected read or write");
  t.output = access == "write";
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
    if (t->shape.size() != rank || t->dtype != dtype)
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
    need(name, raggedK ? 3 : 4, p.dtype);
    if (raggedK)
      need(name + ".offsets", 1, DType::I32);
    if (p.cache == Layout::Continuous || p.cache == Layout::Paged) {
      need(name + ".table", p.cache == Layout::Paged ? 2 : 1, DType::I32);
      need(name + ".lengths", 1, DType::I32);
    }
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

std::set<std::string> Manifest::sizeNames() const {
  std::set<std::string> names;
  for (const TensorSpec &t : tensors)
    for (const SizeExpr &e : t.shape)
      e.collectNames(names);
  for (const KernelSpec &k : kernels) {
    for (const SizeExpr &e : k.grid)
      e.collectNames(names);
    for (const KernelArg &arg : k.args)
      if (arg.kind == KernelArg::Kind::Size)
        names.insert(arg.name);
  }
  return names;
}

Manifest kvbuf::rt::parseManifest(const std::string &text) {
  json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded())
    throw Error("manifest: not valid JSON");
  Reader r(root, "manifest");
  int64_t version = r.integer("kvbuf");
  if (version != 1)
    throw Error("manifest version " + std::to_string(version) +
                ", but this runtime reads version 1; compile the kernel again");
  Manifest m;
  m.name = r.string("name");
  if (r.has("producer"))
    m.producer = r.string("producer");
  Reader target(r.get("target"), "target");
  m.target.vendor = target.string("vendor");
  m.target.chip = target.string("chip");
  m.target.wave = target.natural("wave", 32);
  size_t i = 0;
  for (const json &t : r.array("tensors"))
    m.tensors.push_back(
        parseTensor(Reader(t, "tensors[" + std::to_string(i++) + "]")));
  i = 0;
  for (const json &k : r.array("kernels"))
    m.kernels.push_back(
        parseKernel(Reader(k, "kernels[" + std::to_string(i++) + "]"), m));
  if (m.kernels.empty())
    throw Error("manifest: \"kernels\" is empty");
  if (r.has("problem")) {
    Reader problem(r.get("problem"), "problem");
    if (problem.string("op") == "attention") {
      m.attention = parseProblem(problem);
      checkAttentionTensors(m);
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
