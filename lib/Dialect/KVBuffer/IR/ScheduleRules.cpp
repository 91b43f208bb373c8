//===- ScheduleRules.cpp - Which lists of parameters are a schedule -------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A parameter that no pass reads changes nothing, or half of what it should. So
// what a list names has to be a part of the schedule that it stands for
// (Schedule.cpp). Here is the message where it is not, the sizes that there
// are, and which parameters exclude each other. What depends on the chip is in
// ScheduleLimits.cpp, what on the problem in ProblemLimits.cpp.
//
//===----------------------------------------------------------------------===//

#include "VerifyTile.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Schedule.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace kvbuf;

static std::string textOf(int64_t value) { return std::to_string(value); }
static std::string textOf(bool value) { return value ? "true" : "false"; }
static std::string textOf(const MatrixShape &shape) {
  return std::to_string(shape[0]) + "x" + std::to_string(shape[1]) + "x" +
         std::to_string(shape[2]);
}
static std::string textOf(const ProductInstruction &instruction) {
  return matrixUnitName(instruction.unit).str() + " " +
         textOf(instruction.shape);
}
template <typename E>
  requires std::is_enum_v<E>
static std::string textOf(E value) {
  return stringifyEnum(value).str();
}

/// A parameter that is a size; 0 for flags, shapes and enumerations.
template <typename T> static int64_t sizeOf(const T &value) {
  if constexpr (std::is_same_v<T, int64_t>)
    return value;
  return 0;
}

/// What a schedule lacks to be in a scope, and what would be; empty if it is.
static llvm::StringRef whatLacks(const Schedule &schedule,
                                 ParameterScope scope) {
  switch (scope) {
  case ParameterScope::Every:
    return "";
  case ParameterScope::AlikeWarps:
    return schedule.movingTeam() ? "does not go with warps that have roles; "
                                   "expected producers = 0"
                                 : "";
  case ParameterScope::MovingTeam:
    return schedule.movingTeam()
               ? ""
               : "needs warps with roles; expected producers > 0";
  case ParameterScope::Clusters:
    if (!schedule.movingTeam())
      return whatLacks(schedule, ParameterScope::MovingTeam);
    return schedule.severalTiles() || schedule.splitKeys()
               ? ""
               : "needs blocks that take several tiles; expected tiles = "
                 "static or dynamic";
  }
  llvm_unreachable("covered switch");
}

/// What names no instructions of the products, or names one twice.
static std::optional<std::string>
findWrongInstruction(const ScheduleParameters &list) {
  bool all = list.mma != MatrixShape();
  for (auto [product, other] :
       {std::pair(ProductKind::Scores, ProductKind::Values),
        std::pair(ProductKind::Values, ProductKind::Scores)}) {
    if (!list.own(product).isNamed())
      continue;
    std::string name = list.instructionName(product).str();
    if (all)
      return name + " names the instruction of some products, and mma_shape "
                    "that of all; expected mma_shape, or scores and values";
    if (!list.own(other).isNamed())
      return name + " names the instruction of some products alone; expected " +
             (other == ProductKind::Values ? "values" : "scores") +
             " beside it, or mma_shape for all";
  }
  if (!list.isOpen())
    for (ProductKind product : kProducts)
      if (llvm::any_of(list.shapeOf(product), [](int64_t d) { return d <= 0; }))
        return list.instructionName(product).str() +
               " must be three positive sizes M, N, K";
  return std::nullopt;
}

