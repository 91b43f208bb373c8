//===- LaneLevel.h - Ops on the values of one lane --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_LANELEVEL_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_LANELEVEL_H

#include "mlir/IR/OpDefinition.h"

namespace kvbuf {

/// The trait of an op that acts on the values of one lane: it belongs to the
/// thread stage, and to functions outside of any stage.
template <typename ConcreteType>
class LaneLevel : public mlir::OpTrait::TraitBase<ConcreteType, LaneLevel> {};

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_LANELEVEL_H
