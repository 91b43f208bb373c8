//===- Manifest.h - What an artifact's kernels expect -----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The manifest says how to launch the kernels of an artifact: grids and tensor
// shapes as expressions over named sizes, arguments in order, and the problem
// they solve.
//
// Sizes have the names that shapes give them. In the kernels that the compiler
// makes of attention they are `batch`; `seq_q` (dense query: the length;
// ragged: the longest); `seq_k` (dense cache); `total_q`, `total_k` (ragged:
// rows in all); `num_blocks` (slots of a continuous cache, pages of a paged
// one); `max_seq` (rows of a slot); `pages_per_seq` (row length of the page
// table). `sms` is reserved for the device's number of multiprocessors (4 on
// the emulator), in grids and size arguments: a persistent grid is
// {"min": [{"product": ["sms", 1]}, {"product": [...tiles...]}]}.
//
// A size that no shape tells has an expression in a kernel's "defaults",
// {"longest": "rows"}, for callers that do not say it. `seq_q` of a ragged
// attention problem has the query's rows: it should decide over nothing but the
// order of tiles. `shortest_q` (kShortestQuery) is 0 where callers say nothing.
//
// A tensor with `"cache": true` holds a cache's rows (TensorSpec::cache).
//
// Tensors have the names of the kernel's arguments. Where those are not the
// parts that they play in the problem ("q", "k", ...; see ProblemSpec), the
// problem's "tensors" say which is which: {"q": "rows", "k": "left"}.
//
// The producer is lib/Compiler/Manifest.cpp, which writes the fields of the
// kernel's `#kvbuffer.launch` as they stand, and of its arguments
//   {"kind": "pointer", "tensor": "q"}            address, 64 bits;
//                                                 "alignment": bytes that it
//                                                 and the strides are multiples
//                                                 of, in place of the kernel's
//   {"kind": "stride", "tensor": "q", "dim": 1}   elements, 64 bits; "limit":
//                                                 the largest that it takes
//   {"kind": "size", "name": "seq_q"}             32 bits; in place of "name",
//                                                 "value": an expression
//   {"kind": "launch_counter"}                    address of 32 bits that are 0
//                                                 when the launch starts and
//                                                 its own; 64 bits
//   {"kind": "tensor_map", "tensor": "k", "dims": [3, 1, 2, 0],
//    "box": [64, 128, 1, 1], "swizzle": 128}      128 bytes by value
// (see KernelArg and TensorMapRecipe). `alignment = 16` says what addresses and
// strides of 16-bit tensors have to be multiples of, in bytes (2 to 16; 16 if
// it is absent), and `requires = "tensor_maps"` that the kernel has such
// arguments. `launch_if` is a size expression: the kernel suits launches that
// make it more than 0. `instead = "other_entry"` names the kernel that is
// launched in this one's place for other launches, and where a tensor is not
// aligned so, has a stride beyond its limit or cannot be described by its map;
// else that kernel is not
// launched. `beside = ["other_entry"]` names those that are launched ahead of
// this one, for parts of the same problem; where one of them cannot take a
// tensor, none runs. `ahead = ["other_entry"]` names those that every launch of
// this one runs before it, and whose results it reads. Where a kernel's
// `copies_if`, a size expression, is more than 0, tensors that it cannot take
// are copied to scratch memory and, written, from there, by the kernels of the
// manifest's "copies": each has besides the fields of others `copies = "q"`,
// and its arguments name the tensor and the scratch memory, contiguous and of
// the tensor's shape. A manifest with `beside` or `ahead` has
// `"kvbuf": 2` for its version, others have 1, and those of several functions
// (Functions.h) 3. `dependent_launch = true` says that the kernel waits by
// itself for the launches before it, and so may begin before they have ended;
// `dependent_beside = true` that it may begin, where it is another kernel's
// `beside`, before that one has ended, and ends after it.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_MANIFEST_H
#define KVBUFFER_RUNTIME_MANIFEST_H

#include "kvbuffer/Runtime/DType.h"
#include "kvbuffer/Sizes/SizeExpr.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kvbuf::rt {

/// Values of size names.
using Sizes = std::map<std::string, int64_t>;

/// The size name that stands for the device's number of multiprocessors.
inline constexpr const char *kMultiprocessors = "sms";

/// What callers say of a ragged batch whose shortest query, of those that are
/// not empty, has so many rows: kernels for shorter ones have nothing to do. 0:
/// nothing is known.
inline constexpr const char *kShortestQuery = "shortest_q";

