//===- CodeParse.cpp - Reads SASS and PTX ---------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Compiler/CodeReport.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace kvbuf;
using llvm::StringRef;

namespace {

using Counter = int64_t CodeCounts::*;

/// What begins an instruction's name, and its class. The first that fits
/// counts.
struct Name {
  llvm::StringLiteral prefix;
  Counter counter;
};

// NVIDIA's "CUDA Binary Utilities", instruction set reference.
constexpr Name kSass[] = {{"HMMA", &CodeCounts::matrix},
                          {"IMMA", &CodeCounts::matrix},
                          {"QMMA", &CodeCounts::matrix},
                          {"DMMA", &CodeCounts::matrix},
                          {"HGMMA", &CodeCounts::matrix},
                          {"QGMMA", &CodeCounts::matrix},
                          {"IGMMA", &CodeCounts::matrix},
                          {"LDSM", &CodeCounts::matrixLoads},
                          {"STSM", &CodeCounts::matrixLoads},
                          {"MUFU", &CodeCounts::transcendental},
                          {"LDGSTS", &CodeCounts::copies},
                          {"UTMALDG", &CodeCounts::copies},
                          {"UTMASTG", &CodeCounts::copies},
                          {"UTMAPF", &CodeCounts::copies},
                          {"UBLKCP", &CodeCounts::copies},
                          {"LDGDEPBAR", &CodeCounts::waits},
                          {"DEPBAR", &CodeCounts::waits},
                          {"WARPGROUP.DEPBAR", &CodeCounts::waits},
                          {"UTMACMDFLUSH", &CodeCounts::waits},
                          {"SYNCS", &CodeCounts::waits},
                          {"BAR", &CodeCounts::barriers},
                          {"UCGABAR", &CodeCounts::barriers},
                          {"LDS", &CodeCounts::sharedLoads},
                          {"STS", &CodeCounts::sharedStores},
                          {"ATOMS", &CodeCounts::sharedStores},
                          {"LDL", &CodeCounts::local},
                          {"STL", &CodeCounts::local},
                          {"LDG", &CodeCounts::globalLoads},
                          {"LD", &CodeCounts::globalLoads},
                          {"STG", &CodeCounts::globalStores},
                          {"ST", &CodeCounts::globalStores},
                          {"ATOM", &CodeCounts::globalStores},
                          {"RED.", &CodeCounts::globalStores},
                          {"REDG", &CodeCounts::globalStores},
                          {"SHFL", &CodeCounts::exchanges},
                          {"VOTE", &CodeCounts::exchanges},
                          {"MOVM", &CodeCounts::exchanges},
                          {"REDUX", &CodeCounts::exchanges},
                          {"F2", &CodeCounts::converts},
                          {"I2F", &CodeCounts::converts},
                          {"FADD", &CodeCounts::floats},
                          {"FFMA", &CodeCounts::floats},
                          {"FMUL", &CodeCounts::floats},
                          {"FMNMX", &CodeCounts::floats},
                          {"FSEL", &CodeCounts::floats},
                          {"FSET", &CodeCounts::floats},
                          {"FCHK", &CodeCounts::floats},
                          {"FSWZADD", &CodeCounts::floats},
                          {"HADD2", &CodeCounts::floats},
                          {"HFMA2", &CodeCounts::floats},
                          {"HMUL2", &CodeCounts::floats},
                          {"HMNMX2", &CodeCounts::floats},
                          {"IMAD.MOV", &CodeCounts::moves},
                          {"MOV", &CodeCounts::moves},
                          {"LDC", &CodeCounts::moves},
                          {"CS2R", &CodeCounts::moves},
                          {"S2R", &CodeCounts::moves},
                          {"R2UR", &CodeCounts::moves},
                          {"PRMT", &CodeCounts::integers},
                          {"BRA", &CodeCounts::branches},
                          {"BRX", &CodeCounts::branches},
                          {"BSSY", &CodeCounts::branches},
                          {"BSYNC", &CodeCounts::branches},
                          {"EXIT", &CodeCounts::branches},
                          {"RET", &CodeCounts::branches},
                          {"CALL", &CodeCounts::branches},
                          {"NOP", &CodeCounts::nops},
                          {"U", &CodeCounts::uniform},
                          {"S2UR", &CodeCounts::uniform},
                          {"I", &CodeCounts::integers},
                          {"L", &CodeCounts::integers},
                          {"SHF", &CodeCounts::integers},
                          {"SEL", &CodeCounts::integers},
                          {"P", &CodeCounts::integers},
                          {"R2P", &CodeCounts::integers},
                          {"VI", &CodeCounts::integers},
                          {"BMSK", &CodeCounts::integers},
                          {"FLO", &CodeCounts::integers}};

// PTX ISA, chapter "Instruction Set".
constexpr Name kPtx[] = {{"wgmma.mma_async", &CodeCounts::matrix},
                         {"mma", &CodeCounts::matrix},
                         {"wmma.mma", &CodeCounts::matrix},
                         {"ldmatrix", &CodeCounts::matrixLoads},
                         {"stmatrix", &CodeCounts::matrixLoads},
                         {"movmatrix", &CodeCounts::exchanges},
                         {"shfl", &CodeCounts::exchanges},
                         {"vote", &CodeCounts::exchanges},
                         {"redux", &CodeCounts::exchanges},
                         {"cp.async.mbarrier", &CodeCounts::waits},
                         {"cp.async", &CodeCounts::copies},
                         {"wgmma", &CodeCounts::waits},
                         {"mbarrier", &CodeCounts::waits},
                         {"fence", &CodeCounts::waits},
                         {"membar", &CodeCounts::waits},
                         {"bar", &CodeCounts::barriers},
                         {"ex2", &CodeCounts::transcendental},
                         {"lg2", &CodeCounts::transcendental},
                         {"rcp", &CodeCounts::transcendental},
                         {"sqrt", &CodeCounts::transcendental},
                         {"rsqrt", &CodeCounts::transcendental},
                         {"sin", &CodeCounts::transcendental},
                         {"cos", &CodeCounts::transcendental},
                         {"tanh", &CodeCounts::transcendental},
                         {"cvta", &CodeCounts::integers},
                         {"cvt", &CodeCounts::converts},
                         {"ld.shared", &CodeCounts::sharedLoads},
                         {"st.shared", &CodeCounts::sharedStores},
                         {"ld.local", &CodeCounts::local},
                         {"st.local", &CodeCounts::local},
                         {"ld.param", &CodeCounts::moves},
                         {"ld", &CodeCounts::globalLoads},
                         {"st", &CodeCounts::globalStores},
                         {"atom", &CodeCounts::globalStores},
                         {"red", &CodeCounts::globalStores},
                         {"bra", &CodeCounts::branches},
                         {"brx", &CodeCounts::branches},
                         {"call", &CodeCounts::branches},
                         {"ret", &CodeCounts::branches},
                         {"exit", &CodeCounts::branches},
                         {"mov", &CodeCounts::moves}};

/// One instruction.
struct Instruction {
  std::string name;
  uint64_t address = 0;
  Counter counter = &CodeCounts::other;
  /// The label or the address that a branch leads to.
  std::string target;
};

/// A kernel's instructions and where its labels stand among them.
struct Listing {
  std::string name;
  std::vector<Instruction> code;
  llvm::StringMap<size_t> labels;
};

} // namespace

