//===- ScheduleText.cpp - How a schedule is read and written --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A schedule names parameters of its tile, and of each question that it answers
// a kind, with the parameters that this kind has: `teams = moving<producers =
// 4>`. A kind is a list of parameters (ScheduleParameters.h) in which some are
// set, so that one set of rules says what goes together. The list itself is
// text, too: `producers = 4`.
//
//===----------------------------------------------------------------------===//

#include "NamedParameters.h"

using namespace mlir;
using namespace kvbuf;

namespace {
/// A kind that a question may be answered by: the alternative of Schedule.h's
/// variant of the same number.
struct ScheduleKind {
  StringLiteral name;
  /// Parameters of the list that it has.
  ArrayRef<StringLiteral> parameters;
  /// Makes a list of this kind, as far as no parameter of its own does.
  void (*choose)(ScheduleParameters &list);
};

/// A question that schedules answer.
struct ScheduleQuestion {
  StringLiteral name;
  ArrayRef<ScheduleKind> kinds;
  /// The number of a schedule's kind.
  size_t (*kindOf)(const Schedule &schedule);
  /// Parameters of the list that say which kind it is, and no more.
  ArrayRef<StringLiteral> choosers;

  /// Whether a parameter of the list is part of an answer.
  bool answersBy(StringRef parameter) const {
    return llvm::is_contained(choosers, parameter) ||
           llvm::any_of(kinds, [&](const ScheduleKind &kind) {
             return llvm::is_contained(kind.parameters, parameter);
           });
  }
};
} // namespace

static constexpr auto chooseNothing = [](ScheduleParameters &) {};

static constexpr StringLiteral ofMovingTeams[] = {
    "producers",         "producer_registers", "consumer_registers", "wideners",
    "widener_registers", "ping_pong",          "stage_output"};
static constexpr ScheduleKind kindsOfTeams[] = {
    {"alike", {}, chooseNothing},
    {"halves", {}, [](ScheduleParameters &list) { list.pingPong = true; }},
    {"moving", ofMovingTeams, chooseNothing}};

static constexpr StringLiteral ofOneTile[] = {"xcds"};
static constexpr StringLiteral ofSeveralTiles[] = {"tiles", "cluster"};
static constexpr StringLiteral ofSplitKeys[] = {"split_size", "equal_shares",
                                                "cluster", "xcds"};
static constexpr ScheduleKind kindsOfWork[] = {
    {"one_tile", ofOneTile, chooseNothing},
    {"several_tiles", ofSeveralTiles, chooseNothing},
    {"split_keys", ofSplitKeys,
     [](ScheduleParameters &list) { list.splitKeys = true; }}};

static constexpr StringLiteral ofLoads[] = {"look_ahead"};
static constexpr ScheduleKind kindsOfAhead[] = {
    {"loads", ofLoads, chooseNothing},
    {"scores", {}, [](ScheduleParameters &list) { list.overlap = true; }},
    {"softmax", {}, [](ScheduleParameters &list) {
       list.overlapProducts = true;
     }}};

static constexpr StringLiteral ofSlots[] = {"k_path", "v_path"};
static constexpr ScheduleKind kindsOfSlots[] = {
    {"tiles", ofSlots, chooseNothing},
    {"blocks", ofSlots, [](ScheduleParameters &list) { list.fullKV = false; }}};

static constexpr StringLiteral choosesTeams[] = {"ping_pong"};
static constexpr StringLiteral choosesWork[] = {"split_keys"};
static constexpr StringLiteral choosesAhead[] = {"overlap", "overlap_products"};
static constexpr StringLiteral choosesSlots[] = {"full_kv"};

/// All of them, in the order in which they are printed.
static constexpr ScheduleQuestion questions[] = {
    {"teams", kindsOfTeams,
     [](const Schedule &schedule) { return schedule.teams.index(); },
     choosesTeams},
    {"work", kindsOfWork,
     [](const Schedule &schedule) { return schedule.work.index(); },
     choosesWork},
    {"ahead", kindsOfAhead,
     [](const Schedule &schedule) { return schedule.ahead.index(); },
     choosesAhead},
    {"slots", kindsOfSlots,
     [](const Schedule &schedule) { return size_t(!schedule.list().fullKV); },
     choosesSlots}};

//===----------------------------------------------------------------------===//
// Parser
//===----------------------------------------------------------------------===//

namespace {
/// A question, and how a text answers it.
struct ScheduleAnswer {
  const ScheduleQuestion *question;
  const ScheduleKind *kind = nullptr;
  SMLoc loc;
};
} // namespace

/// Parses `moving<producers = 4>`; `list` has the parameters of all kinds.
static ParseResult parseAnswer(AsmParser &parser, ScheduleAnswer &answer,
                               ScheduleParameters &values,
                               ArrayRef<Parameter> list) {
  answer.loc = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  ArrayRef<ScheduleKind> kinds = answer.question->kinds;
  const auto *kind = llvm::find_if(
      kinds, [&](const ScheduleKind &each) { return each.name == name; });
  if (kind == kinds.end()) {
    SmallVector<StringRef> names;
    for (const ScheduleKind &each : kinds)
      names.push_back(each.name);
    return parser.emitError(answer.loc)
           << "expected " << alternatives(names) << " for "
           << answer.question->name << ", got '" << name << "'";
  }
  answer.kind = kind;
  kind->choose(values);
  if (failed(parser.parseOptionalLess()))
    return success();
  SmallVector<Parameter> own;
  for (const Parameter &parameter : list)
    if (llvm::is_contained(kind->parameters, parameter.name))
      own.push_back(parameter);
  if (own.empty())
    return parser.emitError(parser.getCurrentLocation())
           << answer.question->name << " = " << name
           << " has no parameters; expected none";
  return parseParameters(parser, own, /*leadingComma=*/false);
}

