//===- ExternalTools.cpp - ptxas and ld.lld -------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Compiler/ExternalTools.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

#include <dlfcn.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

using namespace mlir;
using namespace kvbuf;

//===----------------------------------------------------------------------===//
// Finding
//===----------------------------------------------------------------------===//

/// The first of `names` in `folders`, else in the PATH; empty if none.
static std::string findIn(ArrayRef<StringRef> names,
                          ArrayRef<StringRef> folders) {
  for (StringRef name : names) {
    if (!folders.empty())
      if (auto found = llvm::sys::findProgramByName(name, folders))
        return *found;
    if (auto found = llvm::sys::findProgramByName(name))
      return *found;
  }
  return "";
}

/// The ptxas that is asked for, by an option or by the environment; "none", or
/// nothing in the environment's variable, says that there is to be none.
static std::optional<std::string> askedPtxas(StringRef wanted) {
  return wanted.empty() ? llvm::sys::Process::GetEnv("KVBUF_PTXAS")
                        : std::optional(wanted.str());
}

bool kvbuf::isPtxasOff(StringRef wanted) {
  std::optional<std::string> asked = askedPtxas(wanted);
  return asked && (asked->empty() || *asked == "none");
}

std::string kvbuf::findPtxas(StringRef wanted) {
  if (isPtxasOff(wanted))
    return "";
  if (std::optional<std::string> asked = askedPtxas(wanted))
    return *asked;
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  SmallVector<std::string> folders;
  if (auto home = llvm::sys::Process::GetEnv("CUDA_HOME"))
    folders.push_back(*home + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  SmallVector<StringRef> refs(folders.begin(), folders.end());
  return findIn({"ptxas"}, refs);
}

/// The folder "bin" beside that of the file which holds this code, where a
/// package brings programs of its own; empty if the loader cannot tell. (A tool
/// found through the PATH has a name without a folder.)
static std::string ownPrograms() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void *>(&ownPrograms), &info) ||
      !info.dli_fname || !llvm::sys::path::is_absolute(info.dli_fname))
    return "";
  SmallString<128> folder(llvm::sys::path::parent_path(info.dli_fname));
  llvm::sys::path::append(folder, "..", "bin");
  return folder.str().str();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {

/// A file that goes away with this object. Where the system has files that only
/// live in memory, it also goes away with the process, whatever ends that: a
/// signal would leave one in the temporary folder. Programs that this one runs
/// find it among its open files.
class TemporaryFile {
public:
  explicit TemporaryFile(StringRef suffix) {
#ifdef __linux__
    descriptor = memfd_create("kvbuf", MFD_CLOEXEC);
    if (descriptor >= 0) {
      ("/proc/" + Twine(getpid()) + "/fd/" + Twine(descriptor)).toVector(path);
      if (llvm::sys::fs::exists(path))
        return;
      path.clear();
    }
#endif
    error = llvm::sys::fs::createTemporaryFile("kvbuf", suffix, path);
    if (!error)
      remover.setFile(path);
  }
  TemporaryFile(const TemporaryFile &) = delete;
  ~TemporaryFile() {
    if (descriptor >= 0)
      close(descriptor);
  }

  std::error_code write(StringRef bytes) {
    if (error)
      return error;
    llvm::raw_fd_ostream os(path, error);
    if (!error) {
      os << bytes;
      os.close();
      error = os.error();
      os.clear_error();
    }
    return error;
  }

  SmallString<128> path;
  std::error_code error;

private:
  llvm::FileRemover remover;
  int descriptor = -1;
};

} // namespace

