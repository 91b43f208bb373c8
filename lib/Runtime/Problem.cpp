//===- lib/Runtime/Problem.cpp - Problems with data -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Problem.h"
#include "kvbuffer/Runtime/Check.h"
#include "kvbuffer/Runtime/Error.h"
#include "kvbuffer/Runtime/Npy.h"
#include "kvbuffer/Runtime/Parallel.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <sys/mman.h>

using namespace kvbuf::rt;

namespace {

/// The byte of which a NaN of a type is made: all bits set are one in every
/// float type but those without a negative zero, where its code is the only
/// one.
int poisonOf(DType type) {
  return type == DType::F8E4M3FNUZ || type == DType::F8E5M2FNUZ ? 0x80 : 0xFF;
}

/// Beyond this, a tensor that is mostly gaps (explicit strides) keeps zero
/// pages in its gaps instead of poison, so that it costs no memory.
constexpr uint64_t kSparseBytes = uint64_t(1) << 30;

/// More elements before a tensor show nothing that fewer do not.
constexpr int64_t kMostOffset = 1 << 20;

int64_t elementCount(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(count, extent, &count) ||
        count > (int64_t(1) << 50))
      throw Error("a tensor of shape " + shapeString(shape) +
                  " exceeds 64-bit addressing");
  return count;
}

/// Bytes of memory that can still be used; "no limit" where the system does not
/// tell.
uint64_t availableBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  uint64_t kilobytes = 0;
  while (file >> key >> kilobytes) {
    if (key == "MemAvailable:")
      return kilobytes << 10;
    std::getline(file, unit);
  }
  return std::numeric_limits<uint64_t>::max();
}

/// Is the tensor mostly gaps that are better left untouched?
bool isSparse(uint64_t span, uint64_t used) {
  return span > kSparseBytes && span / 4 >= used;
}

bool isData(const TensorSpec &spec) {
  return spec.dtype == DType::F16 || spec.dtype == DType::BF16;
}

/// May memory options pad its rows, and put heads outside of its sequences?
bool hasHeads(const TensorSpec &spec) {
  return isData(spec) && spec.shape.size() >= 3;
}

/// Strides in elements as the memory options ask for them.
std::vector<int64_t> chooseStrides(const TensorSpec &spec,
                                   const std::vector<int64_t> &shape,
                                   const MemoryOptions &memory) {
  size_t rank = shape.size();
  if (auto it = memory.strides.find(spec.name); it != memory.strides.end()) {
    const std::vector<int64_t> &strides = it->second;
    if (strides.size() != rank)
      throw Error("--strides " + spec.name + " has " +
                  std::to_string(strides.size()) + " numbers; the tensor has " +
                  std::to_string(rank) + " dimensions");
    // Inside out, every dimension must step over all that lies within it.
    std::vector<size_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::pair(strides[a], a) < std::pair(strides[b], b);
    });
    int64_t within = 1;
    for (size_t d : order) {
      if (shape[d] < 2)
        continue;
      if (strides[d] < within)
        throw Error("--strides " + spec.name + ": stride " +
                    std::to_string(strides[d]) + " of dimension " +
                    std::to_string(d) + " makes elements overlap; expected " +
                    std::to_string(within) + " or more");
      if (__builtin_mul_overflow(strides[d], shape[d] - 1, &within) ||
          within >= (int64_t(1) << 44))
        throw Error("--strides " + spec.name + ": the tensor spans too much");
      within += strides[d];
    }
    return strides;
  }
  if (!hasHeads(spec) || (!memory.rowPad && !memory.headsMajor))
    return contiguousStrides(shape);
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (memory.headsMajor)
    std::swap(order[rank - 3], order[rank - 2]);
  std::vector<int64_t> strides(rank, 1);
  int64_t step = shape[rank - 1] + memory.rowPad;
  for (size_t i = rank - 1; i-- > 0;) {
    strides[order[i]] = step;
    if (__builtin_mul_overflow(step, std::max<int64_t>(shape[order[i]], 1),
                               &step))
      throw Error("a tensor of shape " + shapeString(shape) +
                  " with --row-pad exceeds 64-bit addressing");
  }
  return strides;
}