/// Whether answers are those of the schedule that their parameters make, and
/// nothing is said of them in the list besides.
static ParseResult verifyAnswers(AsmParser &parser,
                                 ArrayRef<ScheduleAnswer> answers,
                                 const Schedule &schedule,
                                 ArrayRef<Parameter> list) {
  for (const ScheduleAnswer &answer : answers) {
    if (!answer.kind)
      continue;
    const ScheduleQuestion &question = *answer.question;
    for (const Parameter &parameter : list)
      if (parameter.seen && question.answersBy(parameter.name))
        return parser.emitError(answer.loc)
               << "names " << parameter.name << " beside " << question.name
               << ", which says the same; expected one of them";
    const ScheduleKind &made = question.kinds[question.kindOf(schedule)];
    if (made.name != answer.kind->name)
      return parser.emitError(answer.loc)
             << question.name << " = " << answer.kind->name
             << " is nothing by the schedule's parameters, which make it "
             << made.name << "; expected those of " << answer.kind->name;
  }
  return success();
}

/// What is left open, without an instruction, or has to be named with one.
static ParseResult checkOpen(AsmParser &parser, ArrayRef<Parameter> parameters,
                             ScheduleParameters &values) {
  auto isNamed = [&](StringRef name) {
    return llvm::find_if(parameters,
                         [&](const Parameter &p) { return p.name == name; })
        ->seen;
  };
  bool open = !isNamed("mma_shape") && !isNamed("scores") && !isNamed("values");
  if (!open && !isNamed("BK"))
    return parser.emitError(parser.getNameLoc()) << "missing parameter 'BK'";
  if (!open && values.isOpen())
    return parser.emitError(parser.getNameLoc())
           << "mma_shape must be three positive sizes M, N, K";
  if (open && isNamed("swap_a_b"))
    return parser.emitError(parser.getNameLoc())
           << "names swap_a_b, but the order of operands is the matrix "
              "instruction's; expected mma_shape beside it, or neither";
  if (open && !isNamed("warps"))
    values.warps = 0;
  if (open && !isNamed("stages"))
    values.stages = 0;
  return success();
}

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  ScheduleParameters values;
  SmallVector<Parameter> list;
  forEachParameter(values, [&](StringRef name, auto &value, auto &&,
                               ParameterPresence presence) {
    list.emplace_back(name, value, presence == ParameterPresence::Required);
  });
  SmallVector<Parameter> parameters = list;
  SmallVector<ScheduleAnswer, std::size(questions)> answers;
  for (const ScheduleQuestion &question : questions)
    answers.push_back({&question, nullptr, SMLoc()});
  for (ScheduleAnswer &answer : answers)
    parameters.emplace_back(answer.question->name, [&](AsmParser &parser) {
      return parseAnswer(parser, answer, values, list);
    });
  if (parser.parseLess() ||
      parseParameters(parser, parameters, /*leadingComma=*/false) ||
      checkOpen(parser, parameters, values))
    return {};
  if (std::optional<std::string> why = whyNone(values)) {
    parser.emitError(parser.getNameLoc()) << *why;
    return {};
  }
  Schedule schedule = Schedule::of(values);
  if (verifyAnswers(parser, answers, schedule, parameters))
    return {};
  return ScheduleAttr::get(parser.getContext(), schedule);
}

//===----------------------------------------------------------------------===//
// Printer
//===----------------------------------------------------------------------===//

/// Prints what is said of the tile.
static void printTile(AsmPrinter &printer, const ScheduleParameters &values,
                      llvm::ListSeparator &comma) {
  forEachParameter(values, [&](StringRef name, const auto &value,
                               const auto &byDefault,
                               ParameterPresence presence) {
    using T = std::decay_t<decltype(value)>;
    if (llvm::any_of(questions, [&](const ScheduleQuestion &question) {
          return question.answersBy(name);
        }))
      return;
    if (presence == ParameterPresence::Optional && value == byDefault)
      return;
    if ((values.isOpen() || presence == ParameterPresence::Open) &&
        presence != ParameterPresence::Optional && value == T())
      return;
    printer << StringRef(comma) << name << " = ";
    printValue(printer, value);
  });
}

/// Prints the answer to a question, unless it is what a schedule says that does
/// not answer.
static void printAnswer(AsmPrinter &printer, const ScheduleQuestion &question,
                        const Schedule &schedule, llvm::ListSeparator &comma) {
  size_t number = question.kindOf(schedule);
  const ScheduleKind &kind = question.kinds[number];
  bool any = false;
  auto begin = [&] {
    printer << StringRef(comma) << question.name << " = " << kind.name;
  };
  const ScheduleParameters values = schedule.list();
  forEachParameter(values, [&](StringRef name, const auto &value,
                               const auto &byDefault, auto &&) {
    if (!llvm::is_contained(kind.parameters, name) || value == byDefault)
      return;
    if (!any)
      begin();
    printer << (any ? ", " : "<");
    any = true;
    printer << name << " = ";
    printValue(printer, value);
  });
  if (any)
    printer << '>';
  else if (number)
    begin();
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::ListSeparator comma;
  printTile(printer, getStructure().list(), comma);
  for (const ScheduleQuestion &question : questions)
    printAnswer(printer, question, getStructure(), comma);
  printer << '>';
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   Schedule schedule) {
  if (std::optional<std::string> why = whyNone(schedule.list()))
    return emitError() << *why;
  return success();
}