/// Whether `name` begins with a whole word of SASS: "LD" fits "LD.E", not
/// "LDC". Prefixes of one or two letters stand for families.
static bool fits(StringRef name, StringRef prefix, bool family) {
  if (!name.starts_with(prefix))
    return false;
  return family || name.size() == prefix.size() || name[prefix.size()] == '.' ||
         prefix.ends_with(".");
}

static Counter classOfSass(StringRef name) {
  for (const Name &known : kSass) {
    StringRef p = known.prefix;
    bool family = p == "U" || p == "I" || p == "L" || p == "P" || p == "VI" ||
                  p == "F2" || p == "FSET" || p == "SHF" || p == "VOTE" ||
                  p == "ATOM" || p == "ATOMS" || p == "S2R" || p == "I2F" ||
                  p == "UCGABAR";
    if (fits(name, p, family))
      return known.counter;
  }
  return &CodeCounts::other;
}

static Counter classOfPtx(StringRef name) {
  // "cp.async.wait_group", "cp.async.commit_group": a part of a word.
  for (StringRef part : {"cp.async.wait", "cp.async.bulk.wait",
                         "cp.async.commit", "cp.async.bulk.commit"})
    if (name.starts_with(part))
      return &CodeCounts::waits;
  for (const Name &known : kPtx)
    if (name == known.prefix ||
        (name.starts_with(known.prefix) && name[known.prefix.size()] == '.'))
      return known.counter;
  // Arithmetic: the last type that the name has tells.
  for (StringRef type :
       {".f32", ".f64", ".f16", ".bf16", ".f16x2", ".bf16x2", ".f32x2"})
    if (name.contains(type))
      return &CodeCounts::floats;
  return &CodeCounts::integers;
}

