//===- SizeExpr.cpp - Expressions over size names
//--------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Manifest.h"

#include <algorithm>

using namespace kvbuf::rt;

int64_t kvbuf::rt::sizeValue(const Sizes &sizes, const std::string &name) {
  auto it = sizes.find(name);
  if (it != sizes.end())
    return it->second;
  if (name == kMultiprocessors)
    throw Error("this device does not tell its number of multiprocessors, "
                "which the kernel's grid depends on");
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
  case Kind::CeilDiv:
  case Kind::FloorDiv: {
    int64_t a = operands[0].evaluate(sizes), b = operands[1].evaluate(sizes);
    if (b <= 0 || a < 0)
      throw Error("size expression " + str() + " divides " + std::to_string(a) +
                  " by " + std::to_string(b));
    return a / b + (kind == Kind::CeilDiv && a % b != 0);
  }
  case Kind::Min:
  case Kind::Max: {
    int64_t value = operands[0].evaluate(sizes);
    for (const SizeExpr &e : operands) {
      int64_t other = e.evaluate(sizes);
      value =
          kind == Kind::Min ? std::min(value, other) : std::max(value, other);
    }
    return value;
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
  case Kind::FloorDiv:
    return "floordiv(" + list(", ") + ")";
  case Kind::Min:
    return "min(" + list(", ") + ")";
  case Kind::Max:
    return "max(" + list(", ") + ")";
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
      else if (__builtin_sub_overflow(rest, e.evaluate(sizes), &rest))
        return false;
    }
    return unknown ? rest >= 0 && unknown->unify(rest, sizes) : rest == 0;
  }
  return evaluate(sizes) == value;
}