/// A size that no schedule can have.
static std::optional<std::string>
findWrongSize(const ScheduleParameters &list) {
  using Named = std::pair<llvm::StringRef, int64_t>;
  // What is left open is 0.
  bool open = list.isOpen();
  if (!(open && !list.BK) && (list.BK <= 0 || !llvm::isPowerOf2_64(list.BK)))
    return "BK must be a power of two, got " + textOf(list.BK);
  // Tiles are copied by whole strides of all the warps, which powers of two
  // divide; producers have no such stride.
  for (auto [name, value] : {Named{"BM", list.BM}, Named{"BN", list.BN}}) {
    if (!list.producers && (value <= 0 || !llvm::isPowerOf2_64(value)))
      return name.str() + " must be a power of two, got " + textOf(value);
    if (list.producers && (value <= 0 || value % 16))
      return name.str() + " must be a positive multiple of 16, got " +
             textOf(value);
  }
  for (auto [name, value] :
       {Named{"producers", list.producers},
        Named{"producer_registers", list.producerRegisters},
        Named{"consumer_registers", list.consumerRegisters},
        Named{"wideners", list.wideners},
        Named{"widener_registers", list.widenerRegisters},
        Named{"reg_chunk_depth", list.regChunkDepth},
        Named{"split_size", list.splitSize}, Named{"sum_keys", list.sumKeys}})
    if (value < 0)
      return name.str() + " must not be negative, got " + textOf(value);
  if (list.wideners && !llvm::isPowerOf2_64(list.wideners))
    return "wideners must be 0 or a power of two, got " + textOf(list.wideners);
  if (list.xcds < 1)
    return "xcds must be at least 1, got " + textOf(list.xcds);
  if (list.splitSize % list.BN)
    return "split_size must be a multiple of BN = " + textOf(list.BN) +
           " keys, got " + textOf(list.splitSize);
  if (list.splitSize && !list.splitKeys)
    return "split_size needs split_keys = true, got " + textOf(list.splitSize);
  if (list.equalShares && (!list.splitKeys || list.splitSize))
    return "equal_shares needs split_keys = true and no split_size";
  if (list.cluster < 1)
    return "cluster must be at least 1, got " + textOf(list.cluster);
  if (std::optional<std::string> wrong = findWrongInstruction(list))
    return wrong;
  if (list.stages < (open ? 0 : 1))
    return "stages must be at least 1, got " + textOf(list.stages);
#define KVBUF_SCHEDULE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)  \
  if (sizeOf(list.FIELD) > kMostElements)                                      \
    return NAME " must be at most " + textOf(kMostElements) + ", got " +       \
           textOf(sizeOf(list.FIELD));
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def"
  if (list.warpCols < 1 || !llvm::isPowerOf2_64(list.warpCols) ||
      (list.warps > 0 && list.warps % list.warpCols))
    return "warp_cols must be a power of two that divides warps = " +
           textOf(list.warps) + ", got " + textOf(list.warpCols);
  if (open && !list.warps)
    return std::nullopt;
  if (list.warps < 1 || list.BM % (list.warps / list.warpCols))
    return "warps must divide BM = " + textOf(list.BM) + ", got " +
           textOf(list.warps);
  return std::nullopt;
}

