//===- HsacoReport.cpp - Resources of the kernels of a code object --------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Compiler/ExternalTools.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/Object/ELF.h"

using namespace kvbuf;
using llvm::object::ELF64LE;

/// The metadata note of a code object: a MessagePack document. Empty if there
/// is none.
static llvm::StringRef metadataNote(llvm::StringRef hsaco) {
  auto file = llvm::object::ELFFile<ELF64LE>::create(hsaco);
  if (!file) {
    llvm::consumeError(file.takeError());
    return {};
  }
  auto sections = file->sections();
  if (!sections) {
    llvm::consumeError(sections.takeError());
    return {};
  }
  for (const ELF64LE::Shdr &section : *sections) {
    if (section.sh_type != llvm::ELF::SHT_NOTE)
      continue;
    llvm::Error error = llvm::Error::success();
    for (const ELF64LE::Note &note : file->notes(section, error))
      if (note.getName() == "AMDGPU" &&
          note.getType() == llvm::ELF::NT_AMDGPU_METADATA) {
        llvm::consumeError(std::move(error));
        return note.getDescAsStringRef(section.sh_addralign);
      }
    llvm::consumeError(std::move(error));
  }
  return {};
}

/// An integer entry of a map; -1 if there is none.
static int64_t integerIn(llvm::msgpack::MapDocNode &map, llvm::StringRef key) {
  llvm::msgpack::DocNode &node = map[key];
  if (node.getKind() == llvm::msgpack::Type::UInt)
    return static_cast<int64_t>(node.getUInt());
  return node.getKind() == llvm::msgpack::Type::Int ? node.getInt() : -1;
}

ResourceReport kvbuf::readHsacoReport(llvm::StringRef hsaco) {
  ResourceReport report;
  llvm::msgpack::Document document;
  llvm::StringRef note = metadataNote(hsaco);
  if (note.empty() || !document.readFromBlob(note, /*Multi=*/false) ||
      !document.getRoot().isMap())
    return report;
  llvm::msgpack::DocNode &kernels =
      document.getRoot().getMap()["amdhsa.kernels"];
  if (!kernels.isArray())
    return report;
  for (llvm::msgpack::DocNode &node : kernels.getArray()) {
    if (!node.isMap())
      continue;
    llvm::msgpack::MapDocNode &kernel = node.getMap();
    if (!kernel[".name"].isString())
      continue;
    llvm::StringRef name = kernel[".name"].getString();
    KernelResources &use = report[name];
    use.entry = name.str();
    use.registers = integerIn(kernel, ".vgpr_count");
    // The metadata counts stores, of 4 bytes each; scalar registers spill into
    // lanes of vector registers.
    if (int64_t spilled = integerIn(kernel, ".vgpr_spill_count"); spilled >= 0)
      use.spillBytes = 4 * spilled;
    use.staticSharedBytes = integerIn(kernel, ".group_segment_fixed_size");
  }
  return report;
}
