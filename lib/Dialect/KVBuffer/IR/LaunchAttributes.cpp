//===- LaunchAttributes.cpp - What a launch is made of --------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Keywords.h"
#include "KnownAttributes.h"
#include "WorkFormat.h"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"

using namespace mlir;
using namespace kvbuf;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

static StringRef textOf(SizeOperator operation) {
  std::string_view name = keywordOf(operation);
  return StringRef(name.data(), name.size());
}

bool SizeAttr::isSize(Attribute attr) {
  return isa<StringAttr, SizeAttr>(attr) ||
         (isa<IntegerAttr>(attr) && !isa<BoolAttr>(attr));
}

SizeAttr SizeAttr::of(MLIRContext *context, StringRef operation,
                      ArrayRef<Attribute> operands) {
  return get(context, *sizeOperatorOf(operation), operands);
}

SizeExpr SizeAttr::getExpr(Attribute size) {
  if (auto number = dyn_cast<IntegerAttr>(size))
    return SizeExpr::number(number.getInt());
  if (auto name = dyn_cast<StringAttr>(size))
    return SizeExpr::size(name.str());
  auto expression = cast<SizeAttr>(size);
  std::vector<SizeExpr> operands;
  for (Attribute operand : expression.getOperands())
    operands.push_back(getExpr(operand));
  return SizeExpr::of(expression.getOperation(), std::move(operands));
}

LogicalResult SizeAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               SizeOperator operation,
                               ArrayRef<Attribute> operands) {
  if (!takesOperands(operation, operands.size()))
    return emitError() << textOf(operation) << " has " << operands.size()
                       << " operands; expected "
                       << (isQuotient(operation)
                               ? "two, a number and what divides it"
                               : "one or more");
  for (Attribute operand : operands)
    if (!isSize(operand))
      return emitError() << "expected " << kExpected << ", got " << operand;
  return success();
}

/// The operands of an operator that has been read.
static Attribute parseOperands(AsmParser &parser, SMLoc loc,
                               StringRef operation) {
  std::optional<SizeOperator> known = sizeOperatorOf(operation);
  if (!known) {
    SmallVector<StringRef> names;
    for (std::string_view name : kSizeOperators)
      names.push_back(StringRef(name.data(), name.size()));
    parser.emitError(loc) << "expected " << alternatives(names) << ", got '"
                          << operation << "'";
    return {};
  }
  SmallVector<Attribute> operands;
  if (parser.parseCommaSeparatedList(
          [&] { return parseSize(parser, operands.emplace_back()); }) ||
      parser.parseRParen())
    return {};
  return SizeAttr::getChecked([&] { return parser.emitError(loc); },
                              parser.getContext(), *known,
                              ArrayRef<Attribute>(operands));
}

ParseResult kvbuf::parseSize(AsmParser &parser, Attribute &size) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word;
  if (succeeded(parser.parseOptionalKeyword(&word))) {
    size = failed(parser.parseOptionalLParen())
               ? parser.getBuilder().getStringAttr(word)
               : parseOperands(parser, loc, word);
    return success(bool(size));
  }
  int64_t number;
  OptionalParseResult isNumber = parser.parseOptionalInteger(number);
  if (isNumber.has_value()) {
    size = parser.getBuilder().getI64IntegerAttr(number);
    return *isNumber;
  }
  return parser.parseAttribute(size);
}

/// Whether a name is a word, which needs no quotes.
static bool isWord(StringRef name) {
  auto isFirst = [](char c) { return llvm::isAlpha(c) || c == '_'; };
  return !name.empty() && isFirst(name.front()) &&
         llvm::all_of(name, [&](char c) {
           return isFirst(c) || llvm::isDigit(c) || c == '.' || c == '$';
         });
}

/// Prints a size among others, where a name needs no quotes.
static void printOperand(AsmPrinter &printer, Attribute size) {
  auto name = dyn_cast<StringAttr>(size);
  if (name && isWord(name))
    printer << name.getValue();
  else
    printSize(printer, size);
}