/// The size by which kernels are chosen for the rows of a sequence: those of
/// the longest query.
inline constexpr const char *kLongestQuery = "seq_q";

using kvbuf::SizeExpr;
using kvbuf::SizeOperator;
using kvbuf::sizeOperatorOf;

/// The value of an expression; throws Error naming a missing size, on overflow,
/// and on division by zero.
int64_t evaluate(const SizeExpr &expression, const Sizes &sizes);

/// If the expression is a name, or a sum of one name and constants: matches it
/// to `value`, binding the name if `sizes` lacks it. Returns false if the value
/// contradicts what is bound.
bool unify(const SizeExpr &expression, int64_t value, Sizes &sizes);

/// How to describe a tensor to the copy engine: a box of it moves at a time.
/// The tensor's address, sizes and strides at run time fill in the rest. The
/// same map serves loads, of which what lies outside of the tensor reads as
/// zero, and stores, of which it is dropped. Limits: CUDA driver API, "Tensor
/// Map Object Management", cuTensorMapEncodeTiled.
struct TensorMapRecipe {
  /// The most dimensions, elements of a box along one of them, and the
  /// alignment in bytes of addresses, strides and rows of a box.
  static constexpr size_t kRank = 5, kBox = 256, kAlignment = 16;

  /// Dimensions of the tensor from the innermost outwards, each once.
  std::vector<unsigned> dims;
  /// Elements of a box, in the order of `dims`.
  std::vector<unsigned> box;
  /// Columns of the innermost dimension that the map covers: those outside of
  /// it count as outside of the tensor, and a box's column 0 is the first.
  /// `columns` 0: all of them. In the manifest: columns = [first, count].
  unsigned firstColumn = 0, columns = 0;
  /// Bytes that the swizzle of shared memory spans: 0 (none), 32, 64 or 128.
  unsigned swizzle = 0;
  /// Bytes that L2 fetches at a time: 0 (as the load asks), 64, 128 or 256.
  unsigned l2Promotion = 128;

  /// A map of rows that follow each other through all blocks of a cache (in the
  /// manifest "flat"). The first of `dims` is the tensor's last dimension, the
  /// last of them its rows; each of the others may be there or not.
  struct Flat {
    /// The dimension whose indices are so many rows apart as its stride says
    /// (blocks); none where there is no such dimension.
    std::optional<unsigned> fold;
    /// The type of the map's elements, whatever the tensor's are.
    DType view;
    /// Bytes from the beginning of a row to the map's column 0; columns that
    /// the map covers, 0: those that a row of the tensor has; elements of
    /// `view` from row to row, 0: any.
    unsigned firstByte = 0, columns = 0, stride = 0;
    /// Not 0: rows of cut tiles. A dimension of so many rows stands after the
    /// columns, in `box` too; the map's row r is `cutRows` rows before the
    /// tensor's, so that index `cutRows` - n of the one and r + n of the other
    /// begin the n rows from r on, and what comes after them is outside.
    unsigned cutRows = 0;
  };
  std::optional<Flat> flat;
};

/// One argument of a kernel.
struct KernelArg {
  enum class Kind {
    Pointer,   ///< address of `tensor`, 64 bits
    Stride,    ///< stride of dimension `dim` of `tensor`, in elements, 64 bits
    Size,      ///< size `name`, 32 bits
    TensorMap, ///< 128 bytes by value, made from `tensor` as `map` says
    Counter    ///< address, 64 bits, of a 32-bit word that is zero before the
               ///< first launch and that every launch leaves zero
  };
  Kind kind;
  std::string tensor;
  unsigned dim = 0;
  /// The largest stride that the kernel takes, elements; 0 for any.
  int64_t limit = 0;
  /// Bytes that a pointer's address and its tensor's strides are multiples of,
  /// in place of what the kernel asks of all; 0: that.
  unsigned alignment = 0;
  /// The size that is passed, and its name, if it has one.
  SizeExpr value;
  std::string name;
  TensorMapRecipe map;
  /// Number of the counter within the artifact.
  unsigned counter = 0;
};