static std::string readFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// Runs a program with `input` in a file of its own, and returns what it wrote
/// to its output file; with `prints`, to its standard output. `args` are those
/// between the program's name and the files; `log` receives what it said.
static llvm::FailureOr<std::string>
runOnFile(StringRef program, ArrayRef<StringRef> args, StringRef input,
          StringRef inputSuffix, Location loc, std::string &log,
          bool prints = false) {
  TemporaryFile in(inputSuffix), out("bin"), messages("log");
  for (TemporaryFile *file : {&in, &out, &messages})
    if (file->error)
      return emitError(loc)
                 << "cannot make a temporary file: " << file->error.message(),
             failure();
  if (std::error_code error = in.write(input))
    return emitError(loc) << "cannot write '" << in.path
                          << "': " << error.message(),
           failure();
  SmallVector<StringRef> command = {program};
  command.append(args.begin(), args.end());
  command.append({in.path, "-o", prints ? StringRef("-") : out.path.str()});
  std::optional<StringRef> redirects[] = {
      StringRef(), prints ? out.path.str() : messages.path.str(),
      messages.path.str()};
  std::string why;
  int status =
      llvm::sys::ExecuteAndWait(program, command, std::nullopt, redirects,
                                /*SecondsToWait=*/0, /*MemoryLimit=*/0, &why);
  log = readFile(messages.path);
  if (status < 0)
    return emitError(loc) << "cannot run '" << program << "': " << why,
           failure();
  if (status > 0) {
    InFlightDiagnostic diag =
        emitError(loc) << "'" << program << "' failed with status " << status;
    // One that is no linker may print what is wrong.
    std::string said = prints ? readFile(out.path) + log : log;
    StringRef text = StringRef(said).trim();
    if (!text.empty())
      diag.attachNote() << text;
    return failure();
  }
  return readFile(out.path);
}

/// What a program prints if it is called with `option` alone; empty if it
/// fails.
static std::string answerTo(StringRef program, StringRef option) {
  TemporaryFile answer("log");
  if (answer.error)
    return "";
  StringRef command[] = {program, option};
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(answer.path),
                                          StringRef(answer.path)};
  if (llvm::sys::ExecuteAndWait(program, command, std::nullopt, redirects))
    return "";
  return readFile(answer.path);
}

//===----------------------------------------------------------------------===//
// nvdisasm
//===----------------------------------------------------------------------===//

std::string kvbuf::disassembleCubin(StringRef cubin, std::string &text) {
  std::string program;
  if (auto fromEnv = llvm::sys::Process::GetEnv("KVBUF_NVDISASM")) {
    program = *fromEnv == "none" ? "" : *fromEnv;
  } else {
    SmallVector<std::string> folders;
    if (auto home = llvm::sys::Process::GetEnv("CUDA_HOME"))
      folders.push_back(*home + "/bin");
    folders.push_back("/usr/local/cuda/bin");
    SmallVector<StringRef> refs(folders.begin(), folders.end());
    program = findIn({"nvdisasm", "cuobjdump"}, refs);
  }
  if (program.empty())
    return "no disassembler: nvdisasm or cuobjdump of the CUDA toolkit";
  TemporaryFile in("cubin"), out("sass"), messages("log");
  for (TemporaryFile *file : {&in, &out, &messages})
    if (file->error)
      return "cannot make a temporary file: " + file->error.message();
  if (std::error_code error = in.write(cubin))
    return "cannot write a temporary file: " + error.message();
  bool dumps = llvm::sys::path::stem(program).contains("cuobjdump");
  StringRef command[] = {program, dumps ? "-sass" : "-c", in.path};
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(out.path),
                                          StringRef(messages.path)};
  std::string why;
  int status =
      llvm::sys::ExecuteAndWait(program, command, std::nullopt, redirects,
                                /*SecondsToWait=*/0, /*MemoryLimit=*/0, &why);
  if (status) {
    std::string name = llvm::sys::path::filename(program).str();
    return status < 0
               ? "cannot run '" + name + "': " + why
               : "'" + name + "' failed with status " + std::to_string(status);
  }
  text = readFile(out.path);
  return "";
}

//===----------------------------------------------------------------------===//
// ptxas
//===----------------------------------------------------------------------===//

/// The number before `unit` in a line such as "Used 90 registers, ...";
/// -1 if there is none.
static int64_t numberBefore(StringRef line, StringRef unit) {
  size_t at = line.find(unit);
  if (at == StringRef::npos)
    return -1;
  StringRef head = line.take_front(at).rtrim();
  StringRef digits = head.substr(head.find_last_not_of("0123456789") + 1);
  int64_t value;
  return digits.getAsInteger(10, value) ? -1 : value;
}