/// Adds a kernel with its loops.
static CodeKernel summarize(const Listing &listing, bool hasBytes) {
  CodeKernel kernel;
  kernel.name = listing.name;
  const std::vector<Instruction> &code = listing.code;
  for (const Instruction &i : code)
    ++(kernel.counts.*i.counter);
  if (hasBytes && !code.empty())
    kernel.codeBytes = code.back().address + 16;
  // From each label that a branch leads back to, to the last such branch.
  llvm::DenseMap<size_t, size_t> ends;
  for (auto [index, i] : llvm::enumerate(code)) {
    if (i.target.empty())
      continue;
    auto label = listing.labels.find(i.target);
    if (label == listing.labels.end() || label->second > index)
      continue;
    size_t &end = ends[label->second];
    end = std::max(end, index + 1);
  }
  std::vector<std::pair<size_t, size_t>> loops(ends.begin(), ends.end());
  llvm::sort(loops);
  for (auto [begin, end] : loops) {
    // A branch to itself ends a kernel.
    if (end - begin < 2)
      continue;
    CodeLoop loop;
    loop.begin = code[begin].address;
    loop.end = end < code.size() ? code[end].address
                                 : code.back().address + (hasBytes ? 16 : 1);
    loop.stages.emplace_back();
    for (size_t k = begin; k < end; ++k) {
      // What an inner loop has is its own.
      auto inner =
          llvm::find_if(loops, [&, from = begin, to = end](auto other) {
            return other != std::pair(from, to) && other.first >= from &&
                   other.second <= to && k >= other.first && k < other.second;
          });
      if (inner != loops.end())
        continue;
      const Instruction &i = code[k];
      ++(loop.counts.*i.counter);
      if (i.counter == &CodeCounts::waits)
        loop.waits.push_back(i.name);
      if (i.counter == &CodeCounts::barriers)
        loop.stages.emplace_back();
      ++(loop.stages.back().*i.counter);
    }
    if (loop.counts.matrix)
      kernel.loops.push_back(std::move(loop));
  }
  return kernel;
}

/// "`(.L_x_4)" and "0x420" in a branch's operands.
static std::string targetOf(StringRef operands) {
  size_t label = operands.find("`(");
  if (label != StringRef::npos)
    return operands.drop_front(label + 2).split(')').first.str();
  for (StringRef rest = operands; !rest.empty();) {
    StringRef word;
    std::tie(word, rest) = llvm::getToken(rest, " ,;");
    uint64_t address;
    if (word.starts_with("0x") && !word.getAsInteger(0, address))
      return "@" + llvm::utohexstr(address);
  }
  return "";
}

