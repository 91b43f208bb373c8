//===- CompleteProgram.cpp - What a program leaves to the chip ------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The instruction first, from the shapes of all products; then each buffer's
// layout, from how it is filled and read; then slots, from the room in LDS.
// What chips have, and which swizzles suit them, TargetInfo knows.
//
//===----------------------------------------------------------------------===//

#include "LostRequest.h"
#include "kvbuffer/Dialect/KVBuffer/IR/FragmentSources.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/ChooseTarget.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace kvbuf {
#define GEN_PASS_DEF_COMPLETEPROGRAM
#include "kvbuffer/Dialect/KVBuffer/Transforms/Passes.h.inc"
} // namespace kvbuf

using namespace mlir;
using namespace kvbuf;

#define DEBUG_TYPE "kvbuf-complete-program"

/// Warps of a block, and slots of a buffer that is filled in a loop, where
/// nothing says more.
static constexpr int64_t kWarps = 4, kStages = 2;
/// Warps of a block where some share columns.
static constexpr int64_t kMostSharing = 8;

namespace {

//===----------------------------------------------------------------------===//
// The matrix instruction
//===----------------------------------------------------------------------===//

/// What the products of a kernel ask of an instruction: it divides the columns
/// of results, what is contracted, and the rows of each warp of a team.
struct Products {
  explicit Products(gpu::GPUFuncOp kernel) {
    kernel.walk([&](MmaOp op) {
      FragmentType a = op.getA().getType(), result = op.getResult().getType();
      first = first ? first : op;
      cols = std::gcd(cols, result.getCols());
      auto team = op->getParentOfType<TeamOp>();
      if ((!team || !team.getBM()) && !result.getLayout())
        rows = std::gcd(rows, result.getRows());
      contracted = std::gcd(contracted, a.getCols());
      elements.insert(a.getElementType());
      elements.insert(op.getB().getType().getElementType());
      mostCols = std::max(mostCols, result.getCols());
      if (team)
        teams.insert(team);
    });
  }

  MmaOp first;
  /// What divides the rows of results, those of the schedule's warps, where no
  /// layout says whose they are.
  int64_t rows = 0;
  int64_t cols = 0, contracted = 0, mostCols = 0;
  llvm::SetVector<Type> elements;
  llvm::SetVector<TeamOp> teams;

  /// The name of the type that the products are of, the last one's; bf16 where
  /// there are none.
  std::string element() const {
    return elements.empty() ? "bf16" : elementName(elements.back());
  }
};

/// An instruction, the order of its operands, and warps: how many, and how many
/// of them share the columns of the same rows.
struct Choice {
  MatrixInstruction mma;
  bool swapped = false;
  int64_t warps = 0, warpCols = 1;
};

} // namespace

/// The number of warps for an instruction where the program leaves it open:
/// those of its teams, or as many as have an instruction's rows each, and no
/// more accumulators than half of a lane's registers. Few rows of many columns
/// have several warps, which share the columns (`warpCols`), as long as an
/// instruction of `colUnit` columns divides the part of each.
static int64_t warpsFor(const Products &products, int64_t BM, int64_t rowUnit,
                        int64_t colUnit, const TargetInfo &target,
                        int64_t &warpCols) {
  int64_t warps = 0;
  for (TeamOp team : products.teams)
    if (!team.getBM())
      warps = std::max(warps, int64_t(team.getWarps()));
  if (warps)
    return warps;
  // Several warps of a team meet at a barrier that not all chips have.
  if (!products.teams.empty() && target.namedBarriers < 2)
    return 1;
  int64_t most = std::max<int64_t>(1, BM / rowUnit);
  warps = std::min(most, kWarps);
  auto tooMany = [&] {
    return BM * products.mostCols / (warps * target.waveSize) >
           target.registersPerLane / 2;
  };
  while (2 * warps <= most && tooMany())
    warps *= 2;
  while (products.teams.empty() && tooMany() && 2 * warps <= kMostSharing &&
         products.cols % (2 * warpCols * colUnit) == 0) {
    warps *= 2;
    warpCols *= 2;
  }
  return warps;
}