/// Calls `body(offset in elements, packed index)` for each innermost row.
template <typename F> void forEachRow(const HostTensor &t, F body) {
  int64_t rows = t.shape.empty() ? 0 : 1;
  for (size_t d = 0; d + 1 < t.shape.size(); ++d)
    rows *= t.shape[d];
  for (int64_t r = 0; r < rows; ++r) {
    int64_t rest = r, offset = 0;
    for (size_t d = t.shape.size() - 1; d-- > 0;) {
      offset += rest % t.shape[d] * t.strides[d];
      rest /= t.shape[d];
    }
    body(offset, r);
  }
}

} // namespace

Init kvbuf::rt::parseInit(const std::string &name) {
  if (name == "normal")
    return Init::Normal;
  if (name == "outliers")
    return Init::Outliers;
  if (name == "octaves")
    return Init::Octaves;
  if (name == "ramp")
    return Init::Ramp;
  throw Error("unknown distribution '" + name +
              "'; expected normal, outliers, octaves or ramp");
}

Problem::Problem(const Manifest &manifest, const WorkloadOptions &options)
    : spec(manifest), options(options) {
  for (const auto &[name, path] : this->options.inputs) {
    const TensorSpec *tensor = spec.findTensor(name);
    if (!tensor || !tensor->input) {
      std::vector<std::string> names;
      for (const TensorSpec &t : spec.tensors)
        if (t.input)
          names.push_back(t.name);
      throw Error("--input " + name +
                  ": the kernel has no such input; it has " +
                  quotedList(names, "and"));
    }
    NpyArray array = readNpy(path, tensor->dtype);
    bool fits = array.shape.size() == tensor->shape.size();
    for (size_t d = 0; fits && d < array.shape.size(); ++d)
      fits = unify(tensor->shape[d], array.shape[d], values);
    if (!fits) {
      std::string known;
      for (const auto &[size, value] : values)
        known += (known.empty() ? ", where " : ", ") + size + " = " +
                 std::to_string(value);
      throw Error("'" + path + "' has shape " + shapeString(array.shape) +
                  "; expected " + shapeString(tensor->shape) + " for '" + name +
                  "'" + known);
    }
    fileData[name] = std::move(array.data);
  }
}

void Problem::takeSizes(const std::set<std::string> &known) {
  for (const auto &[name, value] : options.sizes) {
    if (!known.count(name))
      throw Error("--size " + name + ": no such size; this kernel has " +
                  quotedList(known, "and"));
    if (value < 0 || value > std::numeric_limits<int32_t>::max())
      throw Error("--size " + name + "=" + std::to_string(value) +
                  ": expected 0 to 2147483647");
    values[name] = value;
  }
}

void Problem::refuse(bool given, const char *option, const std::string &why) {
  if (given)
    throw Error(std::string(option) + ": " + why);
}

void Problem::refuseSequences(const char *what) const {
  std::string why = std::string(what) + " has ";
  refuse(options.lengthsQ.has_value(), "--lengths-q", why + "no sequences");
  refuse(options.lengthsK.has_value(), "--lengths-k", why + "no sequences");
  refuse(options.cacheLengths.has_value(), "--cache-lengths",
         why + "no sequences");
  refuse(options.sharePages, "--share-pages", why + "no cache with pages");
  refuse(options.separateTables, "--separate-tables",
         why + "no cache with a page table");
  refuse(options.init != Init::Normal, "--init",
         why + "normal inputs; other distributions are of attention");
}

bool Problem::fromFile(const std::string &name) const {
  return fileData.count(name) > 0;
}

bool Problem::isGiven(const std::string &role) const {
  const ProblemSpec *problem = spec.problem();
  return fromFile(problem ? problem->tensor(role) : role);
}

//===----------------------------------------------------------------------===//
// GuardedMemory, HostTensor
//===----------------------------------------------------------------------===//