std::vector<CodeKernel> kvbuf::parseSass(StringRef text) {
  std::vector<Listing> listings;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    line = line.trim();
    if (line.consume_front(".text.") && line.consume_back(":")) {
      listings.emplace_back().name = line.str();
      continue;
    }
    if (line.consume_front("Function : ")) {
      listings.emplace_back().name = line.trim().str();
      continue;
    }
    if (listings.empty())
      continue;
    Listing &listing = listings.back();
    if (line.starts_with(".L") && line.ends_with(":")) {
      listing.labels[line.drop_back()] = listing.code.size();
      continue;
    }
    // "/*0510*/ @P2 BRA `(.L_x_0) ;"
    if (!line.consume_front("/*"))
      continue;
    auto [address, body] = line.split("*/");
    uint64_t at;
    body = body.ltrim();
    if (address.trim().getAsInteger(16, at) || body.empty() ||
        body.starts_with("/*"))
      continue;
    if (body.starts_with("@"))
      body = llvm::getToken(body).second.ltrim();
    auto [name, operands] = llvm::getToken(body, " ;");
    if (name.empty())
      continue;
    Instruction i;
    i.name = name.str();
    i.address = at;
    i.counter = classOfSass(name);
    if (name.starts_with("BRA"))
      i.target = targetOf(operands);
    listing.labels["@" + llvm::utohexstr(at)] = listing.code.size();
    listing.code.push_back(std::move(i));
  }
  std::vector<CodeKernel> kernels;
  for (const Listing &listing : listings)
    if (!listing.code.empty())
      kernels.push_back(summarize(listing, /*hasBytes=*/true));
  return kernels;
}

std::vector<CodeKernel> kvbuf::parsePtx(StringRef text) {
  std::vector<Listing> listings;
  unsigned depth = 0;
  // A statement goes on over lines until its semicolon.
  bool open = false, inHead = false;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    line = line.split("//").first.trim();
    size_t entry = line.find(".entry ");
    if (entry != StringRef::npos) {
      StringRef name = llvm::getToken(line.drop_front(entry + 7), " (\t").first;
      listings.emplace_back().name = name.str();
      depth = 0;
      open = false;
      inHead = true;
      continue;
    }
    if (listings.empty() || line.empty())
      continue;
    if (inHead) {
      inHead = line != "{";
      depth = inHead ? 0 : 1;
      continue;
    }
    if (!depth)
      continue;
    if (open) {
      open = !line.contains(';');
      continue;
    }
    if (line.consume_front("{")) {
      ++depth;
      line = line.ltrim();
    }
    if (line.starts_with("}")) {
      --depth;
      continue;
    }
    Listing &listing = listings.back();
    if (line.ends_with(":")) {
      listing.labels[line.drop_back()] = listing.code.size();
      continue;
    }
    if (line.empty())
      continue;
    open = !line.contains(';');
    if (line.starts_with("."))
      continue;
    // "@%p1 bra $L__BB0_2;"
    if (line.starts_with("@"))
      line = llvm::getToken(line).second.ltrim();
    auto [name, operands] = llvm::getToken(line, " \t;");
    if (name.empty() || !llvm::isAlpha(name.front()))
      continue;
    Instruction i;
    i.name = name.str();
    i.address = listing.code.size();
    i.counter = classOfPtx(name);
    if (name == "bra" || name.starts_with("bra."))
      i.target = llvm::getToken(operands, " \t;").first.str();
    listing.code.push_back(std::move(i));
    // "... ; }" ends a scope that inline assembly has opened.
    if (line.ends_with("}") && !open && line.contains(';') && depth > 1)
      --depth;
  }
  std::vector<CodeKernel> kernels;
  for (const Listing &listing : listings)
    if (!listing.code.empty())
      kernels.push_back(summarize(listing, /*hasBytes=*/false));
  return kernels;
}
