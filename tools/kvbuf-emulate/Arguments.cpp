//===- Arguments.cpp - Arguments from the command line --------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulate.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <random>

using namespace llvm;
using namespace kvbuf::emulate;

/// No array on a command line is larger.
static constexpr uint64_t maxBytes = uint64_t(1) << 32;

size_t kvbuf::emulate::widthOf(StringRef type) {
  return StringSwitch<size_t>(type)
      .Cases({"i8", "f8"}, 1)
      .Cases({"i16", "f16", "bf16"}, 2)
      .Cases({"i32", "f32"}, 4)
      .Cases({"i64", "f64", "index"}, 8)
      .Default(0);
}

size_t Buffer::elements() const {
  size_t n = 1;
  for (int64_t size : shape)
    n *= static_cast<size_t>(size);
  return n;
}

static const fltSemantics *semanticsOf(StringRef type) {
  return StringSwitch<const fltSemantics *>(type)
      .Case("f16", &APFloat::IEEEhalf())
      .Case("bf16", &APFloat::BFloat())
      .Case("f32", &APFloat::IEEEsingle())
      .Case("f64", &APFloat::IEEEdouble())
      .Default(nullptr);
}

/// The bits of a number of a type.
static Expected<uint64_t> parseNumber(StringRef text, StringRef type) {
  if (const fltSemantics *semantics = semanticsOf(type)) {
    APFloat value(*semantics);
    auto status = value.convertFromString(text, APFloat::rmNearestTiesToEven);
    if (!status) {
      consumeError(status.takeError());
      return createStringError("'" + text + "' is no number of type " + type);
    }
    if (*status & APFloat::opOverflow)
      return createStringError("'" + text +
                               "' is larger than any number of "
                               "type " +
                               type);
    return value.bitcastToAPInt().getZExtValue();
  }
  int64_t value;
  unsigned bits = static_cast<unsigned>(widthOf(type)) * 8;
  if (!bits || text.getAsInteger(0, value))
    return createStringError("'" + text + "' is no number of type " + type);
  // Types have no signs.
  if (!isIntN(bits, value) && !isUIntN(bits, static_cast<uint64_t>(value)))
    return createStringError("'" + text + "' has more bits than " + type);
  return static_cast<uint64_t>(value);
}

/// The name of an element type that .npy or MLIR has.
static std::string nameOf(mlir::Type type) {
  if (type.isIndex())
    return "index";
  if (auto integer = dyn_cast<mlir::IntegerType>(type))
    return integer.getWidth() == 1 ? "i8"
                                   : "i" + std::to_string(integer.getWidth());
  return type.isF16()    ? "f16"
         : type.isBF16() ? "bf16"
         : type.isF32()  ? "f32"
         : type.isF64()  ? "f64"
                         : "";
}

//===----------------------------------------------------------------------===//
// .npy
//===----------------------------------------------------------------------===//

static std::string typeOfDescr(StringRef descr) {
  return StringSwitch<std::string>(descr)
      .Case("<f2", "f16")
      .Case("<f4", "f32")
      .Case("<f8", "f64")
      .Cases({"|i1", "|u1", "<i1", "<u1", "|b1"}, "i8")
      .Cases({"<i2", "<u2"}, "i16")
      .Cases({"<i4", "<u4"}, "i32")
      .Cases({"<i8", "<u8"}, "i64")
      .Default("");
}

/// The value of a key of the header, a Python dictionary.
static StringRef entry(StringRef header, StringRef key) {
  size_t at = header.find(("'" + key + "':").str());
  return at == StringRef::npos ? StringRef()
                               : header.drop_front(at + key.size() + 3).ltrim();
}

