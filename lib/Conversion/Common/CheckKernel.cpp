//===- CheckKernel.cpp - Kernels of a stage against the chip --------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckKernel.h"
#include "KVBufferToGPU/LaneLayouts.h"
#include "KVBufferToGPU/Machine.h"
#include "kvbuffer/Dialect/KVBuffer/Transforms/VerifyElements.h"
#include "kvbuffer/Schedules/ScheduleLimits.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace kvbuf;

std::string kvbuf::shapeOf(ArrayRef<int64_t> shape) {
  return TargetInfo::shapesOf(
      MatrixInstruction{.m = shape[0], .n = shape[1], .k = shape[2]});
}

Operation *kvbuf::findRings(gpu::GPUFuncOp kernel) {
  Operation *found = nullptr;
  kernel.walk([&](Operation *op) {
    auto team = dyn_cast<TeamOp>(op);
    if (!isa<RingOp, MailboxOp>(op) && !(team && team.getRegisters()))
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

/// An op of warps that multiply together while they do something else; null if
/// there is none.
static Operation *findAsync(gpu::GPUFuncOp kernel) {
  Operation *found = nullptr;
  kernel.walk([&](Operation *op) {
    if (!isa<MmaStartOp, MmaWaitOp, TurnWaitOp, TurnPassOp>(op))
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

/// The elements of a product's operands as they are multiplied; null of what is
/// no product.
static Type elementOfProduct(Operation *op) {
  if (auto product = dyn_cast<MmaOp>(op))
    return product.getA().getType().getElementType();
  if (auto start = dyn_cast<MmaStartOp>(op))
    return start.getB().getType().getParams().getElementType();
  return nullptr;
}

/// The elements whose matrix instruction a kernel's schedule names for products
/// of a kind: of their operands, or of the others' if there are none, those
/// that have one of that shape; bf16 without products.
static std::string elementOfSchedule(Operation *op, ScheduleAttr schedule,
                                     const TargetInfo &target,
                                     ProductKind kind) {
  auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
  if (!kernel)
    kernel = op->getParentOfType<gpu::GPUFuncOp>();
  std::string first, exact, other;
  kernel.walk([&](Operation *op) {
    Type element = elementOfProduct(op);
    if (!element)
      return;
    std::string name = elementName(element);
    bool named = target.findMatrix(schedule.getMmaShape(kind), name);
    if (productOf(op) != kind) {
      if (other.empty() && named)
        other = name;
      return;
    }
    if (first.empty())
      first = name;
    if (exact.empty() && named)
      exact = name;
  });
  if (!exact.empty())
    return exact;
  if (!other.empty())
    return other;
  // Whoever has no such instruction is told of those for its elements.
  return first.empty() || target.matrixInstructionsFor(first).empty() ? "bf16"
                                                                      : first;
}

const MatrixInstruction &kvbuf::instructionOf(Operation *op,
                                              ScheduleAttr schedule,
                                              const TargetInfo &target,
                                              ProductKind kind) {
  return *target.findMatrix(schedule.getMmaShape(kind),
                            elementOfSchedule(op, schedule, target, kind));
}

/// Products that groups of warps execute are of an instruction of theirs, and
/// such an instruction is of some product; one that is named for products of a
/// kind alone is.
static LogicalResult checkProducts(gpu::GPUFuncOp kernel, ProductKind kind,
                                   ScheduleAttr schedule,
                                   const TargetInfo &target) {
  Operation *start = nullptr, *product = nullptr;
  bool starts = false;
  kernel.walk([&](Operation *op) {
    starts |= isa<MmaStartOp>(op);
    if (!elementOfProduct(op) || productOf(op) != kind)
      return;
    (isa<MmaStartOp>(op) ? start : product) = op;
  });
  StringRef name = schedule.getStructure().instructionName(kind);
  std::string shape = shapeOf(schedule.getMmaShape(kind));
  if (!start && !product && schedule.getStructure().own(kind).isNamed())
    return kernel.emitOpError()
           << "has a schedule with " << name << " = " << shape
           << ", but no product that contracts the "
           << (kind == ProductKind::Scores ? "columns" : "rows")
           << " of operand b; expected mma_shape for all products";
  const MatrixInstruction &mma = instructionOf(kernel, schedule, target, kind);
  if (start && !mma.isOfGroups())
    return start->emitOpError()
           << "is executed by a group of warps, in a kernel whose schedule has "
           << name << " = " << shape
           << ", which each warp executes for itself; expected "
           << shapeOf(target.groupInstruction("bf16")->shape());
  // Teams that are asked for may be left out (`roles` of the pipeline).
  if (product && !starts && mma.isOfGroups() && !schedule.getMovingTeam())
    return product->emitOpError()
           << "is executed by each warp for itself, in a kernel whose schedule "
              "has "
           << name << " = " << shape
           << ", which groups of warps execute; expected "
           << TargetInfo::shapesOf(target.warpInstructions("bf16"))
           << ", or whole groups of warps that read operand b from a ring's "
              "slot";
  return success();
}

/// What the schedule asks for by itself, whatever the kernel computes.
static LogicalResult checkScheduled(gpu::GPUFuncOp kernel,
                                    ScheduleAttr schedule,
                                    const TargetInfo &target) {
  ScheduleLimits limits(
      schedule.getStructure(), target,
      elementOfSchedule(kernel, schedule, target, ProductKind::Scores),
      elementOfSchedule(kernel, schedule, target, ProductKind::Values));
  if (std::optional<std::string> why = limits.whyNotOnChip())
    return kernel.emitOpError() << "has a schedule that does not fit: " << *why;
  if (int64_t cluster = schedule.getStructure().cluster();
      cluster > target.maxCluster)
    return kernel.emitOpError()
           << "has a schedule that does not fit: cluster = " << cluster
           << " does not fit " << target.chip
           << ", whose blocks load no tiles for "
           << (target.maxCluster > 1 ? "so many others" : "each other")
           << "; expected at most " << target.maxCluster;
  TeamOp anew;
  if (!target.warpsPerRegisterGroup)
    kernel.walk([&](TeamOp team) {
      anew = team.getRegisters() ? team : TeamOp();
      return anew ? WalkResult::interrupt() : WalkResult::advance();
    });
  if (anew)
    return anew.emitOpError()
           << "has registers(" << int64_t(anew.getRegisters()) << "), but "
           << target.chip
           << " hands out none anew; expected a team without registers";
  Operation *rings = findRings(kernel);
  if (rings && !target.hasRings())
    return rings->emitOpError()
           << "joins teams by barriers in LDS that a copy engine completes, "
              "which "
           << target.chip << " does not have";
  if (Operation *product =
          target.warpsPerMatrixGroup() ? nullptr : findAsync(kernel))
    return product->emitOpError()
           << "is for chips whose matrix unit reads operands from LDS by "
              "itself, which that of "
           << target.chip << " does not";
  bool ofGroups = false;
  for (ProductKind kind : kProducts) {
    if (failed(checkProducts(kernel, kind, schedule, target)))
      return failure();
    ofGroups |= instructionOf(kernel, schedule, target, kind).isOfGroups();
  }
  if (rings && ofGroups && schedule.getSwapAB())
    return kernel.emitOpError()
           << "has rings and is scheduled with swap_a_b, but a group of warps "
              "multiplies "
           << target.matrixGroupRows
           << " rows by what lies in LDS; expected a schedule without swap_a_b";
  return success();
}

StringRef kvbuf::placeOf(Operation *op) {
  return op->getParentOfType<TeamOp>() ? "a team that has"
                                       : "a kernel whose schedule has";
}

/// Whether an op is done by all warps of the block or the team, by the
/// schedule.
static bool needsWarps(Operation *op) {
  // One value is the same however it is spread.
  if (isa<FragmentFillOp>(op))
    return false;
  auto isSpread = [](Type type) {
    return isa<FragmentType, BufferType, TokenType, StagedType, RingType,
               PendingType>(type);
  };
  return llvm::any_of(op->getOperandTypes(), isSpread) ||
         llvm::any_of(op->getResultTypes(), isSpread);
}

/// The schedule by which an op's slots are read: of a ring's, that of a team
/// which takes from it.
static ScheduleAttr scheduleOfSlots(Operation *op, ScheduleAttr kernel) {
  if (isa<AllocOp>(op))
    for (Operation *user : op->getUsers())
      if (isa<RingOp>(user))
        return scheduleOfSlots(user, kernel);
  if (auto ring = dyn_cast<RingOp>(op))
    for (Operation *user : ring.getRing().getUsers())
      if (isa<RingWaitOp>(user))
        return scheduleOf(user, kernel);
  return scheduleOf(op, kernel);
}

/// What a kernel's teams ask for together, and each by itself.
static LogicalResult checkTeams(TeamsOp teams, ScheduleAttr schedule,
                                const TargetInfo &target, bool rings) {
  if (int64_t threads = teams.getWarps() * int64_t(target.waveSize);
      threads > target.maxThreads)
    return teams.emitOpError()
           << "has teams of " << threads << " threads together; " << target.chip
           << " has at most " << target.maxThreads << " in a block";
  SmallVector<const MatrixInstruction *> instructions;
  for (ProductKind kind : kProducts)
    instructions.push_back(&instructionOf(teams, schedule, target, kind));
  for (auto team : teams.getBody().getOps<TeamOp>()) {
    int64_t warps = team.getWarps();
    int64_t rows =
        team.getBM() ? int64_t(team.getBM()) / warps : schedule.getWM();
    for (const MatrixInstruction *mma : instructions) {
      int64_t rowUnit = schedule.getSwapAB() ? mma->n : mma->rowsOfWarp();
      if (rows % rowUnit)
        return team.emitOpError()
               << "has BM / warps = " << rows << " rows, which no "
               << shapeOf(mma->shape())
               << " instruction divides; expected a multiple of " << rowUnit;
    }
    // As of a schedule: tiles are copied by whole strides of all the warps.
    // What fills rings does not.
    if (!rings &&
        (!llvm::isPowerOf2_64(rows * warps) || !llvm::isPowerOf2_64(warps)))
      return team.emitOpError()
             << "has " << warps << " warps and BM = " << rows * warps
             << "; expected powers of two";
  }
  return success();
}

/// An operand of elements that the chip multiplies.
static LogicalResult checkFragment(Operation *op, FragmentType fragment,
                                   const TargetInfo &target) {
  bool operand = fragment.getRole() == Role::A || fragment.getRole() == Role::B;
  if (operand && failed(verifyElements(op, fragment.getElementType(), target)))
    return failure();
  return success();
}

/// The instruction that a fragment is made of, for messages.
static std::string instructionText(FragmentType type) {
  FragmentLayoutInterface layout = type.getLayout();
  if (auto slice = dyn_cast<SliceLayoutAttr>(layout))
    layout = slice.getParent();
  auto mma = dyn_cast<MmaLayoutAttr>(layout);
  return mma ? shapeOf(mma.getShape()) : "such";
}

/// A fragment of products whose result's columns several warps share.
static LogicalResult checkSharedCols(Operation *op, FragmentType type,
                                     const FragmentLayout &layout,
                                     ScheduleAttr schedule) {
  int64_t rows = layout.gridRows, cols = layout.gridCols;
  auto fault = [&]() -> InFlightDiagnostic {
    return op->emitOpError()
           << "has a fragment whose columns " << cols << " warps share";
  };
  // What is put into a ring as it lies turned is read so, and not multiplied.
  bool isPut = type.getRole() == Role::B && isa<FragmentLoadOp>(op) &&
               llvm::all_of(op->getUsers(), llvm::IsaPred<RingPutOp>);
  if (!isPut && findRings(op->getParentOfType<gpu::GPUFuncOp>()))
    return fault() << " beside kvbuffer.ring, where groups of warps multiply "
                      "together; expected warps = ["
                   << rows * cols << ", 1]";
  if (rows * cols != schedule.getWarps() || !llvm::isPowerOf2_64(cols))
    return op->emitOpError()
           << "has a fragment over a grid of " << rows << " x " << cols
           << " warps in " << placeOf(op) << " " << schedule.getWarps()
           << " warps; expected a grid of as many, both powers of two";
  // Each warp has a part of all, which a part of them is not.
  auto load = dyn_cast<FragmentLoadOp>(op);
  auto slice = dyn_cast<FragmentSliceOp>(op);
  auto mma = dyn_cast<MmaOp>(op);
  bool isPart = slice && layout.colWarps > 1 &&
                type.getCols() != slice.getSource().getType().getCols();
  if (mma) {
    FragmentType b = mma.getB().getType();
    isPart =
        (mma.getTransposeB() ? b.getRows() : b.getCols()) != type.getCols();
  }
  if (isPart)
    return fault() << ", and some of them alone; expected all "
                   << (mma ? type.getCols()
                           : slice.getSource().getType().getCols())
                   << " columns";
  if (!load || (layout.rowWarps == 1 && layout.colWarps == 1))
    return success();
  // Where a warp's part begins is read off the bits of its number.
  bool byRows = layout.rowWarps > 1;
  int64_t part = byRows ? layout.warpRows(type) : layout.warpCols(type),
          block = load.getStaged().getType().getParams().getBK();
  if (!llvm::isPowerOf2_64(part) && (byRows || part % block))
    return fault() << ", " << part << " for each of them; expected a power of "
                   << "two"
                   << (byRows ? "" : ", or a multiple of the buffer's BK");
  int64_t first = byRows ? load.getSlotRow() : load.getSlotCol();
  if (type.getRole() == Role::B && first % (part * cols))
    return fault() << ", from " << first
                   << " of the slot on; expected a multiple of " << part * cols;
  return success();
}

/// Whether a fragment, and the part of another that it may be, is of whole
/// atoms in each warp: lanes hold nothing else.
static LogicalResult checkAtoms(Operation *op, FragmentType type,
                                FragmentLayouts &layouts, ScheduleAttr schedule,
                                const TargetInfo &target) {
  // Blocks are counted by the schedule's rows where the kernel says nothing of
  // its grid.
  auto kernel = op->getParentOfType<gpu::GPUFuncOp>();
  if (type.getRole() != Role::B && type.getRows() != schedule.getBM() &&
      !kernel->hasAttr(KVBufferDialect::kGridAttr))
    return op->emitOpError()
           << "has a fragment of " << type.getRows() << " rows in "
           << placeOf(op) << " BM = " << schedule.getBM()
           << "; expected those rows, or '" << KVBufferDialect::kGridAttr
           << "' on the kernel";
  const FragmentLayout &atom = layouts.of(type);
  bool isRow = type.getRole() == Role::Row;
  int64_t rows = atom.fragmentRows() * atom.rowWarps,
          cols = isRow ? 1 : atom.fragmentCols() * atom.colWarps;
  if (atom.sharesCols() && failed(checkSharedCols(op, type, atom, schedule)))
    return failure();
  if (atom.layout.inLog2("lane") != llvm::Log2_64(target.waveSize))
    return op->emitOpError()
           << "has a fragment in the layout " << type.getLayout()
           << ", which is for other waves than those of " << target.waveSize
           << " lanes of " << target.chip;
  if (type.getRows() % rows || type.getCols() % cols)
    return op->emitOpError()
           << "has a fragment of " << type.getRows() << "x" << type.getCols()
           << ", which is not made of whole " << instructionText(type)
           << " instructions; expected rows in multiples of " << rows
           << " and columns in multiples of " << cols;
  int64_t row = 0, col = 0;
  if (auto slice = dyn_cast<FragmentSliceOp>(op)) {
    row = slice.getRow();
    col = slice.getCol();
    // Each warp has a part of all rows, which a part of them is not.
    if (atom.rowWarps > 1 &&
        type.getRows() != slice.getSource().getType().getRows())
      return op->emitOpError()
             << "takes some of the rows, which " << atom.rowWarps
             << " warps share; expected all "
             << slice.getSource().getType().getRows() << " rows";
  } else if (auto load = dyn_cast<FragmentLoadOp>(op)) {
    row = load.getSlotRow();
    col = load.getSlotCol();
    if (load.isCrossed()) {
      std::swap(row, col);
      if (!llvm::isPowerOf2_64(atom.rowWarps))
        return op->emitOpError()
               << "deals columns of a slot to " << atom.rowWarps
               << " warps; expected a power of two";
    }
    // Where a warp's rows begin is read off the bits of its number, unless
    // lanes read for themselves, by a sum.
    if (atom.rowWarps > 1 && !llvm::isPowerOf2_64(atom.warpRows(type)) &&
        !isa<BlockedLayoutAttr>(type.getLayout()))
      return op->emitOpError()
             << "has " << atom.warpRows(type) << " rows for each of "
             << atom.rowWarps << " warps; expected a power of two";
  } else if (auto mma = dyn_cast<MmaOp>(op)) {
    col = mma.getColumn();
  }
  if (row % rows == 0 && col % cols == 0)
    return success();
  return op->emitOpError() << "begins at row " << row << " and column " << col
                           << ", between two " << instructionText(type)
                           << " instructions; expected a row and a column that "
                              "are multiples of "
                           << rows << " and " << cols;
}

LogicalResult kvbuf::checkSchedule(gpu::GPUFuncOp kernel, ScheduleAttr schedule,
                                   const TargetInfo &target) {
  if (failed(checkScheduled(kernel, schedule, target)))
    return failure();
  WalkResult result = kernel.walk([&](Operation *op) -> WalkResult {
    for (Type type : op->getResultTypes())
      if (auto fragment = dyn_cast<FragmentType>(type))
        if (failed(checkFragment(op, fragment, target)))
          return failure();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult kvbuf::checkTiles(gpu::GPUFuncOp kernel,
                                ScheduleAttr kernelSchedule,
                                const TargetInfo &target) {
  int64_t warps = blockWarpsOf(kernel, kernelSchedule);
  bool rings = findRings(kernel) != nullptr;
  WalkResult teams = kernel.walk([&](TeamsOp op) -> WalkResult {
    if (op.getWarps() == warps)
      return checkTeams(op, kernelSchedule, target, rings);
    return op.emitOpError()
           << "has teams of " << op.getWarps()
           << " warps together; expected as many as another kvbuffer.teams of "
              "the kernel has, "
           << warps;
  });
  if (teams.wasInterrupted())
    return failure();
  int64_t bytes = 0;
  FragmentLayouts layouts;
  WalkResult result = kernel.walk([&](Operation *op) -> WalkResult {
    if (warps != kernelSchedule.getWarps() && !op->getParentOfType<TeamOp>() &&
        needsWarps(op) && !(rings && isa<AllocOp, RingOp>(op)))
      return op->emitOpError()
             << "takes the whole block, whose teams have " << warps
             << " warps; expected it in a team, or a schedule with so many "
                "warps";
    if (auto load = dyn_cast<DramLoadOp>(op); load && !load.getSlot())
      if (int64_t slots = load.getBuffer().getType().getParams().getStages();
          slots > 1)
        return op->emitOpError()
               << "names none of " << slots
               << " slots; expected kvbuf-assign-slots to have run";
    ScheduleAttr schedule = scheduleOfSlots(op, kernelSchedule);
    for (Type type : op->getResultTypes())
      if (auto fragment = dyn_cast<FragmentType>(type))
        if (failed(checkAtoms(op, fragment, layouts, schedule, target)))
          return failure();
    for (Type type : op->getResultTypes()) {
      LogicalResult good =
          llvm::TypeSwitch<Type, LogicalResult>(type)
              .Case<BufferType, RingType>([&](auto buffer) -> LogicalResult {
                if (isa<AllocOp, RingOp>(op) &&
                    failed(checkPolicy(op, buffer.getParams(), target)))
                  return failure();
                return checkBuffer(op, buffer.getParams(), schedule, target);
              })
              .Default([](Type) { return success(); });
      if (failed(good))
        return failure();
    }
    auto alloc = dyn_cast<AllocOp>(op);
    if (!alloc)
      return WalkResult::advance();
    KVBufferAttr params = alloc.getBuffer().getType().getParams();
    // Each copy of a team has slots of its own.
    auto team = op->getParentOfType<TeamOp>();
    int64_t copies = team ? int64_t(team.getCopies()) : 1;
    // Not the product, which might overflow.
    int64_t taken = alloc.getOffset() ? int64_t(*alloc.getOffset()) : bytes;
    int64_t left = target.ldsBytes - taken;
    if (params.getStages() > left / copies / params.getStageBytes())
      return op->emitOpError()
             << "needs " << params.getStages() * copies << " slots of "
             << params.getStageBytes() << " bytes of shared memory; "
             << target.chip << " has " << target.ldsBytes << " for a block, "
             << taken << " of which are taken";
    bytes = std::max(bytes, taken + copies * params.getBytes());
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
