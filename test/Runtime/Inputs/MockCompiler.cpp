//===- test/Runtime/Inputs/MockCompiler.cpp - A stand-in for the compiler
// library *- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Exports the functions of libKVBufferC.so that the runtime opens, with a
// "compiler" whose source language is the manifest itself and an "emulator"
// that computes attention in double precision straight from the kernel's
// arguments. Tests use it to examine the runtime alone: it shares no code with
// the runtime's reference, and makes a chosen mistake on request, in
// $KVBUF_MOCK_FAULT.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Artifact.h"
#include "kvbuffer/Runtime/TensorMap.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using nlohmann::json;

#define MOCK_EXPORT extern "C" __attribute__((visibility("default")))

using MessageCallback = void (*)(int, const char *, void *);
using ProgressCallback = void (*)(uint64_t, uint64_t, void *);

/// As in kvbuffer-c/Emulator.h.
struct kvbufEmulatorRequest {
  const char *entry;
  unsigned grid[3], block[3], cluster[3], shared;
  const void *const *args;
  const size_t *argBytes;
  unsigned argCount;
};

struct kvbufEmulator {
  json manifest, options;
  MessageCallback message;
  void *user;
  std::map<std::string, std::pair<char *, size_t>> buffers;
  uint64_t launches = 0;
};

