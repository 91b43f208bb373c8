//===- lib/Runtime/CompilerLibrary.cpp - The compiler, opened at run time *- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/CompilerLibrary.h"
#include "kvbuffer/Runtime/Error.h"

#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

using namespace kvbuf;
using namespace kvbuf::rt;

namespace {

constexpr const char *kLibraryName = "libKVBufferC.so";

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// Candidates in order of preference.
std::vector<std::string> searchPaths() {
  std::vector<std::string> paths;
  if (const char *dir = std::getenv("KVBUF_LIB_DIR"); dir && *dir)
    paths.push_back(dir);
  // The file that holds this very code: the tool, or libkvbuf_runtime.so.
  Dl_info info;
  std::string self;
  if (dladdr(reinterpret_cast<const void *>(&compilerLibrary), &info) &&
      info.dli_fname)
    self = info.dli_fname;
  char exe[PATH_MAX];
  if (self.find('/') == std::string::npos ||
      self.find(".so") == std::string::npos) {
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe));
    if (n > 0)
      self.assign(exe, static_cast<size_t>(n));
  }
  if (!self.empty()) {
    std::string dir = folderOf(self);
    paths.push_back(dir);
    paths.push_back(dir + "/../lib");
    // Debian installs libraries in lib/x86_64-linux-gnu.
    if (std::string_view(KVBUF_INSTALL_LIBDIR) != "lib")
      paths.push_back(dir + "/../" KVBUF_INSTALL_LIBDIR);
  }
  return paths;
}

CompilerLibrary openLibrary() {
  void *handle = nullptr;
  std::string tried, broken;
  for (const std::string &dir : searchPaths()) {
    std::string path = dir + "/" + kLibraryName;
    tried += (tried.empty() ? "" : ", ") + dir;
    if (access(path.c_str(), R_OK) != 0)
      continue;
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle)
      break;
    if (const char *reason = dlerror())
      broken = reason;
  }
  if (!handle)
    handle = dlopen(kLibraryName, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw Error(std::string("the compiler library ") + kLibraryName +
                (broken.empty()
                     ? " was not found in " + tried +
                           " or the loader's path; KVBUF_LIB_DIR can name its "
                           "folder"
                     : " cannot be opened: " + broken));
  CompilerLibrary lib;
  auto get = [&](auto &function, const char *name) {
    void *symbol = dlsym(handle, name);
    if (!symbol)
      throw Error(std::string(kLibraryName) + " lacks the function " + name +
                  "; it does not belong to this runtime's version");
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  get(lib.compile, "kvbufCompile");
  get(lib.moduleTarget, "kvbufModuleTarget");
  get(lib.problemCandidates, "kvbufProblemCandidates");
  get(lib.reportPage, "kvbufReportPage");
  get(lib.free, "kvbufFree");
  get(lib.emulatorCreate, "kvbufEmulatorCreate");
  get(lib.emulatorRegisterBuffer, "kvbufEmulatorRegisterBuffer");
  get(lib.emulatorRegisterTracked, "kvbufEmulatorRegisterTracked");
  get(lib.emulatorClearBuffers, "kvbufEmulatorClearBuffers");
  get(lib.emulatorParameters, "kvbufEmulatorParameters");
  get(lib.emulatorLaunchTogether, "kvbufEmulatorLaunchTogether");
  get(lib.emulatorWatch, "kvbufEmulatorWatch");
  get(lib.emulatorReport, "kvbufEmulatorReport");
  get(lib.emulatorDestroy, "kvbufEmulatorDestroy");
  return lib;
}

} // namespace

const CompilerLibrary &rt::compilerLibrary() {
  static const CompilerLibrary lib = openLibrary();
  return lib;
}

namespace {

/// Hands on messages and keeps the first error.
struct Sink {
  explicit Sink(const MessageHandler &handler) : handler(handler) {}

  static void receive(int severity, const char *text, void *user) {
    Sink &s = *static_cast<Sink *>(user);
    if (severity == static_cast<int>(Severity::Error) && s.firstError.empty())
      s.firstError = text;
    if (s.handler)
      s.handler(static_cast<Severity>(severity), text);
  }

  /// Throws what has gone wrong with `filename`.
  [[noreturn]] void fail(const std::string &filename) const {
    std::string failed = "'" + filename + "' does not compile";
    if (handler && !firstError.empty())
      throw ReportedError(failed);
    throw Error(firstError.empty() ? failed : firstError);
  }

  const MessageHandler &handler;
  std::string firstError;
};

} // namespace

std::string rt::compileSource(const std::string &source,
                              const std::string &filename,
                              const std::string &options,
                              const MessageHandler &message) {
  const CompilerLibrary &lib = compilerLibrary();
  Sink sink(message);
  size_t bytes = 0;
  void *data = lib.compile(source.data(), source.size(), filename.c_str(),
                           options.c_str(), &bytes, Sink::receive, &sink);
  if (!data)
    sink.fail(filename);
  std::string artifact(static_cast<const char *>(data), bytes);
  lib.free(data);
  return artifact;
}

std::string rt::reportPage(const std::string &json) {
  const CompilerLibrary &lib = compilerLibrary();
  MessageHandler none;
  Sink sink(none);
  char *text = lib.reportPage(json.data(), json.size(), Sink::receive, &sink);
  if (!text)
    throw Error(sink.firstError);
  std::string page = text;
  lib.free(text);
  return page;
}

std::string rt::moduleTarget(const std::string &source,
                             const std::string &filename,
                             const MessageHandler &message) {
  const CompilerLibrary &lib = compilerLibrary();
  Sink sink(message);
  char *text = lib.moduleTarget(source.data(), source.size(), filename.c_str(),
                                Sink::receive, &sink);
  if (!text)
    sink.fail(filename);
  std::string chip = text;
  lib.free(text);
  return chip;
}
