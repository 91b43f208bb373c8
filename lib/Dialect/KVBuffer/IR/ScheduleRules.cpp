//===- ScheduleRules.cpp - Which parameters mean something ------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A parameter that no pass reads changes nothing, or half of what it should.
// So a schedule may name a parameter only where it means something: the table
// in ScheduleParameters.def says for each where that is, the list below which
// ones exclude each other. What depends on the chip or the problem is checked
// by kvbuf-choose-schedule.
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleStructure.h"
#include "llvm/ADT/STLExtras.h"

using namespace kvbuf;

static std::string textOf(int64_t value) { return std::to_string(value); }
static std::string textOf(bool value) { return value ? "true" : "false"; }
static std::string textOf(const MatrixShape &shape) {
  return std::to_string(shape[0]) + "x" + std::to_string(shape[1]) + "x" +
         std::to_string(shape[2]);
}
template <typename E>
  requires std::is_enum_v<E>
static std::string textOf(E value) {
  return stringifyEnum(value).str();
}

/// What a schedule lacks to be in a scope, and what would be; empty if it is.
static llvm::StringRef whatLacks(const ScheduleParameters &schedule,
                                 ParameterScope scope) {
  bool roles = std::holds_alternative<Roles>(teamsOf(schedule));
  switch (scope) {
  case ParameterScope::Every:
    return "";
  case ParameterScope::WithoutRoles:
    return roles ? "does not go with warps that have roles; expected producers "
                   "= 0"
                 : "";
  case ParameterScope::WithRoles:
    return roles ? "" : "needs warps with roles; expected producers > 0";
  case ParameterScope::SeveralTiles:
    if (!roles)
      return whatLacks(schedule, ParameterScope::WithRoles);
    return std::holds_alternative<SeveralTiles>(workOf(schedule))
               ? ""
               : "needs blocks that take several tiles; expected tiles = "
                 "static or dynamic";
  }
  llvm_unreachable("covered switch");
}

/// Two parameters of which one leaves nothing for the other to do.
static std::optional<std::string>
findConflict(const ScheduleParameters &schedule) {
  struct Conflict {
    bool present;
    llvm::StringLiteral text;
  };
  Teams teams = teamsOf(schedule);
  bool roles = std::holds_alternative<Roles>(teams);
  bool turns = std::holds_alternative<Halves>(teams);
  bool strips = slotContents(schedule, schedule.kPath) == SlotContents::Strip ||
                slotContents(schedule, schedule.vPath) == SlotContents::Strip;
  bool wholeTiles =
      slotContents(schedule, schedule.kPath) == SlotContents::Tile &&
      slotContents(schedule, schedule.vPath) == SlotContents::Tile;
  bool onlyLoadsAhead =
      aheadOf(schedule) == Ahead::Loads && !turns && schedule.stages > 1;
  const Conflict conflicts[] = {
      {schedule.overlap && schedule.overlapProducts,
       "overlap does not go with overlap_products, which rotates the same "
       "loop; expected one of them"},
      {schedule.overlapProducts && schedule.lazyRescale,
       "overlap_products does not go with lazy_rescale, whose softmax has "
       "parts that it does not know; expected one of them"},
      {schedule.sumsInLds && schedule.lazyRescale,
       "sums_in_lds does not go with lazy_rescale, which keeps row sums in "
       "registers; expected one of them"},
      {schedule.joinTiles && !schedule.overlapProducts,
       "join_tiles needs overlap_products, whose last product it starts the "
       "next tile beside; expected overlap_products = true"},
      {schedule.joinTiles && schedule.cluster > 1,
       "join_tiles does not go with clusters; expected cluster = 1"},
      {schedule.overlap && schedule.stages < 2,
       "overlap needs stages of at least 2: the next tile is loaded while one "
       "is read"},
      {schedule.overlapProducts && !roles && schedule.stages < 2,
       "overlap_products without producers needs stages of at least 2: the "
       "next tile is loaded while one is read"},
      {schedule.warpCols > 1 && schedule.lazyRescale,
       "warp_cols does not go with lazy_rescale, where each warp decides by "
       "itself whether a maximum is raised; expected lazy_rescale = false"},
      {schedule.warpCols > 1 && !schedule.fullKV,
       "warp_cols does not go with full_kv = false, where V has a product for "
       "each block of columns; expected full_kv = true"},
      {turns && !schedule.fullKV,
       "ping_pong does not go with full_kv = false, where no tile is in shared "
       "memory as a whole; expected ping_pong = false"},
      {schedule.overlapProducts && !schedule.fullKV,
       "overlap_products does not go with full_kv = false, where V has a "
       "product for each block; expected overlap_products = false"},
      {schedule.overlap && !schedule.fullKV,
       "overlap does not go with full_kv = false, where no tile is in shared "
       "memory as a whole; expected overlap = false"},
      {strips && schedule.stages != 1,
       "k_path = streaming or v_path = streaming has one slot, through which "
       "strips go one after the other; expected stages = 1"},
      {strips && !schedule.fullKV, "k_path = streaming or v_path = streaming "
                                   "has strips of its own; expected "
                                   "full_kv = true"},
      {strips && (aheadOf(schedule) != Ahead::Loads || turns),
       "k_path = streaming or v_path = streaming goes with none of overlap, "
       "overlap_products and ping_pong, which load ahead"},
      {strips && schedule.splitKeys,
       "k_path = streaming or v_path = streaming does not go with split_keys; "
       "expected split_keys = false"},
      {schedule.lookAhead && !(wholeTiles && onlyLoadsAhead),
       "look_ahead needs whole tiles of which nothing but loads runs ahead; "
       "expected stages of at least 2, full_kv = true, no path streaming, and "
       "none of overlap, overlap_products and ping_pong"},
      {turns && (!schedule.overlap || !schedule.lazyRescale),
       "ping_pong without producers needs overlap = true and lazy_rescale = "
       "true, whose parts take turns"},
      {turns && schedule.warps % 2,
       "ping_pong needs an even number of warps, of which halves take turns"},
  };
  for (const Conflict &conflict : conflicts)
    if (conflict.present)
      return conflict.text.str();
  return std::nullopt;
}

std::optional<std::string>
kvbuf::whyIgnored(const ScheduleParameters &schedule) {
#define KVBUF_SCHEDULE_PARAMETER(TYPE, FIELD, GETTER, NAME, DEFAULT, PRESENCE, \
                                 SCOPE)                                        \
  if (llvm::StringRef lacks = whatLacks(schedule, ParameterScope::SCOPE);      \
      !lacks.empty() && schedule.FIELD != ScheduleParameters().FIELD)          \
    return NAME " = " + textOf(schedule.FIELD) + " " + lacks.str() +           \
           ", or " NAME " = " + textOf(ScheduleParameters().FIELD);
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def"
  return findConflict(schedule);
}
