//===- Compiler.cpp - C API of the compiler -------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer-c/Compiler.h"
#include "kvbuffer/Compiler/Compiler.h"
#include "kvbuffer/Compiler/Remarks.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ProblemInterface.h"
#include "kvbuffer/Pipelines/Pipelines.h"
#include "kvbuffer/Programs/ScheduleCandidates.h"
#include "kvbuffer/Report/Report.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SourceMgr.h"
#include <cstdlib>
#include <cstring>

using namespace mlir;
using namespace kvbuf;

namespace {

/// The severities of kvbufMessageCallback.
enum Severity { Note = 0, Remark = 1, Warning = 2, Error = 3 };

/// Sends messages to a caller's function, if there is one.
struct Messages {
  kvbufMessageCallback callback;
  void *user;

  void send(Severity severity, const std::string &text) const {
    if (callback)
      callback(severity, text.c_str(), user);
  }
};

/// One compilation: a context with one parsed module in it.
class Compilation {
public:
  Compilation(StringRef source, StringRef filename, Messages messages)
      : messages(messages), filename(filename),
        context(makeRegistry(), MLIRContext::Threading::DISABLED) {
    context.printOpOnDiagnostic(false);
    context.getDiagEngine().registerHandler(
        [this](Diagnostic &diagnostic) { forward(diagnostic); });
    sources->AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBufferCopy(source, filename), llvm::SMLoc());
  }

  /// The module goes before the context that it lives in.
  ~Compilation() { module = nullptr; }

  /// Reads the options; false, after a message, if they are not understood.
  bool readOptions(StringRef json);

  /// Parses the source; false, after messages, if that fails.
  bool parse() {
    module = parseSourceFile<ModuleOp>(sources, &context);
    return static_cast<bool>(module);
  }

  ModuleOp getModule() { return *module; }

  CompileOptions options;
  /// Whether the artifact gets a section for a page about the kernel.
  bool report = false;

private:
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }

  bool fail(const Twine &message) {
    messages.send(Error, ("error: " + message).str());
    return false;
  }

  /// Sends a diagnostic and its notes.
  void forward(Diagnostic &diagnostic);
  /// The text of one message: as compilers print it, with the line of the
  /// source that it is about.
  std::string format(Diagnostic &diagnostic, Severity severity);

  Messages messages;
  std::string filename;
  std::shared_ptr<llvm::SourceMgr> sources =
      std::make_shared<llvm::SourceMgr>();
  MLIRContext context;
  // After the context, without which it cannot be destroyed.
  OwningOpRef<ModuleOp> module;
};

} // namespace

std::string Compilation::format(Diagnostic &diagnostic, Severity severity) {
  static constexpr std::pair<const char *, llvm::SourceMgr::DiagKind> kinds[] =
      {{"note", llvm::SourceMgr::DK_Note},
       {"remark", llvm::SourceMgr::DK_Remark},
       {"warning", llvm::SourceMgr::DK_Warning},
       {"error", llvm::SourceMgr::DK_Error}};
  auto [name, kind] = kinds[severity];
  std::string text;
  llvm::raw_string_ostream os(text);
  auto file = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>();
  llvm::SMLoc inSource;
  if (file && file.getFilename().getValue() == filename)
    inSource = sources->FindLocForLineAndColumn(
        sources->getMainFileID(), file.getLine(), file.getColumn());
  if (inSource.isValid())
    sources->GetMessage(inSource, kind, diagnostic.str())
        .print(nullptr, os, /*ShowColors=*/false);
  else
    os << locationPrefix(diagnostic.getLocation()) << name << ": "
       << diagnostic.str();
  return StringRef(text).rtrim('\n').str();
}

void Compilation::forward(Diagnostic &diagnostic) {
  Severity severity = Error;
  switch (diagnostic.getSeverity()) {
  case DiagnosticSeverity::Note:
    severity = Note;
    break;
  case DiagnosticSeverity::Remark:
    severity = Remark;
    break;
  case DiagnosticSeverity::Warning:
    severity = Warning;
    break;
  case DiagnosticSeverity::Error:
    break;
  }
  messages.send(severity, format(diagnostic, severity));
  for (Diagnostic &note : diagnostic.getNotes())
    messages.send(Note, format(note, Note));
}

