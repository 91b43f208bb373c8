//===- ScheduleParameters.cpp - Set a schedule's parameters ---------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.h"
#include "Keywords.h"
#include "llvm/ADT/STLExtras.h"

using namespace kvbuf;
using llvm::StringRef;

/// What a text has to be; nothing where it was that, and is in `field` now.
using Expected = std::optional<std::string>;

static Expected setField(StringRef, StringRef text, int64_t &field) {
  if (text.getAsInteger(10, field))
    return "a number";
  return std::nullopt;
}

static Expected setField(StringRef, StringRef text, bool &field) {
  if (text != "true" && text != "false")
    return "true or false";
  field = text == "true";
  return std::nullopt;
}

static Expected setField(StringRef name, StringRef text, MatrixShape &field) {
  llvm::SmallVector<StringRef> sizes;
  text.split(sizes, 'x');
  MatrixShape shape;
  if (sizes.size() != shape.size())
    return (name + "=MxNxK").str();
  for (auto [size, number] : llvm::zip_equal(sizes, shape))
    if (size.getAsInteger(10, number))
      return (name + "=MxNxK").str();
  field = shape;
  return std::nullopt;
}

static Expected setField(StringRef name, StringRef text,
                         ProductInstruction &field) {
  auto [unit, shape] = text.split(':');
  std::optional<MatrixUnit> known = matrixUnit(unit);
  if (!known || setField(name, shape, field.shape))
    return (name + "=UNIT:MxNxK, of the units mma_sync, wgmma, mfma and wmma")
        .str();
  field.unit = *known;
  return std::nullopt;
}

template <typename E>
  requires std::is_enum_v<E>
static Expected setField(StringRef, StringRef text, E &field) {
  std::optional<E> value = symbolizeEnum<E>(text);
  if (!value)
    return keywords<E>();
  field = *value;
  return std::nullopt;
}

std::optional<std::string> kvbuf::setParameter(ScheduleParameters &parameters,
                                               StringRef name, StringRef text) {
  bool known = false;
  llvm::SmallVector<StringRef> names;
  Expected expected;
  forEachParameter(parameters, [&](StringRef one, auto &field, auto &&...) {
    names.push_back(one);
    if (one != name)
      return;
    known = true;
    expected = setField(name, text, field);
  });
  return known ? expected : alternatives(names);
}
