//===- Schedule.cpp - From a list of parameters to a schedule -------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Dialect/KVBuffer/IR/Schedule.h"

using namespace kvbuf;

static Teams teamsOf(const ScheduleParameters &list) {
  if (list.producers)
    return MovingTeam{list.producers,
                      list.producerRegisters,
                      list.consumerRegisters,
                      list.pingPong,
                      list.stageOutput,
                      WideningTeam{list.wideners, list.widenerRegisters}};
  if (list.pingPong)
    return Halves{};
  return OneTeam{};
}

/// What blocks do with a team that only moves tiles.
static Work workWithMovers(const ScheduleParameters &list) {
  if (list.splitKeys)
    return SplitKeys{list.splitSize, list.equalShares, list.cluster};
  if (list.tiles == TileOrder::Grid)
    return OneTile{};
  return SeveralTiles{list.tiles, list.cluster};
}

/// What blocks do whose warps are alike: they end with their tile.
static Work workOfAlike(const ScheduleParameters &list) {
  if (list.splitKeys)
    return SplitKeys{list.splitSize, list.equalShares, /*cluster=*/1,
                     list.xcds};
  return OneTile{list.xcds};
}

static Movement movementOf(Path path, bool full) {
  if (path == Path::Streaming)
    return Strips{};
  bool staged = path == Path::Registers;
  return full ? Movement(WholeTiles{staged}) : Movement(ColumnBlocks{staged});
}

bool kvbuf::throughRegisters(const Movement &movement) {
  if (const auto *tiles = std::get_if<WholeTiles>(&movement))
    return tiles->throughRegisters;
  const auto *blocks = std::get_if<ColumnBlocks>(&movement);
  return blocks && blocks->throughRegisters;
}

/// The list's tile, less what it has only where all warps are alike.
static TileParameters tileOf(const ScheduleParameters &list, bool alike) {
  TileParameters tile = list;
#define KVBUF_SCHEDULE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)
#define KVBUF_TILE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)      \
  if (!alike && ParameterScope::SCOPE == ParameterScope::AlikeWarps)           \
    tile.FIELD = DEFAULT;
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def"
  return tile;
}

Schedule Schedule::of(const ScheduleParameters &list) {
  Schedule schedule;
  schedule.teams = teamsOf(list);
  static_cast<TileParameters &>(schedule) =
      tileOf(list, !schedule.movingTeam());
  if (schedule.movingTeam()) {
    schedule.work = workWithMovers(list);
    // Such a team moves whole tiles directly, as far ahead as there are slots.
    if (list.overlapProducts)
      schedule.ahead = SoftmaxAhead{};
    // Only where teams divide columns is there one that has scores alone.
    else if (list.overlap && schedule.dividesColumns())
      schedule.ahead = ScoresAhead{};
    return schedule;
  }
  schedule.work = workOfAlike(list);
  if (list.overlapProducts)
    schedule.ahead = SoftmaxAhead{};
  else if (list.overlap)
    schedule.ahead = ScoresAhead{};
  else
    schedule.ahead = LoadsAhead{list.lookAhead};
  schedule.keys = movementOf(list.kPath, list.fullKV);
  schedule.values = movementOf(list.vPath, list.fullKV);
  return schedule;
}

static Path pathOf(const Movement &movement) {
  if (std::holds_alternative<Strips>(movement))
    return Path::Streaming;
  return throughRegisters(movement) ? Path::Registers : Path::Direct;
}

ScheduleParameters Schedule::list() const {
  ScheduleParameters list;
  static_cast<TileParameters &>(list) = *this;
  list.pingPong = hasHalves();
  if (const MovingTeam *its = movingTeam()) {
    list.producers = its->warps;
    list.producerRegisters = its->registers;
    list.consumerRegisters = its->otherRegisters;
    list.pingPong = its->turns;
    list.stageOutput = its->stagesOutput;
    list.wideners = its->widens.warps;
    list.widenerRegisters = its->widens.registers;
  }
  list.xcds = dies();
  if (const SeveralTiles *several = severalTiles()) {
    list.tiles = several->order;
    list.cluster = several->cluster;
  }
  if (const SplitKeys *split = splitKeys()) {
    list.splitKeys = true;
    list.splitSize = split->size;
    list.equalShares = split->equalShares;
    list.cluster = split->cluster;
  }
  list.overlap = std::holds_alternative<ScoresAhead>(ahead);
  list.overlapProducts = std::holds_alternative<SoftmaxAhead>(ahead);
  if (const auto *loads = std::get_if<LoadsAhead>(&ahead))
    list.lookAhead = loads->pages;
  list.kPath = pathOf(keys);
  list.vPath = pathOf(values);
  list.fullKV = !std::holds_alternative<ColumnBlocks>(keys) &&
                !std::holds_alternative<ColumnBlocks>(values);
  return list;
}
