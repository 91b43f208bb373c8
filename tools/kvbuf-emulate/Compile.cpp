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

/// Headers that hold the same, of which a source may include several. The
/// names of all that we write begin with "kvbuf_", so that messages name the
/// place that calls what is in them (describeLocation).
static constexpr StringRef kUsesGroups = "#include <kvbuf_groups.h>\n";
static constexpr StringRef kUsesBarriers = "#include <kvbuf_barrier.h>\n";
static constexpr StringRef kUsesPipelines = "#include <kvbuf_pipeline.h>\n";
static constexpr StringRef kUsesFp8 = "#include <kvbuf_fp8.h>\n";
static constexpr StringRef kUsesCub = "#include <kvbuf_cub.h>\n";
static constexpr StringRef kUsesHalf = "#include <kvbuf_half.h>\n";
/// OpenMP of the host, whose pragmas are ignored.
static constexpr StringRef kOpenMP =
    "#pragma once\n"
    "static inline int omp_get_max_threads() { return 1; }\n"
    "static inline int omp_get_num_threads() { return 1; }\n"
    "static inline int omp_get_thread_num() { return 0; }\n"
    "static inline int omp_get_num_procs() { return 1; }\n"
    "static inline void omp_set_num_threads(int) {}\n"
    "static inline double omp_get_wtime() { return 0; }\n";
/// C++'s library, which CUDA has in a namespace of its own, too.
static constexpr StringRef kStandard[] = {"cassert", "cmath",  "cstddef",
                                          "cstdint", "limits", "type_traits",
                                          "utility"};
/// Libraries that the host's part of a source calls.
static constexpr StringRef kUsesLibraries = "#include <kvbuf_libraries.h>\n";

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
    {"kvbuf_groups.h", kGroupsHeader},
    {"cooperative_groups.h", kUsesGroups},
    {"cooperative_groups/reduce.h", kUsesGroups},
    {"cooperative_groups/scan.h", kUsesGroups},
    {"cooperative_groups/memcpy_async.h", kUsesGroups},
    {"hip/hip_cooperative_groups.h", kUsesGroups},
    {"hip/cooperative_groups/hip_reduce.h", kUsesGroups},
    {"hip/cooperative_groups/hip_scan.h", kUsesGroups},
    {"kvbuf_half.h", kHalfHeader},
    {"kvbuf_host.h", kHostHeader},
    {"cuda_fp16.h", kUsesHalf},
    {"cuda_bf16.h", kUsesHalf},
    {"hip/hip_fp16.h", kUsesHalf},
    {"hip/hip_bf16.h", kUsesHalf},
    {"kvbuf_libraries.h", kLibrariesHeader},
    {"library_types.h", kUsesLibraries},
    {"cublas_v2.h", kUsesLibraries},
    {"cublas_api.h", kUsesLibraries},
    {"cublasLt.h", kUsesLibraries},
    {"curand.h", kUsesLibraries},
    {"kvbuf_random.h", kRandomHeader},
    {"curand_kernel.h", "#include <kvbuf_random.h>\n"},
    {"curand_philox4x32_x.h", "#include <kvbuf_random.h>\n"},
    {"curand_uniform.h", "#include <kvbuf_random.h>\n"},
    {"curand_normal.h", "#include <kvbuf_random.h>\n"},
    {"nccl.h", kUsesLibraries},
    {"mpi.h", kUsesLibraries},
    {"nvToolsExt.h", kUsesLibraries},
    {"nvtx3/nvToolsExt.h", kUsesLibraries},
    {"omp.h", kOpenMP},
    {"kvbuf_barrier.h", kBarrierHeader},
    {"cuda/barrier", kUsesBarriers},
    {"kvbuf_texture.h", kTextureHeader},
    {"kvbuf_async.h", kAsyncHeader},
    {"cuda_pipeline_primitives.h", "#include <kvbuf_async.h>\n"},
    {"kvbuf_scope.h", kScopeHeader},
    {"cuda/atomic", "#include <kvbuf_scope.h>\n"},
    {"kvbuf_pipeline.h", kPipelineHeader},
    {"cuda/pipeline", kUsesPipelines},
    {"cuda_pipeline.h", kUsesPipelines},
    {"kvbuf_mma.h", kMmaHeader},
    {"mma.h", "#include <kvbuf_mma.h>\n"},
    {"kvbuf_fp8.h", kFp8Header},
    {"cuda_fp8.h", kUsesFp8},
    {"hip/hip_fp8.h", kUsesFp8},
    {"kvbuf_cub.h", kCubHeader},
    {"cub/cub.cuh", kUsesCub},
    {"cub/block/block_reduce.cuh", kUsesCub},
    {"cub/block/block_scan.cuh", kUsesCub},
    {"cub/warp/warp_reduce.cuh", kUsesCub},
    {"cub/warp/warp_scan.cuh", kUsesCub},
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

