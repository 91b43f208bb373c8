//===- Knowledge.cpp - What the language server knows ---------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Knowledge.h"
#include "Reference.inc"
#include "kvbuffer/Dialect/KVBuffer/IR/KVBuffer.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Problems.h"
#include "kvbuffer/Pipelines/Pipelines.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace kvbuf;
namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// Descriptions
//===----------------------------------------------------------------------===//

/// Whether a character belongs to a name such as "kvbuffer.cache.num_keys".
static bool isNameChar(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$';
}

/// The sections of the reference by the names that the text has: ops by their
/// own, types and attributes with "!" or "#".
static const llvm::StringMap<std::string> &descriptions() {
  static const llvm::StringMap<std::string> map = [] {
    llvm::StringMap<std::string> sections;
    // Ops are a level below their groups, types and attributes are not: a
    // section ends with the next heading, of whichever level.
    StringRef rest = kReference;
    while (!rest.empty()) {
      size_t at = rest.find("\n###");
      if (at == StringRef::npos)
        break;
      rest = rest.drop_front(at + 4).ltrim('#').ltrim(' ');
      StringRef section = rest.take_front(rest.find("\n##"));
      auto [title, body] = section.split('\n');
      // Tables of operands and traits repeat what stands in the text.
      body = body.take_front(body.find("\nTraits: "));
      // "Operands:", "Parameters:", ...
      if (title.ends_with(":"))
        continue;
      std::string name;
      if (title.starts_with("`")) {
        name = title.drop_front().split('`').first.str();
      } else {
        // The first "#kvbuffer.x" or "!kvbuffer.x" of the section is its own.
        size_t own = std::min(body.find("#kvbuffer."), body.find("!kvbuffer."));
        if (own == StringRef::npos)
          continue;
        name = body.drop_front(own)
                   .take_until([](char c) {
                     return !isNameChar(c) && c != '#' && c != '!';
                   })
                   .str();
      }
      sections.try_emplace(name, "**" + name + "**\n\n" + body.trim().str());
    }
    return sections;
  }();
  return map;
}

std::string kvbuf::lsp::describe(StringRef text, size_t offset) {
  if (offset > text.size())
    return "";
  size_t begin = offset, end = offset;
  while (begin && isNameChar(text[begin - 1]))
    --begin;
  while (end < text.size() && isNameChar(text[end]))
    ++end;
  std::string name = text.slice(begin, end).rtrim('.').str();
  if (begin && (text[begin - 1] == '#' || text[begin - 1] == '!'))
    name = text[begin - 1] + name;
  auto found = descriptions().find(name);
  return found == descriptions().end() ? "" : found->second;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// The name before the bracket that `offset` is in: "#kvbuffer.mask".
static StringRef bracketOf(StringRef text, size_t offset) {
  unsigned depth = 0;
  for (size_t i = std::min(offset, text.size()); i-- > 0;) {
    char c = text[i];
    // Statements end at braces.
    if (c == '{' || c == '}')
      return "";
    if (c == '>' && (i == 0 || text[i - 1] != '-'))
      ++depth;
    if (c != '<')
      continue;
    if (depth) {
      --depth;
      continue;
    }
    size_t begin = i;
    while (begin && isNameChar(text[begin - 1]))
      --begin;
    if (begin && (text[begin - 1] == '#' || text[begin - 1] == '!'))
      --begin;
    return text.slice(begin, i);
  }
  return "";
}

std::vector<lsp::Word> kvbuf::lsp::complete(StringRef text, size_t offset) {
  StringRef name = bracketOf(text, offset);
  std::vector<Word> words;
  if (name == "#kvbuffer.mask")
    return {{"causal", "no key after the row's own: causal = true"},
            {"left", "keys before the row's own that it sees: left = 1024"},
            {"right", "keys after the row's own that it sees: right = 0"}};
  if (name == "#kvbuffer.schedule") {
#define KVBUF_SCHEDULE_PARAMETER(TYPE, FIELD, NAME, DEFAULT, PRESENCE, SCOPE)  \
  words.push_back({NAME, "schedule parameter, " #TYPE});
#include "kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def"
    words.push_back({"teams", "alike, halves or moving<producers = 4>"});
    words.push_back({"work", "one_tile, several_tiles<tiles = static> or "
                             "split_keys"});
    words.push_back({"ahead", "loads, scores or softmax"});
    words.push_back({"slots", "tiles or blocks"});
    return words;
  }
  if (name != "!kvbuffer.cache")
    return {};
  for (uint32_t i = 0; !stringifyEnum(CacheKind(i)).empty(); ++i)
    words.push_back({stringifyEnum(CacheKind(i)).str(), "kind of cache"});
  for (StringRef type : {"bf16", "f16", "f8E4M3FN", "f8E5M2"})
    words.push_back({type.str(), "element type"});
  for (auto [word, detail] :
       {std::pair("heads", "heads of keys and values"),
        std::pair("head_size", "elements of a head"),
        std::pair("page_size", "tokens of a page, of a paged cache"),
        std::pair("cache_depth", "elements of a row [head_size]"),
        std::pair("head_dim_offset", "the operand's first element of a row"),
        std::pair("scale", "type of the scales of 8-bit elements"),
        std::pair("granularity", "tensor, head, or elements that share a "
                                 "scale")})
    words.push_back({word, detail});
  return words;
}

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

json::Array kvbuf::lsp::diagnose(const DialectRegistry &registry,
                                 StringRef text) {
  json::Array found;
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  bool parsed = false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (!parsed || diagnostic.getSeverity() == DiagnosticSeverity::Remark)
      return success();
    int64_t line = 0, column = 0;
    if (auto file =
            diagnostic.getLocation()->findInstanceOf<FileLineColLoc>()) {
      line = file.getLine() ? file.getLine() - 1 : 0;
      column = file.getColumn() ? file.getColumn() - 1 : 0;
    }
    std::string message = diagnostic.str();
    for (Diagnostic &note : diagnostic.getNotes())
      message += "\n" + note.str();
    auto at = [&](int64_t character) {
      return json::Object{{"line", line}, {"character", character}};
    };
    found.push_back(json::Object{
        {"range", json::Object{{"start", at(column)}, {"end", at(column + 1)}}},
        {"severity",
         diagnostic.getSeverity() == DiagnosticSeverity::Error ? 1 : 2},
        {"source", "kvbuf"},
        {"message", message}});
    return success();
  });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return found;
  bool isProblem = false;
  module->walk([&](ProblemInterface) { isProblem = true; });
  if (!isProblem)
    return found;
  parsed = true;
  PassManager pm(&context, ModuleOp::getOperationName());
  LoweringOptions options;
  buildTilePipeline(pm, options);
  (void)pm.run(*module);
  return found;
}
