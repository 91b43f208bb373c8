//===- HostCalls.cpp - What kernels ask of the host -----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions of the device libraries, messages, and assertions. The strings and
// arguments of a message lie in the kernel's memory: each byte of them is read
// as the kernel itself might read it.
//
//===----------------------------------------------------------------------===//

#include "HostMath.h"
#include "Launch.h"
#include "Machine.h"
#include "Print.h"
#include "Spaces.h"

#include "kvbuffer/Emulator/Emulator.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

using namespace kvbuf::emu;

static uint64_t readSlot(const Warp &w, unsigned lanes, uint32_t slot,
                         unsigned lane, bool wide) {
  const uint32_t *regs = w.regs + static_cast<size_t>(slot) * lanes;
  if (!wide)
    return regs[lane];
  uint64_t x;
  std::memcpy(&x, regs + 2 * lane, 8);
  return x;
}

static void writeSlot(Warp &w, unsigned lanes, uint32_t slot, unsigned lane,
                      bool wide, uint64_t value) {
  uint32_t *regs = w.regs + static_cast<size_t>(slot) * lanes;
  if (wide)
    std::memcpy(regs + 2 * lane, &value, 8);
  else
    regs[lane] = static_cast<uint32_t>(value);
}

void Run::laneCall(Warp &w, const Inst &inst) {
  const LaneFunction &f = laneFunctions()[inst.imm];
  for (uint64_t rest = w.mask; rest; rest &= rest - 1) {
    unsigned lane = std::countr_zero(rest);
    uint64_t in[maxLaneOperands], out[maxLaneResults];
    // The signature was compared with the list when it was decoded.
    const uint32_t *results = hot.lists + inst.list;
    const char *letter = f.signature;
    const uint32_t *slot = results;
    while (*letter != '=')
      ++letter, ++slot;
    unsigned n = 0;
    for (++letter; *letter; ++letter)
      in[n++] = readSlot(w, lanes, *slot++, lane, *letter == 'w');
    f.call(in, out, inst.flags);
    letter = f.signature;
    for (unsigned k = 0; *letter != '='; ++letter, ++k)
      writeSlot(w, lanes, results[k], lane, *letter == 'w', out[k]);
  }
}

//===----------------------------------------------------------------------===//
// Memory, as the kernel sees it
//===----------------------------------------------------------------------===//

/// Where `bytes` bytes at a generic address are; null, and a fault, if the
/// kernel must not read them.
const uint8_t *Run::readable(Warp &w, const Inst &inst, unsigned lane,
                             uint64_t address, uint64_t bytes) {
  uint32_t low = static_cast<uint32_t>(address);
  if ((address & windowMask) == localWindow) {
    if (low + bytes <= hot.localBytes)
      return hot.local +
             (static_cast<size_t>(w.id) * lanes + lane) * hot.localBytes + low;
  } else if ((address & windowMask) == sharedWindow) {
    uint32_t at = low - hot.sharedBegin;
    if (at + bytes <= hot.sharedBytes)
      return hot.shared + low;
  } else {
    for (const Range &r : ranges)
      if (r.readable && address >= r.begin && address < r.end &&
          r.end - address >= bytes)
        return reinterpret_cast<const uint8_t *>(address);
  }
  fault(FaultKind::Bounds, w, inst, lane,
        "out of bounds: reads " + globalPlace(address, bytes) +
            " for a message");
  return nullptr;
}

/// No message is longer.
static constexpr uint64_t maxText = 1 << 16;

