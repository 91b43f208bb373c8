//===- TeamTraits.h - Which warps an op takes -------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Traits by which verifiers tell where an op may stand in a kernel whose warps
/// work in teams.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_TEAMTRAITS_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_TEAMTRAITS_H

#include "mlir/IR/OpDefinition.h"

namespace kvbuf {

namespace detail {
/// That an op which fills a channel, or takes from one, stands in a team that
/// the channel names so. Nothing is known of a channel that is passed on.
mlir::LogicalResult verifyChannelUse(mlir::Operation *op, bool fills);
} // namespace detail

/// The trait of an op that needs all warps of the block, or divides them: it
/// cannot stand in a team.
template <typename ConcreteType>
class NeedsBlock : public mlir::OpTrait::TraitBase<ConcreteType, NeedsBlock> {};

/// The trait of an op that one lane or some warps of a team do for all of it.
/// Such a team only moves: nobody knows which of its warps are where, so that
/// none of its values are spread over them.
template <typename ConcreteType>
class Moves : public mlir::OpTrait::TraitBase<ConcreteType, Moves> {};

/// The trait of an op that warps do together, though it has no value that is
/// spread over them: a team that only moves cannot do it.
template <typename ConcreteType>
class Together : public mlir::OpTrait::TraitBase<ConcreteType, Together> {};

/// The trait of an op that fills what joins teams (TeamChannelInterface).
template <typename ConcreteType>
class FillsChannel
    : public mlir::OpTrait::TraitBase<ConcreteType, FillsChannel> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) {
    return detail::verifyChannelUse(op, /*fills=*/true);
  }
};

/// The trait of an op that takes from what joins teams.
template <typename ConcreteType>
class TakesFromChannel
    : public mlir::OpTrait::TraitBase<ConcreteType, TakesFromChannel> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) {
    return detail::verifyChannelUse(op, /*fills=*/false);
  }
};

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_TEAMTRAITS_H
