//===- MatchAttention.h - Attention in a graph of linalg --------*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVBUFFER_LIB_CONVERSION_RAISEATTENTION_MATCHATTENTION_H
#define KVBUFFER_LIB_CONVERSION_RAISEATTENTION_MATCHATTENTION_H

#include "Visibility.h"

namespace kvbuf::raise {

/// A tensor that attention reads, with the digits of each of its dimensions.
struct SourceTensor {
  mlir::Value tensor;
  llvm::SmallVector<Coord, 4> coords;
  /// The graph multiplies it with this.
  double factor = 1.0;
};

/// A score as a function of the product of a query and a key:
/// scale * qk, or cap * tanh(scale * qk / cap), where nothing hides it.
struct Score {
  double scale = 1.0;
  /// 0: none.
  double cap = 0.0;
  llvm::SmallVector<Hiding, 2> hidings;
  SourceTensor q, k;
  /// The digits that q and k are contracted over.
  Coord depth;
  mlir::Operation *product = nullptr;
};

/// Pages that a graph gathers keys or values of.
struct Pages {
  /// [blocks, rows, heads, columns].
  mlir::Value pool;
  /// The pages of each sequence.
  SourceTensor table;
  /// The coordinate of a page among a sequence's.
  Coord pages;
  /// Entries below 0 count from the end of so many blocks; of none if 0.
  int64_t wrapsAt = 0;
};

/// How many keys a sequence has.
struct Lengths {
  /// Its dimensions are some of the sequences', or none.
  SourceTensor numbers;
  /// A number is that of the last key, not the number of keys.
  bool isInclusive;
};

/// What there is at the end of a graph.
enum class Outcome {
  /// No attention that ends here.
  Other,
  /// Weights of a softmax times values, but `why` keeps it from being raised.
  Refused,
  Found
};

/// Looks for attention that ends in a tensor.
class AttentionMatcher {
public:
  /// With `rowsSeeKeys` no row is hidden from all keys by numbers, and with
  /// `sizesAgree` no dimension of unknown size is broadcast.
  AttentionMatcher(mlir::Value root, mlir::Type roundTo, bool rowsSeeKeys,
                   bool sizesAgree = false)
      : graph(root.getContext(), sizesAgree), root(root), roundTo(roundTo),
        rowsSeeKeys(rowsSeeKeys) {}

  Outcome match();
  /// Takes what is known of an op that is attention by its name: `anchor`, the
  /// coordinates of queries, keys, values and result, the score and what hides
  /// it, and `rootType`. Rows without a key are 0.
  Outcome matchGiven();
  /// The score is `e`, in which `scoreBefore` is the scaled product: masks and
  /// caps as far as it is made of these, else a function.
  void setScore(Expr *e);
  /// Finds pages of keys and values, and the lengths of sequences among what
  /// hides keys. After a match.
  void matchCaches();
  /// Whether an expression can be computed from a sequence, head, row and key,
  /// in few enough steps.
  bool canCompute(Expr *e, unsigned &steps);

  ElementGraph graph;
  mlir::Value root;
  /// The reason, and the op that remarks are about: the product of weights and
  /// values.
  std::string why;
  mlir::Operation *anchor = nullptr;
  /// Whether a window is no attribute only because a row may see no key.
  bool rowsMaySeeNoKey = false;

