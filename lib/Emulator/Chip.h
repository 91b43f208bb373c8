//===- Chip.h - What the emulator asks of a chip ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_LIB_EMULATOR_CHIP_H
#define KVBUF_LIB_EMULATOR_CHIP_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir {
class Operation;
} // namespace mlir

namespace kvbuf::emu {

/// How 8-bit floats are encoded: as the Open Compute Project's OFP8 says, or
/// with a bias that is one higher, one NaN, no infinity and no negative zero.
enum class Float8 { None, OCP, FNUZ };

/// The machine that a kernel is executed as. The defaults are those of an
/// NVIDIA GPU of no particular name.
struct Chip {
  /// "gfx950"; empty when the module names none.
  std::string name;
  bool isAMD = false;
  /// Lanes of a warp (wave).
  unsigned lanes = 32;
  /// Banks of shared memory (LDS), 4 bytes each.
  unsigned banks = 32;
  /// Shared memory that one block may use, bytes.
  unsigned maxShared = 232448;
  unsigned maxThreads = 1024;
  /// Multiprocessors (compute units), and the threads that one holds at once.
  unsigned multiprocessors = 132, residentThreads = 2048;
  /// Bytes a lane of AMD's copies into LDS; empty: not known.
  std::vector<unsigned> ldsCopyBytes;
  /// Shapes (m, n, largest k) of MFMA with 16-bit operands; empty: not known.
  std::vector<std::vector<int64_t>> matrixShapes;
  /// The 8-bit floats of MFMA; none: not known, or the chip has none.
  Float8 float8 = Float8::None;
  /// Transposed LDS reads and swaps of rows of lanes.
  bool hasTransposeReads = true;

  /// wgmma and setmaxnreg.
  bool hasMatrixGroups = true;
  /// Whether the copy engine gathers rows of a matrix.
  bool gathersRows = true;

  /// The name, or a description where there is none, for messages.
  std::string describe() const { return name.empty() ? "this chip" : name; }
};

/// Whether a chip may be called so: sm_80, sm_90a, gfx942, gfx942:xnack-,
/// gfx11-generic, ...
bool isChipName(llvm::StringRef name);

/// The chip that `kernel` is for: the one that a `kvbuffer.target` or the
/// target of a `gpu.module` around it names, or the `target_cpu` of a kernel
/// for AMD's GPUs, else the vendor's least particular one. `name`, if not
/// empty, stands for what they say.
Chip chipOf(mlir::Operation *kernel, llvm::StringRef name = "");

} // namespace kvbuf::emu

#endif // KVBUF_LIB_EMULATOR_CHIP_H