/// A string that ends with a zero. False: it does not end in readable memory.
bool Run::readText(Warp &w, const Inst &inst, unsigned lane, uint64_t address,
                   std::string &text) {
  text.clear();
  while (text.size() < maxText) {
    const uint8_t *p = readable(w, inst, lane, address + text.size(), 1);
    if (!p)
      return false;
    if (!*p)
      return true;
    text += static_cast<char>(*p);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

namespace {
/// One conversion: "%-5.2lld" has the flags "-5.2", the length 8 and the letter
/// d.
struct Conversion {
  std::string flags;
  unsigned bytes = 4;
  char letter = 0;
};
} // namespace

/// Reads a conversion after its '%', and moves `at` past it. False: it is
/// none.
static bool readConversion(const std::string &format, size_t &at,
                           Conversion &c) {
  static constexpr std::string_view flags = "-+ #0123456789.";
  while (at < format.size() && flags.find(format[at]) != flags.npos)
    c.flags += format[at++];
  if (c.flags.size() > 16)
    return false;
  for (; at < format.size(); ++at) {
    char x = format[at];
    if (x == 'l' || x == 'j' || x == 'z' || x == 't')
      c.bytes = 8;
    else if (x != 'h')
      break;
  }
  if (at >= format.size())
    return false;
  c.letter = format[at++];
  return std::string_view("diouxXcsfFeEgGaAp").find(c.letter) !=
         std::string_view::npos;
}

static std::string formatted(const char *spec, auto value) {
  char text[512];
  int n = std::snprintf(text, sizeof(text), spec, value);
  return n < 0 ? "" : std::string(text, std::min<size_t>(n, sizeof(text) - 1));
}

/// Puts the arguments into a format. `number` gives the next one, of so many
/// bytes, and `text` the next string; they return false when there is none.
static std::string fill(
    const std::string &format,
    const std::function<bool(unsigned bytes, bool isFloat, uint64_t &)> &number,
    const std::function<bool(std::string &)> &text) {
  std::string out;
  for (size_t at = 0; at < format.size();) {
    char c = format[at++];
    if (c != '%') {
      out += c;
      continue;
    }
    if (at < format.size() && format[at] == '%') {
      out += '%';
      ++at;
      continue;
    }
    size_t begin = at;
    Conversion conversion;
    if (!readConversion(format, at, conversion)) {
      out += '%' + format.substr(begin, at - begin);
      continue;
    }
    std::string spec = "%" + conversion.flags;
    uint64_t value = 0;
    switch (conversion.letter) {
    case 's': {
      std::string part;
      if (!text(part))
        return out;
      out += formatted((spec + "s").c_str(), part.c_str());
      break;
    }
    case 'c':
      if (!number(4, false, value))
        return out;
      out += formatted((spec + "c").c_str(), static_cast<int>(value));
      break;
    case 'p':
      if (!number(8, false, value))
        return out;
      out += formatted((spec + "p").c_str(), reinterpret_cast<void *>(value));
      break;
    case 'd':
    case 'i': {
      if (!number(conversion.bytes, false, value))
        return out;
      long long x = conversion.bytes == 8
                        ? static_cast<long long>(value)
                        : static_cast<int32_t>(static_cast<uint32_t>(value));
      out += formatted((spec + "ll" + conversion.letter).c_str(), x);
      break;
    }
    case 'o':
    case 'u':
    case 'x':
    case 'X':
      if (!number(conversion.bytes, false, value))
        return out;
      out += formatted(
          (spec + "ll" + conversion.letter).c_str(),
          static_cast<unsigned long long>(
              conversion.bytes == 8 ? value : static_cast<uint32_t>(value)));
      break;
    default: {
      if (!number(8, true, value))
        return out;
      double x;
      std::memcpy(&x, &value, 8);
      out += formatted((spec + conversion.letter).c_str(), x);
      break;
    }
    }
  }
  return out;
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void Run::say(bool onStderr, const std::string &text) {
  if (options.print)
    return options.print(onStderr, text);
  std::FILE *file = onStderr ? stderr : stdout;
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

void Run::printLane(Warp &w, const Inst &inst, unsigned lane) {
  const uint32_t *slots = hot.lists + inst.list;
  auto operand = [&](unsigned k, bool wide) {
    return readSlot(w, lanes, slots[k], lane, wide);
  };
  auto result = [&](uint64_t value, bool wide) {
    if (inst.dst != noSlot)
      writeSlot(w, lanes, inst.dst, lane, wide, value);
  };
  std::string format;
  uint32_t key = w.id * maxLanes + lane;
  switch (static_cast<PrintKind>(inst.flags)) {
  case PrintKind::Vprintf: {
    if (!readText(w, inst, lane, operand(0, true), format))
      return;
    // Each argument lies at a multiple of its size.
    uint64_t next = operand(1, true);
    auto number = [&](unsigned bytes, bool, uint64_t &value) {
      next = (next + bytes - 1) / bytes * bytes;
      const uint8_t *p = readable(w, inst, lane, next, bytes);
      next += bytes;
      value = 0;
      if (p)
        std::memcpy(&value, p, bytes);
      return p != nullptr;
    };
    auto text = [&](std::string &part) {
      uint64_t address;
      return number(8, false, address) &&
             readText(w, inst, lane, address, part);
    };
    say(false, fill(format, number, text));
    return result(1, false);
  }
  case PrintKind::Printf: {
    if (!readText(w, inst, lane, operand(0, true), format))
      return;
    unsigned next = 1;
    auto number = [&](unsigned, bool, uint64_t &value) {
      if (next >= inst.listSize)
        return false;
      value = operand(next, inst.imm >> next & 1);
      ++next;
      return true;
    };
    auto text = [&](std::string &part) {
      uint64_t address;
      return number(8, false, address) &&
             readText(w, inst, lane, address, part);
    };
    say(false, fill(format, number, text));
    return result(1, false);
  }
  case PrintKind::AssertFail: {
    std::string message, file, function;
    if (!readText(w, inst, lane, operand(0, true), message) ||
        !readText(w, inst, lane, operand(1, true), file) ||
        !readText(w, inst, lane, operand(3, true), function))
      return;
    unsigned thread = w.id % warpsPerBlock * lanes + lane;
    const unsigned *block = launch.size.block;
    unsigned at[3];
    blockPosition(w.rank, at);
    auto triple = [](unsigned x, unsigned y, unsigned z) {
      return "[" + std::to_string(x) + "," + std::to_string(y) + "," +
             std::to_string(z) + "]";
    };
    say(true, file + ":" +
                  std::to_string(static_cast<uint32_t>(operand(2, false))) +
                  ": " + function + ": block: " + triple(at[0], at[1], at[2]) +
                  ", thread: " +
                  triple(thread % block[0], thread / block[0] % block[1],
                         thread / block[0] / block[1]) +
                  " Assertion `" + message + "` failed.\n");
    launch.asserted = true;
    return;
  }
  case PrintKind::OcklBegin: {
    OcklMessage &m = launch.messages[{this, key}] = OcklMessage();
    m.onStderr = inst.imm;
    return result(key + 1, true);
  }
  case PrintKind::OcklString:
  case PrintKind::OcklNumbers: {
    OcklMessage &m = launch.messages[{this, key}];
    bool last;
    if (static_cast<PrintKind>(inst.flags) == PrintKind::OcklString) {
      uint64_t bytes = operand(1, true), address = operand(0, true);
      last = operand(2, false);
      std::string text;
      if (bytes > maxText)
        bytes = maxText;
      if (address && bytes) {
        const uint8_t *p = readable(w, inst, lane, address, bytes);
        if (!p)
          return;
        text.assign(reinterpret_cast<const char *>(p), bytes);
        text.resize(std::min(text.find('\0'), text.size()));
      }
      if (m.hasFormat)
        m.parts.push_back({true, text, 0});
      else
        m.format = text;
      m.hasFormat = true;
    } else {
      last = operand(0, false);
      for (unsigned k = 1; k < inst.listSize; ++k)
        m.parts.push_back({false, "", operand(k, true)});
    }
    result(key + 1, true);
    // A lane that never ends its message has said enough.
    if (!last && m.parts.size() < 1024)
      return;
    size_t next = 0;
    say(m.onStderr, fill(
                        m.format,
                        [&](unsigned, bool, uint64_t &value) {
                          if (next >= m.parts.size())
                            return false;
                          value = m.parts[next++].number;
                          return true;
                        },
                        [&](std::string &part) {
                          if (next >= m.parts.size())
                            return false;
                          part = m.parts[next++].text;
                          return true;
                        }));
    launch.messages.erase({this, key});
    return;
  }
  }
}

void Run::print(Warp &w, const Inst &inst) {
  for (uint64_t rest = w.mask; rest && !hot.stop; rest &= rest - 1)
    printLane(w, inst, std::countr_zero(rest));
}
