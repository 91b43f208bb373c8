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
/// divide the work.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_TEAMTRAITS_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_TEAMTRAITS_H

#include "mlir/IR/OpDefinition.h"

namespace kvbuf {

/// The trait of an op that needs all warps of the block, or the block's
/// division into roles: it cannot stand in a team.
template <typename ConcreteType>
class NeedsBlock : public mlir::OpTrait::TraitBase<ConcreteType, NeedsBlock> {};

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_TEAMTRAITS_H
