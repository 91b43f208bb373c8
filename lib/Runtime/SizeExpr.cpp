//===- SizeExpr.cpp - Sizes of a launch -----------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Manifest.h"

#include <optional>

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

int64_t kvbuf::rt::evaluate(const SizeExpr &expression, const Sizes &sizes) {
  SizeExpr::Fault fault;
  std::optional<int64_t> value = expression.evaluate(
      [&](const std::string &name) {
        auto it = sizes.find(name);
        return it == sizes.end() ? std::nullopt : std::optional(it->second);
      },
      fault);
  if (value)
    return *value;
  if (!fault.missing.empty())
    return sizeValue(sizes, fault.missing);
  throw Error(fault.message);
}

bool kvbuf::rt::unify(const SizeExpr &expression, int64_t value, Sizes &sizes) {
  if (expression.kind == SizeExpr::Kind::Name) {
    auto [it, inserted] = sizes.emplace(expression.name, value);
    return inserted || it->second == value;
  }
  if (expression.isOperation(SizeOperator::Sum)) {
    const SizeExpr *unknown = nullptr;
    int64_t rest = value;
    for (const SizeExpr &e : expression.operands) {
      if (e.kind == SizeExpr::Kind::Name && !sizes.count(e.name) && !unknown)
        unknown = &e;
      else if (__builtin_sub_overflow(rest, evaluate(e, sizes), &rest))
        return false;
    }
    return unknown ? rest >= 0 && unify(*unknown, rest, sizes) : rest == 0;
  }
  return evaluate(expression, sizes) == value;
}
