//===- SizeExpr.h - Expressions over the sizes of a launch ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What grids, shapes and conditions of launches are made of, and their only
/// evaluator. The compiler (`#kvbuffer.size`), the tile interpreter and the
/// runtime share it: it needs no LLVM, and throws nothing. Python's fake
/// tensors have sizes that are symbols, for which `_compiled.py` has its like.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_SIZES_SIZEEXPR_H
#define KVBUFFER_SIZES_SIZEEXPR_H

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvbuf {

/// What an expression makes of its operands.
enum class SizeOperator { Product, Sum, CeilDiv, FloorDiv, Min, Max };

/// Their names in programs and manifests, in this order.
inline constexpr std::string_view kSizeOperators[] = {
    "product", "sum", "ceildiv", "floordiv", "min", "max"};

inline std::string_view keywordOf(SizeOperator operation) {
  return kSizeOperators[static_cast<int>(operation)];
}

/// The operator of this name, if there is one.
inline std::optional<SizeOperator> sizeOperatorOf(std::string_view name) {
  const auto *end = std::end(kSizeOperators);
  const auto *it = std::find(std::begin(kSizeOperators), end, name);
  if (it == end)
    return std::nullopt;
  return static_cast<SizeOperator>(it - std::begin(kSizeOperators));
}

/// Whether it divides its first operand by its second.
inline bool isQuotient(SizeOperator operation) {
  return operation == SizeOperator::CeilDiv ||
         operation == SizeOperator::FloorDiv;
}

/// Whether it takes so many operands: a quotient has two, others one or more.
inline bool takesOperands(SizeOperator operation, size_t count) {
  return isQuotient(operation) ? count == 2 : count > 0;
}

/// A number, the name of a size, or an operator and its operands.
class SizeExpr {
public:
  enum class Kind { Constant, Name, Operation };

  Kind kind = Kind::Constant;
  int64_t constant = 0;
  std::string name;
  SizeOperator operation = SizeOperator::Product;
  std::vector<SizeExpr> operands;

  static SizeExpr number(int64_t value) {
    SizeExpr e;
    e.constant = value;
    return e;
  }
  static SizeExpr size(std::string name) {
    SizeExpr e;
    e.kind = Kind::Name;
    e.name = std::move(name);
    return e;
  }
  static SizeExpr of(SizeOperator operation, std::vector<SizeExpr> operands) {
    SizeExpr e;
    e.kind = Kind::Operation;
    e.operation = operation;
    e.operands = std::move(operands);
    return e;
  }
  bool isOperation(SizeOperator which) const {
    return kind == Kind::Operation && operation == which;
  }

  /// Why an expression has no value.
  struct Fault {
    /// The size that nobody knows; else what went wrong, for people.
    std::string missing, message;
  };
  /// The value of a size by its name, if there is one.
  using Lookup = std::function<std::optional<int64_t>(const std::string &)>;

  /// The value where sizes have those that `lookup` says; nothing where one is
  /// missing, where 64 bits overflow and where a quotient is not of a number of
  /// 0 or more by one of 1 or more: `fault` says which.
  std::optional<int64_t> evaluate(const Lookup &lookup, Fault &fault) const {
    if (kind == Kind::Constant)
      return constant;
    if (kind == Kind::Name) {
      std::optional<int64_t> value = lookup(name);
      if (!value)
        fault.missing = name;
      return value;
    }
    std::optional<int64_t> result;
    for (const SizeExpr &operand : operands) {
      std::optional<int64_t> value = operand.evaluate(lookup, fault);
      if (!value)
        return std::nullopt;
      result = result ? apply(*result, *value, fault) : value;
      if (!result)
        return std::nullopt;
    }
    return result;
  }

  /// As a reader would write it: "ceildiv(seq_q, 128)".
  std::string str() const {
    if (kind == Kind::Constant)
      return std::to_string(constant);
    if (kind == Kind::Name)
      return name;
    std::string separator = operation == SizeOperator::Product ? "*"
                            : operation == SizeOperator::Sum   ? "+"
                                                               : ", ";
    std::string list;
    for (size_t i = 0; i < operands.size(); ++i) {
      bool apart = operation == SizeOperator::Product &&
                   operands[i].isOperation(SizeOperator::Sum);
      std::string own = operands[i].str();
      list += (i ? separator : "") + (apart ? "(" + own + ")" : own);
    }
    if (separator != ", ")
      return list;
    return std::string(keywordOf(operation)) + "(" + list + ")";
  }

  /// Adds the names of sizes that occur in it.
  void collectNames(std::set<std::string> &names) const {
    if (kind == Kind::Name)
      names.insert(name);
    for (const SizeExpr &e : operands)
      e.collectNames(names);
  }

private:
  std::optional<int64_t> apply(int64_t a, int64_t b, Fault &fault) const {
    int64_t value = 0;
    switch (operation) {
    case SizeOperator::Min:
      return std::min(a, b);
    case SizeOperator::Max:
      return std::max(a, b);
    case SizeOperator::Product:
      if (!__builtin_mul_overflow(a, b, &value))
        return value;
      break;
    case SizeOperator::Sum:
      if (!__builtin_add_overflow(a, b, &value))
        return value;
      break;
    case SizeOperator::CeilDiv:
    case SizeOperator::FloorDiv:
      if (b > 0 && a >= 0)
        return a / b + (operation == SizeOperator::CeilDiv && a % b != 0);
      fault.message = "size expression " + str() + " divides " +
                      std::to_string(a) + " by " + std::to_string(b);
      return std::nullopt;
    }
    fault.message = "size expression " + str() + " overflows 64 bits";
    return std::nullopt;
  }
};

} // namespace kvbuf

#endif // KVBUFFER_SIZES_SIZEEXPR_H
