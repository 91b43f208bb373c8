//===- Compiler.h - From a problem to an artifact ---------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Runs the pipelines on a module and makes an artifact, or the text of any
/// stage. What goes wrong is reported through the context's diagnostics, with
/// the location of the source.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_COMPILER_COMPILER_H
#define KVBUFFER_COMPILER_COMPILER_H

#include "kvbuffer/Runtime/Artifact.h"
#include "kvbuffer/Target/DefaultChips.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LogicalResult.h"
#include <functional>
#include <optional>
#include <string>

namespace kvbuf {

/// The stages of a kernel, in order. `Problem` is what users write; up to
/// `Target` a stage is MLIR; `LLVM` is LLVM IR, `Asm` PTX or AMD assembly, and
/// `Artifact` a `.kvbuf` file.
enum class Stage {
  Problem,
  Tile,
  Scheduled,
  Thread,
  Target,
  LLVM,
  Asm,
  Artifact
};

/// The stage of that name ("tile", "llvm", ...); nothing if there is none.
std::optional<Stage> parseStage(llvm::StringRef name);
/// The name that `parseStage` knows the stage by.
llvm::StringRef stageName(Stage stage);

/// What to compile for, and with which tools.
struct CompileOptions {
  /// The chip, e.g. "sm_80". It overrules the one that a problem's module names
  /// (`kvbuffer.target`), with a remark; kernels that are lowered already stay
  /// with theirs. Empty: the one that the module names, else `defaultTarget`.
  std::string target;
  /// The chip where neither `target` nor the module names one; empty:
  /// `kDefaultChip`.
  std::string defaultTarget;
  /// Replaces parameters of the schedule: "BM=64,warps=2".
  std::string schedule;
  /// The artifact's name; empty: the first kernel's.
  std::string name;
  /// The function of the module to compile alone: the name of a func.func with
  /// a problem, or of the first kernel of a gpu.module. Empty: all.
  std::string function;
  /// Passes that can be switched off, see LoweringOptions.
  bool prefetch = true;
  bool splitLoops = true;
  /// Whether an artifact's kernel has one beside it, where the chip allows it,
  /// which the runtime launches for tensors that no tensor map can describe or
  /// whose addresses or strides are no multiples of 16 bytes.
  bool alternatives = true;
  /// Whether an artifact holds machine code. Without it the artifact runs on
  /// the emulator alone, which its manifest says, and takes a fraction of the
  /// time to make.
  bool machineCode = true;
  /// Path of NVIDIA's assembler. Empty: looked for in $KVBUF_PTXAS, the PATH,
  /// $CUDA_HOME/bin and /usr/local/cuda/bin. "none": not used. An artifact for
  /// an NVIDIA chip then holds PTX only, which the driver assembles.
  std::string ptxas;
  /// Path of LLVM's linker, for AMD's chips. Empty: the ld.lld that a package
  /// brings with this, if it is of this LLVM; else that of the LLVM which this
  /// was built with; else ld.lld-22 or ld.lld of the PATH.
  std::string linker;
  /// Called when a step begins ("tile", "llvm", "ptxas", ...), for progress and
  /// timing. The last call, at the end, has an empty name.
  std::function<void(llvm::StringRef step)> onStep;
};

/// What a kernel takes of a multiprocessor. Numbers that no tool has told are
/// negative.
struct KernelResources {
  std::string entry;
  /// Threads of a block.
  int64_t threads = -1;
  /// 32-bit registers of a thread.
  int64_t registers = -1;
  /// Bytes of registers that did not fit, stored plus loaded (AMD: stored).
  int64_t spillBytes = -1;
  /// Shared memory in bytes: of the code, and asked for at launch.
  int64_t staticSharedBytes = -1;
  int64_t dynamicSharedBytes = -1;
};

/// Makes the artifact of a module. Each of its functions, a func.func with a
/// problem or a gpu.module, whose kernels run one after the other, goes on from
/// the stage that it is at, and has code of its own. `resources`, if given,
/// receives a row for each kernel. A module with one function is lowered in
/// place as far as the artifact needs; one with several stays as it is, but
/// that it names its chip.
llvm::FailureOr<Artifact>
compile(mlir::ModuleOp module, const CompileOptions &options,
        llvm::SmallVectorImpl<KernelResources> *resources = nullptr);

/// Lowers `module` in place to `stage` and writes it to `os`: text for every
/// stage but `Artifact`. Nothing is written on failure.
llvm::LogicalResult emitStage(mlir::ModuleOp module, Stage stage,
                              const CompileOptions &options,
                              llvm::raw_ostream &os);

/// Leaves the function that `options` name in the module; without a name there
/// has to be one alone, since `what` ("a page") is of one.
llvm::LogicalResult keepOneFunction(mlir::ModuleOp module,
                                    const CompileOptions &options,
                                    const llvm::Twine &what);

/// Prints `resources` as a table, one line a kernel.
void printResources(llvm::ArrayRef<KernelResources> resources,
                    llvm::raw_ostream &os);

/// One row as JSON: {"name": ..., "threads": ...}; numbers that no tool has
/// told are left out.
llvm::json::Object resourcesToJSON(const KernelResources &resources);

} // namespace kvbuf

#endif // KVBUFFER_COMPILER_COMPILER_H
