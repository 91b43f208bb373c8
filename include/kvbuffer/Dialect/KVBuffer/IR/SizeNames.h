//===- SizeNames.h - What launches call their sizes -------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Names of sizes in `kvbuffer.shape`, `kvbuffer.grid` and the manifest, for
/// all who write them or look for them. Those of caches with a table are in
/// CacheLayout.h.
///
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_DIALECT_KVBUFFER_IR_SIZENAMES_H
#define KVBUFFER_DIALECT_KVBUFFER_IR_SIZENAMES_H

#include "llvm/ADT/StringRef.h"

namespace kvbuf {

/// Multiprocessors of the device, which it tells itself.
inline constexpr llvm::StringLiteral kMultiprocessorsSize = "sms";

/// Sequences.
inline constexpr llvm::StringLiteral kBatchSize = "batch";

/// What kernels of an attention problem call the query rows of a sequence, of a
/// ragged batch of the longest one; and of a ragged batch those of all.
inline constexpr llvm::StringLiteral kLongestQuerySize = "seq_q",
                                     kAllQueriesSize = "total_q";

/// The keys of a sequence in a dense cache, and all rows of a ragged one.
inline constexpr llvm::StringLiteral kKeysSize = "seq_k",
                                     kAllKeysSize = "total_k";

/// The new tokens of a sequence that an append stores, or those of all; and the
/// positions that there are angles for.
inline constexpr llvm::StringLiteral kNewTokensSize = "seq_new",
                                     kAllNewTokensSize = "total_new",
                                     kPositionsSize = "positions";

} // namespace kvbuf

#endif // KVBUFFER_DIALECT_KVBUFFER_IR_SIZENAMES_H