static void printOperands(AsmPrinter &printer, SizeAttr size) {
  printer << textOf(size.getOperation()) << '(';
  llvm::interleaveComma(size.getOperands(), printer, [&](Attribute operand) {
    printOperand(printer, operand);
  });
  printer << ')';
}

void kvbuf::printSize(AsmPrinter &printer, Attribute size) {
  if (auto expression = dyn_cast<SizeAttr>(size))
    printOperands(printer, expression);
  else
    printer.printAttributeWithoutType(size);
}

Attribute SizeAttr::parse(AsmParser &parser, Type) {
  Attribute size;
  if (parser.parseLess())
    return {};
  SMLoc loc = parser.getCurrentLocation();
  if (parseSize(parser, size))
    return {};
  if (!isa<SizeAttr>(size)) {
    parser.emitError(loc) << "expected an operator and operands: " << size
                          << " stands for itself where a size is expected";
    return {};
  }
  return parser.parseGreater() ? Attribute() : size;
}

void SizeAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printOperands(printer, *this);
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

std::string TensorAttr::getDTypeOf(Type element) {
  if (element.isSignlessInteger(8))
    return "u8";
  std::string text;
  llvm::raw_string_ostream(text) << element;
  return text;
}

TensorAttr TensorAttr::withName(StringAttr name) const {
  return get(getContext(), name, getElementType(), getShape(), getAccess(),
             getCache());
}

TensorAttr TensorAttr::withShape(ArrayRef<Attribute> shape) const {
  return get(getContext(), getName(), getElementType(), shape, getAccess(),
             getCache());
}

TensorAttr TensorAttr::withAccess(TensorAccess access) const {
  return get(getContext(), getName(), getElementType(), getShape(), access,
             getCache());
}

LogicalResult TensorAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringAttr name, Type elementType,
                                 ArrayRef<Attribute> shape, TensorAccess,
                                 bool) {
  if (!elementType.isIntOrFloat() ||
      elementType.getIntOrFloatBitWidth() % 8 != 0)
    return emitError() << "tensor " << name << " has elements " << elementType
                       << "; expected integers or floats of whole bytes";
  if (shape.empty())
    return emitError() << "tensor " << name
                       << " has no dimension; expected one or more";
  for (Attribute size : shape)
    if (!SizeAttr::isSize(size))
      return emitError() << "tensor " << name << ": expected "
                         << SizeAttr::kExpected << ", got " << size;
  return success();
}

Attribute TensorAttr::parse(AsmParser &parser, Type) {
  std::string name;
  Type elementType;
  SmallVector<Attribute> shape;
  StringRef word;
  bool cache = false;
  SMLoc start = parser.getCurrentLocation(), loc;
  if (parser.parseLess() || parser.parseString(&name) || parser.parseColon() ||
      parser.parseType(elementType) ||
      parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Square,
          [&] { return parseSize(parser, shape.emplace_back()); }) ||
      parser.parseComma() || parser.getCurrentLocation(&loc) ||
      parser.parseKeyword(&word))
    return {};
  std::optional<TensorAccess> access = symbolizeTensorAccess(word);
  if (!access) {
    parser.emitError(loc) << "expected " << keywords<TensorAccess>();
    return {};
  }
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("cache"))
      return {};
    cache = true;
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(start); },
                    parser.getContext(),
                    parser.getBuilder().getStringAttr(name), elementType,
                    ArrayRef<Attribute>(shape), *access, cache);
}

void TensorAttr::print(AsmPrinter &printer) const {
  printer << '<' << getName() << " : " << getElementType() << '[';
  llvm::interleaveComma(getShape(), printer,
                        [&](Attribute size) { printOperand(printer, size); });
  printer << "], " << stringifyTensorAccess(getAccess());
  if (getCache())
    printer << ", cache";
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Named fields
//===----------------------------------------------------------------------===//

/// Parses a list of integers; what is no list is for the verifier to refuse.
static ParseResult parseIntegers(AsmParser &parser, Attribute &value) {
  if (failed(parser.parseOptionalLSquare()))
    return parser.parseAttribute(value);
  SmallVector<int64_t> list;
  if (failed(parser.parseOptionalRSquare()) &&
      (parser.parseCommaSeparatedList(
           [&] { return parser.parseInteger(list.emplace_back()); }) ||
       parser.parseRSquare()))
    return failure();
  value = parser.getBuilder().getDenseI64ArrayAttr(list);
  return success();
}

/// Parses a list of what `parse` reads.
static ParseResult
parseList(AsmParser &parser, Attribute &value,
          function_ref<ParseResult(AsmParser &, Attribute &)> parse) {
  SmallVector<Attribute> list;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parse(parser, list.emplace_back());
      }))
    return failure();
  value = parser.getBuilder().getArrayAttr(list);
  return success();
}

