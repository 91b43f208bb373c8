//===- LinearLayout.cpp - Maps that are linear over bits ------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Layout/LinearLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cassert>

using namespace kvbuf;

namespace {
using Dim = LinearLayout::Dim;
using Coord = LinearLayout::Coord;

/// The position of the dimension `name`, or -1.
int indexOf(llvm::ArrayRef<Dim> dims, llvm::StringRef name) {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim.name == name)
      return static_cast<int>(i);
  return -1;
}

unsigned log2Of(llvm::ArrayRef<Dim> dims, llvm::StringRef name) {
  int i = indexOf(dims, name);
  return i < 0 ? 0 : dims[i].log2Size;
}

unsigned total(llvm::ArrayRef<Dim> dims) {
  unsigned bits = 0;
  for (const Dim &dim : dims)
    bits += dim.log2Size;
  return bits;
}

void rename(llvm::MutableArrayRef<Dim> dims, llvm::StringRef from,
            llvm::StringRef to) {
  int i = indexOf(dims, from);
  assert(i >= 0 && "no dimension of that name");
  assert((from == to || indexOf(dims, to) < 0) && "name is taken");
  dims[i].name = to.str();
}

/// All coordinates side by side in one word, the first in the lowest bits, so
/// that linear algebra over bits is arithmetic on words.
uint64_t pack(const Coord &coord, llvm::ArrayRef<Dim> dims) {
  uint64_t word = 0;
  unsigned shift = 0;
  for (auto [value, dim] : llvm::zip_equal(coord, dims)) {
    if (dim.log2Size)
      word |= static_cast<uint64_t>(value) << shift;
    shift += dim.log2Size;
  }
  assert(shift <= 64 && "more than 64 output bits");
  return word;
}

/// The inverse of `pack`.
Coord unpack(uint64_t word, llvm::ArrayRef<Dim> dims) {
  Coord coord;
  for (const Dim &dim : dims) {
    coord.push_back(static_cast<int64_t>(
        word & llvm::maskTrailingOnes<uint64_t>(dim.log2Size)));
    word = dim.log2Size < 64 ? word >> dim.log2Size : 0;
  }
  return coord;
}

/// One row of a system of equations over bits: the image `image` of the inputs
/// `inputs` (bit i: input bit i).
struct Row {
  uint64_t image = 0;
  uint64_t inputs = 0;
};

/// Brings the images to reduced echelon form and returns the rank; rows below
/// the rank have a zero image, so their `inputs` generate the kernel.
unsigned reduce(llvm::MutableArrayRef<Row> rows) {
  unsigned rank = 0;
  for (unsigned bit = 0; bit < 64 && rank < rows.size(); ++bit) {
    Row *pivot =
        std::find_if(rows.begin() + rank, rows.end(),
                     [&](const Row &row) { return row.image >> bit & 1; });
    if (pivot == rows.end())
      continue;
    std::swap(rows[rank], *pivot);
    for (auto [i, row] : llvm::enumerate(rows)) {
      if (i == rank || !(row.image >> bit & 1))
        continue;
      row.image ^= rows[rank].image;
      row.inputs ^= rows[rank].inputs;
    }
    ++rank;
  }
  return rank;
}

/// One row per input bit, the dimensions in order, each from its lowest bit.
llvm::SmallVector<Row> rowsOf(llvm::ArrayRef<llvm::SmallVector<Coord>> table,
                              llvm::ArrayRef<Dim> outs) {
  llvm::SmallVector<Row> rows;
  for (const auto &bases : table)
    for (const Coord &image : bases) {
      assert(rows.size() < 64 && "more than 64 input bits");
      rows.push_back({pack(image, outs), uint64_t(1) << rows.size()});
    }
  return rows;
}
} // namespace

LinearLayout::LinearLayout(llvm::ArrayRef<std::string> inNames,
                           llvm::ArrayRef<llvm::SmallVector<Coord>> bases,
                           llvm::ArrayRef<Dim> outDims)
    : outs(outDims), table(bases) {
  assert(inNames.size() == bases.size() && "one list of bases per dimension");
  for (auto [name, images] : llvm::zip_equal(inNames, bases)) {
    assert(indexOf(ins, name) < 0 && "input dimensions of the same name");
    ins.push_back({name, static_cast<unsigned>(images.size())});
    for ([[maybe_unused]] const Coord &image : images) {
      assert(image.size() == outs.size() && "one coordinate per output");
      assert(llvm::all_of(llvm::zip_equal(image, outs),
                          [](auto pair) {
                            auto [value, dim] = pair;
                            return value >= 0 && value < dim.size();
                          }) &&
             "a basis outside the codomain");
    }
  }
  for ([[maybe_unused]] auto [i, dim] : llvm::enumerate(outs))
    assert(indexOf(outs, dim.name) == static_cast<int>(i) &&
           "output dimensions of the same name");
}