static Expected<Buffer> readNpy(StringRef path) {
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false,
                                    /*RequiresNullTerminator=*/false);
  if (!file)
    return createStringError("cannot read '" + path +
                             "': " + file.getError().message());
  StringRef data = (*file)->getBuffer();
  auto bad = [&](const Twine &why) {
    return createStringError("'" + path + "' " + why);
  };
  if (!data.starts_with("\x93NUMPY") || data.size() < 12)
    return bad("is not a .npy file");
  bool isLong = data[6] != 1;
  uint32_t length = 0;
  std::memcpy(&length, data.data() + 8, isLong ? 4 : 2);
  size_t begin = (isLong ? 12 : 10) + static_cast<size_t>(length);
  if (begin > data.size())
    return bad("is truncated in its header");
  StringRef header = data.substr(isLong ? 12 : 10, length);
  Buffer buffer;
  StringRef descr = entry(header, "descr");
  if (!descr.consume_front("'"))
    return bad("holds records; expected plain numbers");
  buffer.type = typeOfDescr(descr.split('\'').first);
  if (buffer.type.empty())
    return bad("holds elements of type '" + descr.split('\'').first + "'");
  if (!entry(header, "fortran_order").starts_with("False"))
    return bad("is in column-major order; expected row-major order");
  StringRef shape = entry(header, "shape");
  if (!shape.consume_front("("))
    return bad("is damaged: its header has no shape");
  uint64_t elements = 1;
  for (shape = shape.split(')').first; !shape.trim().empty();) {
    auto [first, rest] = shape.split(',');
    int64_t size;
    if (first.trim().getAsInteger(10, size) || size < 0)
      return bad("is damaged: its shape is malformed");
    buffer.shape.push_back(size);
    elements = SaturatingMultiply<uint64_t>(elements, size);
    shape = rest;
  }
  uint64_t bytes = SaturatingMultiply<uint64_t>(elements, widthOf(buffer.type));
  if (bytes > maxBytes || bytes != data.size() - begin)
    return bad("has " + Twine(data.size() - begin) +
               " bytes of elements; its "
               "shape needs " +
               Twine(bytes));
  buffer.bytes.assign(data.begin() + begin, data.end());
  return buffer;
}

