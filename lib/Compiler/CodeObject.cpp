//===- CodeObject.cpp - Reads AMD code objects ----------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeObject.h"
#include "kvbuffer/Compiler/ExternalTools.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/BinaryFormat/MsgPackDocument.h"
#include "llvm/Object/ELFObjectFile.h"

using namespace kvbuf;
using llvm::object::ELF64LE;
using ElfFile = llvm::object::ELFObjectFile<ELF64LE>;

static llvm::Error fail(const llvm::Twine &message) {
  return llvm::createStringError("code object: " + message);
}

bool kvbuf::looksLikeElf(llvm::StringRef bytes) {
  return bytes.starts_with(llvm::ELF::ElfMagic);
}

/// The metadata note of a code object: a MessagePack document. Empty if there
/// is none.
static llvm::Expected<llvm::StringRef> metadataNote(const ElfFile &object) {
  const auto &file = object.getELFFile();
  auto sections = file.sections();
  if (!sections)
    return sections.takeError();
  for (const ELF64LE::Shdr &section : *sections) {
    if (section.sh_type != llvm::ELF::SHT_NOTE)
      continue;
    llvm::StringRef found;
    llvm::Error error = llvm::Error::success();
    for (const ELF64LE::Note &note : file.notes(section, error))
      if (note.getName() == "AMDGPU" &&
          note.getType() == llvm::ELF::NT_AMDGPU_METADATA)
        found = note.getDescAsStringRef(section.sh_addralign);
    if (error)
      return std::move(error);
    if (!found.empty())
      return found;
  }
  return llvm::StringRef();
}

/// An integer entry of a map; -1 if there is none.
static int64_t integerIn(llvm::msgpack::MapDocNode &map, llvm::StringRef key) {
  llvm::msgpack::DocNode &node = map[key];
  if (node.getKind() == llvm::msgpack::Type::UInt)
    return static_cast<int64_t>(node.getUInt());
  return node.getKind() == llvm::msgpack::Type::Int ? node.getInt() : -1;
}

/// One kernel's part of the metadata; LLVM's AMDGPUUsage, "Code Object V5
/// Metadata", has the meaning of each key.
static IsaKernel readKernel(llvm::msgpack::MapDocNode &map) {
  IsaKernel kernel;
  kernel.name = map[".name"].getString().str();
  kernel.vgprs = integerIn(map, ".vgpr_count");
  kernel.agprs = integerIn(map, ".agpr_count");
  kernel.sgprs = integerIn(map, ".sgpr_count");
  kernel.vgprSpills = integerIn(map, ".vgpr_spill_count");
  kernel.sgprSpills = integerIn(map, ".sgpr_spill_count");
  kernel.scratchBytes = integerIn(map, ".private_segment_fixed_size");
  kernel.ldsBytes = integerIn(map, ".group_segment_fixed_size");
  kernel.kernargBytes = integerIn(map, ".kernarg_segment_size");
  kernel.threads = integerIn(map, ".max_flat_workgroup_size");
  kernel.waveSize = integerIn(map, ".wavefront_size");
  return kernel;
}

/// The functions that symbols name.
static llvm::Expected<std::vector<CodeObjectFunction>>
readFunctions(const ElfFile &object) {
  std::vector<CodeObjectFunction> functions;
  for (llvm::object::ELFSymbolRef symbol : object.symbols()) {
    if (symbol.getELFType() != llvm::ELF::STT_FUNC)
      continue;
    auto name = symbol.getName();
    if (!name)
      return name.takeError();
    auto address = symbol.getAddress();
    if (!address)
      return address.takeError();
    auto section = symbol.getSection();
    if (!section)
      return section.takeError();
    if (*section == object.section_end())
      continue;
    auto bytes = (*section)->getContents();
    if (!bytes)
      return bytes.takeError();
    uint64_t offset = *address - (*section)->getAddress();
    if (offset > bytes->size() || symbol.getSize() > bytes->size() - offset)
      return fail("the code of function '" + *name +
                  "' reaches beyond its section");
    functions.push_back(
        {*name, bytes->substr(offset, symbol.getSize()), *address});
  }
  return functions;
}

/// Finds the bytes of the function that a kernel's name stands for.
static llvm::Error findCode(llvm::ArrayRef<CodeObjectFunction> functions,
                            CodeObjectKernel &kernel) {
  auto found =
      llvm::find_if(functions, [&](const CodeObjectFunction &function) {
        return function.name == kernel.metadata.name;
      });
  if (found == functions.end())
    return fail("kernel '" + kernel.metadata.name + "' has no code");
  kernel.address = found->address;
  kernel.code = found->code;
  kernel.metadata.codeBytes = kernel.code.size();
  return llvm::Error::success();
}

llvm::Expected<CodeObject> kvbuf::readCodeObject(llvm::StringRef hsaco) {
  if (!looksLikeElf(hsaco))
    return fail("not an ELF file");
  auto object = ElfFile::create(llvm::MemoryBufferRef(hsaco, "code object"));
  if (!object)
    return fail(llvm::toString(object.takeError()));
  if (object->getELFFile().getHeader().e_machine != llvm::ELF::EM_AMDGPU)
    return fail("an ELF file for another machine than an AMD GPU");
  CodeObject result;
  if (std::optional<llvm::StringRef> chip = object->tryGetCPUName())
    result.chip = chip->str();

  auto functions = readFunctions(*object);
  if (!functions)
    return fail(llvm::toString(functions.takeError()));
  result.functions = std::move(*functions);
  auto note = metadataNote(*object);
  if (!note)
    return fail(llvm::toString(note.takeError()));
  llvm::msgpack::Document document;
  if (note->empty() || !document.readFromBlob(*note, /*Multi=*/false) ||
      !document.getRoot().isMap() ||
      !document.getRoot().getMap()["amdhsa.kernels"].isArray())
    return fail("it has no metadata of kernels");
  for (llvm::msgpack::DocNode &node :
       document.getRoot().getMap()["amdhsa.kernels"].getArray()) {
    if (!node.isMap() || !node.getMap()[".name"].isString())
      return fail("its metadata has a kernel without a name");
    CodeObjectKernel kernel;
    kernel.metadata = readKernel(node.getMap());
    if (llvm::Error error = findCode(result.functions, kernel))
      return std::move(error);
    result.kernels.push_back(std::move(kernel));
  }
  llvm::sort(result.kernels,
             [](const CodeObjectKernel &a, const CodeObjectKernel &b) {
               return a.address < b.address;
             });
  return result;
}

ResourceReport kvbuf::readHsacoReport(llvm::StringRef hsaco) {
  ResourceReport report;
  llvm::Expected<CodeObject> object = readCodeObject(hsaco);
  if (!object) {
    llvm::consumeError(object.takeError());
    return report;
  }
  for (const CodeObjectKernel &kernel : object->kernels) {
    const IsaKernel &told = kernel.metadata;
    KernelResources &use = report[told.name];
    use.entry = told.name;
    use.registers = told.vgprs;
    // The metadata counts stores, of 4 bytes each; scalar registers spill into
    // lanes of vector registers.
    if (told.vgprSpills >= 0)
      use.spillBytes = 4 * told.vgprSpills;
    use.staticSharedBytes = told.ldsBytes;
  }
  return report;
}
