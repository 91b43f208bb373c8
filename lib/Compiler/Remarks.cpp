//===- Remarks.cpp - Remarks for people -----------------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kvbuffer/Compiler/Remarks.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace kvbuf;

std::string kvbuf::locationPrefix(Location loc) {
  auto file = loc->findInstanceOf<FileLineColLoc>();
  if (!file)
    return "";
  return (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
          Twine(file.getColumn()) + ": ")
      .str();
}

namespace {

/// Formats remarks for people and hands them on.
class TextStreamer : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit TextStreamer(RemarkFunction receive) : receive(std::move(receive)) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    std::string text = locationPrefix(remark.getLocation()) + "remark: ";
    if (StringRef category = remark.getCombinedCategoryName();
        !category.empty())
      text += ("[" + category + "] ").str();
    text += remark.getRemarkName().str();
    // A kernel beside the one that was asked for says so in its locations.
    if (auto kernel = Location(remark.getLocation())->findInstanceOf<NameLoc>())
      text += " of '" + kernel.getName().str() + "'";
    text += ": ";
    // Pieces of text make one sentence; numbers have names, and commas.
    bool first = true;
    for (const remark::detail::Remark::Arg &arg : remark.getArgs()) {
      if (arg.key == "Remark" || arg.key == "Reason") {
        text += arg.val;
      } else {
        if (!first)
          text += ", ";
        text += arg.key + "=" + arg.val;
      }
      first = false;
    }
    receive(text);
  }

private:
  RemarkFunction receive;
};

} // namespace

llvm::LogicalResult kvbuf::enableRemarks(MLIRContext &context, StringRef filter,
                                         RemarkFunction receive) {
  remark::RemarkCategories categories;
  // `all` alone enables none of the kinds.
  categories.passed = categories.missed = categories.analysis =
      categories.failed = filter.str();
  return remark::enableOptimizationRemarks(
      context, std::make_unique<TextStreamer>(std::move(receive)),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), categories);
}