/// Whether an instruction of `rowUnit` rows divides the rows of every warp that
/// multiplies, `WM` of them where a team does not say otherwise.
static bool dividesRows(const Products &products, int64_t WM, int64_t rowUnit) {
  if (WM % rowUnit)
    return false;
  return llvm::all_of(products.teams, [&](TeamOp team) {
    return !team.getBM() || !team.getWarps() ||
           int64_t(team.getBM()) / int64_t(team.getWarps()) % rowUnit == 0;
  });
}

/// The chip's instruction for a kernel's products; an error that says what none
/// divides.
static FailureOr<Choice> chooseInstruction(gpu::GPUFuncOp kernel,
                                           const Schedule &schedule,
                                           const Products &products,
                                           const TargetInfo &target) {
  // Widened elements are multiplied as what they are widened to.
  for (Type type : products.elements)
    if (failed(verifyElements(products.first, type, target)))
      return failure();
  SmallVector<MatrixInstruction> known =
      target.warpInstructions(products.element());
  for (const MatrixInstruction &mma : known)
    for (bool swapped : {false, true}) {
      if (!target.feedsItself(mma, swapped))
        continue;
      int64_t rowUnit = swapped ? mma.n : mma.m,
              colUnit = swapped ? mma.m : mma.n;
      int64_t warps = schedule.warps, warpCols = schedule.warpCols;
      if (!warps)
        warps =
            warpsFor(products, schedule.BM, rowUnit, colUnit, target, warpCols);
      int64_t parts = warps / warpCols;
      if (schedule.BM % parts ||
          !dividesRows(products, schedule.BM / parts, rowUnit) ||
          products.rows % (parts * rowUnit) ||
          products.cols % (colUnit * warpCols) ||
          products.contracted % (mma.k * mma.group))
        continue;
      return Choice{mma, swapped, warps, warpCols};
    }
  InFlightDiagnostic diag =
      kernel.emitOpError() << "leaves mma_shape open, but no instruction of "
                           << target.chip << ", " << TargetInfo::shapesOf(known)
                           << ", divides all of its products: ";
  // Results may have fewer rows than the schedule's tiles.
  if (int64_t rows = std::gcd(schedule.BM, products.rows);
      rows != schedule.BM) {
    diag << "multiples of " << rows << " rows";
    if (schedule.warps)
      diag << " that " << schedule.warps / schedule.warpCols << " warps share";
  } else if (schedule.warps) {
    diag << schedule.rowsOfWarp() << " rows of a warp";
  } else {
    diag << schedule.BM << " rows";
  }
  diag << ", multiples of " << products.cols << " columns ";
  if (schedule.warpCols > 1)
    diag << "that warp_cols = " << schedule.warpCols << " warps share ";
  diag << "and of " << products.contracted << " contracted elements";
  for (const MatrixInstruction &mma : known)
    if (int64_t together = mma.k * mma.group;
        products.contracted % mma.k == 0 && products.contracted % together)
      diag << "; " << TargetInfo::shapesOf(mma) << " takes " << together
           << " of them at a time, as much as a read of LDS gives";
  return diag;
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

namespace {

/// Where the slots of an open buffer go: all values whose types name its
/// parameters, and how they are filled and read.
class Uses {
public:
  explicit Uses(AllocOp alloc)
      : alloc(alloc), params(alloc.getType().getParams()) {
    add(alloc.getBuffer());
    while (!left.empty())
      follow(left.pop_back_val());
  }

  /// Gives all of them the parameters.
  void retype(KVBufferAttr chosen) const {
    AttrTypeReplacer replacer;
    replacer.addReplacement(
        [&, from = params](KVBufferAttr attr) -> std::optional<Attribute> {
          if (attr == from)
            return chosen;
          return std::nullopt;
        });
    for (Value value : values)
      value.setType(value.getDefiningOp<StagedFitOp>()
                        ? StagedFitOp::fittedType(chosen)
                        : retyped(replacer, value.getType(), chosen));
  }

  AllocOp alloc;
  KVBufferAttr params;
  /// Whether products contract rows, or columns, of what they read.
  bool byRows = false, byCols = false;
  /// Whether a loop fills slots again.
  bool inLoop = false;
  /// Loads that ask nobody whether a slot is free.
  SmallVector<Operation *> loads;
  /// Rows of a page, of the smallest pages that fill it that are no multiple of
  /// a slot's rows; 0: there are none.
  int64_t smallPage = 0;
  /// Whether a table of pages tells where each row of such pages is, as lanes
  /// that copy rows of their own ask for; an op's own tiles, caches that find
  /// rows one by one and rings have no such copies.
  bool byTable = true;

private:
  /// A staged slot has the columns that its blocks make.
  Type retyped(AttrTypeReplacer &replacer, Type type,
               KVBufferAttr chosen) const {
    auto staged = dyn_cast<StagedType>(type);
    return staged && staged.isWhole() ? StagedType::get(chosen)
                                      : replacer.replace(type);
  }

  bool names(Type type) const {
    bool found = false;
    type.walk([&](KVBufferAttr attr) { found |= attr == params; });
    return found;
  }

  void add(Value value) {
    if (names(value.getType()) && values.insert(value))
      left.push_back(value);
  }

  void filled(Operation *load, Value tile) {
    if (isa<DramLoadOp>(load))
      loads.push_back(load);
    if (int64_t page = cast<TileType>(tile.getType()).getPageSize();
        page && page % params.getBN()) {
      smallPage = smallPage ? std::min(smallPage, page) : page;
      byTable &= isa<DramLoadOp>(load) &&
                 llvm::all_of(fragmentSources(tile), [](Value source) {
                   auto made = source.getDefiningOp<CacheTileOp>();
                   return made && !made.getLayout().getRows().byPlace;
                 });
    }
    for (auto loop = load->getParentOfType<LoopLikeOpInterface>(); loop;
         loop = loop->getParentOfType<LoopLikeOpInterface>())
      inLoop |= !loop->isAncestor(alloc);
  }

  void follow(Value value) {
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      if (auto load = dyn_cast<DramLoadOp>(op))
        filled(op, load.getTile());
      if (auto load = dyn_cast<RingLoadOp>(op))
        filled(op, load.getTile());
      if (auto load = dyn_cast<FragmentLoadOp>(op))
        (load.contractsRows() ? byRows : byCols) = true;
      if (auto stage = dyn_cast<LdsStageOp>(op)) {
        add(stage.getStaged()[use.getOperandNumber()]);
        continue;
      }
      if (auto fit = dyn_cast<StagedFitOp>(op)) {
        // The same slot, of other elements.
        if (values.insert(fit.getFitted()))
          left.push_back(fit.getFitted());
        continue;
      }
      if (auto loop = dyn_cast<scf::ForOp>(op)) {
        add(loop.getTiedLoopRegionIterArg(&use));
        add(loop.getTiedLoopResult(&use));
        continue;
      }
      if (isa<scf::YieldOp>(op)) {
        unsigned number = use.getOperandNumber();
        Operation *parent = op->getParentOp();
        if (auto loop = dyn_cast<scf::ForOp>(parent))
          add(loop.getRegionIterArg(number));
        if (isa<scf::ForOp, scf::IfOp>(parent))
          add(parent->getResult(number));
        continue;
      }
      for (Value result : op->getResults())
        add(result);
    }
  }

  llvm::SetVector<Value> values;
  SmallVector<Value> left;
};

} // namespace

