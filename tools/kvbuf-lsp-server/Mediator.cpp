//===- Mediator.cpp - Between an editor and MLIR's server -----------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mediator.h"
#include "Knowledge.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/LSP/Protocol.h"
#include "llvm/Support/LSP/Transport.h"
#include <map>
#include <mutex>
#include <thread>

using namespace mlir;
using namespace kvbuf;
namespace json = llvm::json;

namespace {

class Mediator {
public:
  Mediator(const DialectRegistry &registry, std::FILE *toServer, bool pretty)
      : registry(registry), toServer(toServer), pretty(pretty) {}

  /// A message of the editor's; it goes on to the server.
  void fromEditor(StringRef message);
  /// A message of the server's; it goes on to the editor.
  void fromServer(StringRef message);

private:
  /// A question of the editor's that the server has not answered.
  struct Question {
    bool isHover = false;
    /// The document as it was, and the place in it.
    std::string text;
    size_t offset = 0;
  };
  /// A document, and what it was at versions that the server has not spoken of.
  struct Document {
    std::string text;
    std::map<int64_t, std::string> versions;
  };

  void watch(const json::Object &message);
  /// Where a position lies in a document.
  size_t offsetOf(StringRef uri, const json::Object &position) const;
  void addDescription(json::Object &answer, const Question &question);
  void addWords(json::Object &answer, const Question &question);
  void addDiagnostics(json::Object &params);
  void sendToEditor(const json::Value &message);

  const DialectRegistry &registry;
  std::FILE *toServer;
  bool pretty;
  std::mutex mutex;
  llvm::StringMap<Document> documents;
  /// By the question's id, as text.
  std::map<std::string, Question> questions;
};

} // namespace

static std::string textOf(const json::Value &value) {
  return llvm::formatv("{0}", value).str();
}

size_t Mediator::offsetOf(StringRef uri, const json::Object &position) const {
  auto document = documents.find(uri);
  if (document == documents.end())
    return 0;
  StringRef text = document->second.text;
  int64_t line = position.getInteger("line").value_or(0),
          character = position.getInteger("character").value_or(0);
  size_t at = 0;
  for (; line > 0; --line) {
    size_t end = text.find('\n', at);
    if (end == StringRef::npos)
      return text.size();
    at = end + 1;
  }
  return std::min(at + static_cast<size_t>(std::max<int64_t>(character, 0)),
                  text.size());
}

/// Keeps the documents' texts and the questions that are to be added to.
void Mediator::watch(const json::Object &message) {
  StringRef method = message.getString("method").value_or("");
  const json::Object *params = message.getObject("params");
  const json::Object *document =
      params ? params->getObject("textDocument") : nullptr;
  if (!document)
    return;
  std::string uri = document->getString("uri").value_or("").str();
  int64_t version = document->getInteger("version").value_or(0);
  if (method == "textDocument/didOpen") {
    Document &opened = documents[uri];
    opened.text = document->getString("text").value_or("").str();
    opened.versions = {{version, opened.text}};
  } else if (method == "textDocument/didClose") {
    documents.erase(uri);
  } else if (method == "textDocument/didChange") {
    const json::Array *changes = params->getArray("contentChanges");
    for (const json::Value &change : changes ? *changes : json::Array()) {
      llvm::lsp::TextDocumentContentChangeEvent event;
      json::Path::Root root;
      if (fromJSON(change, event, root))
        (void)event.applyTo(documents[uri].text);
    }
    documents[uri].versions[version] = documents[uri].text;
  } else if (method == "textDocument/hover" ||
             method == "textDocument/completion") {
    const json::Object *position = params->getObject("position");
    const json::Value *id = message.get("id");
    if (position && id)
      questions[textOf(*id)] = {method == "textDocument/hover",
                                documents[uri].text, offsetOf(uri, *position)};
  }
}

void Mediator::fromEditor(StringRef message) {
  if (llvm::Expected<json::Value> parsed = json::parse(message)) {
    std::lock_guard lock(mutex);
    if (const json::Object *object = parsed->getAsObject())
      watch(*object);
  } else {
    llvm::consumeError(parsed.takeError());
  }
  std::fprintf(toServer, "Content-Length: %zu\r\n\r\n", message.size());
  std::fwrite(message.data(), 1, message.size(), toServer);
  std::fflush(toServer);
}

