//===- FragmentSources.h - Where a fragment comes from ----------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_FRAGMENTSOURCES_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_FRAGMENTSOURCES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace kvbuf {
class MapOp;

/// The values that a fragment may be, or be a part of: those that it comes from
/// through slices, selections, branches and loops (`scf.if`, `scf.for`,
/// `scf.while`) and that are none of these themselves. Each is listed once. The
/// ops on the way need not be verified yet.
llvm::SmallVector<mlir::Value> fragmentSources(mlir::Value fragment);

/// Whether a fragment is of operand b and its rows are the product's columns:
/// it was loaded to have its columns contracted.
bool isTurned(mlir::Value fragment);

/// Whether a product begins with a map's result, which nothing else takes but
/// branches that hand it on.
bool beginsProduct(MapOp map);

/// The staged slot that a view is a part of; `staged` itself if it is none.
mlir::Value slotOfView(mlir::Value staged);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_FRAGMENTSOURCES_H
