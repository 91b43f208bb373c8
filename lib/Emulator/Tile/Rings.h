//===- Rings.h - Rings and mailboxes between roles --------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_EMULATOR_TILE_RINGS_H
#define KVBUFFER_LIB_EMULATOR_TILE_RINGS_H

#include "Tensors.h"

namespace kvbuf::emu::tile {

/// The rings and mailboxes of one block. What producers do depends on nothing
/// that consumers do, except for when it happens. So the producers run first,
/// to the end, and what they fill is recorded; then the consumers run, and a
/// filling is there for them as soon as the slots that it and all fillings in
/// front of it need have been released: the order of events on a device that
/// moves everything at once. A consumer that would wait for ever is an error.
class Rings {
public:
  /// A new ring or mailbox (`RingOp`, `MailboxOp`); returns its number.
  unsigned add(mlir::Operation *op, int64_t slots);

  /// Producers: fills number `fill` with a tile's data or with a number. Checks
  /// that fillings come in order.
  mlir::LogicalResult fill(mlir::Operation *op, unsigned channel, int64_t fill,
                           Matrix data, int64_t number, ErrorFn error);
  /// Consumers: waits for a filling.
  mlir::LogicalResult wait(unsigned channel, int64_t fill, ErrorFn error);
  /// Consumers: the data of a filling that was awaited and is not released.
  mlir::FailureOr<const Matrix *> read(unsigned channel, int64_t fill,
                                       ErrorFn error);
  /// Consumers: the number in a mailbox, after `wait`.
  int64_t number(unsigned channel, int64_t fill) const {
    return channels[channel].fillings[fill].number;
  }
  /// Producers: the number that they have posted in a mailbox.
  mlir::FailureOr<int64_t> posted(unsigned channel, int64_t fill,
                                  ErrorFn error) const;
  /// Consumers: gives a slot back. Checks that it was awaited.
  mlir::LogicalResult release(mlir::Operation *op, unsigned channel,
                              int64_t fill, ErrorFn error);
  /// Checks that every filling was awaited and released.
  mlir::LogicalResult
  finish(llvm::function_ref<mlir::InFlightDiagnostic(mlir::Operation *)> error);
  /// "filling 3 of the k ring".
  std::string name(unsigned channel, int64_t fill) const;

private:
  struct Filling {
    mlir::Operation *op = nullptr;
    Matrix data;
    int64_t number = 0;
    /// Its place among all that the producers fill.
    size_t position = 0;
    bool awaited = false;
    mlir::Operation *released = nullptr;
  };
  struct Channel {
    mlir::Operation *op = nullptr;
    int64_t slots = 0;
    std::vector<Filling> fillings;
  };

  std::vector<Channel> channels;
  /// All fillings in the producers' order; those before `issued` have
  /// found their slots empty.
  std::vector<std::pair<unsigned, int64_t>> order;
  size_t issued = 0;
};

} // namespace kvbuf::emu::tile

#endif // KVBUFFER_LIB_EMULATOR_TILE_RINGS_H