static ParseResult parseArgument(AsmParser &parser, Attribute &argument) {
  argument = ArgumentAttr::parse(parser, Type());
  return success(bool(argument));
}

/// Parses `name = value`, of a name that is known; of any name where `known` is
/// empty. `owner` is what has it, for messages.
static ParseResult parseField(AsmParser &parser, const Twine &owner,
                              ArrayRef<StringRef> known,
                              NamedAttrList &fields) {
  StringRef name;
  Attribute value;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name) || parser.parseEqual())
    return failure();
  if (!known.empty() && !llvm::is_contained(known, name)) {
    InFlightDiagnostic diag = parser.emitError(loc)
                              << owner << " has an unknown key '" << name
                              << "'";
    suggest(diag, name, known);
    return diag;
  }
  if (fields.get(name))
    return parser.emitError(loc) << owner << " has '" << name << "' twice";
  ParseResult result = llvm::is_contained({"block", "box", "columns", "dims",
                                           "folds", "key_bits", "swizzle"},
                                          name)
                           ? parseIntegers(parser, value)
                       : name == "args"
                           ? parseList(parser, value, parseArgument)
                       : name == "grid" ? parseList(parser, value, parseSize)
                       : llvm::is_contained({"copies_if", "launch_if"}, name)
                           ? parseSize(parser, value)
                           : parser.parseAttribute(value);
  if (failed(result))
    return failure();
  fields.append(name, value);
  return success();
}