bool Compilation::readOptions(StringRef json) {
  if (json.empty())
    return true;
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value)
    return fail("options: " + llvm::toString(value.takeError()));
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return fail("options: expected a JSON object");
  bool wantRemarks = false;
  const std::pair<StringRef, std::string *> strings[] = {
      {"target", &options.target},
      {"default_target", &options.defaultTarget},
      {"schedule", &options.schedule},
      {"name", &options.name},
      {"function", &options.function},
      {"ptxas", &options.ptxas}};
  const std::pair<StringRef, bool *> flags[] = {
      {"prefetch", &options.prefetch},
      {"split_loops", &options.splitLoops},
      {"alternatives", &options.alternatives},
      {"machine_code", &options.machineCode},
      {"report", &report},
      {"remarks", &wantRemarks}};
  for (const auto &[key, entry] : *object) {
    bool known = false;
    for (auto [name, target] : strings) {
      if (StringRef(key) != name)
        continue;
      known = true;
      std::optional<StringRef> text = entry.getAsString();
      if (!text)
        return fail("options: '" + name + "' must be a string");
      *target = text->str();
    }
    for (auto [name, target] : flags) {
      if (StringRef(key) != name)
        continue;
      known = true;
      std::optional<bool> flag = entry.getAsBoolean();
      if (!flag)
        return fail("options: '" + name + "' must be true or false");
      *target = *flag;
    }
    if (!known)
      return fail(
          "options: unknown key '" + StringRef(key) +
          "'; expected target, default_target, schedule, name, "
          "function, ptxas, prefetch, split_loops, alternatives, machine_code, "
          "report or remarks");
  }
  if (wantRemarks)
    (void)enableRemarks(context, ".*", [this](const std::string &text) {
      messages.send(Remark, text);
    });
  return true;
}

/// A copy of `bytes` that the caller frees with kvbufFree, with a zero after
/// it; null, after a message, if there is no memory.
static char *copyOut(StringRef bytes, const Messages &messages) {
  char *copy = static_cast<char *>(std::malloc(bytes.size() + 1));
  if (!copy) {
    messages.send(Error, "error: out of memory");
    return nullptr;
  }
  std::memcpy(copy, bytes.data(), bytes.size());
  copy[bytes.size()] = 0;
  return copy;
}

static StringRef orEmpty(const char *text) { return text ? text : ""; }

void *kvbufCompile(const char *source, size_t bytes, const char *filename,
                   const char *options_json, size_t *artifact_bytes,
                   kvbufMessageCallback callback, void *user) {
  Messages messages{callback, user};
  Compilation compilation(StringRef(source, bytes), orEmpty(filename),
                          messages);
  if (!compilation.readOptions(orEmpty(options_json)) || !compilation.parse())
    return nullptr;
  llvm::FailureOr<Artifact> artifact =
      compilation.report
          ? compileForReport(compilation.getModule(), compilation.options)
          : compile(compilation.getModule(), compilation.options);
  if (failed(artifact))
    return nullptr;
  std::string image = serializeArtifact(*artifact);
  if (artifact_bytes)
    *artifact_bytes = image.size();
  return copyOut(image, messages);
}

char *kvbufEmit(const char *source, size_t bytes, const char *filename,
                const char *options_json, const char *stage,
                kvbufMessageCallback callback, void *user) {
  Messages messages{callback, user};
  std::optional<Stage> goal = parseStage(orEmpty(stage));
  if (!goal || *goal == Stage::Problem || *goal == Stage::Artifact) {
    messages.send(Error, ("error: unknown stage '" + orEmpty(stage) +
                          "'; expected tile, scheduled, thread, target, llvm "
                          "or asm")
                             .str());
    return nullptr;
  }
  Compilation compilation(StringRef(source, bytes), orEmpty(filename),
                          messages);
  if (!compilation.readOptions(orEmpty(options_json)) || !compilation.parse())
    return nullptr;
  std::string text;
  llvm::raw_string_ostream os(text);
  if (failed(
          emitStage(compilation.getModule(), *goal, compilation.options, os)))
    return nullptr;
  return copyOut(text, messages);
}

char *kvbufReportPage(const char *json, size_t bytes,
                      kvbufMessageCallback callback, void *user) {
  Messages messages{callback, user};
  llvm::Expected<llvm::json::Value> data =
      llvm::json::parse(StringRef(json, bytes));
  if (!data) {
    messages.send(Error, "error: the page's data: " +
                             llvm::toString(data.takeError()));
    return nullptr;
  }
  return copyOut(renderPage(*data), messages);
}

char *kvbufModuleTarget(const char *source, size_t bytes, const char *filename,
                        kvbufMessageCallback callback, void *user) {
  Messages messages{callback, user};
  Compilation compilation(StringRef(source, bytes), orEmpty(filename),
                          messages);
  if (!compilation.parse())
    return nullptr;
  StringAttr chip = namedTarget(compilation.getModule());
  return copyOut(chip ? chip.getValue() : "", messages);
}

char *kvbufScheduleCandidates(const char *target) {
  std::optional<TargetInfo> info = lookupTarget(orEmpty(target));
  return info ? strdup(llvm::join(scheduleCandidates(*info), "\n").c_str())
              : nullptr;
}

char *kvbufProblemCandidates(const char *source, size_t bytes,
                             const char *filename, const char *target) {
  std::optional<TargetInfo> info = lookupTarget(orEmpty(target));
  Messages messages{nullptr, nullptr};
  Compilation compilation(StringRef(source, bytes), orEmpty(filename),
                          messages);
  if (!info || !compilation.parse())
    return nullptr;
  // Others before it are parts of it.
  ProblemInterface last;
  compilation.getModule().walk([&](ProblemInterface op) { last = op; });
  return last ? strdup(llvm::join(last.getCandidates(*info), "\n").c_str())
              : kvbufScheduleCandidates(target);
}
