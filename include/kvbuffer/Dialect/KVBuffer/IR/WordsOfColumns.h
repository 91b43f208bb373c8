//===- WordsOfColumns.h - What regions read by columns alone ----*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_WORDSOFCOLUMNS_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_WORDSOFCOLUMNS_H

#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace kvbuf {

/// The loads of integers by which alone a region's results follow from its
/// argument `column` (a key), where no more is asked of these than what they
/// are equal to, as of documents' numbers: columns that have the same there
/// have the same results. Empty: the region has more of the column than that.
/// `isOfColumnAlone`: whether an op follows from no other argument of
/// elements.
llvm::SmallVector<mlir::memref::LoadOp>
comparedWordsOf(mlir::Value column,
                llvm::function_ref<bool(mlir::Operation *)> isOfColumnAlone);

/// Whether a map keeps an element or makes it a constant by such words and by
/// its row alone: where columns have the same words and rows agree, a tile's
/// elements all stay or none does, which a warp finds out with one question.
/// What an element is that stays follows from no column.
bool hidesByWords(MapOp map);

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_WORDSOFCOLUMNS_H