  // What was found.
  Score score;
  SourceTensor v;
  /// A score of each head that has no value.
  std::optional<SourceTensor> sink;
  /// The coordinates of the root's dimensions, and its type as a tensor.
  llvm::SmallVector<Coord> rootCoords;
  mlir::RankedTensorType rootType;
  /// The coordinates of the log-sum-exp of scores, where it is asked for.
  std::optional<llvm::SmallVector<Coord>> lseCoords;
  /// Queries, keys, columns of V; dimensions that all operands have, as
  /// sequences or as heads of K and V; dimensions of Q alone, heads that share
  /// keys.
  Coord rows, keys, columns, batch, kvHeads, group;
  bool causal = false;
  int64_t left = -1, right = -1;
  /// Of the score's hidings, those that no window is: what hides keys from
  /// rows that see others, or from all; and what changes scores, in this order.
  llvm::SmallVector<Hiding, 2> unseen, changes;
  /// Both, where keys and values lie in pages; and their lengths.
  std::optional<Pages> kPages, vPages;
  std::optional<Lengths> lengths;
  /// The type of elements that the op's operands have, and its result.
  mlir::Type elementType, outType;
  /// What stands for the score in expressions that compute one from it.
  Expr *scoreBefore = nullptr;
  /// Whether `rows` are given, and whether rows that see no key are 0 in the
  /// graph.
  bool rowsAreGiven = false, emptyRowsAreZero = false;

private:
  struct Weights {
    Expr *exp = nullptr, *scores = nullptr, *max = nullptr, *sum = nullptr;
    /// Where this is true (or false) the graph says 0.
    Expr *noKey = nullptr;
    bool noKeyWhere = true;
    double factor = 1.0;
  };
  Outcome refuse(const llvm::Twine &reason) {
    why = reason.str();
    return Outcome::Refused;
  }
  /// The sum that a factor is the inverse of.
  Expr *matchInverse(Expr *e);
  /// Peels what normalizes `e`; the sum.
  Expr *peelSum(Expr *&e);
  bool matchWeights(Expr *e, Weights &weights);
  bool checkSoftmax(const Weights &weights);
  /// Whether the sum and the maximum are of the weights and scores and one
  /// more, a sink.
  bool matchSink(const Weights &weights, Expr *sum, Expr *max);
  bool checkSink();
  /// Whether an expression is the same for all keys.
  bool isOfRow(Expr *e);
  /// Scores without what is subtracted from all of a row's, which no softmax
  /// depends on.
  Expr *peelRowTerms(Expr *scores);
  bool matchNoKey(const Weights &weights);
  /// Whether scores are -inf where a condition is `where`.
  bool isHiddenWhere(Expr *condition, bool where, Expr *scores);
  /// Peels a 0 that is selected where scores are -inf, and weights 0 anyway.
  Expr *peelHidden(Expr *e, Expr *scores);
  bool matchScore(Expr *e, Score &result);
  bool matchProduct(Expr *reduction, Score &result);
  /// The tensor that an operand of a product is, and the factor that stands
  /// between, if `scaled`.
  std::optional<SourceTensor> peelOperand(Expr *e, bool scaled);
  bool matchDimensions();
  /// Makes sequences or heads of the dimensions that all operands share.
  void placeShared(llvm::ArrayRef<Digit> shared);
  /// Whether heads and head sizes are known, and sizes that the op has.
  bool checkSizes();
  /// A hiding, and its band if it has one.
  struct MaskPart {
    Hiding hiding;
    std::optional<Band> band;
  };
  bool matchMask();
  std::optional<Pages> matchPages(const SourceTensor &operand,
                                  llvm::ArrayRef<Digit> last);
  std::optional<Lengths> matchLengths(const Hiding &hiding);
  /// Sets the mask of the op, or leaves it; false, and `why`, where the graph
  /// has no numbers.
  bool matchWindow(llvm::ArrayRef<MaskPart> parts, bool &isWindow,
                   bool &everyRowSees);
  /// Whether a window may take the place of the bands.
  bool standsAlone(llvm::ArrayRef<MaskPart> parts);
  /// Whether there is a key that nothing hides from any row.
  bool hasVisibleKey(llvm::ArrayRef<MaskPart> parts);
  /// Whether a coordinate is made of these.
  bool isKnown(llvm::ArrayRef<Digit> coord);
  bool checkUsers();
  /// Finds the types of operands and the result; false, and `why`.
  bool matchTypes();
  bool contains(const SourceTensor &operand, llvm::ArrayRef<Digit> coord);

  mlir::Type roundTo;
  bool rowsSeeKeys;
};

/// The type that an option `round` of a pass names; none for no name. An error
/// for other types.
mlir::FailureOr<mlir::Type> parseRound(mlir::MLIRContext *context,
                                       llvm::StringRef name);

} // namespace kvbuf::raise

#endif // KVBUFFER_LIB_CONVERSION_RAISEATTENTION_MATCHATTENTION_H
