//===- Artifact.cpp - The .kvbuf container --------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Runtime/Artifact.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace kvbuf;

namespace {

constexpr char kMagic[7] = {'K', 'V', 'B', 'U', 'F', 0, 0};
constexpr uint8_t kVersion = 1;
constexpr size_t kKindBytes = 16;
constexpr size_t kSectionBytes = kKindBytes + 8 + 8;
constexpr size_t kSizeAt = 8;
constexpr size_t kCrcAt = 16;
constexpr size_t kHeaderBytes = 28;
/// More sections than this mean a damaged file, not a rich one.
constexpr uint32_t kMaxSections = 4096;

void putInt(std::string &out, uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i)
    out.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t getInt(std::string_view in, size_t at, unsigned bytes) {
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i)
    value |= static_cast<uint64_t>(static_cast<uint8_t>(in[at + i])) << (8 * i);
  return value;
}

constexpr std::array<uint32_t, 256> makeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit)
      c = (c >> 1) ^ ((c & 1) ? 0xEDB88320u : 0u);
    table[i] = c;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kCrcTable = makeCrcTable();

std::string systemError() { return std::strerror(errno); }

/// Creates a file of a name that nobody has, next to `path`; `name` becomes
/// that name. It gets the permissions that a plain open gives: mkstemp makes
/// files private, and the umask, which would say what to widen them to, can
/// only be read by changing it for the whole process. Returns the descriptor,
/// or -1 with errno.
int openBeside(const std::string &path, std::string &name) {
  static std::atomic<unsigned> count{0};
  for (unsigned tries = 0; tries < 100; ++tries) {
    name = path + ".tmp" + std::to_string(::getpid()) + "-" +
           std::to_string(count++);
    int fd = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC,
                    S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH);
    if (fd >= 0 || errno != EEXIST)
      return fd;
  }
  return -1;
}

} // namespace

const std::string *Artifact::find(std::string_view kind) const {
  for (const ArtifactSection &section : sections)
    if (section.kind == kind)
      return &section.data;
  return nullptr;
}

uint32_t kvbuf::crc32(const void *data, size_t bytes) {
  const uint8_t *p = static_cast<const uint8_t *>(data);
  uint32_t c = 0xFFFFFFFFu;
  for (size_t i = 0; i < bytes; ++i)
    c = kCrcTable[(c ^ p[i]) & 0xFF] ^ (c >> 8);
  return c ^ 0xFFFFFFFFu;
}

bool kvbuf::looksLikeArtifact(std::string_view bytes) {
  return bytes.size() >= sizeof(kMagic) &&
         std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) == 0;
}

bool kvbuf::parseArtifact(std::string_view bytes, Artifact &artifact,
                          std::string &error) {
  artifact = Artifact();
  if (!looksLikeArtifact(bytes)) {
    error = "not a kvbuf artifact: it does not begin with \"KVBUF\"";
    return false;
  }
  if (bytes.size() < kHeaderBytes) {
    error = "truncated: " + std::to_string(bytes.size()) +
            " bytes, fewer than the header's " + std::to_string(kHeaderBytes);
    return false;
  }
  unsigned version = static_cast<uint8_t>(bytes[7]);
  if (version != kVersion) {
    error = "artifact format version " + std::to_string(version) +
            ", but this program reads version " + std::to_string(kVersion) +
            "; compile the kernel again";
    return false;
  }
  uint64_t expected = getInt(bytes, kSizeAt, 8);
  if (expected != bytes.size()) {
    error = (bytes.size() < expected ? "truncated: " : "damaged: ") +
            std::to_string(bytes.size()) + " bytes where the header says " +
            std::to_string(expected);
    return false;
  }
  uint32_t stored = static_cast<uint32_t>(getInt(bytes, kCrcAt, 4));
  if (crc32(bytes.data() + kCrcAt + 4, bytes.size() - kCrcAt - 4) != stored) {
    error = "damaged: the checksum does not match";
    return false;
  }
  // The checksum held, so what follows can only fail for a writer's mistake;
  // it is checked all the same, because offsets index memory.
  uint64_t manifestBytes = getInt(bytes, 20, 4);
  uint32_t count = static_cast<uint32_t>(getInt(bytes, 24, 4));
  size_t tableEnd = kHeaderBytes + static_cast<size_t>(count) * kSectionBytes;
  if (count > kMaxSections || tableEnd > bytes.size() ||
      manifestBytes > bytes.size() - tableEnd) {
    error = "damaged: the section table does not fit the file";
    return false;
  }
  artifact.manifest = std::string(bytes.substr(tableEnd, manifestBytes));
  for (uint32_t i = 0; i < count; ++i) {
    size_t at = kHeaderBytes + i * kSectionBytes;
    std::string_view kind = bytes.substr(at, kKindBytes);
    kind = kind.substr(0, kind.find('\0'));
    uint64_t offset = getInt(bytes, at + kKindBytes, 8);
    uint64_t size = getInt(bytes, at + kKindBytes + 8, 8);
    if (offset > bytes.size() || size > bytes.size() - offset) {
      error =
          "damaged: section '" + std::string(kind) + "' lies outside the file";
      return false;
    }
    artifact.sections.push_back(
        {std::string(kind), std::string(bytes.substr(offset, size))});
  }
  return true;
}