LinearLayout LinearLayout::identity(llvm::StringRef in, llvm::StringRef out,
                                    unsigned log2Size) {
  llvm::SmallVector<Coord> bases;
  for (unsigned bit = 0; bit < log2Size; ++bit)
    bases.push_back({int64_t(1) << bit});
  return LinearLayout({in.str()}, {bases}, {Dim{out.str(), log2Size}});
}

LinearLayout LinearLayout::zeros(llvm::StringRef in, llvm::StringRef out,
                                 unsigned log2Size) {
  llvm::SmallVector<Coord> bases(log2Size, Coord{0});
  return LinearLayout({in.str()}, {bases}, {Dim{out.str(), 0}});
}

bool LinearLayout::hasInDim(llvm::StringRef name) const {
  return indexOf(ins, name) >= 0;
}

bool LinearLayout::hasOutDim(llvm::StringRef name) const {
  return indexOf(outs, name) >= 0;
}

unsigned LinearLayout::inLog2(llvm::StringRef name) const {
  return log2Of(ins, name);
}

unsigned LinearLayout::outLog2(llvm::StringRef name) const {
  return log2Of(outs, name);
}

unsigned LinearLayout::totalInLog2() const { return total(ins); }

unsigned LinearLayout::totalOutLog2() const { return total(outs); }

const Coord &LinearLayout::basis(llvm::StringRef in, unsigned bit) const {
  int i = indexOf(ins, in);
  assert(i >= 0 && bit < ins[i].log2Size && "no such input bit");
  return table[i][bit];
}

int64_t LinearLayout::basis(llvm::StringRef in, unsigned bit,
                            llvm::StringRef out) const {
  int o = indexOf(outs, out);
  return o < 0 ? 0 : basis(in, bit)[o];
}

Coord LinearLayout::apply(llvm::ArrayRef<Named> point) const {
  Coord result(outs.size(), 0);
  for (auto [name, value] : point) {
    int i = indexOf(ins, name);
    // A point may carry coordinates that this layout does not depend on only
    // if they say nothing.
    assert((i >= 0 || value == 0) && "no input dimension of that name");
    if (i < 0)
      continue;
    assert(value >= 0 && value < ins[i].size() && "outside the domain");
    for (auto [bit, image] : llvm::enumerate(table[i]))
      if (value >> bit & 1)
        for (auto [sum, part] : llvm::zip_equal(result, image))
          sum ^= part;
  }
  return result;
}

int64_t LinearLayout::apply(llvm::ArrayRef<Named> point,
                            llvm::StringRef out) const {
  int o = indexOf(outs, out);
  assert(o >= 0 && "no output dimension of that name");
  return apply(point)[o];
}

LinearLayout LinearLayout::operator*(const LinearLayout &outer) const {
  LinearLayout result = *this;
  for (const Dim &dim : outer.outs)
    if (int o = indexOf(result.outs, dim.name); o >= 0)
      result.outs[o].log2Size += dim.log2Size;
    else
      result.outs.push_back(dim);
  for (auto &bases : result.table)
    for (Coord &image : bases)
      image.resize(result.outs.size(), 0);

  for (auto [dim, bases] : llvm::zip_equal(outer.ins, outer.table)) {
    int i = indexOf(result.ins, dim.name);
    if (i < 0) {
      i = static_cast<int>(result.ins.size());
      result.ins.push_back({dim.name, 0});
      result.table.emplace_back();
    }
    result.ins[i].log2Size += dim.log2Size;
    for (const Coord &image : bases) {
      Coord shifted(result.outs.size(), 0);
      for (auto [value, outDim] : llvm::zip_equal(image, outer.outs))
        shifted[indexOf(result.outs, outDim.name)] = value
                                                     << outLog2(outDim.name);
      result.table[i].push_back(std::move(shifted));
    }
  }
  return result;
}

LinearLayout LinearLayout::compose(const LinearLayout &next) const {
  assert(outs.size() == next.ins.size() && "dimensions do not match");
  LinearLayout result;
  result.ins = ins;
  result.outs = next.outs;
  for (const auto &bases : table) {
    auto &composed = result.table.emplace_back();
    for (const Coord &image : bases) {
      llvm::SmallVector<Named> point;
      for (auto [value, dim] : llvm::zip_equal(image, outs)) {
        assert(next.hasInDim(dim.name) &&
               dim.log2Size <= next.inLog2(dim.name) &&
               "the next layout's domain is too small");
        point.push_back({dim.name, value});
      }
      composed.push_back(next.apply(point));
    }
  }
  return result;
}

bool LinearLayout::isInjective() const {
  // More input than output bits also settles layouts too large for `rowsOf`.
  if (totalInLog2() > totalOutLog2())
    return false;
  llvm::SmallVector<Row> rows = rowsOf(table, outs);
  return reduce(rows) == rows.size();
}