GuardedMemory::GuardedMemory(uint64_t bytes, uint64_t shift)
    : bytes(bytes), start(kZone + shift) {
  void *p = mmap(nullptr, regionSize(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    throw Error("cannot allocate " + std::to_string(regionSize()) +
                " bytes of host memory");
  base = static_cast<uint8_t *>(p);
  restoreZones();
}

void GuardedMemory::restoreZones() {
  std::memset(base, kZoneByte, start);
  std::memset(base + start + bytes, kZoneByte, kZone);
}

GuardedMemory::~GuardedMemory() { munmap(base, regionSize()); }

bool GuardedMemory::zonesIntact() const {
  auto intact = [](const uint8_t *p, uint64_t size) {
    return std::all_of(p, p + size,
                       [](uint8_t byte) { return byte == kZoneByte; });
  };
  return intact(base, start) && intact(base + start + bytes, kZone);
}

int64_t HostTensor::integer(int64_t i) const {
  return dtype == DType::I64 ? as<int64_t>()[i] : as<int32_t>()[i];
}

void HostTensor::setInteger(int64_t i, int64_t value) {
  if (dtype == DType::I64) {
    as<int64_t>()[i] = value;
    return;
  }
  if (value != static_cast<int32_t>(value))
    throw Error("tensor '" + name + "': " + std::to_string(value) +
                " exceeds 32 bits");
  as<int32_t>()[i] = static_cast<int32_t>(value);
}

std::string HostTensor::packed() const {
  size_t rowBytes = static_cast<size_t>(shape.back()) * sizeOf(dtype);
  std::string out(static_cast<size_t>(elementCount(shape)) * sizeOf(dtype), 0);
  forEachRow(*this, [&](int64_t offset, int64_t row) {
    std::memcpy(out.data() + static_cast<size_t>(row) * rowBytes,
                memory->data() + static_cast<size_t>(offset) * sizeOf(dtype),
                rowBytes);
  });
  return out;
}

//===----------------------------------------------------------------------===//
// Problem
//===----------------------------------------------------------------------===//

void Problem::allocateAll(
    const std::function<std::vector<int64_t>(const std::string &)> &shapeOf) {
  for (const auto &[name, strides] : options.memory.strides)
    if (!spec.findTensor(name))
      throw Error("--strides " + name + ": the kernel has no such tensor");
  for (const auto &[name, elements] : options.memory.offsets) {
    if (!spec.findTensor(name))
      throw Error("--offset " + name + ": the kernel has no such tensor");
    if (elements < 0 || elements > kMostOffset)
      throw Error("--offset " + name + "=" + std::to_string(elements) +
                  ": expected 0 to " + std::to_string(kMostOffset));
  }
  if (options.memory.rowPad || options.memory.headsMajor)
    refuse(std::none_of(spec.tensors.begin(), spec.tensors.end(), hasHeads),
           options.memory.rowPad ? "--row-pad" : "--layout",
           "no tensor of the kernel has rows of heads of 16 bits; --strides "
           "takes those of any");
  auto problemShape = [&](const TensorSpec &t) {
    const ProblemSpec *problem = spec.problem();
    return shapeOf(problem ? problem->roleOf(t.name) : t.name);
  };
  auto isPlain = [](const SizeExpr &e) {
    return e.kind == SizeExpr::Kind::Name || e.kind == SizeExpr::Kind::Constant;
  };
  // A size that the problem calls otherwise is an extent, or a part of a sum.
  // What contradicts is found below.
  for (const TensorSpec &t : spec.tensors)
    if (std::vector<int64_t> shape = problemShape(t);
        shape.size() == t.shape.size())
      for (size_t d = 0; d < shape.size(); ++d)
        if (const SizeExpr &e = t.shape[d];
            isPlain(e) ||
            (e.isOperation(SizeOperator::Sum) &&
             std::all_of(e.operands.begin(), e.operands.end(), isPlain)))
          (void)unify(e, shape[d], values);
  uint64_t wanted = 0, available = availableBytes();
  for (const TensorSpec &t : spec.tensors) {
    HostTensor tensor;
    tensor.name = t.name;
    tensor.dtype = t.dtype;
    tensor.output = t.output;
    tensor.input = t.input;
    tensor.shape = evaluateShape(t, values);
    // Rows are found by the problem's sizes: those of another shape would lie
    // outside of the tensor.
    if (std::vector<int64_t> shape = problemShape(t);
        !shape.empty() && shape != tensor.shape)
      throw Error("tensor '" + t.name + "' has shape " +
                  shapeString(tensor.shape) + "; the problem needs " +
                  shapeString(shape));
    uint64_t used =
        static_cast<uint64_t>(elementCount(tensor.shape)) * sizeOf(t.dtype);
    tensor.strides = chooseStrides(t, tensor.shape, options.memory);
    uint64_t span = spanBytes(t.dtype, tensor.shape, tensor.strides);
    // Pages are handed out when they are touched, and a process that touches
    // too many is killed: refuse before.
    wanted += isSparse(span, used) ? used : span;
    if (wanted > available)
      throw Error("the tensors need more than the " +
                  std::to_string(available >> 20) +
                  " MiB of memory that this machine has left; give smaller "
                  "sizes");
    uint64_t shift = 0;
    if (auto it = options.memory.offsets.find(t.name);
        it != options.memory.offsets.end())
      shift = static_cast<uint64_t>(it->second) * sizeOf(t.dtype);
    tensor.memory = std::make_shared<GuardedMemory>(span, shift);
    if (!isSparse(span, used))
      parallelFor(static_cast<int64_t>(span), int64_t(1) << 26,
                  [&](int64_t begin, int64_t end) {
                    std::memset(tensor.memory->data() + begin,
                                poisonOf(t.dtype),
                                static_cast<size_t>(end - begin));
                  });
    if (auto it = fileData.find(t.name); it != fileData.end()) {
      size_t rowBytes =
          static_cast<size_t>(tensor.shape.back()) * sizeOf(t.dtype);
      forEachRow(tensor, [&](int64_t offset, int64_t row) {
        std::memcpy(tensor.memory->data() +
                        static_cast<size_t>(offset) * sizeOf(t.dtype),
                    it->second.data() + static_cast<size_t>(row) * rowBytes,
                    rowBytes);
      });
    }
    all.push_back(std::move(tensor));
  }
}

void Problem::poisonOutputs() {
  for (HostTensor &tensor : all) {
    if (!tensor.output)
      continue;
    tensor.memory->restoreZones();
    if (tensor.input) {
      std::memcpy(tensor.memory->data(), tensor.initial.data(),
                  tensor.initial.size());
      continue;
    }
    size_t elementBytes = sizeOf(tensor.dtype);
    uint64_t used =
        static_cast<uint64_t>(elementCount(tensor.shape)) * elementBytes;
    if (!isSparse(tensor.memory->size(), used)) {
      std::memset(tensor.memory->data(), poisonOf(tensor.dtype),
                  tensor.memory->size());
      continue;
    }
    size_t rowBytes = static_cast<size_t>(tensor.shape.back()) * elementBytes;
    forEachRow(tensor, [&](int64_t offset, int64_t) {
      std::memset(tensor.memory->data() +
                      static_cast<size_t>(offset) * elementBytes,
                  poisonOf(tensor.dtype), rowBytes);
    });
  }
}

HostTensor *Problem::find(const std::string &name) {
  for (HostTensor &t : all)
    if (t.name == name)
      return &t;
  return nullptr;
}

const HostTensor *Problem::find(const std::string &name) const {
  return const_cast<Problem *>(this)->find(name);
}

HostTensor *Problem::part(const std::string &role) {
  const ProblemSpec *problem = spec.problem();
  return find(problem ? problem->tensor(role) : role);
}

const HostTensor *Problem::part(const std::string &role) const {
  return const_cast<Problem *>(this)->part(role);
}

void Problem::keepInitial() {
  for (HostTensor &tensor : all)
    // Huge ones, which are mostly gaps, would take memory twice.
    if (tensor.input && tensor.output && tensor.memory->size() <= kSparseBytes)
      tensor.initial.assign(
          reinterpret_cast<const char *>(tensor.memory->data()),
          tensor.memory->size());
}

void Problem::checkZones(CheckResult &result) const {
  for (const HostTensor &t : all)
    if (!t.memory->zonesIntact())
      result.failures.push_back("tensor '" + t.name +
                                "': memory outside of it was written");
}

std::unique_ptr<Problem>
kvbuf::rt::makeProblem(const Manifest &manifest,
                       const WorkloadOptions &options) {
  if (const ProblemSpec *problem = manifest.problem())
    return problem->fill(manifest, options);
  throw Error("the artifact '" + manifest.name +
              "' is no attention kernel; it can only be launched through "
              "the C or Python API");
}