/// One kernel launch.
struct KernelSpec {
  std::string entry;
  std::array<unsigned, 3> block = {1, 1, 1};
  std::array<SizeExpr, 3> grid;
  unsigned dynamicSharedBytes = 0;
  /// Registers per thread, 0 when the compiler does not know.
  unsigned registers = 0;
  /// The kernel may begin before the stream's earlier launches have ended: it
  /// waits for them itself.
  bool dependent = false;
  /// Launched beside another kernel, it may begin before that one has ended,
  /// and ends after it.
  bool dependentBeside = false;
  std::vector<KernelArg> args;
  /// Bytes that addresses and strides of 16-bit tensors are multiples of.
  unsigned alignment = 16;
  /// The kernel suits launches for which this is more than 0; any, if nothing.
  std::optional<SizeExpr> launchIf;
  /// The kernel that is launched instead for other launches, or where a tensor
  /// is not aligned so or cannot be described by its map; empty: that is an
  /// error.
  std::string instead;
  /// The kernels that are launched after this one wherever this one is; if one
  /// of them cannot take a tensor, `instead` runs in the place of all.
  std::vector<std::string> beside;
  /// The kernels that are launched ahead of this one wherever this one is, and
  /// have ended when it begins.
  std::vector<std::string> ahead;

  /// Where this is more than 0, tensors that the kernel cannot take are copied
  /// by those kernels that copy them, if there are any.
  std::optional<SizeExpr> copiesIf;
  /// The tensor that the kernel copies for others, and the scratch memory where
  /// they find it, or leave it if they write it; "": it copies none.
  std::string copies, copy;

  /// Whether an argument is a tensor map.
  bool takesTensorMaps() const;
};

/// One tensor that the user provides. The innermost dimension is contiguous;
/// the other strides are free.
struct TensorSpec {
  std::string name;
  DType dtype = DType::F32;
  std::vector<SizeExpr> shape;
  /// Written by the kernels; read by them.
  bool output = false, input = true;
  /// Holds a cache's rows, any of which any block may read (in the manifest
  /// "cache": true). What belongs to the cache has its name and one more:
  /// "k.table", "k.lengths", "k.offsets", "k.scales".
  bool cache = false;
  /// Of a cache whose packed rows have tails and are written: bytes of a row
  /// without, and of a block of rows, behind which their tails lie. Rows reach
  /// over others to their own, so that elements of several have one address. 0:
  /// it has none.
  int64_t tailRow = 0, tailBlock = 0;
};

/// Memory that the runtime provides for a launch: a tensor of this shape,
/// contiguous. Of a workspace nothing is known when the launch starts; counters
/// are zero, and the launch leaves them so.
struct ScratchSpec : TensorSpec {
  bool counter = false;
};

/// Where queries or keys live.
enum class Layout { Dense, Ragged, Continuous, Paged };

/// "dense", "ragged", "continuous" or "paged".
const char *nameOf(Layout layout);

/// Which elements of a cache's rows an operand is: `head_size` of `cacheDepth`,
/// from `headDimOffset` on.
struct CacheRow {
  int64_t cacheDepth = 64, headDimOffset = 0;
};

/// How a quantized cache that attention reads is stored.
struct QuantizedSpec {
  /// Of its elements, 8-bit floats.
  DType dtype = DType::F8E4M3FN;
  /// Elements that have a scale together: 0 those of a tensor, -1 those of a
  /// head; absent without scales.
  std::optional<int64_t> granularity;
};

/// Neighbouring elements of one type in a row that is packed into bytes; places
/// are bytes of the row and, behind them, of its tail.
struct PackedPart {
  int64_t count = 0, at = 0;
  DType element = DType::F8E4M3FN;
  /// The type of scales: f32, bf16, f16, or absent for powers of two (E8M0);
  /// how many elements each stands for, 0 without scales; where they are.
  std::optional<DType> scale;
  int64_t granularity = 0, scaleAt = 0;
};

/// How a head is packed into `bytes`; `tail` bytes more lie behind the `rows`
/// rows of each `stride` bytes.
struct PackedRow {
  int64_t bytes = 0, tail = 0, rows = 0, stride = 0;
  std::vector<PackedPart> parts;
};

struct Manifest;
struct TensorArg;
struct WorkloadOptions;
class Problem;

/// What an artifact computes, and what problems of every kind have: tensors
/// that play a part in them. The names of parts are the problem's, those of
/// tensors the kernel's. What a kind has to say, only its own files know.
struct ProblemSpec {
  /// The names of tensors by their parts, where they differ.
  std::map<std::string, std::string> tensors;