/// Writes a file, and makes the folders that it lies in.
static Error write(const Twine &path, StringRef text) {
  SmallString<128> name;
  path.toVector(name);
  std::error_code error =
      sys::fs::create_directories(sys::path::parent_path(name));
  if (error)
    return createStringError("cannot make a folder for '" + name +
                             "': " + error.message());
  raw_fd_ostream out(name, error);
  if (error)
    return createStringError("cannot write '" + name + "': " + error.message());
  out << text;
  return Error::success();
}

/// The text with "<< <" and ">> >" of launches, which NVIDIA's compiler takes
/// for "<<<" and ">>>", joined, or nothing where there are none.
static std::optional<std::string> joinLaunches(StringRef text) {
  std::string joined = text.str();
  auto join = [&](char mark, bool (*follows)(StringRef)) {
    bool any = false;
    std::string pair(2, mark);
    for (size_t at = 0; (at = joined.find(pair, at)) != std::string::npos;) {
      size_t next = joined.find_first_not_of(" \t", at + 2);
      if (next == std::string::npos)
        break;
      bool apart = next > at + 2 && joined[next] == mark &&
                   follows(StringRef(joined).drop_front(next + 1));
      if (apart)
        std::swap(joined[at + 2], joined[next]);
      any |= apart;
      at = next;
    }
    return any;
  };
  if (!join('<', [](StringRef) { return true; }))
    return std::nullopt;
  join('>', [](StringRef rest) { return rest.ltrim().starts_with("("); });
  return joined;
}

/// Runs clang, and once more where the source launches kernels from kernels:
/// clang says how it wants to be called then. The messages of the last run are
/// for the user.
static Error runClang(StringRef clang, std::vector<std::string> words,
                      StringRef path, StringRef folder) {
  std::string messages = (folder + "/messages").str(), problem;
  auto run = [&] {
    SmallVector<StringRef> arguments(words.begin(), words.end());
    std::optional<StringRef> files[] = {std::nullopt, std::nullopt,
                                        StringRef(messages)};
    return sys::ExecuteAndWait(clang, arguments, std::nullopt, files, 0, 0,
                               &problem);
  };
  auto said = [&] {
    auto file = MemoryBuffer::getFile(messages, /*IsText=*/true);
    return file ? (*file)->getBuffer().str() : std::string();
  };
  int status = run();
  if (status && said().find("requires -fgpu-rdc") != std::string::npos) {
    words.push_back("-fgpu-rdc");
    sys::fs::remove(messages); // which clang would add to
    status = run();
  }
  errs() << said();
  if (!status)
    return Error::success();
  return createStringError("'" + clang + "' does not compile '" + path + "'" +
                           (problem.empty()
                                ? " (status " + std::to_string(status) + ")"
                                : ": " + problem));
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
  for (StringRef sub :
       {"crt", "hip", "hip/cooperative_groups", "cooperative_groups", "cuda",
        "nvtx3", "cub", "cub/block", "cub/warp"})
    sys::fs::create_directory(folder + "/" + sub);
  for (const Header &header : headers)
    if (Error e = write(folder + "/" + header.name, header.text))
      return std::move(e);

  for (StringRef name : kStandard)
    if (Error e = write(folder + "/cuda/std/" + name,
                        ("#include <" + name +
                         ">\nnamespace cuda { namespace std {\n"
                         "using namespace ::std;\n} }\n")
                            .str()))
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
  std::string source = path.str();
  auto text = MemoryBuffer::getFile(path, /*IsText=*/true);
  if (auto joined = text ? joinLaunches((*text)->getBuffer()) : std::nullopt) {
    source = (folder + "/joined" + sys::path::extension(path)).str();
    std::string line = "#line 1 \"";
    raw_string_ostream(line).write_escaped(path);
    if (Error e = write(source, line + "\"\n" + *joined))
      return std::move(e);
    StringRef beside = sys::path::parent_path(path);
    llvm::append_range(words,
                       std::initializer_list<std::string>{
                           "-iquote", beside.empty() ? "." : beside.str()});
  }
  llvm::append_range(words,
                     std::initializer_list<std::string>{source, "-o", output});
  if (Error e = runClang(*clang, std::move(words), path, folder))
    return std::move(e);
  auto file = MemoryBuffer::getFile(output, /*IsText=*/false,
                                    /*RequiresNullTerminator=*/true,
                                    /*IsVolatile=*/true);
  if (!file)
    return createStringError("cannot read what clang made: " +
                             file.getError().message());
  return std::move(*file);
}
