//===- ScheduleParameters.h - What a schedule fixes -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A schedule as users write it and targets propose it: a list of parameters,
/// all of them in ScheduleParameters.def. What it stands for, and what passes
/// ask, is in Schedule.h.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_SCHEDULEPARAMETERS_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_SCHEDULEPARAMETERS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferEnums.h"
#include "kvbuffer/Layout/Fragments.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <optional>
#include <string>

namespace kvbuf {

/// M, N and K of a matrix instruction.
using MatrixShape = std::array<int64_t, 3>;

/// A matrix instruction by name: its unit and its shape, which is that of no
/// instruction where none is named. What elements it is for, each product says.
struct ProductInstruction {
  MatrixUnit unit = MatrixUnit::MmaSync;
  MatrixShape shape = {};

  bool isNamed() const { return shape != MatrixShape(); }
  bool operator==(const ProductInstruction &) const = default;
};

inline llvm::hash_code hash_value(const ProductInstruction &instruction) {
  return llvm::hash_combine(instruction.unit,
                            llvm::hash_combine_range(instruction.shape));
}

/// The kinds of products of a kernel, each of which its schedule may give an
/// instruction of its own: those that contract the columns of what they read as
/// operand b (`transpose_b`), as scores do, and those that contract its rows,
/// as do sums of values by their weights.
enum class ProductKind { Scores, Values };
inline constexpr ProductKind kProducts[] = {ProductKind::Scores,
                                            ProductKind::Values};

/// What a schedule says of its tile, of whichever kinds it is: sizes and warps,
/// what is kept in registers, what of the softmax in LDS, and whether tiles
/// without a mask have a loop of their own. `ScheduleAttr` says what each
/// means.
struct TileParameters {
#define KVBUF_SCHEDULE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)
#define KVBUF_TILE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)      \
  TYPE FIELD = DEFAULT;
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def"

  /// Whether the matrix instruction is still to be chosen, and with it what
  /// else is 0 (`kvbuf-complete-program`).
  bool isOpen() const {
    return mma == MatrixShape() && !scores.isNamed() && !values.isNamed();
  }
  /// What names the instruction of a product alone, named or not.
  const ProductInstruction &own(ProductKind product) const {
    return product == ProductKind::Scores ? scores : values;
  }
  /// The shape of a product's instruction: what names that alone, or `mma`.
  const MatrixShape &shapeOf(ProductKind product) const {
    return own(product).isNamed() ? own(product).shape : mma;
  }
  /// The parameter that names it, for messages.
  llvm::StringRef instructionName(ProductKind product) const {
    if (!own(product).isNamed())
      return "mma_shape";
    return product == ProductKind::Scores ? "scores" : "values";
  }
  bool operator==(const TileParameters &) const = default;
};

/// A list of parameters: those of the tile, and what kinds are made of.
struct ScheduleParameters : TileParameters {
#define KVBUF_TILE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)
#define KVBUF_SCHEDULE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)  \
  TYPE FIELD = DEFAULT;
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def"

  bool operator==(const ScheduleParameters &) const = default;
};

/// Whether an attribute has to name a parameter, or has to where it names a
/// matrix instruction (else it is 0, left open); and if not, whether it is
/// printed where it has its default.
enum class ParameterPresence { Required, Open, Printed, Optional };

/// The schedules that a parameter is a part of.
enum class ParameterScope {
  /// Every one.
  Every,
  /// Those with a team that only moves tiles (`producers`).
  MovingTeam,
  /// Those in which every warp does everything.
  AlikeWarps,
  /// Those with a team that only moves tiles whose blocks take several tiles of
  /// queries (`tiles` is not `grid`), or share the keys of few rows.
  Clusters
};

/// Calls `visit(name, field, default, presence)` for each parameter of
/// `parameters`, in the order in which they are printed.
template <typename Parameters, typename Visitor>
void forEachParameter(Parameters &parameters, Visitor visit) {
#define KVBUF_SCHEDULE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)  \
  visit(llvm::StringRef(NAME), parameters.FIELD, ScheduleParameters().FIELD,   \
        ParameterPresence::PRESENCE);
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def"
}

/// For the uniquing of attributes.
inline llvm::hash_code hash_value(const ScheduleParameters &parameters) {
  llvm::hash_code code(0);
  forEachParameter(
      parameters, [&](llvm::StringRef, const auto &field, auto &&...) {
        using llvm::hash_value;
        if constexpr (requires { hash_value(field); })
          code = llvm::hash_combine(code, field);
        else
          code = llvm::hash_combine(code, llvm::hash_combine_range(field));
      });
  return code;
}

/// Sets the parameter of that name by a text ("64", "true", "16x8x16",
/// "mfma:32x32x16", "dynamic"). Returns what was expected where the name or the
/// text is wrong, for a message, and nothing where they are right.
std::optional<std::string> setParameter(ScheduleParameters &parameters,
                                        llvm::StringRef name,
                                        llvm::StringRef text);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_SCHEDULEPARAMETERS_H