namespace {

bool fault(const char *name) {
  const char *chosen = std::getenv("KVBUF_MOCK_FAULT");
  return chosen && std::strcmp(chosen, name) == 0;
}

/// Pointers, strides and sizes by name.
struct Args {
  std::map<std::string, char *> pointers;
  std::map<std::string, int64_t> strides;
  std::map<std::string, int64_t> sizes;
  /// Extents that tensor maps tell, as the strides by tensor and dimension.
  std::map<std::string, int64_t> extents;
  template <typename T> T *at(const std::string &name) const {
    auto it = pointers.find(name);
    return it == pointers.end() ? nullptr : reinterpret_cast<T *>(it->second);
  }
  int64_t stride(const std::string &tensor, int dim) const {
    return strides.at(tensor + std::to_string(dim));
  }
};

double toDouble(bool bf16, uint16_t x) {
  int exponentBits = bf16 ? 8 : 5, mantissaBits = bf16 ? 7 : 10;
  int exponent = (x >> mantissaBits) & ((1 << exponentBits) - 1);
  double mantissa = x & ((1 << mantissaBits) - 1);
  int bias = (1 << (exponentBits - 1)) - 1;
  double value;
  if (exponent == (1 << exponentBits) - 1)
    value = mantissa ? NAN : INFINITY;
  else if (exponent == 0)
    value = std::ldexp(mantissa, 1 - bias - mantissaBits);
  else
    value = std::ldexp(mantissa + (1 << mantissaBits),
                       exponent - bias - mantissaBits);
  return x & 0x8000 ? -value : value;
}

/// Rounds to nearest, ties to even, through integers scaled to one ulp.
uint16_t fromDouble(bool bf16, double value) {
  int mantissaBits = bf16 ? 7 : 10, bias = bf16 ? 127 : 15;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  value = std::fabs(value);
  if (std::isnan(value))
    return 0x7FFF;
  if (value == 0)
    return sign;
  int exponent = std::max(std::ilogb(value), 1 - bias);
  double units = std::nearbyint(std::ldexp(value, mantissaBits - exponent));
  // Counting in ulps from zero makes carries into the exponent come out right.
  int64_t code = static_cast<int64_t>(units) +
                 (static_cast<int64_t>(exponent + bias - 1) << mantissaBits);
  return static_cast<uint16_t>(sign | code);
}

void attention(const json &m, const Args &a) {
  const json &p = m["problem"];
  bool bf16 = p["dtype"] == "bf16";
  int64_t heads = p["heads"], kvHeads = p["kv_heads"], size = p["head_size"];
  int64_t columns = p.value("v_head_size", size);
  std::string outType = p.value("o_dtype", p["dtype"].get<std::string>());
  std::string query = p["query"], cache = p["cache"];
  bool raggedQ = query == "ragged", raggedK = cache == "ragged";
  bool table = cache == "paged" || cache == "continuous";
  int64_t pageSize = p.value("page_size", int64_t(1));
  int64_t batch = a.sizes.at("batch");
  // Extents of maps agree with the sizes; a tensor without elements has 1.
  for (const char *name : {"q", "k", "v", "o"})
    if (a.extents.count(name + std::string("1")) && !raggedQ && !table &&
        !raggedK) {
      int64_t rows =
          a.sizes.at(*name == 'q' || *name == 'o' ? "seq_q" : "seq_k");
      if (a.extents.at(name + std::string("1")) != std::max<int64_t>(rows, 1))
        std::abort();
    }
  double scale = p["scale"], softcap = p.value("softcap", 0.0);
  if (fault("scale"))
    scale *= 1.02;
  auto placeOf = [&](const char *name, int64_t b, int64_t i, int64_t h) {
    if (raggedQ)
      return (a.at<int32_t>("q_offsets")[b] + i) * a.stride(name, 0) +
             h * a.stride(name, 1);
    return b * a.stride(name, 0) + i * a.stride(name, 1) +
           h * a.stride(name, 2);
  };
  auto store = [&](int64_t at, double x) {
    if (outType == "f32")
      a.at<float>("o")[at] = static_cast<float>(x);
    else
      a.at<uint16_t>("o")[at] = fromDouble(outType == "bf16", x);
  };
  auto cacheRow = [&](std::string name, int64_t b, int64_t j, int64_t h) {
    uint16_t *base = a.at<uint16_t>(name);
    // A map begins at the operand's first column.
    if (!a.extents.count(name + "1"))
      base += p.value(name + "_head_dim_offset", int64_t(0));
    if (raggedK)
      return base +
             (a.at<int32_t>(name + ".offsets")[b] + j) * a.stride(name, 0) +
             h * a.stride(name, 1);
    if (cache == "continuous")
      b = a.at<int32_t>(name + ".table")[b];
    if (cache == "paged") {
      b = a.at<int32_t>(
          name + ".table")[b * a.sizes.at("pages_per_seq") + j / pageSize];
      j %= pageSize;
    }
    return base + b * a.stride(name, 0) + j * a.stride(name, 1) +
           h * a.stride(name, 2);
  };
  for (int64_t b = 0; b < batch; ++b) {
    const int32_t *qo = a.at<int32_t>("q_offsets");
    int64_t lenQ = raggedQ ? qo[b + 1] - qo[b] : a.sizes.at("seq_q"), lenK;
    if (raggedK)
      lenK = a.at<int32_t>("k.offsets")[b + 1] - a.at<int32_t>("k.offsets")[b];
    else if (table)
      lenK = a.at<int32_t>("k.lengths")[b] + lenQ;
    else
      lenK = a.sizes.at("seq_k");
    if (fault("drop-last-key"))
      lenK = std::max<int64_t>(0, lenK - 1);
    if (fault("read-past-length"))
      lenK += 1;
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < lenQ; ++i) {
        int64_t kvHead = h / (heads / kvHeads);
        if (fault("wrong-kv-head"))
          kvHead = h % kvHeads;
        std::vector<double> scores(lenK, -INFINITY);
        double most = -INFINITY;
        uint16_t *q = a.at<uint16_t>("q") + placeOf("q", b, i, h);
        for (int64_t j = 0; j < lenK; ++j) {
          int64_t distance = j - (i + lenK - lenQ);
          int64_t left = p.value("window_left", -1),
                  right = p.value("window_right", -1);
          if ((p["causal"] && distance > (fault("off-by-one") ? 1 : 0)) ||
              (left >= 0 && distance < -left) ||
              (right >= 0 && distance > right))
            continue;
          double s = 0;
          uint16_t *k = cacheRow("k", b, j, kvHead);
          for (int64_t d = 0; d < size; ++d)
            s += toDouble(bf16, q[d]) * toDouble(bf16, k[d]);
          s *= scale;
          if (softcap > 0)
            s = softcap * std::tanh(s / softcap);
          scores[j] = s;
          most = std::max(most, s);
        }
        if (p.value("sink", false))
          most = std::max<double>(most, a.at<float>("sink")[h]);
        double sum = p.value("sink", false) && !fault("no-sink")
                         ? std::exp(a.at<float>("sink")[h] - most)
                         : 0;
        std::vector<double> acc(columns, 0.0);
        for (int64_t j = 0; j < lenK; ++j) {
          if (scores[j] == -INFINITY)
            continue;
          double weight = std::exp(scores[j] - most);
          sum += weight;
          uint16_t *v = cacheRow("v", b, j, kvHead);
          for (int64_t d = 0; d < columns; ++d)
            acc[d] += weight * toDouble(bf16, v[d]);
        }
        int64_t o = placeOf("o", b, i, h);
        if (fault("skip-row") && b == 0 && i == lenQ / 2 && h == heads - 1)
          continue;
        for (int64_t d = 0; d < columns; ++d) {
          double x = sum == 0 ? 0 : acc[d] / sum;
          if (fault("nan-if-empty") && sum == 0)
            x = 1e-3;
          if (fault("sloppy"))
            x *= 1 + 0.01 * std::cos(static_cast<double>(d + i));
          if (fault("one-element") && i == 1 && h == 0 && d == 5)
            x += 0.5;
          store(o + d, x);
        }
        if (fault("write-past-row"))
          store(o + columns, 0);
        if (float *lse = a.at<float>("lse")) {
          double value = sum > 0 ? most + std::log(sum) : -INFINITY;
          if (fault("lse"))
            value *= 1.001;
          if (raggedQ)
            lse[h * a.sizes.at("total_q") + qo[b] + i] = value;
          else
            lse[(b * heads + h) * a.sizes.at("seq_q") + i] = value;
        }
      }
  }
  if (fault("touch-input"))
    a.at<uint16_t>("q")[0] ^= 1;
}

