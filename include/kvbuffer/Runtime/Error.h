//===- Error.h - Errors of the runtime --------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inside the runtime an error is an exception of one of these types; the C API
// and the tools turn it into a message and a status. Every message is one
// sentence that says what was expected.
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_ERROR_H
#define KVBUFFER_RUNTIME_ERROR_H

#include <stdexcept>
#include <string>

namespace kvbuf::rt {

/// Bad usage or bad input: the caller can mend it. Exit status 2.
class Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// An error whose text went to a message handler already; what() only says what
/// failed. A tool that showed the messages need not show this.
class ReportedError : public Error {
public:
  using Error::Error;
};

/// The kernel itself misbehaved on the device (an illegal address, a fault, a
/// detector of the emulator). Exit status 1.
class KernelFault : public Error {
public:
  using Error::Error;
};

/// The launch was asked to end (DeviceOptions::interrupt). Exit status 130, as
/// of what a shell's Ctrl-C ends.
class Interrupted : public Error {
public:
  using Error::Error;
};

/// 'a', 'b' or 'c': a list of names for a message.
template <typename Range>
std::string quotedList(const Range &names, const char *last = "or") {
  std::string out;
  size_t i = 0, n = 0;
  for ([[maybe_unused]] const auto &name : names)
    ++n;
  for (const auto &name : names) {
    if (i > 0)
      out += i + 1 == n ? std::string(" ") + last + " " : ", ";
    out += "'" + std::string(name) + "'";
    ++i;
  }
  return out;
}

} // namespace kvbuf::rt

#endif // KVBUFFER_RUNTIME_ERROR_H
