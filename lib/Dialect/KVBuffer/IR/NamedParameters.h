//===- NamedParameters.h - `name = value` in attributes ---------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How attributes with many parameters are read and written: `name = value` in
/// any order, each at most once.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_DIALECT_KVBUFFER_IR_NAMEDPARAMETERS_H
#define KVBUFFER_LIB_DIALECT_KVBUFFER_IR_NAMEDPARAMETERS_H

#include "Keywords.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/IR/DialectImplementation.h"
#include <functional>

namespace kvbuf {

inline mlir::ParseResult parseValue(mlir::AsmParser &parser, int64_t &value) {
  return parser.parseInteger(value);
}

inline mlir::ParseResult parseValue(mlir::AsmParser &parser,
                                    llvm::SmallVector<int64_t> &list) {
  return parser.parseCommaSeparatedList(
      mlir::AsmParser::Delimiter::Square,
      [&] { return parser.parseInteger(list.emplace_back()); });
}

inline mlir::ParseResult parseValue(mlir::AsmParser &parser,
                                    MatrixShape &shape) {
  llvm::SmallVector<int64_t> sizes;
  if (parseValue(parser, sizes))
    return mlir::failure();
  // The verifier refuses what is left of a list of another length.
  shape = {};
  if (sizes.size() == shape.size())
    llvm::copy(sizes, shape.begin());
  return mlir::success();
}

inline mlir::ParseResult parseValue(mlir::AsmParser &parser,
                                    ProductInstruction &instruction) {
  InstructionAttr attr;
  if (parser.parseAttribute(attr))
    return mlir::failure();
  instruction = attr.getInstruction();
  return mlir::success();
}

/// Parses a word of an enumeration; `kind` says what it names, for messages.
template <typename E>
inline mlir::ParseResult parseKeyword(mlir::AsmParser &parser, E &value,
                                      llvm::StringRef kind = "") {
  llvm::StringRef text;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&text))
    return mlir::failure();
  std::optional<E> parsed = symbolizeEnum<E>(text);
  if (!parsed)
    return parser.emitError(loc) << "expected " << kind << keywords<E>();
  value = *parsed;
  return mlir::success();
}

template <typename E>
  requires std::is_enum_v<E>
inline mlir::ParseResult parseValue(mlir::AsmParser &parser, E &value) {
  return parseKeyword(parser, value);
}

inline mlir::ParseResult parseValue(mlir::AsmParser &parser, bool &flag) {
  llvm::StringRef text;
  llvm::SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&text))
    return mlir::failure();
  if (text != "true" && text != "false")
    return parser.emitError(loc, "expected true or false");
  flag = text == "true";
  return mlir::success();
}

/// One `name = value` of an attribute.
struct Parameter {
  template <typename T>
  Parameter(llvm::StringRef name, T &value, bool required = false)
      : name(name), required(required),
        parse([&value](mlir::AsmParser &parser) {
          return parseValue(parser, value);
        }) {}

  /// One that is read in its own way.
  Parameter(llvm::StringRef name,
            std::function<mlir::ParseResult(mlir::AsmParser &)> parse)
      : name(name), parse(std::move(parse)) {}

  llvm::StringRef name;
  bool required = false;
  std::function<mlir::ParseResult(mlir::AsmParser &)> parse;
  bool seen = false;
};

/// Parses `, name = value` until `>`; every name at most once, in any order.
/// With `open`, the word `open` may stand last.
inline mlir::ParseResult
parseParameters(mlir::AsmParser &parser,
                llvm::MutableArrayRef<Parameter> parameters, bool leadingComma,
                bool *open = nullptr) {
  bool first = !leadingComma;
  while (mlir::failed(parser.parseOptionalGreater())) {
    if (!first && parser.parseComma())
      return mlir::failure();
    first = false;
    if (open && mlir::succeeded(parser.parseOptionalKeyword("open"))) {
      *open = true;
      if (parser.parseGreater())
        return mlir::failure();
      break;
    }
    llvm::StringRef name;
    llvm::SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name) || parser.parseEqual())
      return mlir::failure();
    auto *it = llvm::find_if(
        parameters, [&](const Parameter &p) { return p.name == name; });
    if (it == parameters.end() || it->seen) {
      mlir::InFlightDiagnostic diag =
          parser.emitError(loc)
          << (it == parameters.end() ? "unknown" : "repeated") << " parameter '"
          << name << "', expected one of ";
      llvm::interleaveComma(parameters, diag,
                            [&](const Parameter &p) { diag << p.name; });
      return diag;
    }
    it->seen = true;
    if (it->parse(parser))
      return mlir::failure();
  }
  for (const Parameter &p : parameters)
    if (p.required && !p.seen)
      return parser.emitError(parser.getNameLoc())
             << "missing parameter '" << p.name << "'";
  return mlir::success();
}

inline void printValue(mlir::AsmPrinter &printer, int64_t value) {
  printer << value;
}

inline void printValue(mlir::AsmPrinter &printer, bool value) {
  printer << (value ? "true" : "false");
}

inline void printValue(mlir::AsmPrinter &printer,
                       llvm::ArrayRef<int64_t> values) {
  printer << '[';
  llvm::interleaveComma(values, printer);
  printer << ']';
}

template <typename E>
  requires std::is_enum_v<E>
inline void printValue(mlir::AsmPrinter &printer, E value) {
  printer << stringifyEnum(value);
}

inline void printValue(mlir::AsmPrinter &printer,
                       const ProductInstruction &instruction) {
  printer << "#kvbuffer.instruction<" << matrixUnitName(instruction.unit)
          << ", ";
  printValue(printer, llvm::ArrayRef<int64_t>(instruction.shape));
  printer << '>';
}

inline void printList(mlir::AsmPrinter &printer, llvm::StringRef name,
                      llvm::ArrayRef<int64_t> values) {
  printer << ", " << name << " = ";
  printValue(printer, values);
}

} // namespace kvbuf

#endif // KVBUFFER_LIB_DIALECT_KVBUFFER_IR_NAMEDPARAMETERS_H