/// Two parameters of which one leaves nothing for the other to do.
static std::optional<std::string> findConflict(const ScheduleParameters &list,
                                               const Schedule &schedule) {
  struct Conflict {
    bool present;
    llvm::StringLiteral text;
  };
  bool moves = schedule.movingTeam();
  bool turns = schedule.hasHalves();
  bool strips = std::holds_alternative<Strips>(schedule.keys) ||
                std::holds_alternative<Strips>(schedule.values);
  bool wholeTiles = std::holds_alternative<WholeTiles>(schedule.keys) &&
                    std::holds_alternative<WholeTiles>(schedule.values);
  bool onlyLoadsAhead = std::holds_alternative<LoadsAhead>(schedule.ahead);
  // Teams of split keys have a program whose scores run ahead.
  bool splitScoresAhead = moves && list.overlap;
  const Conflict conflicts[] = {
      {!list.wideners && list.widenerRegisters,
       "widener_registers needs warps that widen; expected wideners > 0"},
      {list.overlap && list.overlapProducts,
       "overlap does not go with overlap_products, which rotates the same "
       "loop; expected one of them"},
      {list.overlapProducts && list.lazyRescale,
       "overlap_products does not go with lazy_rescale, whose softmax has "
       "parts that it does not know; expected one of them"},
      {list.sumsInLds && list.lazyRescale,
       "sums_in_lds does not go with lazy_rescale, which keeps row sums in "
       "registers; expected one of them"},
      {list.overlap && list.stages < 2,
       "overlap needs stages of at least 2: the next tile is loaded while one "
       "is read"},
      {list.overlapProducts && !moves && list.stages < 2,
       "overlap_products without producers needs stages of at least 2: the "
       "next tile is loaded while one is read"},
      {list.warpCols > 1 && list.lazyRescale,
       "warp_cols does not go with lazy_rescale, where each warp decides by "
       "itself whether a maximum is raised; expected lazy_rescale = false"},
      {list.warpCols > 1 && !list.fullKV,
       "warp_cols does not go with full_kv = false, where V has a product for "
       "each block of columns; expected full_kv = true"},
      {turns && !list.fullKV,
       "ping_pong does not go with full_kv = false, where no tile is in shared "
       "memory as a whole; expected ping_pong = false"},
      {list.overlapProducts && !list.fullKV,
       "overlap_products does not go with full_kv = false, where V has a "
       "product for each block; expected overlap_products = false"},
      {list.overlap && !list.fullKV,
       "overlap does not go with full_kv = false, where no tile is in shared "
       "memory as a whole; expected overlap = false"},
      {strips && list.stages != 1,
       "k_path = streaming or v_path = streaming has one slot, through which "
       "strips go one after the other; expected stages = 1"},
      {strips && !list.fullKV, "k_path = streaming or v_path = streaming "
                               "has strips of its own; expected "
                               "full_kv = true"},
      {strips && (!onlyLoadsAhead || turns),
       "k_path = streaming or v_path = streaming goes with none of overlap, "
       "overlap_products and ping_pong, which load ahead"},
      {strips && list.splitKeys,
       "k_path = streaming or v_path = streaming does not go with split_keys; "
       "expected split_keys = false"},
      {list.lookAhead &&
           !(wholeTiles && onlyLoadsAhead && !turns && list.stages > 1),
       "look_ahead needs whole tiles of which nothing but loads runs ahead; "
       "expected stages of at least 2, full_kv = true, no path streaming, and "
       "none of overlap, overlap_products and ping_pong"},
      {list.sumKeys && (list.splitKeys || list.lazyRescale),
       "sum_keys goes with neither split_keys nor lazy_rescale; expected "
       "sum_keys = 0"},
      {turns && (!list.overlap || !list.lazyRescale),
       "ping_pong without producers needs overlap = true and lazy_rescale = "
       "true, whose parts take turns"},
      {turns && list.warps % 2,
       "ping_pong needs an even number of warps, of which halves take turns"},
      {!list.fullKV && list.stages < 2,
       "full_kv = false needs stages of at least 2: the next block is loaded "
       "while one is read"},
      {list.splitKeys &&
           (!(onlyLoadsAhead || splitScoresAhead) || list.lazyRescale ||
            list.sumsInLds || !list.fullKV || list.regChunkDepth),
       "split_keys = true goes with none of overlap (without producers), "
       "overlap_products, lazy_rescale, sums_in_lds, reg_chunk_depth and "
       "full_kv = false"},
  };
  for (const Conflict &conflict : conflicts)
    if (conflict.present)
      return conflict.text.str();
  return std::nullopt;
}

std::optional<std::string> kvbuf::whyNone(const ScheduleParameters &list) {
  if (std::optional<std::string> wrong = findWrongSize(list))
    return wrong;
  Schedule schedule = Schedule::of(list);
  ScheduleParameters taken = schedule.list();
#define KVBUF_SCHEDULE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)  \
  if (llvm::StringRef lacks = whatLacks(schedule, ParameterScope::SCOPE);      \
      !lacks.empty() && taken.FIELD != list.FIELD)                             \
    return NAME " = " + textOf(list.FIELD) + " " + lacks.str() +               \
           ", or " NAME " = " + textOf(taken.FIELD);
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def"
  // What else goes together is known when everything is; what no kind has a
  // place for would be lost.
  std::optional<std::string> conflict =
      list.isOpen() ? std::nullopt : findConflict(list, schedule);
  if (conflict)
    return conflict;
  if (!list.isOpen() && list.vPath == Path::Streaming && list.BN % list.BK)
    return "v_path = streaming has strips of BK = " + textOf(list.BK) +
           " keys, which do not divide BN = " + textOf(list.BN) +
           "; expected a multiple of BK";
  // What no rule above knows: a parameter that no kind has a place for.
#define KVBUF_SCHEDULE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)  \
  if (taken.FIELD != list.FIELD)                                               \
    return NAME " = " + textOf(list.FIELD) +                                   \
           " is a part of no schedule like this one; expected " NAME " = " +   \
           textOf(taken.FIELD);
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def"
  return std::nullopt;
}
