//===- KVBuffer.h - The kvbuffer dialect ------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Types, attributes and operations of the `kvbuffer` dialect. Their meaning is
/// documented in the .td files and in the generated dialect reference.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFER_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFER_H

#include "kvbuffer/Dialect/KVBuffer/IR/CacheLayout.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Levels.h"
#include "kvbuffer/Dialect/KVBuffer/IR/OwnAttributes.h"
#include "kvbuffer/Dialect/KVBuffer/IR/Schedule.h"
#include "kvbuffer/Dialect/KVBuffer/IR/TeamTraits.h"
#include "kvbuffer/Layout/Fragments.h"
#include "kvbuffer/Layout/Shared.h"
#include "kvbuffer/Sizes/SizeExpr.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <optional>

namespace kvbuf {
/// The data of buffers in LDS, as a resource of memory effects.
struct LdsResource : mlir::SideEffects::Resource::Base<LdsResource> {
  llvm::StringRef getName() final { return "KVBufferLds"; }
};
/// Copies in flight between DRAM and LDS, as a resource of memory effects.
struct AsyncResource : mlir::SideEffects::Resource::Base<AsyncResource> {
  llvm::StringRef getName() final { return "KVBufferAsync"; }
};
} // namespace kvbuf

#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferDialect.h.inc"

#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferLayoutInterfaces.h.inc"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferTeamInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferTypes.h.inc"

namespace kvbuf {
/// A swizzle as attributes list it: [bits, base, shift], the same of its second
/// term if it has one, and its unit if that is another than 16 bytes.
llvm::SmallVector<int64_t> swizzleList(const Swizzle &swizzle);
/// The swizzle of such a list, whose numbers are small and not negative; of an
/// empty one: none. Nothing if no list has so many numbers.
std::optional<Swizzle> readSwizzle(llvm::ArrayRef<int64_t> list);
/// A cache's type is its own; that of a tensor [batch, rows, heads, head_size]
/// with static heads is the dense cache of its elements. Null for others.
CacheType denseCacheOf(mlir::Type type);
/// The same for every type that is a cache.
CacheLayout cacheLayoutOf(mlir::Type type);
} // namespace kvbuf

#define GET_OP_CLASSES
#include "kvbuffer/Dialect/KVBuffer/IR/KVBufferOps.h.inc"

namespace kvbuf {
/// The schedule by which fragments and buffers of `op` are spread over warps:
/// that of the team around it, or `kernel`, the whole kernel's.
ScheduleAttr scheduleOf(mlir::Operation *op, ScheduleAttr kernel);

/// Which of a schedule's products an op is; of one that multiplies nothing,
/// scores.
ProductKind productOf(mlir::Operation *op);
/// Which product reads a buffer of an operand, or has it as its result; of a
/// neutral one its reads say so.
ProductKind productOf(KVBufferAttr params);

/// What messages and pictures call a buffer, and what is of it: a token, a
/// slot, a ring. Empty where it has no name, or comes from elsewhere.
llvm::StringRef labelOf(mlir::Value value);

/// The warps of a kernel's blocks: those of its teams together, or of its
/// schedule if it has none.
int64_t blockWarpsOf(mlir::Operation *kernel, ScheduleAttr schedule);
} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_KVBUFFER_H