/// Takes the address and the strides out of a tensor map; false if it does not
/// say what its recipe asks for.
bool readMap(const json &spec, const void *bytes, size_t count, Args &a) {
  kvbuf::rt::SoftwareTensorMap map;
  if (count != sizeof(map))
    return false;
  std::memcpy(&map, bytes, count);
  if (!kvbuf::rt::whyInvalid(map).empty() || map.elementBytes != 2 ||
      map.swizzle != spec["swizzle"] || map.rank != spec["dims"].size())
    return false;
  std::string name = spec["tensor"];
  a.pointers[name] = reinterpret_cast<char *>(map.address);
  for (unsigned d = 0; d < map.rank; ++d) {
    if (map.box[d] != spec["box"][d])
      return false;
    std::string dim = std::to_string(spec["dims"][d].get<int>());
    a.extents[name + dim] = static_cast<int64_t>(map.dims[d]);
    if (d > 0)
      a.strides[name + dim] = static_cast<int64_t>(map.strides[d - 1] / 2);
  }
  return !spec.contains("columns") || map.dims[0] == spec["columns"][1];
}

void say(MessageCallback message, void *user, const std::string &text) {
  if (message)
    message(3, text.c_str(), user);
}

} // namespace

MOCK_EXPORT void kvbufFree(void *p) { std::free(p); }

static void *copyOut(const std::string &image, size_t *bytes) {
  void *copy = std::malloc(image.size());
  std::memcpy(copy, image.data(), image.size());
  *bytes = image.size();
  return copy;
}

MOCK_EXPORT void *kvbufCompile(const char *source, size_t bytes,
                               const char *filename, const char *options,
                               size_t *artifactBytes, MessageCallback message,
                               void *user) {
  json manifest = json::parse(source, source + bytes, nullptr, false);
  if (manifest.is_discarded()) {
    say(message, user, std::string(filename) + ":1:1: error: no manifest");
    return nullptr;
  }
  json request = json::parse(options);
  std::string schedule = request.value("schedule", "");
  if (schedule.find("cluster=") != std::string::npos) {
    say(message, user,
        std::string(filename) + ":1:1: error: '" + schedule + "' does not fit");
    return nullptr;
  }
  json chip = request.value("target", request.value("default_target", "sm_80"));
  kvbuf::Artifact artifact;
  // Of several functions, each has a section of its own, in their order, and
  // perhaps more that nothing names.
  if (manifest.value("kvbuf", json()) == 3) {
    artifact.manifest = manifest.dump();
    if (manifest.contains("functions") && manifest["functions"].is_array())
      for (const json &function : manifest["functions"])
        artifact.sections.push_back(
            {"mlir", function.is_object() && function.contains("manifest")
                         ? function["manifest"].dump()
                         : ""});
    return copyOut(kvbuf::serializeArtifact(artifact), artifactBytes);
  }
  manifest["target"]["chip"] = chip;
  // A schedule "stages=64" is a kernel that spills so many bytes.
  if (size_t at = schedule.find("stages="); at != std::string::npos)
    manifest["kernels"][0]["spill_bytes"] = std::stoi(schedule.substr(at + 7));
  artifact.manifest = manifest.dump();
  artifact.sections.push_back({"mlir", artifact.manifest});
  // For MockCuda.cpp: a schedule "BK=120" is a kernel that takes 120 us. One
  // without the kernels that launches choose between takes longer.
  if (!request.value("alternatives", true) &&
      schedule.find("BK=") == std::string::npos)
    schedule += " BK=260";
  if (const char *ptx = std::getenv("KVBUF_MOCK_PTX")) {
    if (size_t at = schedule.find("BK="); at != std::string::npos)
      schedule.replace(at, 3, "us ");
    std::replace(schedule.begin(), schedule.end(), '=', ' ');
    artifact.sections.push_back(
        {"ptx", ptx + std::string(" ") + schedule + '\0'});
  }
  return copyOut(kvbuf::serializeArtifact(artifact), artifactBytes);
}

/// Names no chip.
MOCK_EXPORT char *kvbufModuleTarget(const char *source, size_t bytes,
                                    const char *filename,
                                    MessageCallback message, void *user) {
  if (!json::parse(source, source + bytes, nullptr, false).is_discarded())
    return strdup("");
  say(message, user, std::string(filename) + ":1:1: error: no manifest");
  return nullptr;
}

