//===- Findings.cpp - What was found, as SARIF and as a page --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulate.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <set>

using namespace llvm;
using namespace kvbuf::emulate;

namespace {
/// "file:line:column", taken apart; line 0: it says nothing.
struct Place {
  StringRef file;
  unsigned line = 0, column = 0;
};
} // namespace

static Place placeOf(StringRef location) {
  Place place;
  auto [front, column] = location.rsplit(':');
  auto [file, line] = front.rsplit(':');
  if (column.getAsInteger(10, place.column) ||
      line.getAsInteger(10, place.line) || place.line == 0)
    return {};
  place.file = file;
  return place;
}

static const json::Array &arrayOf(const json::Object &object, StringRef key) {
  static const json::Array none;
  const json::Array *array = object.getArray(key);
  return array ? *array : none;
}

json::Value kvbuf::emulate::toSarif(const json::Value &report,
                                    StringRef artifact) {
  json::Array results, rules;
  std::set<std::string> kinds;
  for (const json::Value &k : arrayOf(*report.getAsObject(), "kernels")) {
    const json::Object &kernel = *k.getAsObject();
    for (const json::Value &e : arrayOf(kernel, "errors")) {
      const json::Object &error = *e.getAsObject();
      std::string kind = error.getString("kind").value_or("").str();
      if (kinds.insert(kind).second)
        rules.push_back(json::Object{{"id", kind}});
      Place place = placeOf(error.getString("location").value_or(""));
      json::Object physical{
          {"artifactLocation",
           json::Object{{"uri", place.line ? place.file : artifact}}}};
      if (place.line) {
        json::Object region{{"startLine", place.line}};
        if (place.column)
          region["startColumn"] = place.column;
        physical["region"] = std::move(region);
      }
      results.push_back(json::Object{
          {"ruleId", kind},
          {"level", "error"},
          {"message",
           json::Object{{"text", error.getString("text").value_or("")}}},
          {"locations",
           json::Array{json::Object{
               {"physicalLocation", std::move(physical)},
               {"logicalLocations",
                json::Array{json::Object{
                    {"name", kernel.getString("entry").value_or("")},
                    {"kind", "function"}}}}}}},
          {"occurrenceCount", error.getInteger("count").value_or(1)}});
    }
  }
  return json::Object{
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs",
       json::Array{json::Object{
           {"tool", json::Object{{"driver",
                                  json::Object{{"name", "kvbuf-emulate"},
                                               {"rules", std::move(rules)}}}}},
           {"results", std::move(results)}}}}};
}

static std::string escaped(StringRef text) {
  std::string all;
  raw_string_ostream out(all);
  printHTMLEscaped(text, out);
  return all;
}

namespace {
/// Lines of source files, each of which is read once.
class Sources {
public:
  StringRef line(const Place &place) {
    auto [it, isNew] = files.try_emplace(place.file.str());
    if (isNew && !place.file.empty())
      if (auto file = MemoryBuffer::getFile(place.file)) {
        buffers.push_back(std::move(*file));
        buffers.back()->getBuffer().split(it->second, '\n');
      }
    return place.line && place.line <= it->second.size()
               ? it->second[place.line - 1].trim()
               : StringRef();
  }

private:
  std::map<std::string, SmallVector<StringRef>> files;
  std::vector<std::unique_ptr<MemoryBuffer>> buffers;
};
} // namespace

static void writeFindings(raw_ostream &out, const json::Object &kernel,
                          Sources &sources) {
  const json::Array &errors = arrayOf(kernel, "errors");
  if (errors.empty()) {
    out << "<p class=good>No fault was found.</p>\n";
    return;
  }
  out << "<table><tr><th>fault<th>where<th>what</tr>\n";
  for (const json::Value &e : errors) {
    const json::Object &error = *e.getAsObject();
    StringRef location = error.getString("location").value_or("");
    out << "<tr class=bad><td>" << escaped(error.getString("kind").value_or(""))
        << "<td>" << escaped(location) << "<br><code>"
        << escaped(sources.line(placeOf(location))) << "</code><td>"
        << escaped(error.getString("text").value_or("")) << "</tr>\n";
  }
  out << "</table>\n";
}

static void writeMemory(raw_ostream &out, const json::Object &kernel,
                        Sources &sources) {
  const json::Array &lines = arrayOf(kernel, "memory");
  if (lines.empty())
    return;
  out << "<h3>Memory</h3>\n<table><tr><th>where<th>op<th>memory<th>accesses"
         "<th>bytes<th>bank conflicts<th>sectors<th>at least</tr>\n";
  for (const json::Value &l : lines) {
    const json::Object &line = *l.getAsObject();
    StringRef location = line.getString("location").value_or("");
    auto number = [&](StringRef key) {
      auto n = line.getInteger(key);
      return n ? std::to_string(*n) : std::string();
    };
    out << "<tr><td>" << escaped(location) << "<br><code>"
        << escaped(sources.line(placeOf(location))) << "</code><td>"
        << escaped(line.getString("op").value_or("")) << "<td>"
        << escaped(line.getString("space").value_or(""));
    for (StringRef key :
         {"accesses", "bytes", "bank_conflicts", "sectors", "ideal_sectors"})
      out << "<td class=n>" << number(key);
    out << "</tr>\n";
  }
  out << "</table>\n";
}

std::string kvbuf::emulate::toPage(const json::Value &report,
                                   StringRef artifact) {
  std::string text;
  raw_string_ostream out(text);
  out << "<!doctype html><html><head><meta charset=utf-8><title>"
      << escaped(artifact)
      << "</title><style>body{font:15px sans-serif;margin:2em;max-width:75em}"
         "table{border-collapse:collapse}td,th{border:1px solid #ccc;"
         "padding:.3em .6em;text-align:left;vertical-align:top}"
         ".n{text-align:right}.bad td:first-child{color:#b00}.good{color:#070}"
         "</style></head><body>\n<h1>"
      << escaped(artifact) << "</h1>\n";
  Sources sources;
  for (const json::Value &k : arrayOf(*report.getAsObject(), "kernels")) {
    const json::Object &kernel = *k.getAsObject();
    out << "<h2>" << escaped(kernel.getString("entry").value_or(""))
        << "</h2>\n"
        << formatv("<p>{0} blocks, {1} instructions of warps, {2} of lanes</p>",
                   kernel.getInteger("blocks").value_or(0),
                   kernel.getInteger("warp_instructions").value_or(0),
                   kernel.getInteger("lane_instructions").value_or(0));
    writeFindings(out, kernel, sources);
    if (const json::Object *classes = kernel.getObject("instructions")) {
      out << "<h3>Instructions</h3>\n<table><tr><th>class<th>warps<th>lanes"
             "</tr>\n";
      for (const auto &[name, counts] : *classes)
        out << formatv("<tr><td>{0}<td class=n>{1}<td class=n>{2}</tr>\n",
                       StringRef(name),
                       counts.getAsObject()->getInteger("warp").value_or(0),
                       counts.getAsObject()->getInteger("lane").value_or(0));
      out << "</table>\n";
    }
    writeMemory(out, kernel, sources);
  }
  out << "</body></html>\n";
  return text;
}
