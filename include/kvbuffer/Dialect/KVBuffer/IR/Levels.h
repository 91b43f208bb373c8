//===- Levels.h - What an op of the dialect acts on --------------*- C++
//-*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_LEVELS_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_LEVELS_H

#include "mlir/IR/OpDefinition.h"

namespace kvbuf {

// The traits by which phases ask what an op is; its group gives it them
// (KVBufferOpBase.td).

/// What a function of a problem consists of.
template <typename ConcreteType>
class ProblemLevel
    : public mlir::OpTrait::TraitBase<ConcreteType, ProblemLevel> {};

/// An op on tiles, which a block or a team of its warps executes: it belongs to
/// the tile and scheduled stages.
template <typename ConcreteType>
class TileLevel : public mlir::OpTrait::TraitBase<ConcreteType, TileLevel> {};

/// An op that acts on the values of one lane: it belongs to the thread stage,
/// and to functions outside of any stage.
template <typename ConcreteType>
class LaneLevel : public mlir::OpTrait::TraitBase<ConcreteType, LaneLevel> {};

/// Such an op that asks a cache, which `kvbuf-expand-cache-ops` rewrites.
template <typename ConcreteType>
class OnCaches : public mlir::OpTrait::TraitBase<ConcreteType, OnCaches> {};

/// Such an op of one vendor that the target stage keeps: it becomes inline
/// assembly in the translation out of MLIR.
template <typename ConcreteType>
class UntilTranslation
    : public mlir::OpTrait::TraitBase<ConcreteType, UntilTranslation> {};

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_LEVELS_H
