//===- Options.cpp - Command line of kvbuf-tune ---------------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "../support/Lists.h"
#include "Candidates.h"
#include "kvbuffer/Runtime/Error.h"

using namespace kvbuf::tune;
using kvbuf::rt::Error;

namespace {

constexpr const char *kDescription =
    R"(Measures schedules of an attention kernel and ranks them.

FILE is an .mlir file with a kvbuffer.attention problem. It is compiled with the
compiler's own schedule and with every candidate; those that the target refuses
are left out. Each kernel's result is checked once against a float64 reference.
Then the kernels take turns, so that the GPU's clock and temperature are the same
for all, and are ranked by their median time; the fastest, and the compiler's own,
take longer turns behind these, as a clock follows what ran a moment before. On
the emulator, which has no time, they run once and are ranked by a model: each
unit of a multiprocessor (issue, float, shared memory, matrix, ...) takes some
cycles for what the emulator counted, and the busiest one counts; where there are
fewer blocks than the chip has multiprocessors, some have none. Device memory,
waiting and the number of warps are no part of it. Schedules that spill registers
are marked there, and not offered. Where the emulator would take minutes, it runs
a smaller batch, fewer rows and fewer keys, and says so.)";

constexpr const char *kExamples = R"(
A list of candidates names parameters of the schedule and the values of each, and
stands for all combinations; parameters that it does not name keep the values
that the compiler chooses with the others. The option may be repeated.
Sizes: `kvbuf-run --help` lists their names.

Examples:
  kvbuf-tune examples/prefill.mlir --device=cuda --size batch=4 --size seq=4096
      what the compiler proposes for the GPU at hand
  kvbuf-tune prefill.mlir --target=sm_90 --device=cuda \
      --size batch=1 --size seq=16384 \
      --candidates "BM=128;BN=64,128;warps=4,8" --candidates "BM=64;stages=2,3" \
      --json prefill.json --best prefill.kvbuf --verbose
  kvbuf-tune examples/prefill.mlir --device=emulator --size seq=100 \
      --candidates "BN=32,64"

What to do with the result: the fastest schedule can be given to kvbuf-compile
and kvbuf-run (--schedule=...), or be written into the problem (schedule =
#kvbuffer.schedule<...>); --json has a result for each kernel, with the problem,
sizes and chip, to make an entry of the chip's table of.
)";

constexpr const char *kExitStatus = R"(
Exit status: 0 ranked; 1 a kernel's result was wrong, or it misbehaved; 2 bad
usage or bad input, or no schedule compiles.)";

} // namespace

std::optional<Options> kvbuf::tune::parseCommandLine(int argc, char **argv) {
  Options o;
  std::string footer = kExamples + run::chipList() + run::scheduleList() +
                       run::kEmulatorList + kExitStatus;
  run::CommandLine line("kvbuf-tune", kDescription, footer.c_str());
  CLI::App &app = line.app;
  std::vector<std::string> candidates;
  bool noCheck = false;
  line.addKernel(o, ".mlir file");
  run::addRepeated(app, "--candidates", candidates,
                   "schedules to try; may be repeated [what the compiler "
                   "proposes for the chip]",
                   "NAME=V,V;...");
  line.addWorkload();
  app.add_option("--rounds", o.rounds, "turns of each kernel [5]")
      ->type_name("N");
  app.add_option("--turn", o.turn, "milliseconds of a turn [50]")
      ->type_name("MS");
  app.add_option(
         "--finals", o.finals,
         "on a GPU, so many of the fastest, and the compiler's own, take "
         "turns once more, in which the clock settles [8; 0: none]")
      ->type_name("N");
  app.add_option(
         "--final-turn", o.finalTurn,
         "milliseconds of such a turn, and of the run in front of it that "
         "does not count [200]")
      ->type_name("MS");
  app.add_flag("--no-check", noCheck, "do not check the results");
  app.add_flag("--full-size", o.fullSize,
               "emulate the sizes as given, also where that takes minutes");
  app.add_option("--top", o.top, "lines of the ranking [20]")->type_name("N");
  app.add_option("--json", o.json,
                 "write the results, with version, commit, chip and date; "
                 "kvbuf-compare reads them")
      ->type_name("FILE");
  app.add_option("--csv", o.csv, "write the results as comma-separated values")
      ->type_name("FILE");
  app.add_option("--best", o.best,
                 "write the artifact of the first in the ranking")
      ->type_name("FILE.kvbuf");
  app.add_flag("--verbose", o.verbose,
               "say why schedules are refused, and what the compiler warns of");

  if (!line.parse(argc, argv, o))
    return std::nullopt;

  if (o.rounds < 1 || o.rounds > 1000)
    throw Error("--rounds: expected 1 to 1000");
  if (!(o.turn > 0 && o.turn <= 10000))
    throw Error("--turn: expected more than 0 and at most 10000 ms");
  if (!(o.finalTurn > 0 && o.finalTurn <= 10000))
    throw Error("--final-turn: expected more than 0 and at most 10000 ms");
  for (const char *name : {"--rounds", "--turn", "--finals", "--final-turn"})
    if (app.count(name) && o.turnOption.empty())
      o.turnOption = name;
  if (!candidates.empty())
    o.schedules = parseCandidates(candidates);
  o.check = !noCheck;
  return o;
}