void Mediator::addDescription(json::Object &answer, const Question &question) {
  std::string text = lsp::describe(question.text, question.offset);
  if (text.empty())
    return;
  // What MLIR's server shows of the op comes first.
  if (json::Object *hover = answer.getObject("result"))
    if (json::Object *contents = hover->getObject("contents"))
      if (std::optional<StringRef> own = contents->getString("value"))
        text = (*own + "\n***\n" + text).str();
  json::Object contents{{"kind", "markdown"}, {"value", text}};
  if (json::Object *hover = answer.getObject("result"))
    (*hover)["contents"] = std::move(contents);
  else
    answer["result"] = json::Object{{"contents", std::move(contents)}};
}

void Mediator::addWords(json::Object &answer, const Question &question) {
  std::vector<lsp::Word> words = lsp::complete(question.text, question.offset);
  if (words.empty())
    return;
  // There MLIR's server offers what would stand outside of the brackets.
  constexpr int64_t keyword = 14;
  json::Array items;
  for (const lsp::Word &word : words)
    items.push_back(json::Object{
        {"label", word.name}, {"kind", keyword}, {"detail", word.detail}});
  answer["result"] =
      json::Object{{"isIncomplete", false}, {"items", std::move(items)}};
  answer.erase("error");
}

void Mediator::addDiagnostics(json::Object &params) {
  StringRef uri = params.getString("uri").value_or("");
  json::Array *list = params.getArray("diagnostics");
  // What does not parse has been said.
  if (!list || !list->empty())
    return;
  auto document = documents.find(uri);
  if (document == documents.end())
    return;
  // The editor may have gone on since.
  std::map<int64_t, std::string> &versions = document->second.versions;
  auto known = versions.find(params.getInteger("version").value_or(0));
  std::string text =
      known == versions.end() ? document->second.text : known->second;
  if (known != versions.end())
    versions.erase(versions.begin(), known);
  for (json::Value &diagnostic : lsp::diagnose(registry, text))
    list->push_back(std::move(diagnostic));
}

void Mediator::sendToEditor(const json::Value &message) {
  std::string text =
      pretty ? llvm::formatv("{0:2}", message).str() : textOf(message);
  std::printf("Content-Length: %zu\r\n\r\n%s%s", text.size(), text.c_str(),
              pretty ? "\n" : "");
  std::fflush(stdout);
}

void Mediator::fromServer(StringRef message) {
  llvm::Expected<json::Value> parsed = json::parse(message);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return;
  }
  std::lock_guard lock(mutex);
  if (json::Object *object = parsed->getAsObject()) {
    const json::Value *id = object->get("id");
    if (object->getString("method") == "textDocument/publishDiagnostics") {
      if (json::Object *params = object->getObject("params"))
        addDiagnostics(*params);
    } else if (id && !object->get("method")) {
      auto question = questions.find(textOf(*id));
      if (question != questions.end()) {
        if (question->second.isHover)
          addDescription(*object, question->second);
        else
          addWords(*object, question->second);
        questions.erase(question);
      }
    }
  }
  sendToEditor(*parsed);
}

void kvbuf::lsp::mediate(const DialectRegistry &registry, std::FILE *toServer,
                         std::FILE *fromServer, bool delimited) {
  using llvm::lsp::JSONStreamStyle;
  Mediator mediator(registry, toServer, delimited);
  std::thread answers([&] {
    llvm::lsp::JSONTransportInputOverFile input(fromServer);
    std::string message;
    while (!input.isEndOfInput() && !input.hasError())
      if (succeeded(input.readMessage(message)))
        mediator.fromServer(message);
  });
  llvm::lsp::JSONTransportInputOverFile input(
      stdin,
      delimited ? JSONStreamStyle::Delimited : JSONStreamStyle::Standard);
  std::string message;
  while (!input.isEndOfInput() && !input.hasError())
    if (succeeded(input.readMessage(message)))
      mediator.fromEditor(message);
  std::fclose(toServer);
  answers.join();
}