/// A swizzle's terms as far as they move the vectors of `rowBytes` bytes within
/// their rows: in blocks whose rows are no power of two others would leave it.
static Swizzle withinRows(Swizzle swizzle, int64_t rowBytes) {
  unsigned inRow =
      llvm::Log2_64(std::max<int64_t>(rowBytes / int64_t(swizzle.unit), 1));
  auto bitsOf = [&](SwizzleTerm term) {
    return std::min(term.bits, inRow - std::min(inRow, term.base));
  };
  swizzle.bits = bitsOf(swizzle.first());
  swizzle.second.bits = bitsOf(swizzle.second);
  return swizzle;
}

/// The parameters of an open buffer for the chip, slots aside; an error where
/// it is read in two ways that the chip has no one layout for.
static FailureOr<KVBufferAttr> layOut(const Uses &uses,
                                      const MatrixInstruction &mma,
                                      const TargetInfo &target, int64_t warps) {
  KVBufferAttr params = uses.params;
  AllocOp alloc = uses.alloc;
  auto leaves = [&](KVBufferAttr::Open what) {
    return (params.getOpen() & what) != 0;
  };
  int64_t bytes = params.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t BK = params.getBK(), cols = params.getDepth();
  if (leaves(KVBufferAttr::kOpenBK)) {
    // The longest rows that leave no columns over.
    BK = std::min<int64_t>(target.ldsRowBytes / bytes,
                           llvm::bit_floor(uint64_t(cols)));
    while (cols % BK && BK * bytes > 32)
      BK /= 2;
  }
  int64_t rowBytes = BK * bytes;
  // What is read both ways lies as it is in memory.
  bool turns = uses.byRows && !uses.byCols && !target.readsTransposed;
  if (uses.byRows && uses.byCols && !target.readsTransposed &&
      leaves(KVBufferAttr::kOpenOrder))
    alloc.emitRemark() << "this buffer is read contracted(rows) and "
                          "contracted(cols); "
                       << target.chip
                       << " reads the former by single elements, and vectors "
                          "of a buffer that is read in no other way";
  Policy policy = params.getPolicy();
  if (leaves(KVBufferAttr::kOpenPolicy) &&
      (turns || params.getOrder() == Dimension::Cols ||
       !target.canCopyDirectly(params.getBN(), rowBytes, uses.smallPage,
                               uses.byTable ? warps : 1)))
    policy = Policy::RegisterStaged;
  // Where lanes bring bytes, which no transposed read takes, they turn them.
  bool turnsBytes = uses.byRows && !uses.byCols && bytes == 1 &&
                    policy == Policy::RegisterStaged &&
                    target.has(CopyEngine::Waves);
  Dimension order = params.getOrder();
  if (leaves(KVBufferAttr::kOpenOrder) && (turns || turnsBytes) &&
      policy != Policy::DoubleBuffered)
    order = Dimension::Cols;
  SmallVector<int64_t> swizzle(params.getSwizzle());
  if (leaves(KVBufferAttr::kOpenSwizzle)) {
    // What is read both ways lies as transposed reads want it.
    Swizzle suits = target.swizzle(mma, rowBytes, bytes,
                                   /*transposed=*/!uses.byRows,
                                   policy != Policy::RegisterStaged);
    if (!llvm::isPowerOf2_64(params.getBN()))
      suits = withinRows(suits, rowBytes);
    if (suits.movesVectors() && order == Dimension::Rows)
      swizzle = swizzleList(suits);
  }
  // The declared function, and not the template that it hides, takes these.
  int64_t none = 0;
  auto emitError = [&] { return alloc.emitOpError(); };
  KVBufferAttr chosen = KVBufferAttr::getChecked(
      function_ref<InFlightDiagnostic()>(emitError), params.getContext(),
      Operand::Any, params.getElementType(), policy, ArrayRef<int64_t>(),
      ArrayRef<int64_t>(swizzle), params.getBN(), params.getWN(), BK,
      /*num_threads=*/none, cols, params.getKvNumHeads(), params.getFullKv(),
      params.getCacheDepth(), params.getHeadDimOffset(),
      params.getRegChunkDepth(), int64_t(llvm::alignTo(cols, BK)),
      params.getStages(), /*warp_size=*/none, order, /*open=*/none);
  if (!chosen)
    return failure();
  return chosen;
}