  virtual ~ProblemSpec() = default;
  /// What it is, for people, in a line ("product of matrices").
  virtual std::string describe() const = 0;
  /// The same for tools: a JSON object.
  virtual std::string facts() const = 0;
  /// The problem at concrete sizes, see kvbuf::rt::makeProblem.
  virtual std::unique_ptr<Problem>
  fill(const Manifest &manifest, const WorkloadOptions &options) const = 0;
  /// Whether the harness knows the results. Where it does not, what a launch
  /// asks of tensors is known all the same.
  virtual bool isKnown() const { return true; }
  /// Whether only entries of tables say what is written where: tensors may lie
  /// in one another then.
  virtual bool writesByTables() const { return false; }
  /// The name of the tensor with this part: "q", or, of a cache's own tensors,
  /// "k.table", which have the cache's name and theirs.
  std::string tensor(const std::string &role) const;
  /// The part of the tensor of this name; its name if the problem gives it
  /// none, and "" if that is the name of a part which another tensor has.
  std::string roleOf(const std::string &name) const;
  /// Whether a block that writes one output may have read all that it is made
  /// of from the tensor of this part, and no other block reads that: such an
  /// output may lie exactly where the tensor does. All others share no memory
  /// with an output.
  virtual bool isReadInPlace(const std::string &role) const { return true; }
  /// Throws Error for strides that a tensor of the problem must not have,
  /// whatever kernels take.
  virtual void checkStrides(const TensorArg &tensor) const {}
  /// See kvbuf::rt::checkLengths.
  virtual void checkLengths(const Manifest &manifest,
                            const std::vector<TensorArg> &tensors,
                            const Sizes &sizes) const {}
};

/// The attention problem that an artifact solves. Its parts: q, k, v, o,
/// q_offsets, lse and sink.
struct AttentionProblem : ProblemSpec {
  /// Of the queries' elements, and of the output's.
  DType dtype = DType::BF16, outDtype = DType::BF16;
  /// Heads of the queries, heads of the cache, elements of a head of queries
  /// and keys, and of one of values and the output.
  int64_t heads = 1, kvHeads = 1, headSize = 64, valueHeadSize = 64;
  Layout query = Layout::Dense, cache = Layout::Dense;
  /// Tokens of a page; 0 where the cache has none.
  int64_t pageSize = 0;
  /// Lengths of a continuous or paged cache count the new tokens.
  bool lengthsCountNew = false;
  CacheRow k, v;
  /// The values are the first columns of the rows that keys are: there is no
  /// cache "v".
  bool latent = false;
  /// Absent where the elements are of `dtype`, which has 16 bits then: 8-bit
  /// elements are always described here.
  std::optional<QuantizedSpec> kQuantized, vQuantized;
  /// How rows of the cache are packed, which is of bytes then.
  std::optional<PackedRow> packed;
  /// A type of 16 bits that has all of the queries' elements, and all 8-bit
  /// floats: `dtype` where it has 16 itself.
  DType wideDtype() const { return isFloat8(dtype) ? DType::BF16 : dtype; }
  /// The caches that there are, by their roles.
  std::vector<std::string> caches() const {
    return latent ? std::vector<std::string>{"k"}
                  : std::vector<std::string>{"k", "v"};
  }
  bool causal = false;
  /// Keys left and right of the diagonal that a query sees; -1: no limit.
  int64_t windowLeft = -1, windowRight = -1;
  /// s = softcap * tanh(s / softcap) when positive.
  double softcap = 0;
  /// Whether each head has a sink, and whether the log-sum-exp is an output.
  bool sink = false, lse = false;
  /// Scores are scale * q . k.
  double scale = 1;
  /// The bits of a row do not depend on other rows.
  bool batchInvariant = false;
  /// The kernel stores new tokens into the caches first, "k_new" and "v_new",
  /// one for each query row.
  bool appends = false;
  /// Scores are functions of the program's own (in the manifest "op" is
  /// "attention_of_own_scores"), which nothing else knows.
  bool ownScores = false;

  std::string describe() const override;
  std::string facts() const override;
  std::unique_ptr<Problem> fill(const Manifest &manifest,
                                const WorkloadOptions &options) const override;
  bool isKnown() const override { return !ownScores; }
  bool isReadInPlace(const std::string &role) const override;
  void checkStrides(const TensorArg &tensor) const override;
  void checkLengths(const Manifest &manifest,
                    const std::vector<TensorArg> &tensors,
                    const Sizes &sizes) const override;
};

