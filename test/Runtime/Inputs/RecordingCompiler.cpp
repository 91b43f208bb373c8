//===- test/Runtime/Inputs/RecordingCompiler.cpp ----------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A libKVBufferC.so in front of the real one, whose functions it has too, which
// remembers what it compiled: by a code object, EmulatedHip.cpp finds the
// module that the emulator runs in its place. $KVBUF_STANDIN_ARTIFACTS names
// folders of artifacts, between colons, that others compiled.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer-c/Compiler.h"
#include "kvbuffer/Runtime/Artifact.h"

#include <cstdlib>
#include <cstring>
#include <deque>
#include <dlfcn.h>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace kvbuf;

namespace {

std::mutex mutex;
std::deque<Artifact> known;

void remember(std::string_view bytes) {
  Artifact artifact;
  std::string error;
  if (parseArtifact(bytes, artifact, error) && artifact.find("hsaco"))
    known.push_back(std::move(artifact));
}

/// The known artifact with this code object.
const Artifact *find(const void *image) {
  for (const Artifact &a : known)
    // strncmp would stop at a zero; the first bytes tell most of them apart, so
    // that the longer of two images is rarely read past its end.
    if (const std::string &code = *a.find("hsaco");
        std::memcmp(code.data(), image, std::min<size_t>(code.size(), 64)) ==
            0 &&
        std::memcmp(code.data(), image, code.size()) == 0)
      return &a;
  return nullptr;
}

void readFolders() {
  const char *folders = std::getenv("KVBUF_STANDIN_ARTIFACTS");
  std::istringstream list(folders ? folders : "");
  for (std::string folder; std::getline(list, folder, ':');)
    for (const auto &entry : std::filesystem::directory_iterator(folder)) {
      std::string bytes, error;
      if (entry.path().extension() == ".kvbuf" &&
          readWholeFile(entry.path(), bytes, error))
        remember(bytes);
    }
}

} // namespace

extern "C" __attribute__((visibility("default"))) void *
kvbufCompile(const char *source, size_t bytes, const char *filename,
             const char *options, size_t *artifactBytes,
             kvbufMessageCallback callback, void *user) {
  static auto *real = reinterpret_cast<decltype(&kvbufCompile)>(dlsym(
      dlopen(KVBUF_REAL_COMPILER, RTLD_NOW | RTLD_NOLOAD), "kvbufCompile"));
  void *made =
      real(source, bytes, filename, options, artifactBytes, callback, user);
  std::lock_guard<std::mutex> lock(mutex);
  if (made)
    remember({static_cast<const char *>(made), *artifactBytes});
  return made;
}

/// The module, and the chip, of a code object; 0 if nobody knows it.
extern "C" __attribute__((visibility("default"))) int
standinModule(const void *image, const char **mlir, size_t *bytes,
              const char **chip) {
  std::lock_guard<std::mutex> lock(mutex);
  const Artifact *artifact = find(image);
  if (!artifact) {
    readFolders();
    artifact = find(image);
  }
  const std::string *module = artifact ? artifact->find("mlir") : nullptr;
  if (!module)
    return 0;
  static thread_local std::string name;
  name = nlohmann::json::parse(artifact->manifest)["target"]["chip"];
  *mlir = module->data();
  *bytes = module->size();
  *chip = name.c_str();
  return 1;
}