std::string kvbuf::emulate::toNpy(const Buffer &buffer) {
  StringRef descr = StringSwitch<StringRef>(buffer.type)
                        .Case("f16", "<f2")
                        .Case("bf16", "<u2")
                        .Case("f32", "<f4")
                        .Case("f64", "<f8")
                        .Case("i8", "|i1")
                        .Case("i16", "<i2")
                        .Case("i32", "<i4")
                        .Default("<i8");
  std::string header =
      ("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (").str();
  for (int64_t size : buffer.shape)
    header += std::to_string(size) + ", ";
  header += "), }";
  // The elements begin at a multiple of 64 bytes.
  header.resize(alignTo(header.size() + 11, 64) - 11, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xFF);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  out.append(buffer.bytes.begin(), buffer.bytes.end());
  return out;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

// The bits of a number, rounded to a type.
static uint64_t bitsOf(double number, StringRef type) {
  const fltSemantics *semantics = semanticsOf(type);
  if (!semantics)
    return static_cast<uint64_t>(static_cast<int64_t>(number));
  APFloat value(number);
  bool loses;
  value.convert(*semantics, APFloat::rmNearestTiesToEven, &loses);
  return value.bitcastToAPInt().getZExtValue();
}

/// Fills an array with a number, with "iota" or with "random[:SEED]".
static Error fillArray(Buffer &buffer, StringRef fill, uint64_t elements) {
  size_t width = widthOf(buffer.type);
  auto put = [&](uint64_t i, uint64_t bits) {
    std::memcpy(buffer.bytes.data() + i * width, &bits, width);
  };
  if (fill == "iota") {
    if (elements && !semanticsOf(buffer.type) && width < 8 &&
        !isUIntN(static_cast<unsigned>(width) * 8, elements - 1))
      return createStringError("'iota' of " + Twine(elements) +
                               " elements has more bits than " + buffer.type);
    for (uint64_t i = 0; i < elements; ++i)
      put(i, bitsOf(static_cast<double>(i), buffer.type));
    return Error::success();
  }
  StringRef seed = fill;
  if (seed.consume_front("random")) {
    uint64_t state = 1;
    if (!seed.empty() &&
        (!seed.consume_front(":") || seed.getAsInteger(10, state)))
      return createStringError("'" + fill +
                               "' fills nothing; expected such as random:7");
    std::mt19937_64 next(state);
    bool isFloat = semanticsOf(buffer.type);
    for (uint64_t i = 0; i < elements; ++i) {
      uint64_t bits = next() >> 11;
      put(i, bitsOf(isFloat ? static_cast<double>(bits) * 0x1p-52 - 1
                            : static_cast<double>(bits % 100),
                    buffer.type));
    }
    return Error::success();
  }
  auto value = parseNumber(fill, buffer.type);
  if (!value)
    return value.takeError();
  for (uint64_t i = 0; i < elements; ++i)
    put(i, *value);
  return Error::success();
}

/// "f32[4,8]" or "f32[4,8]=1.5"; nothing: not of that form.
static Expected<std::optional<Buffer>> parseArray(StringRef text) {
  auto [type, rest] = text.split('[');
  if (rest.empty() || !widthOf(type))
    return std::nullopt;
  auto [sizes, fill] = rest.split(']');
  Buffer buffer;
  buffer.type = type.str();
  uint64_t elements = 1;
  while (!sizes.empty()) {
    auto [first, more] = sizes.split(',');
    int64_t size;
    if (first.trim().getAsInteger(10, size) || size < 0)
      return createStringError("'" + text + "': '" + first +
                               "' is no size; expected such as f32[4,8]");
    buffer.shape.push_back(size);
    elements = SaturatingMultiply<uint64_t>(elements, size);
    sizes = more;
  }
  size_t width = widthOf(type);
  if (elements > maxBytes / width)
    return createStringError("'" + text + "' is too large");
  buffer.bytes.assign(elements * width, static_cast<char>(0xA5));
  buffer.initialized = fill.consume_front("=");
  if (buffer.initialized)
    if (Error e = fillArray(buffer, fill, elements))
      return std::move(e);
  return buffer;
}

void Arguments::addBuffer(Buffer buffer, mlir::Type type) {
  // A boundary that vectors and tensor maps ask for.
  buffers.push_back(std::move(buffer));
  Buffer &b = buffers.back();
  b.name = "argument " + std::to_string(bufferOf.size());
  bufferOf.push_back(static_cast<int>(buffers.size()) - 1);
  uint64_t address = reinterpret_cast<uint64_t>(b.bytes.data());
  auto memref = dyn_cast_or_null<mlir::MemRefType>(type);
  addWord(address, 8);
  if (!memref)
    return;
  // As MLIR's calling convention has it: allocated and aligned address, offset,
  // sizes, strides.
  addWord(address, 8);
  addWord(0, 8);
  for (int64_t size : b.shape)
    addWord(static_cast<uint64_t>(size), 8);
  for (size_t d = 0; d < b.shape.size(); ++d) {
    uint64_t stride = 1;
    for (size_t k = d + 1; k < b.shape.size(); ++k)
      stride *= static_cast<uint64_t>(b.shape[k]);
    addWord(stride, 8);
  }
}

/// The first of some arguments with commas between them, and the rest.
static std::pair<StringRef, StringRef> firstField(StringRef text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '[' || text[i] == '{';
    depth -= text[i] == ']' || text[i] == '}';
    if (text[i] == ',' && depth == 0)
      return {text.take_front(i), text.drop_front(i + 1)};
  }
  return {text, StringRef()};
}

// Its fields are arguments like others, whose words then become one.
Error Arguments::addStruct(StringRef text) {
  size_t first = words.size(), given = bufferOf.size();
  StringRef rest = text.drop_front().drop_back();
  while (!rest.empty()) {
    auto [field, more] = firstField(rest);
    if (Error e = add(field.trim(), mlir::Type()))
      return e;
    rest = more;
  }
  std::vector<char> bytes;
  size_t largest = 1;
  for (size_t i = first; i < words.size(); ++i) {
    // A struct within this one has 8 bytes' alignment, unless it is smaller.
    size_t align = std::min<size_t>(PowerOf2Ceil(sizes[i]), 8);
    largest = std::max(largest, align);
    size_t at = alignTo(bytes.size(), align);
    bytes.resize(at + sizes[i]);
    std::memcpy(bytes.data() + at, words[i].data(), sizes[i]);
  }
  bytes.resize(alignTo(bytes.size(), largest));
  words.resize(first);
  sizes.resize(first);
  std::vector<uint64_t> all((bytes.size() + 7) / 8);
  if (!bytes.empty())
    std::memcpy(all.data(), bytes.data(), bytes.size());
  words.push_back(std::move(all));
  sizes.push_back(bytes.size());
  // It counts as one, which is its first array.
  int array = -1;
  for (size_t i = bufferOf.size(); i > given; --i)
    if (bufferOf[i - 1] >= 0)
      array = bufferOf[i - 1];
  bufferOf.resize(given);
  bufferOf.push_back(array);
  return Error::success();
}

