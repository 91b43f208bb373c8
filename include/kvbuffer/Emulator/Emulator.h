//===- Emulator.h - Executes target-stage modules ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs kernels of a module in the LLVM dialect and NVVM or ROCDL lane by lane,
// with more suspicion than hardware has: asynchronous copies land as late as
// their waits allow, and races, reads of unwritten bytes, accesses out of
// bounds and barrier faults are errors that name the operation.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_EMULATOR_EMULATOR_H
#define KVBUFFER_EMULATOR_EMULATOR_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvbuf::emu {

/// When the bytes of an asynchronous copy arrive.
enum class Landing {
  Late,   // at the wait that requires it: a missing wait is always wrong
  Random, // at a random moment before that (reproducible by the seed)
  Eager,  // at once
};

/// What is checked and how the machine behaves.
struct Options {
  Landing landing = Landing::Late;
  /// Seeds the order of the blocks, that of the warps, and random landing.
  uint64_t seed = 1;
  /// Report races over shared memory, and over global memory that kernels
  /// write.
  bool races = true;
  /// Report races between lanes of one warp, too, which NVIDIA's GPUs order by
  /// `bar.warp.sync` only.
  bool lanes = true;
  /// Report reads of bytes that nothing wrote.
  bool uninitialized = true;
  /// Report reads of bytes that an unfinished asynchronous copy will write.
  bool landingChecks = true;
  /// What PTX leaves undefined is an error. False: what GPUs are known to
  /// forgive is a warning: an mbarrier that every warp initialises, the same
  /// way, with no barrier before the others use it, or with no fence for the
  /// copy engine; a shuffle whose member mask leaves out lanes that execute it;
  /// stores of a value that is there already by threads that nothing orders.
  /// What a whole warp executes together, such as a shuffle, orders its lanes.
  /// They happen in the order that makes the program right.
  bool strict = true;
  /// Stop a launch after so many different messages.
  unsigned maxErrors = 20;
  /// Execute only the first so many blocks of a grid; 0 executes all.
  uint64_t maxBlocks = 0;
  /// Blocks (or clusters) that run interleaved; 0: as many as the host's memory
  /// bears well, 2 to 8. Where all of them wait for others, more start, up to
  /// as many as the chip holds.
  unsigned window = 0;
  /// Threads of the host that execute blocks; 0: as many as KVBUF_THREADS says,
  /// or the host has cores. What is computed, counted and found, and all
  /// messages, are the same whatever it is.
  unsigned jobs = 0;
  /// Note what one block of each kernel does (in its first launch), and count
  /// what each operation executes; both appear in the report.
  bool trace = false;
  /// Which block: its number in the grid, in clusters.
  uint64_t traceBlock = 0;
  /// Run the code for the processor family's baseline even where the host can
  /// do better: slower, the same results.
  bool portable = false;
  /// Let sums of products on NVIDIA's chips be cut off as an H200's matrix unit
  /// cuts them off (ExecMatrix.h), in place of rounding each: slower.
  bool cutSums = false;
  /// Shared memory banks of 4 bytes; 0: as many as the module's chip has.
  unsigned banks = 0;
  /// Largest shared memory of a block, in bytes; 0: what the module's chip has.
  unsigned maxShared = 0;

  // Limits, so that a kernel of unknown origin ends. What goes beyond one is an
  // error that names the operation and the limit.
  /// Instructions that one warp executes in one block.
  uint64_t maxInstructions = uint64_t(1) << 28;
  /// Host memory in bytes: of the decoded kernel, and of the registers, private
  /// and shared memory of a launch.
  uint64_t maxMemory = uint64_t(2) << 30;
  /// Private memory of a lane, in bytes.
  uint64_t maxPrivate = uint64_t(1) << 20;
  /// 32-bit registers that one value takes (a vector, an array, a struct).
  uint64_t maxValue = 4096;
  /// Functions that call each other, one within the other.
  uint64_t maxCallDepth = 64;
  /// Operations of a kernel, those of its calls included each time.
  uint64_t maxOperations = uint64_t(1) << 20;

  /// The chip to be, in place of what the module says; empty: the module's.
  std::string chip;

  /// See Emulator::watch; not a part of the JSON.
  const int *interrupt = nullptr;
  /// Receives what kernels print, for stdout or stderr; not a part of the JSON.
  /// Null: it goes there.
  std::function<void(bool onStderr, llvm::StringRef text)> print;

  /// Reads the options from a JSON object; unknown names are an error. What it
  /// does not name is as in `defaults`.
  static llvm::Expected<Options> fromJSON(llvm::StringRef text,
                                          Options defaults);
  static llvm::Expected<Options> fromJSON(llvm::StringRef text);
};

