//===- Artifact.h - The .kvbuf container ------------------------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A `.kvbuf` file holds a manifest (JSON, see Manifest.h) and named binary
// sections. This header depends on the standard library alone, so that the
// compiler writes and the runtime reads with the same code. No function here
// throws; errors come back as text.
//
// Layout, little endian:
//   "KVBUF\0\0"  7 bytes      | version  1 byte (1)
//   u64 bytes of the file     | u32 crc32 of everything after this field
//   u32 bytes of the manifest | u32 number of sections
//   per section: kind, 16 bytes padded with zeros | u64 offset | u64 bytes
//   manifest | section data
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_RUNTIME_ARTIFACT_H
#define KVBUFFER_RUNTIME_ARTIFACT_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvbuf {

/// One section: `kind` is "ptx", "cubin", "hsaco" or "mlir" (the target-stage
/// module as bytecode, which the emulator runs); at most 15 characters.
struct ArtifactSection {
  std::string kind;
  std::string data;
};

/// What a `.kvbuf` file holds.
struct Artifact {
  /// UTF-8 JSON; see Manifest.h for its meaning.
  std::string manifest;
  std::vector<ArtifactSection> sections;

  /// The data of the first section of this kind, or null.
  const std::string *find(std::string_view kind) const;
};

/// CRC-32 (IEEE 802.3, reflected, as in zip and png) of `bytes` bytes.
uint32_t crc32(const void *data, size_t bytes);

/// True if these first bytes are those of an artifact (of any version).
bool looksLikeArtifact(std::string_view bytes);

/// Decodes a file image. On failure returns false and `error` says what was
/// expected ("truncated: ...", "damaged: ...").
bool parseArtifact(std::string_view bytes, Artifact &artifact,
                   std::string &error);

/// Encodes to a file image.
std::string serializeArtifact(const Artifact &artifact);

/// Reads a whole file. On failure returns false with a message that names the
/// path.
bool readWholeFile(const std::string &path, std::string &bytes,
                   std::string &error);

/// Writes a file whole or not at all: to a temporary in the same folder, which
/// is then renamed. On failure returns false with a message that names the
/// path, and leaves neither a part nor the temporary behind.
bool writeWholeFile(const std::string &path, std::string_view bytes,
                    std::string &error);

} // namespace kvbuf

#endif // KVBUFFER_RUNTIME_ARTIFACT_H
