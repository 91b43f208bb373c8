//===- Page.cpp - The page's HTML -----------------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Report/Report.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"

// From page.html, page.css and page.js (CMakeLists.txt).
#include "PageTemplate.inc"

using namespace kvbuf;

/// What may stand in a <script> element: no "</script>" and no "<!--".
static std::string forScript(llvm::StringRef json) {
  std::string text;
  text.reserve(json.size());
  for (char c : json)
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  return text;
}

std::string kvbuf::renderPage(const llvm::json::Value &data) {
  std::string page;
  llvm::StringRef rest = kPageTemplate;
  const std::pair<llvm::StringRef, std::string> parts[] = {
      {"/*STYLE*/", kPageStyle},
      {"/*DATA*/", forScript(llvm::formatv("{0}", data).str())},
      {"/*SCRIPT*/", kPageScript}};
  for (const auto &[mark, text] : parts) {
    auto [before, after] = rest.split(mark);
    page += before;
    page += text;
    rest = after;
  }
  page += rest;
  return page;
}
