//===- Lists.h - What options may be, for --help ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The chips, the parameters of schedules and the emulator's options, as the
/// help of each tool lists them. For tools with LLVM and without.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TOOLS_SUPPORT_LISTS_H
#define KVBUF_TOOLS_SUPPORT_LISTS_H

#include <initializer_list>
#include <string>

namespace kvbuf::run {

/// Words with commas between them, in lines of at most 79 characters.
inline std::string wrapped(std::initializer_list<const char *> words) {
  std::string text, line;
  for (const char *word : words) {
    std::string piece = (line.empty() ? "  " : ", ") + std::string(word);
    if (line.size() + piece.size() > 78) {
      text += line + ",\n";
      line = "  " + std::string(word);
    } else {
      line += piece;
    }
  }
  return text + line + "\n";
}

/// The chips of --target.
inline std::string chipList() {
  return "\nChips of --target:\n" + wrapped({
#define KVBUF_CHIP(NAME) NAME,
#include "kvbuffer/Target/Chips.def"
                                    });
}

/// The parameters of --schedule and --candidates.
inline std::string scheduleList() {
  return "\nParameters of schedules (their meaning: #kvbuffer.schedule in the "
         "dialect's\nreference; what the compiler chose: --emit=tile of "
         "kvbuf-compile):\n" +
         wrapped({
#define KVBUF_SCHEDULE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)  \
  NAME,
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def"
         });
}

/// The options of --emulator.
inline constexpr const char *kEmulatorList = R"(
Options of the emulator, by name [default]:
  landing         when asynchronous copies arrive: late, random or eager [late]
  seed            of the order of blocks and warps, and of random landing [1]
  races           report races [true]
  lanes           those between lanes of an NVIDIA warp, too [true]
  uninitialized   report reads of bytes that nothing wrote [true]
  landing_checks  report reads of bytes that a copy still owes [true]
  strict          what MLIR's own programs leave undefined is an error [true]
  check_lengths   check lengths and offsets before a launch, as no GPU can [true]
  multiprocessors how many launches are told that there are [4]
  max_errors      end a launch after so many different messages [20]
  max_blocks      execute only the first so many blocks; 0: all [0]
  window          blocks that run interleaved; 0: chosen [0]
  jobs            threads of the host, which change no result; 0: KVBUF_THREADS,
                  or as many as it has cores [0]
  cut_sums        cut sums of products off as an H200 does: slower [false]
  portable        code for any processor of the family: slower [false]
  chip            the chip to be [the module's]
  banks           of shared memory, 32 or 64; 0: the chip's [0]
  bounds          report accesses out of bounds: always true
  trace           note what one block does, and count each operation [false]
  trace_block     which block [0]
Limits, so that a kernel of unknown origin ends:
  max_instructions  that one warp executes in one block [268435456]
  max_memory        bytes of host memory for a kernel and a launch [2147483648]
  max_private       bytes of private memory of a lane [1048576]
  max_shared        bytes of shared memory of a block; 0: the chip's [0]
  max_value         32-bit registers of one value [4096]
  max_call_depth    [64]
  max_operations    of a kernel, with those of its calls [1048576]
)";

} // namespace kvbuf::run

#endif // KVBUF_TOOLS_SUPPORT_LISTS_H
