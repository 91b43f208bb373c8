//===- DecodeChecks.cpp - What the decoder takes nothing on trust with ----===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A module may be of unknown origin. MLIR's verifier has seen it, but checks
// little of intrinsics that are called by name, and nothing of what only the
// emulator cannot do. Every value's parts therefore pass through `set` and
// `get`, which compare them with the value's type, and what an operation takes
// and gives is compared with a signature where its name alone says it.
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "llvm/Support/MathExtras.h"

#include <cstdint>

using namespace mlir;
using namespace kvbuf::emu;

/// A type of more parts is not printed: text grows with each use of a name.
static constexpr uint64_t maxPrintedNodes = 64;

std::string Decoder::describe(Type type) {
  if (infoOf(type).nodes > maxPrintedNodes)
    return "a type of many parts";
  std::string text;
  llvm::raw_string_ostream(text) << "'" << type << "'";
  return text;
}

void Decoder::fail(const Twine &why) {
  if (broken)
    return;
  broken = true;
  if (here)
    (void)unsupported(here, why);
  else
    kernel.emitError("the emulator does not execute this kernel: ") << why;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Comps Decoder::get(Value v) {
  Comps comps = values.lookup(v);
  if (comps.empty()) {
    fail("an operand of type " + describe(v.getType()) + " has no value here");
    // Something that exists.
    comps = shape(v.getType());
    for (Comp &c : comps)
      c = constant(0, c.wide);
    if (comps.empty())
      comps.push_back(constant(0));
    return comps;
  }
  auto it = offsets.find(v);
  if (it == offsets.end() || it->second == 0)
    return comps;
  // The sum is made where it is needed; keeping it would need proof that this
  // place dominates the later uses.
  Comp base = comps.front();
  return {emit(base.wide ? Code::AddImm64 : Code::AddImm32, base.wide, base, {},
               {}, it->second)};
}

Comp Decoder::getScalar(Value v) {
  Comps comps = get(v);
  if (comps.size() != 1)
    fail("an operand of type " + describe(v.getType()) +
         "; expected one number or address");
  return comps.front();
}

Comp Decoder::getNarrow(Value v) {
  Comp c = getScalar(v);
  if (!c.wide)
    return c;
  fail("an operand of type " + describe(v.getType()) +
       "; expected at most 32 bits");
  return constant(0);
}

Comp Decoder::getWide(Value v) {
  Comp c = getScalar(v);
  if (c.wide)
    return c;
  fail("an operand of type " + describe(v.getType()) + "; expected 64 bits");
  return constant(0, true);
}

std::pair<Comp, int64_t> Decoder::getAddress(Value v) {
  Comps comps = values.lookup(v);
  if (comps.size() == 1)
    return {comps.front(), offsets.lookup(v)};
  return {getScalar(v), 0};
}

void Decoder::set(Value v, Comps comps) {
  Comps expected = shape(v.getType());
  bool good = comps.size() == expected.size();
  for (size_t i = 0; good && i < comps.size(); ++i)
    good = comps[i].wide == expected[i].wide;
  if (!good) {
    fail("its result of type " + describe(v.getType()) +
         " is not what its operands make");
    for (Comp &c : expected)
      c = constant(0, c.wide);
    comps = std::move(expected);
  }
  parts += comps.size();
  values[v] = std::move(comps);
  offsets.erase(v);
}

bool Decoder::alike(ArrayRef<Comp> a, ArrayRef<Comp> b) {
  if (a.size() != b.size())
    fail("operands of " + Twine(a.size()) + " and " + Twine(b.size()) +
         " parts");
  return a.size() == b.size();
}

uint64_t Decoder::aligned(uint64_t alignment) {
  if (llvm::isPowerOf2_64(alignment) && alignment <= 1u << 30)
    return alignment;
  fail("an alignment of " + Twine(alignment) +
       ", which is no power of two up to 2^30");
  return 1;
}

int64_t Decoder::pendingGroups(int64_t n) {
  if (n >= 0 && n <= INT32_MAX)
    return n;
  fail("a wait for all but " + Twine(n) + " groups");
  return 0;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

bool Decoder::fits(Operation *op, StringRef what, StringRef signature) {
  auto [results, operands] = signature.split('=');
  Type same;
  auto agrees = [&](StringRef letters, TypeRange types, StringRef kind) {
    bool more = letters.consume_back("*");
    if (more ? types.size() < letters.size() : types.size() != letters.size()) {
      fail("'" + what + "' has " + Twine(letters.size()) +
           (more ? " or more " : " ") + kind + "s, not " + Twine(types.size()));
      return false;
    }
    for (auto [i, letter] : llvm::enumerate(letters)) {
      Type type = types[i];
      Comps parts = shape(type);
      bool one = parts.size() == 1, good = !parts.empty();
      const char *expected = "something else";
      switch (letter) {
      case 'i':
        good = type.isInteger(32);
        expected = "i32";
        break;
      case 'b':
        good = type.isInteger(1);
        expected = "i1";
        break;
      case 'f':
        good = type.isF32();
        expected = "f32";
        break;
      case 's':
        good = one;
        expected = "one number";
        break;
      case 'w':
        good = one && !parts.front().wide;
        expected = "what fills one register";
        break;
      case 'x':
        if (!same)
          same = type;
        good &= same == type;
        expected = "the type of the others";
        break;
      default:
        break;
      }
      if (good)
        continue;
      fail(kind + " " + Twine(i) + " of '" + what + "' has type " +
           describe(type) + "; expected " + expected);
      return false;
    }
    return true;
  };
  return agrees(results, op->getResultTypes(), "result") &&
         agrees(operands, op->getOperandTypes(), "operand");
}

void Decoder::checkLimits() {
  if (program.origins.size() > options.maxOperations)
    return fail("the kernel has more than " + Twine(options.maxOperations) +
                " operations, those of its calls included ('max_operations')");
  // What the vectors and maps take, nearly.
  uint64_t bytes = parts * sizeof(Comp) + insts * 3 * sizeof(Inst) +
                   program.lists.size() * sizeof(uint32_t) +
                   program.origins.size() * (sizeof(Origin) + 64);
  uint64_t registers =
      static_cast<uint64_t>(program.numSlots) * 4 * program.chip.lanes;
  if (bytes > options.maxMemory || registers > options.maxMemory)
    fail("the decoded kernel takes more than " + Twine(options.maxMemory) +
         " bytes of memory ('max_memory')");
}