Error Arguments::add(StringRef text, mlir::Type type) {
  if (text.starts_with("{") && text.ends_with("}") && !type)
    return addStruct(text);
  auto memref = dyn_cast_or_null<mlir::MemRefType>(type);
  std::optional<Buffer> buffer;
  if (text.ends_with(".npy")) {
    auto read = readNpy(text);
    if (!read)
      return read.takeError();
    buffer = std::move(*read);
  } else {
    auto array = parseArray(text);
    if (!array)
      return array.takeError();
    buffer = std::move(*array);
  }
  if (buffer) {
    if (type && type.isIntOrIndexOrFloat())
      return createStringError("'" + text +
                               "' is an array, and the parameter a number of "
                               "type " +
                               nameOf(type));
    if (memref) {
      std::string wanted = nameOf(memref.getElementType());
      // .npy has no bf16, and no signs.
      bool same =
          wanted == buffer->type || (wanted == "bf16" && buffer->type == "i16");
      bool fits =
          memref.getRank() == static_cast<int64_t>(buffer->shape.size());
      for (int64_t d = 0; fits && d < memref.getRank(); ++d)
        fits =
            memref.isDynamicDim(d) || memref.getDimSize(d) == buffer->shape[d];
      // An array's elements follow each other.
      SmallVector<int64_t> strides;
      int64_t offset = 0, expectedStride = 1;
      fits &= succeeded(memref.getStridesAndOffset(strides, offset)) &&
              (mlir::ShapedType::isDynamic(offset) || offset == 0);
      for (int64_t d = memref.getRank() - 1; fits && d >= 0; --d) {
        fits = mlir::ShapedType::isDynamic(strides[d]) ||
               buffer->shape[d] < 2 || strides[d] == expectedStride;
        expectedStride *= std::max<int64_t>(buffer->shape[d], 1);
      }
      if (!same || !fits) {
        std::string expected;
        raw_string_ostream(expected) << memref;
        return createStringError("'" + text + "' does not fit the parameter " +
                                 expected);
      }
      buffer->type = wanted;
    }
    addBuffer(std::move(*buffer), type);
    return Error::success();
  }
  if (memref)
    return createStringError("'" + text +
                             "' is no array; expected a .npy file "
                             "or such as f32[4,8]");
  // "f32:1.5", or the type that the source names.
  auto [name, number] = text.split(':');
  std::string kind = name.str();
  if (number.empty()) {
    number = text;
    kind = type ? nameOf(type) : "";
  }
  if (!widthOf(kind))
    return createStringError(
        "'" + text +
        "' is no argument; expected a .npy "
        "file, an array such as f32[4,8] or f32[4,8]=0, or "
        "a number such as i32:5");
  // Bits of another type would be another number.
  if (type && type.isIntOrIndexOrFloat() && !type.isInteger(1) &&
      (widthOf(kind) != widthOf(nameOf(type)) ||
       (semanticsOf(kind) != nullptr) != isa<mlir::FloatType>(type)))
    return createStringError("'" + text +
                             "' does not fit the parameter, of "
                             "type " +
                             nameOf(type));
  auto bits = parseNumber(number, kind);
  if (!bits)
    return bits.takeError();
  bufferOf.push_back(-1);
  bool isBool = type && type.isInteger(1);
  addWord(*bits, isBool ? 1 : widthOf(kind));
  return Error::success();
}

std::string kvbuf::emulate::show(const Buffer &buffer, size_t most) {
  std::string text;
  raw_string_ostream out(text);
  size_t width = widthOf(buffer.type), n = buffer.elements();
  for (size_t i = 0; i < std::min(n, most); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, buffer.bytes.data() + i * width, width);
    out << (i ? " " : "");
    if (const fltSemantics *semantics = semanticsOf(buffer.type)) {
      APFloat value(*semantics, APInt(width * 8, bits));
      SmallString<32> digits;
      value.toString(digits, 8);
      out << digits;
    } else {
      out << SignExtend64(bits, width * 8);
    }
  }
  if (n > most)
    out << " ... (" << n << " in all)";
  return text;
}