/// Of a message, the least first.
enum class Severity { Note, Remark, Warning, Error };

/// Receives messages such as "prefill.mlir:12:3: error: ...".
using MessageFn = std::function<void(Severity, llvm::StringRef)>;
/// Called now and then with the number of blocks done and the total.
using ProgressFn = std::function<void(uint64_t done, uint64_t total)>;

/// How a launch ended.
enum class LaunchResult {
  Clean = 0,
  Fault = 1, // a detector fired; the messages say which
  Usage = 2, // no such kernel, wrong arguments, an operation not supported
  Interrupted = 3, // see Emulator::watch
  Asserted = 4,    // an assertion of the kernel's failed, and was printed
};

/// Verifies a module as mlir::verify does, but refuses what makes MLIR's own
/// verifiers end the process. Modules from elsewhere are parsed without
/// verification, and verified with this; Emulator::create does so.
mlir::LogicalResult verifyForeign(mlir::ModuleOp module);

/// One kernel argument: the address of its value, and its size in bytes. A
/// parameter passed by value has the size of its type; a tensor map among them
/// is an rt::SoftwareTensorMap (kvbuffer/Runtime/TensorMap.h).
struct Argument {
  const void *value;
  size_t bytes;
};

/// A launch among others.
struct LaunchRequest {
  llvm::StringRef entry;
  std::array<unsigned, 3> grid, block;
  unsigned dynamicShared = 0;
  llvm::ArrayRef<Argument> args;
  /// Blocks of a cluster; zeros: as the kernel says.
  std::array<unsigned, 3> cluster = {0, 0, 0};
};

/// Executes the kernels of one module at the target stage, lane by lane.
/// Create it, register what they may access, launch.
class Emulator {
public:
  /// Decodes every kernel of `module`. Returns null when one holds something
  /// that cannot be executed; the message names it. Of a module from elsewhere
  /// that has other kernels it is refused when it is launched (`refuses`).
  static std::unique_ptr<Emulator>
  create(mlir::ModuleOp module, const Options &options, MessageFn message);
  virtual ~Emulator();

  /// Makes host memory accessible to kernels: global addresses are host
  /// addresses. `initialized`: its contents count as written. Fails when the
  /// range overlaps another one, unless both are only read.
  virtual bool registerBuffer(llvm::StringRef name, void *data, size_t bytes,
                              bool readable, bool writable,
                              bool initialized) = 0;
  /// The same with flags of the caller's, a byte for each byte: whether it was
  /// written. Kernels set them. Null: all of it counts as written.
  virtual bool registerTracked(llvm::StringRef name, void *data, size_t bytes,
                               bool readable, bool writable,
                               uint8_t *written) = 0;
  /// Removes all ranges.
  virtual void clearBuffers() = 0;

  /// The bytes of a variable in global or constant memory that a kernel uses,
  /// as the last launch left them; nothing: no kernel uses one of that name.
  virtual std::optional<llvm::ArrayRef<uint8_t>>
  variable(llvm::StringRef name) const = 0;
  /// Writes the first bytes of such a variable, constants too, as a host does
  /// before a launch. False, after a message: there is none, or it is smaller.
  virtual bool setVariable(llvm::StringRef name,
                           llvm::ArrayRef<uint8_t> bytes) = 0;

  /// Bytes of each parameter of a kernel; nothing: there is no such kernel.
  virtual std::optional<llvm::ArrayRef<uint32_t>>
  parameterBytes(llvm::StringRef entry) const = 0;
  /// Whether a kernel holds something that cannot be executed, which a message
  /// then names.
  virtual bool refuses(llvm::StringRef entry) const = 0;
  /// The names of all kernels.
  virtual std::vector<llvm::StringRef> kernelNames() const = 0;

  /// A launch ends as interrupted soon after `*stop` is no longer 0, which
  /// another thread, or a signal's handler, may write atomically. Null: none
  /// does.
  virtual void watch(const int *stop) = 0;

  /// Executes a kernel to its end.
  virtual LaunchResult
  launch(llvm::StringRef entry, std::array<unsigned, 3> grid,
         std::array<unsigned, 3> block, unsigned dynamicShared,
         llvm::ArrayRef<Argument> args, ProgressFn progress = {}) = 0;

  /// Executes several launches at once, as those of different streams are:
  /// their blocks run interleaved, and nothing but what they do themselves
  /// orders one launch's accesses to memory with another's.
  virtual LaunchResult launchTogether(llvm::ArrayRef<LaunchRequest> requests,
                                      ProgressFn progress = {}) = 0;

  /// What was executed since creation: counts, conflicts, sectors, errors.
  virtual llvm::json::Value report() const = 0;
};

} // namespace kvbuf::emu

#endif // KVBUFFER_EMULATOR_EMULATOR_H