/// The same buffer with another number of slots.
static KVBufferAttr withStages(KVBufferAttr params, int64_t stages) {
  return KVBufferAttr::get(
      params.getContext(), params.getOperand(), params.getElementType(),
      params.getPolicy(), params.getMmaShape(), params.getSwizzle(),
      params.getBN(), params.getWN(), params.getBK(), params.getNumThreads(),
      params.getDepth(), params.getKvNumHeads(), params.getFullKv(),
      params.getCacheDepth(), params.getHeadDimOffset(),
      params.getRegChunkDepth(), params.getSmemDepth(), stages,
      params.getWarpSize(), params.getOrder(), params.getOpen());
}

/// Whether a team is whole groups of warps that have the rows of an instruction
/// of groups and multiply by what others put into rings, as it lies there:
/// kvbuf-async-products makes them multiply together.
static bool multipliesByGroups(TeamOp team, const Schedule &schedule,
                               const MatrixInstruction &ofGroups) {
  int64_t warps = team.getWarps();
  int64_t BM = team.getBM() ? int64_t(team.getBM()) : schedule.BM;
  bool asItLies = false;
  team.getBody().walk([&](MmaOp op) {
    auto load = op.getB().getDefiningOp<FragmentLoadOp>();
    asItLies |=
        load && load.getStaged().getType().getParams().getElementType() ==
                    load.getFragment().getType().getElementType();
  });
  return asItLies && team.readsRings() &&
         team.isWholeGroups(warpsTogether(ofGroups.unit)) &&
         BM == warps * ofGroups.rowsOfWarp();
}