ResourceReport kvbuf::parsePtxasLog(StringRef log,
                                    SmallVectorImpl<std::string> &warnings) {
  ResourceReport report;
  KernelResources *current = nullptr;
  for (StringRef line : llvm::split(log, '\n')) {
    line = line.trim();
    if (size_t at = line.find("(C75"); at != StringRef::npos)
      warnings.push_back(line.substr(at).str());
    size_t entry = line.find("Compiling entry function '");
    if (entry != StringRef::npos) {
      StringRef name = line.substr(entry).split('\'').second.split('\'').first;
      current = &report[name];
      current->entry = name.str();
      // ptxas does not mention static shared memory of size 0.
      current->staticSharedBytes = 0;
      continue;
    }
    if (!current)
      continue;
    int64_t stores = numberBefore(line, "bytes spill stores");
    int64_t loads = numberBefore(line, "bytes spill loads");
    // Functions that are called have lines of their own, which name them
    // "Function properties"; their spills count for the kernel.
    if (stores >= 0 && loads >= 0)
      current->spillBytes =
          std::max<int64_t>(current->spillBytes, 0) + stores + loads;
    if (int64_t registers = numberBefore(line, "registers"); registers >= 0)
      current->registers = registers;
    if (int64_t shared = numberBefore(line, "bytes smem"); shared >= 0)
      current->staticSharedBytes = shared;
  }
  return report;
}

/// Whether a ptxas can assemble several kernels at a time: by its own help, for
/// older ones end at an option that they do not know.
static bool splitsCompilation(StringRef ptxas) {
  return StringRef(answerTo(ptxas, "--help")).contains("--split-compile");
}

llvm::FailureOr<std::string> kvbuf::assemblePtx(StringRef ptx, StringRef chip,
                                                StringRef ptxas, Location loc,
                                                ResourceReport &report) {
  std::string arch = ("-arch=" + chip).str(), log;
  SmallVector<StringRef> args = {arch, "-O3", "-v"};
  // An artifact of attention has up to five kernels.
  if (ptx.count(".entry") > 1 && splitsCompilation(ptxas))
    args.append({"--split-compile", "0"});
  llvm::FailureOr<std::string> cubin =
      runOnFile(ptxas, args, ptx, "ptx", loc, log);
  if (failed(cubin))
    return failure();
  SmallVector<std::string> warnings;
  report = parsePtxasLog(log, warnings);
  for (const std::string &warning : warnings)
    emitWarning(loc) << "ptxas: " << warning;
  return cubin;
}

//===----------------------------------------------------------------------===//
// ld.lld
//===----------------------------------------------------------------------===//

std::string kvbuf::findLinker(StringRef wanted) {
  if (!wanted.empty())
    return wanted.str();
  // Linkers of older LLVMs do not know the code objects of this one.
  std::string version = std::to_string(LLVM_VERSION_MAJOR);
  if (std::string own = ownPrograms(); !own.empty())
    if (auto found = llvm::sys::findProgramByName("ld.lld", {own}))
      // The folder may be the system's.
      if (StringRef(answerTo(*found, "--version"))
              .contains("LLD " + version + "."))
        return *found;
  if (auto found =
          llvm::sys::findProgramByName("ld.lld", {KVBUF_LLVM_TOOLS_DIR}))
    return *found;
  return findIn({"ld.lld-" + version, "ld.lld"}, {});
}

llvm::FailureOr<std::string> kvbuf::linkHsaco(StringRef object,
                                              StringRef linker, Location loc) {
  if (linker.empty())
    return emitError(loc) << "a code object for AMD's chips needs ld.lld of "
                             "LLVM, which was not found in the PATH",
           failure();
  // It would make its output beside the file of that name first.
  std::string log;
  return runOnFile(linker, {"-flavor", "gnu", "-shared"}, object, "o", loc, log,
                   /*prints=*/true);
}