/// The append to caches that an artifact does (`kvbuffer.cache_append`). Its
/// parts: k, v, k_new, v_new, offsets, at, cos, sin and rope_at.
struct AppendSpec : ProblemSpec {
  enum class Rope { None, Half, Interleaved };
  /// How the new tokens lie, and the caches.
  Layout tokens = Layout::Dense, cache = Layout::Dense;
  /// Tokens of a page; 0 where the cache has none. Heads, and their elements,
  /// of K and of V.
  int64_t pageSize = 0, heads = 1, headSize = 64, valueHeadSize = 64;
  /// Whether there are values besides keys, positions besides lengths, and rows
  /// of angles besides positions.
  bool values = true, at = false, ropeAt = false;
  Rope rope = Rope::None;
  CacheRow k, v;
  /// Elements that have a scale together: 0 those of a tensor, -1 those of a
  /// head; absent without scales.
  std::optional<int64_t> kGranularity, vGranularity;

  std::string describe() const override;
  std::string facts() const override;
  std::unique_ptr<Problem> fill(const Manifest &manifest,
                                const WorkloadOptions &options) const override;
  bool writesByTables() const override { return true; }
  void checkLengths(const Manifest &manifest,
                    const std::vector<TensorArg> &tensors,
                    const Sizes &sizes) const override;
};

/// What the code was compiled for.
struct TargetSpec {
  /// "nvidia" and "sm_90a", "amd" and "gfx942".
  std::string vendor, chip;
  /// Lanes of a wave (warp).
  unsigned wave = 32;
  /// What the makers of devices with this chip state: the piece of the driver's
  /// name that tells the device, operations of the matrix unit a second (on
  /// operands of the problem's type), bytes of memory a second.
  struct Peak {
    std::string device;
    double matrixFlops = 0, memoryBytes = 0;
  };
  std::vector<Peak> peaks;
};

/// A parsed manifest.
struct Manifest {
  std::string name, producer;
  TargetSpec target;
  /// The problem that is stated, of a kind that there is (Problems.def); null
  /// where none is: such kernels launch, but nothing can check them.
  std::shared_ptr<const ProblemSpec> stated;
  /// Tensors that share no memory: blocks write the first while others still
  /// read the second. `inPlace`: but for those that lie in the same place.
  struct Apart {
    std::string written, read;
    bool inPlace = false;
  };
  std::vector<Apart> apart;
  /// Two tensors of caches in which a launch stores different tokens, each at
  /// the places that a table of its own names: where the tables are one, they
  /// share no memory. (`values` may be columns of `keys` where its new tokens
  /// are columns of the others, too, as rows of latent attention are. `made`:
  /// what is stored is computed of the tokens in another way for each.)
  struct StoredBoth {
    std::string values, keys, newValues, newKeys, valuesTable, keysTable;
    bool made = false;
  };
  std::vector<StoredBoth> storedBoth;
  std::vector<KernelSpec> kernels;
  std::vector<TensorSpec> tensors;
  /// What the kernels use besides; in the manifest "scratch", with the access
  /// "workspace" or "counter".
  std::vector<ScratchSpec> scratch;
  /// Counters that the kernels take in all.
  unsigned counters = 0;
  /// What sizes are that no shape tells, where the caller does not say.
  std::map<std::string, SizeExpr> sizeDefaults;

  /// The problem whose results are known, or null.
  const ProblemSpec *problem() const;
  /// The problem that a launch's tensors are checked by, or null.
  const ProblemSpec *launchRules() const { return stated.get(); }

  /// The tensor of this name, or null.
  const TensorSpec *findTensor(const std::string &name) const;
  /// The scratch memory of this name, or null.
  const ScratchSpec *findScratch(const std::string &name) const;
  /// The kernel of this name, or null.
  const KernelSpec *findKernel(const std::string &entry) const;
  /// The kernel that copies this tensor for others, or null.
  const KernelSpec *findCopier(const std::string &tensor) const;
  /// Is the kernel launched in another's place alone, or for another one?
  bool isAlternative(const KernelSpec &kernel) const;
  /// Every size name that a grid, an argument or a shape mentions, but for
  /// `sms`, which the device tells.
  std::set<std::string> sizeNames() const;
};

/// Parses and validates the manifest of one function; throws Error that names
/// the offending field.
Manifest parseManifest(const std::string &json);

/// The value of `name`; throws Error that lists the known sizes.
int64_t sizeValue(const Sizes &sizes, const std::string &name);

/// The shape of a tensor at these sizes; throws Error as evaluate does, and
/// for negative extents.
std::vector<int64_t> evaluateShape(const TensorSpec &tensor,
                                   const Sizes &sizes);

/// "[2, 300, 16, 128]".
std::string shapeString(const std::vector<int64_t> &shape);
/// "[batch, seq_q, 16, 128]".
std::string shapeString(const std::vector<SizeExpr> &shape);

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_MANIFEST_H
