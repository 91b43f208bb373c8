//===- Compile.cpp - CUDA and HIP sources to bitcode, by clang ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of NVIDIA's and AMD's toolkits nothing is needed: headers of our own
// (device/) declare what kernels use, and take the place of the toolkits'.
//
//===----------------------------------------------------------------------===//

#include "Emulate.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include "DeviceHeaders.inc"

using namespace llvm;
using namespace kvbuf::emulate;

namespace {
struct Header {
  StringRef name, text;
};
} // namespace

/// Two headers that hold the same, of which a source may include both.
static constexpr StringRef kUsesHalf = "#include <kvbuf_half.h>\n";

/// What programs and clang's own headers include; most of it says nothing that
/// ours do not.
static const Header headers[] = {
    {"kvbuf_common.h", kCommonHeader},
    {"kvbuf_cuda.h", kCudaHeader},
    {"kvbuf_hip.h", kHipHeader},
    {"cuda.h", ""},
    {"cuda_runtime.h", ""},
    {"cuda_runtime_api.h", ""},
    {"device_launch_parameters.h", ""},
    {"vector_types.h", ""},
    {"vector_functions.h", ""},
    {"driver_types.h", ""},
    {"builtin_types.h", ""},
    {"host_defines.h", ""},
    {"device_types.h", ""},
    {"device_functions.h", ""},
    {"cuda_profiler_api.h", ""},
    {"sm_20_atomic_functions.h", ""},
    {"crt/sm_70_rt.hpp", ""},
    {"crt/sm_80_rt.hpp", ""},
    {"crt/sm_90_rt.hpp", ""},
    {"hip/hip_runtime.h", ""},
    {"cooperative_groups.h", kGroupsHeader},
    {"cooperative_groups/reduce.h", "#include <cooperative_groups.h>\n"},
    {"cooperative_groups/scan.h", "#include <cooperative_groups.h>\n"},
    {"cooperative_groups/memcpy_async.h", "#include <cooperative_groups.h>\n"},
    {"hip/hip_cooperative_groups.h", kGroupsHeader},
    {"kvbuf_half.h", kHalfHeader},
    {"kvbuf_host.h", kHostHeader},
    {"cuda_fp16.h", kUsesHalf},
    {"cuda_bf16.h", kUsesHalf},
    {"hip/hip_fp16.h", kUsesHalf},
    {"hip/hip_bf16.h", kUsesHalf},
};

Language kvbuf::emulate::languageOf(StringRef path) {
  StringRef extension = sys::path::extension(path);
  return extension == ".cu"    ? Language::CUDA
         : extension == ".hip" ? Language::HIP
                               : Language::None;
}

static Expected<std::string> findClang() {
  if (std::optional<std::string> named = sys::Process::GetEnv("KVBUF_CLANG"))
    return *named;
  for (StringRef name : {"clang-22", "clang"})
    if (auto found = sys::findProgramByName(name))
      return *found;
  return createStringError("sources in CUDA and HIP are compiled by clang, "
                           "which is not there; KVBUF_CLANG may name it");
}

static Error write(const Twine &path, StringRef text) {
  std::error_code error;
  SmallString<128> name;
  raw_fd_ostream out(path.toStringRef(name), error);
  if (error)
    return createStringError("cannot write '" + name + "': " + error.message());
  out << text;
  return Error::success();
}

Expected<std::unique_ptr<MemoryBuffer>>
kvbuf::emulate::compileSource(StringRef path, StringRef chip,
                              ArrayRef<std::string> more) {
  auto clang = findClang();
  if (!clang)
    return clang.takeError();
  SmallString<128> folder;
  if (std::error_code error =
          sys::fs::createUniqueDirectory("kvbuf-emulate", folder))
    return createStringError("cannot make a folder: " + error.message());
  scope_exit remove([&] { sys::fs::remove_directories(folder); });
  for (StringRef sub : {"crt", "hip", "cooperative_groups"})
    sys::fs::create_directory(folder + "/" + sub);
  for (const Header &header : headers)
    if (Error e = write(folder + "/" + header.name, header.text))
      return std::move(e);

  bool isHip = languageOf(path) == Language::HIP;
  std::string output = (folder + "/kernels.bc").str();
  std::vector<std::string> words = {
      *clang, "-x", isHip ? "hip" : "cuda", "--cuda-device-only",
      "--offload-arch=" +
          (chip.empty() ? StringRef(isHip ? "gfx942" : "sm_80") : chip).str()};
  // Without the toolkit's headers and its library of functions.
  llvm::append_range(
      words,
      isHip ? std::initializer_list<std::string>{"-nogpuinc", "-nogpulib"}
            : std::initializer_list<std::string>{"-nocudainc", "-nocudalib",
                                                 "-Wno-unknown-cuda-version"});
  // A source may bring all that it needs.
  if (!llvm::is_contained(more, isHip ? "-nogpuinc" : "-nocudainc"))
    llvm::append_range(words, std::initializer_list<std::string>{
                                  "-isystem", folder.str().str(), "-include",
                                  isHip ? "kvbuf_hip.h" : "kvbuf_cuda.h"});
  llvm::append_range(
      words, std::initializer_list<std::string>{"-O2", "-fno-slp-vectorize",
                                                "-g", "-emit-llvm", "-c"});
  llvm::append_range(words, more);
  llvm::append_range(
      words, std::initializer_list<std::string>{path.str(), "-o", output});
  SmallVector<StringRef> arguments(words.begin(), words.end());
  std::string problem;
  if (int status = sys::ExecuteAndWait(*clang, arguments, std::nullopt, {}, 0,
                                       0, &problem))
    return createStringError(
        "'" + *clang + "' does not compile '" + path + "'" +
        (problem.empty() ? " (status " + std::to_string(status) + ")"
                         : ": " + problem));
  auto file = MemoryBuffer::getFile(output, /*IsText=*/false,
                                    /*RequiresNullTerminator=*/true,
                                    /*IsVolatile=*/true);
  if (!file)
    return createStringError("cannot read what clang made: " +
                             file.getError().message());
  return std::move(*file);
}