bool LinearLayout::isSurjective() const {
  llvm::SmallVector<Row> rows = rowsOf(table, outs);
  return reduce(rows) == totalOutLog2();
}

std::optional<LinearLayout> LinearLayout::inverse() const {
  if (totalInLog2() != totalOutLog2())
    return std::nullopt;
  llvm::SmallVector<Row> rows = rowsOf(table, outs);
  if (reduce(rows) != rows.size())
    return std::nullopt;
  // A full-rank reduced echelon form is the identity: row i is the image with
  // output bit i alone.
  LinearLayout result;
  result.ins = outs;
  result.outs = ins;
  const Row *row = rows.begin();
  for (const Dim &dim : outs) {
    auto &bases = result.table.emplace_back();
    for (unsigned bit = 0; bit < dim.log2Size; ++bit, ++row)
      bases.push_back(unpack(row->inputs, ins));
  }
  return result;
}

unsigned LinearLayout::contiguousLog2(llvm::StringRef in,
                                      llvm::StringRef out) const {
  int i = indexOf(ins, in), o = indexOf(outs, out);
  if (i < 0 || o < 0)
    return 0;
  // Do the lowest `log2` bits map to themselves, and does no other basis touch
  // the bits that they occupy?
  auto fits = [&](unsigned log2) {
    int64_t low = (int64_t(1) << log2) - 1;
    for (auto [d, bases] : llvm::enumerate(table))
      for (auto [bit, image] : llvm::enumerate(bases)) {
        if (static_cast<int>(d) != i || bit >= log2) {
          if (image[o] & low)
            return false;
          continue;
        }
        for (auto [k, value] : llvm::enumerate(image))
          if (value != (static_cast<int>(k) == o ? int64_t(1) << bit : 0))
            return false;
      }
    return true;
  };
  unsigned log2 = std::min(ins[i].log2Size, outs[o].log2Size);
  while (!fits(log2))
    --log2;
  return log2;
}

LinearLayout
LinearLayout::restrictIn(llvm::ArrayRef<llvm::StringRef> names) const {
  LinearLayout result;
  result.outs = outs;
  for (llvm::StringRef name : names) {
    int i = indexOf(ins, name);
    assert(i >= 0 && "no input dimension of that name");
    result.ins.push_back(ins[i]);
    result.table.push_back(table[i]);
  }
  return result;
}

LinearLayout
LinearLayout::restrictOut(llvm::ArrayRef<llvm::StringRef> names) const {
  LinearLayout result;
  result.ins = ins;
  llvm::SmallVector<int> kept;
  for (llvm::StringRef name : names) {
    kept.push_back(indexOf(outs, name));
    assert(kept.back() >= 0 && "no output dimension of that name");
    result.outs.push_back(outs[kept.back()]);
  }
  for (const auto &bases : table) {
    auto &projected = result.table.emplace_back();
    for (const Coord &image : bases)
      projected.push_back(Coord(llvm::map_range(
          kept, [&, &source = image](int o) { return source[o]; })));
  }
  return result;
}

LinearLayout LinearLayout::renameIn(llvm::StringRef from,
                                    llvm::StringRef to) const {
  LinearLayout result = *this;
  rename(result.ins, from, to);
  return result;
}

LinearLayout LinearLayout::renameOut(llvm::StringRef from,
                                     llvm::StringRef to) const {
  LinearLayout result = *this;
  rename(result.outs, from, to);
  return result;
}

LinearLayout LinearLayout::permuteInBits(llvm::StringRef in,
                                         llvm::ArrayRef<unsigned> order) const {
  int i = indexOf(ins, in);
  assert(i >= 0 && order.size() == ins[i].log2Size && "one entry per bit");
  LinearLayout result = *this;
  [[maybe_unused]] uint64_t seen = 0;
  for (auto [bit, old] : llvm::enumerate(order)) {
    assert(old < order.size() && "no such bit");
    seen |= uint64_t(1) << old;
    result.table[i][bit] = table[i][old];
  }
  assert(seen == llvm::maskTrailingOnes<uint64_t>(order.size()) &&
         "not a permutation");
  return result;
}

std::string LinearLayout::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto [dim, bases] : llvm::zip_equal(ins, table)) {
    if (bases.empty())
      os << dim.name << " has one value\n";
    for (auto [bit, image] : llvm::enumerate(bases)) {
      os << dim.name << ' ' << (int64_t(1) << bit) << " ->";
      for (auto [value, out] : llvm::zip_equal(image, outs))
        os << ' ' << out.name << ' ' << value;
      os << '\n';
    }
  }
  os << "into";
  for (const Dim &out : outs)
    os << ' ' << out.name << ' ' << out.size();
  os << '\n';
  return text;
}
