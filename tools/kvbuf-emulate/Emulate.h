//===- Emulate.h - The parts of kvbuf-emulate -------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUF_TOOLS_EMULATE_H
#define KVBUF_TOOLS_EMULATE_H

#include "kvbuffer/Emulator/DeviceMemory.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <deque>
#include <string>
#include <vector>

namespace kvbuf::emulate {

/// A kernel's parameters as its source declares them.
struct Signature {
  std::string kernel;
  mlir::SmallVector<mlir::Type> types;
};

/// Takes a module in upstream dialects to one that the emulator executes, by
/// MLIR's own passes. Null after an error, of which diagnostics tell.
mlir::OwningOpRef<mlir::ModuleOp> lowerToTarget(mlir::ModuleOp module,
                                                llvm::StringRef chip);

/// Whether a module has functions of the `gpu` dialect to lower.
bool needsLowering(mlir::ModuleOp module);

/// An array that a kernel accesses.
struct Buffer {
  std::string name, type;
  std::vector<int64_t> shape;
  kvbuf::emu::DeviceBytes bytes;
  bool initialized = true;
  /// Of an array without a value: which bytes have been written.
  std::vector<uint8_t> written;
  /// Of one with a value: what it held before the launch, where that is asked.
  std::vector<char> before;
  size_t elements() const;
};

/// The arguments of a launch: words, and what they point at.
class Arguments {
public:
  /// Adds what `text` says: "x.npy", "f32[4,8]" (memory that nothing has
  /// written), "f32[4,8]=0" (filled), a number ("i32:5", or "5" where the
  /// source says the type), or a struct of such ("{i32:5,x.npy}"). `type` is
  /// the parameter's type in the source, or null: an address, or unknown.
  llvm::Error add(llvm::StringRef text, mlir::Type type);

  std::deque<Buffer> buffers;
  /// The buffer of each argument as given; -1: a number.
  std::vector<int> bufferOf;
  /// The kernel's parameters, of so many bytes.
  std::deque<std::vector<uint64_t>> words;
  std::vector<size_t> sizes;

private:
  void addWord(uint64_t word, size_t bytes) {
    words.push_back({word});
    sizes.push_back(bytes);
  }
  void addBuffer(Buffer buffer, mlir::Type type);
  llvm::Error addStruct(llvm::StringRef text);
};

/// What a source is written in, by its file's extension.
enum class Language { None, CUDA, HIP };
Language languageOf(llvm::StringRef path);
/// Compiles the kernels of a source in CUDA or HIP to bitcode by clang, which
/// prints what it has to say. `more`: arguments for it.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compileSource(llvm::StringRef path, llvm::StringRef chip,
              llvm::ArrayRef<std::string> more);

/// What the detectors found, in the format that tools for reviews read (SARIF
/// 2.1.0). `artifact`: the file of findings without a place.
llvm::json::Value toSarif(const llvm::json::Value &report,
                          llvm::StringRef artifact);
/// The emulator's report as a page in HTML.
std::string toPage(const llvm::json::Value &report, llvm::StringRef artifact);

/// Bytes of an element: "f32", "bf16", "i64", ...; 0: no such type.
size_t widthOf(llvm::StringRef type);
/// A buffer's elements in words, at most so many.
std::string show(const Buffer &buffer, size_t most);
/// A buffer as a .npy file.
std::string toNpy(const Buffer &buffer);

} // namespace kvbuf::emulate

#endif // KVBUF_TOOLS_EMULATE_H
