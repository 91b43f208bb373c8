//===- DevicePeaks.h - What devices can do at most --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The rates that makers state for the devices of a chip, to compare what was
/// measured with: one chip is sold with memories of several speeds.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_TARGET_DEVICEPEAKS_H
#define KVBUFFER_TARGET_DEVICEPEAKS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace kvbuf {

/// One device's rates.
struct DevicePeak {
  /// What its driver's name for it contains, and no other device's: "H200".
  llvm::StringLiteral device;
  /// Operations a second of the matrix unit, on dense 16-bit operands with
  /// fp32 accumulation.
  double matrixFlops;
  /// Bytes a second of device memory.
  double memoryBytes;

  /// `matrixFlops` on operands of a type, by its name in MLIR: of 8-bit floats,
  /// where a unit multiplies them, each of these makers states twice the rate.
  double matrixFlopsFor(llvm::StringRef element) const {
    return element.starts_with("f8") ? 2 * matrixFlops : matrixFlops;
  }
};

/// The devices with a chip, the fastest first; empty where none is known. Of
/// several that match a name, the first counts.
llvm::ArrayRef<DevicePeak> devicePeaks(llvm::StringRef chip);

} // namespace kvbuf

#endif // KVBUFFER_TARGET_DEVICEPEAKS_H