MOCK_EXPORT char *kvbufReportPage(const char *json, size_t bytes,
                                  MessageCallback, void *) {
  return strndup(json, bytes);
}

MOCK_EXPORT char *kvbufProblemCandidates(const char *, size_t, const char *,
                                         const char *) {
  return strdup("BK=80,70\nBK=60");
}

MOCK_EXPORT kvbufEmulator *
kvbufEmulatorCreate(const void *mlir, size_t bytes, const char *,
                    const char *options, MessageCallback message, void *user) {
  const char *text = static_cast<const char *>(mlir);
  auto *e = new kvbufEmulator{json::parse(text, text + bytes, nullptr, false),
                              json::parse(options),
                              message,
                              user,
                              {},
                              0};
  if (e->options.contains("refuse")) {
    say(message, user, "error: unknown option 'refuse'");
    delete e;
    return nullptr;
  }
  return e;
}

MOCK_EXPORT int kvbufEmulatorRegisterBuffer(kvbufEmulator *e, const char *name,
                                            void *data, size_t bytes, int, int,
                                            int) {
  e->buffers[name] = {static_cast<char *>(data), bytes};
  return 0;
}

MOCK_EXPORT int kvbufEmulatorRegisterTracked(kvbufEmulator *e, const char *name,
                                             void *data, size_t bytes, int, int,
                                             uint8_t *written) {
  e->buffers[name] = {static_cast<char *>(data), bytes};
  if (written)
    std::memset(written, 1, bytes);
  return 0;
}

MOCK_EXPORT void kvbufEmulatorClearBuffers(kvbufEmulator *e) {
  e->buffers.clear();
}

// The runtime of artifacts does not ask for it.
MOCK_EXPORT int kvbufEmulatorParameters(kvbufEmulator *, const char *,
                                        const uint32_t **, unsigned *) {
  return 2;
}

static int launch(kvbufEmulator *e, const kvbufEmulatorRequest &request) {
  const auto &[entry, grid, block, cluster, shared, args, argBytes, argCount] =
      request;
  json specs;
  for (const json &kernel : e->manifest["kernels"])
    if (kernel["entry"] == entry)
      specs = kernel["args"];
  if (e->options.contains("grid"))
    say(e->message, e->user,
        "note: " + std::string(entry) + " on " + std::to_string(grid[0]) +
            " blocks");
  if (fault("detector")) {
    say(e->message, e->user, "prefill.mlir:3:4: error: race on byte 16");
    return 1;
  }
  if (specs.size() != argCount)
    return 2;
  Args a;
  for (unsigned i = 0; i < argCount; ++i) {
    const json &spec = specs[i];
    if (spec["kind"] == "tensor_map") {
      if (!readMap(spec, args[i], argBytes[i], a)) {
        say(e->message, e->user, "error: bad tensor map " + spec.dump());
        return 2;
      }
      continue;
    }
    int64_t value = 0;
    std::memcpy(&value, args[i], argBytes[i]);
    if (spec["kind"] == "launch_counter") {
      auto *counter = reinterpret_cast<uint32_t *>(value);
      if (*counter != 0)
        return 2;
      // The next launch starts with 0 all the same.
      *counter = 3;
      continue;
    }
    if (spec["kind"] == "pointer")
      a.pointers[spec["tensor"]] = reinterpret_cast<char *>(value);
    else if (spec["kind"] == "stride")
      a.strides[spec["tensor"].get<std::string>() +
                std::to_string(spec["dim"].get<int>())] = value;
    else
      a.sizes[spec["name"]] = value;
  }
  attention(e->manifest, a);
  ++e->launches;
  return 0;
}

MOCK_EXPORT int kvbufEmulatorLaunchTogether(
    kvbufEmulator *e, const kvbufEmulatorRequest *requests, unsigned count,
    ProgressCallback progress, void *user) {
  for (unsigned i = 0; i < count; ++i)
    if (int status = launch(e, requests[i]))
      return status;
  if (progress)
    progress(1, 1, user);
  return 0;
}

MOCK_EXPORT void kvbufEmulatorWatch(kvbufEmulator *, const int *) {}

MOCK_EXPORT char *kvbufEmulatorReport(kvbufEmulator *e) {
  json report = {{"lane_instructions", 1234567},
                 {"instructions", {{"mma", 12}, {"ldmatrix", 3}}},
                 {"bank_conflicts",
                  {{{"op", "ldmatrix"}, {"count", 0}},
                   {{"op", "cp.async"}, {"count", 7}}}}};
  return strdup(report.dump().c_str());
}

MOCK_EXPORT void kvbufEmulatorDestroy(kvbufEmulator *e) { delete e; }