namespace {
struct CompleteProgramPass
    : kvbuf::impl::CompleteProgramBase<CompleteProgramPass> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUFuncOp kernel = getOperation();
    auto phase = kernel->getAttrOfType<PhaseAttr>(KVBufferDialect::kPhaseAttr);
    auto schedule =
        kernel->getAttrOfType<ScheduleAttr>(KVBufferDialect::kScheduleAttr);
    if (!phase || phase.getValue() != Phase::Tile || !schedule)
      return;
    SmallVector<AllocOp> open;
    kernel.walk([&](AllocOp op) {
      if (op.getType().getParams().getOpen())
        open.push_back(op);
    });
    bool teams = false;
    kernel.walk([&](TeamOp team) { teams |= !int64_t(team.getWarps()); });
    if (!schedule.isOpen() && open.empty() && !teams)
      return;
    std::optional<TargetInfo> target = targetOf(kernel);
    if (!target) {
      kernel.emitOpError() << "leaves a choice to the chip, which its module "
                              "does not name; expected '"
                           << KVBufferDialect::kTargetAttr << "' on it";
      return signalPassFailure();
    }
    if (failed(complete(kernel, schedule, open, *target)))
      signalPassFailure();
  }

  LogicalResult complete(gpu::GPUFuncOp kernel, ScheduleAttr attr,
                         ArrayRef<AllocOp> open, const TargetInfo &target) {
    ScheduleParameters schedule = attr.getStructure().list();
    int64_t most = schedule.stages ? schedule.stages : kStages;
    Products products(kernel);
    if (attr.isOpen()) {
      if (!products.first)
        return kernel.emitOpError()
               << "leaves mma_shape open, but has no kvbuffer.mma to choose it "
                  "by; expected mma_shape";
      FailureOr<Choice> choice =
          chooseInstruction(kernel, attr.getStructure(), products, target);
      if (failed(choice))
        return failure();
      schedule.mma = choice->mma.shape();
      schedule.swapAB = choice->swapped;
      schedule.warps = choice->warps;
      schedule.warpCols = choice->warpCols;
      if (!schedule.BK)
        schedule.BK = target.ldsRowBytes / 2;
      schedule.stages = most;
    }
    if (std::optional<std::string> why = whyNone(schedule))
      return kernel.emitOpError()
             << "has a schedule that does not fit: " << *why;
    for (ProductKind product : kProducts)
      if (!target.instructionFor(schedule.shapeOf(product), products.element()))
        return kernel.emitOpError()
               << "has " << schedule.instructionName(product) << " = "
               << TargetInfo::shapeText(schedule.shapeOf(product)) << "; "
               << target.chip << " has "
               << TargetInfo::shapesOf(
                      target.matrixInstructionsFor(products.element()));
    SmallVector<std::pair<Uses, KVBufferAttr>> buffers;
    for (AllocOp alloc : open) {
      Uses uses(alloc);
      // What is read both ways lies as scores read it.
      ProductKind product = uses.byRows && !uses.byCols ? ProductKind::Values
                                                        : ProductKind::Scores;
      FailureOr<KVBufferAttr> chosen = layOut(
          uses,
          *target.instructionFor(schedule.shapeOf(product), products.element()),
          target, schedule.warps);
      if (failed(chosen))
        return failure();
      buffers.emplace_back(std::move(uses), *chosen);
    }
    if (failed(chooseSlots(kernel, buffers, most, target)))
      return failure();
    for (auto &[uses, chosen] : buffers) {
      // Who moves waits until a slot is given back.
      if (uses.inLoop && chosen.getStages() == 1 && !schedule.producers &&
          (uses.params.getOpen() & KVBufferAttr::kOpenStages))
        meetBeforeLoads(uses);
      uses.retype(chosen);
    }
    if (WalkResult result =
            kernel.walk([&](Operation *op) { return checkRetyped(op); });
        result.wasInterrupted())
      return failure();
    kernel.walk([&](TeamOp team) {
      if (!int64_t(team.getWarps()))
        team.setWarps(schedule.warps);
    });
    const MatrixInstruction *ofGroups =
        target.groupInstruction(products.element());
    if (attr.isOpen() && ofGroups && !schedule.swapAB &&
        llvm::any_of(products.teams, [&](TeamOp team) {
          return multipliesByGroups(team, Schedule::of(schedule), *ofGroups);
        }))
      schedule.mma = ofGroups->shape();
    kernel->setAttr(KVBufferDialect::kScheduleAttr,
                    ScheduleAttr::get(&getContext(), Schedule::of(schedule)));
    return success();
  }

  /// Lets all warps meet at the end of each iteration that loads into the one
  /// slot there is: the next one overwrites what this one has read.
  static void meetBeforeLoads(const Uses &uses) {
    for (Operation *load : uses.loads) {
      auto loop = load->getParentOfType<scf::ForOp>();
      if (!loop)
        continue;
      Operation *end = loop.getBody()->getTerminator();
      if (isa_and_nonnull<MeetOp>(end->getPrevNode()))
        continue;
      OpBuilder b(end);
      MeetOp::create(b, load->getLoc());
    }
  }

  /// Slots for the buffers that leave their number open: `most` where a loop
  /// fills them again, as many as there is room for.
  LogicalResult
  chooseSlots(gpu::GPUFuncOp kernel,
              MutableArrayRef<std::pair<Uses, KVBufferAttr>> buffers,
              int64_t most, const TargetInfo &target) {
    // Whoever names slots is told elsewhere if there is no room for them.
    if (llvm::none_of(buffers, [](const auto &buffer) {
          return buffer.first.params.getOpen() & KVBufferAttr::kOpenStages;
        }))
      return success();
    auto choose = [&](int64_t stages) {
      for (auto &[uses, chosen] : buffers)
        if (uses.params.getOpen() & KVBufferAttr::kOpenStages)
          chosen = withStages(chosen, uses.inLoop ? stages : 1);
    };
    auto bytes = [&] {
      int64_t sum = 0;
      kernel.walk([&](AllocOp op) {
        if (!op.getType().getParams().getOpen())
          sum += op.getType().getParams().getBytes();
      });
      for (auto &[uses, chosen] : buffers)
        sum += chosen.getBytes();
      return sum;
    };
    choose(most);
    int64_t wanted = bytes(), stages = most;
    while (stages > 1 && bytes() > target.ldsBytes)
      choose(--stages);
    if (bytes() > target.ldsBytes) {
      kernel.emitOpError() << "has buffers of " << bytes()
                           << " bytes of shared memory, with one slot where "
                              "their number is open; "
                           << target.chip << " has " << target.ldsBytes
                           << " for a block; expected smaller tiles";
      return failure();
    }
    if (stages < most)
      warnLost(kernel, DEBUG_TYPE, "slots",
               Twine(stages) + (stages == 1 ? " slot" : " slots") +
                   " a buffer, not " + Twine(most) + ", which would take " +
                   Twine(wanted) + " bytes of shared memory: " + target.chip +
                   " has " + Twine(target.ldsBytes) + " for a block");
    return success();
  }

  /// Whether an op has no type that still names an open buffer.
  static WalkResult checkRetyped(Operation *op) {
    for (Type type : op->getResultTypes()) {
      bool found = false;
      type.walk([&](KVBufferAttr attr) { found |= attr.getOpen() != 0; });
      if (found)
        return op->emitOpError()
               << "has a result of an open buffer that comes from no "
                  "kvbuffer.alloc; expected a buffer that is not open";
    }
    return WalkResult::advance();
  }
};
} // namespace