std::string kvbuf::serializeArtifact(const Artifact &artifact) {
  // Sections start at multiples of 16 bytes, so that binaries can be used in
  // place.
  auto align = [](size_t n) { return (n + 15) / 16 * 16; };
  size_t offset =
      align(kHeaderBytes + artifact.sections.size() * kSectionBytes +
            artifact.manifest.size());
  std::string out(kMagic, sizeof(kMagic));
  out.push_back(static_cast<char>(kVersion));
  putInt(out, 0, 8); // file bytes, set below
  putInt(out, 0, 4); // crc, set below
  putInt(out, artifact.manifest.size(), 4);
  putInt(out, artifact.sections.size(), 4);
  for (const ArtifactSection &section : artifact.sections) {
    std::string kind = section.kind.substr(0, kKindBytes - 1);
    kind.resize(kKindBytes, '\0');
    out += kind;
    putInt(out, offset, 8);
    putInt(out, section.data.size(), 8);
    offset = align(offset + section.data.size());
  }
  out += artifact.manifest;
  for (const ArtifactSection &section : artifact.sections) {
    out.resize(align(out.size()), '\0');
    out += section.data;
  }
  std::string field;
  putInt(field, out.size(), 8);
  out.replace(kSizeAt, 8, field);
  field.clear();
  putInt(field, crc32(out.data() + kCrcAt + 4, out.size() - kCrcAt - 4), 4);
  out.replace(kCrcAt, 4, field);
  return out;
}

bool kvbuf::readWholeFile(const std::string &path, std::string &bytes,
                          std::string &error) {
  std::FILE *file = std::fopen(path.c_str(), "rb");
  if (!file) {
    error = "cannot open '" + path + "': " + systemError();
    return false;
  }
  bytes.clear();
  char chunk[1 << 16];
  size_t got;
  while ((got = std::fread(chunk, 1, sizeof(chunk), file)) > 0)
    bytes.append(chunk, got);
  bool bad = std::ferror(file);
  if (bad)
    error = "cannot read '" + path + "': " + systemError();
  std::fclose(file);
  return !bad;
}

bool kvbuf::writeWholeFile(const std::string &path, std::string_view bytes,
                           std::string &error) {
  auto fail = [&] {
    error = "cannot write '" + path + "': " + systemError();
    return false;
  };
  // A pipe or a device cannot be renamed over; it is written in place.
  struct stat info;
  bool special = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  std::string target = path;
  int fd = special ? ::open(path.c_str(), O_WRONLY | O_CLOEXEC)
                   : openBeside(path, target);
  if (fd < 0)
    return fail();
  const char *p = bytes.data();
  size_t left = bytes.size();
  while (left > 0) {
    ssize_t n = ::write(fd, p, left);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      fail();
      ::close(fd);
      if (!special)
        ::unlink(target.c_str());
      return false;
    }
    p += n;
    left -= static_cast<size_t>(n);
  }
  bool ok = ::close(fd) == 0;
  if (!special)
    ok = ok && ::rename(target.c_str(), path.c_str()) == 0;
  if (!ok) {
    fail();
    if (!special)
      ::unlink(target.c_str());
  }
  return ok;
}