/// Prints it so.
static void printField(AsmPrinter &printer, NamedAttribute field) {
  printer << field.getName().getValue() << " = ";
  Attribute value = field.getValue();
  if (auto numbers = dyn_cast<DenseI64ArrayAttr>(value)) {
    printer << '[';
    llvm::interleaveComma(numbers.asArrayRef(), printer);
    printer << ']';
  } else if (field.getName() == "args" || field.getName() == "grid") {
    printer << '[';
    llvm::interleaveComma(cast<ArrayAttr>(value), printer, [&](Attribute one) {
      if (auto argument = dyn_cast<ArgumentAttr>(one))
        argument.print(printer);
      else
        printOperand(printer, one);
    });
    printer << ']';
  } else if (field.getName() == "launch_if" || field.getName() == "copies_if") {
    printOperand(printer, value);
  } else {
    printer.printAttributeWithoutType(value);
  }
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

ArgumentAttr ArgumentAttr::pointer(StringAttr tensor,
                                   std::optional<int64_t> alignment) {
  Builder b(tensor.getContext());
  NamedAttrList details;
  if (alignment)
    details.append("alignment", b.getI64IntegerAttr(*alignment));
  return get(b.getContext(), ArgumentKind::Pointer, tensor, Attribute(),
             details.getDictionary(b.getContext()));
}

ArgumentAttr ArgumentAttr::stride(StringAttr tensor, int64_t dim,
                                  int64_t limit) {
  Builder b(tensor.getContext());
  NamedAttrList details;
  details.append("dim", b.getI64IntegerAttr(dim));
  if (limit)
    details.append("limit", b.getI64IntegerAttr(limit));
  return get(b.getContext(), ArgumentKind::Stride, tensor, Attribute(),
             details.getDictionary(b.getContext()));
}

ArgumentAttr ArgumentAttr::sizeOf(Attribute size) {
  MLIRContext *context = size.getContext();
  return get(context, ArgumentKind::Size, StringAttr(), size,
             DictionaryAttr::get(context));
}

ArgumentAttr ArgumentAttr::launchCounter(MLIRContext *context) {
  return get(context, ArgumentKind::LaunchCounter, StringAttr(), Attribute(),
             DictionaryAttr::get(context));
}

ArgumentAttr ArgumentAttr::withTensor(StringAttr tensor) const {
  return get(getContext(), getKind(), tensor, getSize(), getDetails());
}

std::optional<int64_t> ArgumentAttr::getNumber(StringRef name) const {
  auto number = getDetails().getAs<IntegerAttr>(name);
  return number ? std::optional(number.getInt()) : std::nullopt;
}

ArrayRef<int64_t> ArgumentAttr::getNumbers(StringRef name) const {
  auto numbers = getDetails().getAs<DenseI64ArrayAttr>(name);
  return numbers ? numbers.asArrayRef() : ArrayRef<int64_t>();
}

DictionaryAttr ArgumentAttr::getEntry() const {
  NamedAttrList entry(getDetails());
  entry.append("kind",
               StringAttr::get(getContext(), stringifyArgumentKind(getKind())));
  if (getTensor())
    entry.append("tensor", getTensor());
  if (getSize())
    entry.append(isa<StringAttr>(getSize()) ? "name" : "value", getSize());
  return entry.getDictionary(getContext());
}

Attribute ArgumentAttr::parse(AsmParser &parser, Type) {
  StringRef word;
  StringAttr tensor;
  Attribute size;
  NamedAttrList details;
  SMLoc start = parser.getCurrentLocation(), loc;
  if (parser.parseLess() || parser.getCurrentLocation(&loc) ||
      parser.parseKeyword(&word))
    return {};
  std::optional<ArgumentKind> kind = symbolizeArgumentKind(word);
  if (!kind) {
    parser.emitError(loc) << "expected " << keywords<ArgumentKind>();
    return {};
  }
  if (*kind == ArgumentKind::Size) {
    if (parseSize(parser, size))
      return {};
  } else if (*kind != ArgumentKind::LaunchCounter) {
    std::string name;
    if (parser.parseString(&name))
      return {};
    tensor = parser.getBuilder().getStringAttr(name);
  }
  while (succeeded(parser.parseOptionalComma())) {
    SmallVector<StringRef> keys = keysOfArguments(*kind);
    // Sizes and counters have none, whatever its name.
    if (keys.empty()) {
      parser.emitError(parser.getCurrentLocation())
          << "#kvbuffer.argument<" << word << "> has no keys";
      return {};
    }
    if (parseField(parser, "#kvbuffer.argument<" + word + ">", keys, details))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(start); },
                    parser.getContext(), *kind, tensor, size,
                    details.getDictionary(parser.getContext()));
}

void ArgumentAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyArgumentKind(getKind());
  if (getTensor())
    printer << ' ' << getTensor();
  if (getSize()) {
    printer << ' ';
    printOperand(printer, getSize());
  }
  for (NamedAttribute detail : getDetails()) {
    printer << ", ";
    printField(printer, detail);
  }
  printer << '>';
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

LaunchAttr LaunchAttr::of(Operation *kernel) {
  return kernel->getAttrOfType<LaunchAttr>(KVBufferDialect::kKernelAttr);
}

LaunchAttr LaunchAttr::with(StringRef field, Attribute value) const {
  NamedAttrList fields(getFields());
  fields.set(field, value);
  return get(getContext(), fields.getDictionary(getContext()));
}

ArrayRef<int64_t> LaunchAttr::getBlock() const {
  auto block = getFields().getAs<DenseI64ArrayAttr>("block");
  return block ? block.asArrayRef() : ArrayRef<int64_t>();
}

int64_t LaunchAttr::getThreads() const {
  int64_t threads = 1;
  for (int64_t size : getBlock())
    threads *= size;
  return threads;
}

ArrayRef<Attribute> LaunchAttr::getGrid() const {
  auto grid = getFields().getAs<ArrayAttr>("grid");
  return grid ? grid.getValue() : ArrayRef<Attribute>();
}

ArrayAttr LaunchAttr::getArgs() const {
  return getFields().getAs<ArrayAttr>("args");
}

