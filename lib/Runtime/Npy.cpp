//===- lib/Runtime/Npy.cpp - NumPy's array files ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Npy.h"
#include "kvbuffer/Runtime/Artifact.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Manifest.h"

#include <algorithm>
#include <cstring>

using namespace kvbuf;
using namespace kvbuf::rt;

namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicBytes = 6;

/// Type strings that can stand for an element type; the first is written.
std::vector<std::string> descrsOf(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return {"<f2"};
  case DType::BF16:
    return {"<u2", "|V2", "<V2"};
  case DType::F32:
    return {"<f4"};
  case DType::I32:
    return {"<i4"};
  case DType::I64:
    return {"<i8"};
  case DType::U8:
  case DType::F8E4M3FN:
  case DType::F8E5M2:
  case DType::F8E4M3FNUZ:
  case DType::F8E5M2FNUZ:
    return {"|u1", "<u1"};
  }
  return {};
}

/// Reads the header, a Python dictionary literal of three known keys.
class HeaderParser {
public:
  HeaderParser(std::string_view text, std::string path)
      : text(text), path(std::move(path)) {}

  void parse(NpyArray &array, bool &fortran) {
    expect('{');
    bool haveDescr = false, haveOrder = false, haveShape = false;
    while (!accept('}')) {
      std::string key = string();
      expect(':');
      if (key == "descr") {
        skipSpace();
        if (at < text.size() && text[at] == '[')
          throw Error("'" + path + "' holds records; expected plain numbers");
        array.descr = string();
        haveDescr = true;
      } else if (key == "fortran_order") {
        fortran = boolean();
        haveOrder = true;
      } else if (key == "shape") {
        array.shape = tuple();
        haveShape = true;
      } else {
        damaged();
      }
      accept(',');
    }
    if (!haveDescr || !haveOrder || !haveShape)
      damaged();
  }

private:
  [[noreturn]] void damaged() {
    throw Error("'" + path + "' is damaged: its .npy header is malformed");
  }
  void skipSpace() {
    while (at < text.size() && std::strchr(" \n\t\r", text[at]))
      ++at;
  }
  bool accept(char c) {
    skipSpace();
    if (at >= text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      damaged();
  }
  std::string string() {
    skipSpace();
    char quote = at < text.size() ? text[at] : 0;
    if (quote != '\'' && quote != '"')
      damaged();
    size_t end = text.find(quote, ++at);
    if (end == std::string_view::npos)
      damaged();
    std::string value(text.substr(at, end - at));
    at = end + 1;
    return value;
  }
  bool boolean() {
    skipSpace();
    for (auto [word, value] : {std::pair("True", true), {"False", false}})
      if (text.substr(at, std::strlen(word)) == word) {
        at += std::strlen(word);
        return value;
      }
    damaged();
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!accept(')')) {
      skipSpace();
      int64_t value = 0;
      size_t start = at;
      while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, text[at] - '0', &value))
          damaged();
        ++at;
      }
      if (at == start)
        damaged();
      values.push_back(value);
      accept('L'); // long integers of Python 2
      accept(',');
    }
    return values;
  }

  std::string_view text;
  std::string path;
  size_t at = 0;
};

} // namespace

NpyArray rt::readNpy(const std::string &path, DType dtype) {
  std::string bytes, error;
  if (!readWholeFile(path, bytes, error))
    throw Error(error);
  if (bytes.size() < 10 || std::memcmp(bytes.data(), kMagic, kMagicBytes) != 0)
    throw Error("'" + path + "' is not a .npy file");
  auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  unsigned version = byte(6);
  if (version < 1 || version > 3)
    throw Error("'" + path + "' has .npy version " + std::to_string(version) +
                "; expected 1, 2 or 3");
  size_t lengthBytes = version == 1 ? 2 : 4, headerBytes = 0;
  size_t headerAt = 8 + lengthBytes;
  if (bytes.size() < headerAt)
    throw Error("'" + path + "' is truncated in its header");
  for (size_t i = 0; i < lengthBytes; ++i)
    headerBytes |= static_cast<size_t>(byte(8 + i)) << (8 * i);
  if (headerBytes > bytes.size() - headerAt)
    throw Error("'" + path + "' is truncated in its header");

  NpyArray array;
  bool fortran = false;
  HeaderParser(std::string_view(bytes).substr(headerAt, headerBytes), path)
      .parse(array, fortran);
  std::vector<std::string> accepted = descrsOf(dtype);
  if (std::find(accepted.begin(), accepted.end(), array.descr) ==
      accepted.end())
    throw Error("'" + path + "' holds elements of type '" + array.descr +
                "'; expected " + quotedList(accepted) + " (" + nameOf(dtype) +
                ")");
  if (fortran && array.shape.size() > 1)
    throw Error("'" + path +
                "' is in Fortran order; expected C order "
                "(numpy.ascontiguousarray)");
  int64_t expected = static_cast<int64_t>(sizeOf(dtype));
  for (int64_t extent : array.shape)
    if (__builtin_mul_overflow(expected, extent, &expected))
      throw Error("'" + path + "' is damaged: its shape overflows");
  array.data = bytes.substr(headerAt + headerBytes);
  if (array.data.size() != static_cast<size_t>(expected))
    throw Error("'" + path + "' has " + std::to_string(array.data.size()) +
                " bytes of data; its shape " + shapeString(array.shape) +
                " needs " + std::to_string(expected));
  return array;
}

std::string rt::formatNpy(DType dtype, const std::vector<int64_t> &shape,
                          const std::string &data) {
  std::string dims;
  for (int64_t extent : shape)
    dims += std::to_string(extent) + ", ";
  if (shape.size() > 1)
    dims.resize(dims.size() - 2);
  else if (shape.size() == 1)
    dims.pop_back();
  std::string header = "{'descr': '" + descrsOf(dtype).front() +
                       "', 'fortran_order': False, 'shape': (" + dims + "), }";
  // The data starts at a multiple of 64 bytes.
  size_t before = kMagicBytes + 2 + 2;
  header.resize((before + header.size() + 1 + 63) / 64 * 64 - before - 1, ' ');
  header += '\n';
  std::string out(kMagic, kMagicBytes);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(header.size() & 0xFF);
  out += static_cast<char>(header.size() >> 8);
  return out + header + data;
}
