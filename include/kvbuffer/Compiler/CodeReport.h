//===- CodeReport.h - What NVIDIA's code is made of -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A static report of kernels for NVIDIA's chips: instructions by class, and
/// the loops with products. It reads the machine code (SASS) of a cubin where a
/// disassembler is found, else PTX, which the assembler has yet to order and
/// whose registers it has yet to allocate.
///
/// A loop is what lies between a label and the last branch back to it, without
/// the loops within. That is where compilers leave loops; blocks that they
/// place elsewhere are not counted.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_COMPILER_CODEREPORT_H
#define KVBUFFER_COMPILER_CODEREPORT_H

#include "kvbuffer/Compiler/Compiler.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/JSON.h"
#include <cstdint>
#include <string>
#include <vector>

namespace kvbuf {

/// Instructions by class; every instruction is in one.
struct CodeCounts {
  /// Products of the matrix unit, and fragments loaded and stored for it.
  int64_t matrix = 0, matrixLoads = 0;
  /// Arithmetic on floats, on integers and addresses, on uniform registers;
  /// functions of the slow unit (exponentials, reciprocals); conversions.
  int64_t floats = 0, integers = 0, uniform = 0, transcendental = 0,
          converts = 0;
  /// Copies between registers, and values exchanged between lanes.
  int64_t moves = 0, exchanges = 0;
  int64_t sharedLoads = 0, sharedStores = 0, globalLoads = 0, globalStores = 0;
  /// Asynchronous copies, of lanes and of the copy engine.
  int64_t copies = 0;
  /// Private memory: what did not fit into registers.
  int64_t local = 0;
  int64_t waits = 0, barriers = 0, branches = 0, nops = 0, other = 0;

  int64_t total() const;
};

/// A loop with products that are in no inner loop.
struct CodeLoop {
  /// SASS: bytes from the kernel's first instruction; PTX: instructions.
  uint64_t begin = 0, end = 0;
  CodeCounts counts;
  /// In program order, as they are written.
  std::vector<std::string> waits;
  /// Counts from one barrier to the next; one, if there is none.
  std::vector<CodeCounts> stages;
};

/// One kernel's code.
struct CodeKernel {
  std::string name;
  CodeCounts counts;
  /// SASS; PTX has no bytes, 0.
  uint64_t codeBytes = 0;
  std::vector<CodeLoop> loops;

  /// The loop with the most products, and of equals the one with the fewest
  /// instructions; null if no loop has one.
  const CodeLoop *hotLoop() const;
};

/// The code of an artifact.
struct CodeReport {
  std::string chip;
  /// "SASS" or "PTX".
  std::string from;
  /// Why it is not SASS; empty where it is.
  std::string note;
  std::vector<CodeKernel> kernels;
};

/// Reads what `nvdisasm -c` or `cuobjdump -sass` print.
std::vector<CodeKernel> parseSass(llvm::StringRef text);
/// Reads PTX.
std::vector<CodeKernel> parsePtx(llvm::StringRef text);

/// The report of an artifact with PTX; a cubin in it is disassembled, where
/// $KVBUF_NVDISASM, the PATH or a CUDA toolkit has nvdisasm or cuobjdump.
CodeReport analyzeNvidiaCode(const Artifact &artifact, llvm::StringRef chip);

/// Blocks of a kernel that a multiprocessor of a chip holds at a time: as many
/// as its registers, shared memory and threads are enough for; negative where
/// numbers are not known.
int64_t residentBlocks(const KernelResources &use, llvm::StringRef chip);

/// Prints the report for people. `resources` are the kernels'.
void printCodeReport(const CodeReport &report,
                     llvm::ArrayRef<KernelResources> resources,
                     llvm::raw_ostream &os);

/// The same as JSON: as printResourcesAsJSON, with `code` in each kernel.
llvm::json::Value codeReportToJSON(const CodeReport &report,
                                   llvm::ArrayRef<KernelResources> resources);

} // namespace kvbuf

#endif // KVBUFFER_COMPILER_CODEREPORT_H