int64_t LaunchAttr::getDynamicSharedBytes() const {
  auto bytes = getFields().getAs<IntegerAttr>("dynamic_shared_bytes");
  return bytes ? bytes.getInt() : 0;
}

std::optional<int64_t> LaunchAttr::getAlignment() const {
  auto alignment = getFields().getAs<IntegerAttr>("alignment");
  return alignment ? std::optional(alignment.getInt()) : std::nullopt;
}

bool LaunchAttr::takesTensorMaps() const {
  return getArgs() && llvm::any_of(getArgs(), [](Attribute argument) {
           return cast<ArgumentAttr>(argument).getKind() ==
                  ArgumentKind::TensorMap;
         });
}

/// Parses the fields of an attribute that has nothing else, those of `known`
/// names, or any where that is empty.
template <typename AttrT>
static Attribute parseFields(AsmParser &parser, StringRef owner,
                             ArrayRef<StringRef> known) {
  NamedAttrList fields;
  SMLoc start = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, [&] {
        return parseField(parser, owner, known, fields);
      }))
    return {};
  return AttrT::getChecked([&] { return parser.emitError(start); },
                           parser.getContext(),
                           fields.getDictionary(parser.getContext()));
}

static void printFields(AsmPrinter &printer, DictionaryAttr fields) {
  printer << '<';
  llvm::interleaveComma(fields, printer, [&](NamedAttribute field) {
    printField(printer, field);
  });
  printer << '>';
}

Attribute LaunchAttr::parse(AsmParser &parser, Type) {
  return parseFields<LaunchAttr>(parser, "#kvbuffer.launch", keysOfLaunches());
}

void LaunchAttr::print(AsmPrinter &printer) const {
  printFields(printer, getFields());
}

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

ProblemAttr ProblemAttr::of(Operation *kernel) {
  return kernel->getAttrOfType<ProblemAttr>(KVBufferDialect::kProblemAttr);
}

StringRef ProblemAttr::getOp() const {
  return getField<StringAttr>("op").getValue();
}

Attribute ProblemAttr::parse(AsmParser &parser, Type) {
  // Which fields there are depends on the problem.
  return parseFields<ProblemAttr>(parser, "#kvbuffer.problem", {});
}

void ProblemAttr::print(AsmPrinter &printer) const {
  printFields(printer, getFields());
}

//===----------------------------------------------------------------------===//
// LDS
//===----------------------------------------------------------------------===//

StringRef LdsAttr::getName() const {
  return getFields().getAs<StringAttr>("name").getValue();
}

std::optional<int64_t> LdsAttr::getNumber(StringRef field) const {
  auto number = getFields().getAs<IntegerAttr>(field);
  return number ? number.getValue().trySExtValue() : std::nullopt;
}

std::optional<ArrayRef<int64_t>> LdsAttr::getNumbers(StringRef field) const {
  auto numbers = getFields().getAs<DenseI64ArrayAttr>(field);
  return numbers ? std::optional(numbers.asArrayRef()) : std::nullopt;
}

Attribute LdsAttr::parse(AsmParser &parser, Type) {
  return parseFields<LdsAttr>(parser, "#kvbuffer.lds", keysOfLds());
}

void LdsAttr::print(AsmPrinter &printer) const {
  printFields(printer, getFields());
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

LogicalResult PipelineAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   Pipeline value, PipelineStart start) {
  if (start != PipelineStart::AtLoop && value != Pipeline::Predicated &&
      value != Pipeline::Turns)
    return emitError() << stringifyPipelineStart(start)
                       << " is for loops whose ops run ahead by predicates; "
                          "expected it beside predicated or turns, got "
                       << stringifyPipeline(value);
  return success();
}

LogicalResult StageAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                int64_t ahead, StageSpan, int64_t at) {
  if (ahead < 0)
    return emitError() << "expected 0 or more iterations ahead, got " << ahead;
  // Each has a copy of the loop's body before it.
  constexpr int64_t most = 1024;
  if (ahead > most)
    return emitError() << "expected at most " << most
                       << " iterations ahead, got " << ahead;
  if (at < -1)
    return emitError() << "expected a place of 0 or more, got " << at;
  return success();
}
