//===- tools/kvbuf-run/Options.cpp - Command line of kvbuf-run --*- C++ -*-===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "../support/Lists.h"
#include "../support/Page.h"
#include "kvbuffer/Runtime/Error.h"

using namespace kvbuf::run;
using kvbuf::rt::Error;

namespace {

constexpr const char *kDescription =
    R"(Runs an attention kernel on a GPU, or on the emulator where there is none.

FILE is an artifact (.kvbuf), which needs no compiler here, or an .mlir file
with a kvbuffer.attention problem, which is compiled first. Where it has several
functions, --function says which to run. Tensors are filled
with seeded random numbers, or read from .npy files; memory that the kernel has
no business with holds NaN.)";

constexpr const char *kExamples = R"(
Examples:
  kvbuf-run examples/prefill.mlir --check
      compile for the GPU at hand, or emulate an sm_80, and compare with a
      float64 reference
  kvbuf-run examples/prefill.mlir --device=emulator --target=sm_80 \
      --size batch=2 --size seq=300 --check --report
  kvbuf-run prefill.kvbuf --device=cuda --size batch=4 --size seq=4096 \
      --check --bench --json result.json
  kvbuf-run paged.kvbuf --cache-lengths 0,17,300 --size seq_q=5 --share-pages \
      --check
  kvbuf-run examples/prefill.mlir --input q=q.npy --input k=k.npy \
      --input v=v.npy --output o=o.npy

Sizes: batch; seq_q (queries a sequence; the longest if they are ragged); seq_k
(keys a sequence; the longest if ragged); seq (both); cache (longest cache
before the new tokens); total_q, total_k (rows in all, ragged); num_blocks,
pages_per_seq, max_seq (extents of the cache and its table). Where none is given,
sizes to try a kernel with are chosen, and printed; where some are, only batch and
the extents have defaults.
)";

constexpr const char *kExitStatus = R"(
Exit status: 0 passed; 1 the check failed or the kernel misbehaved; 2 bad usage
or bad input; 130 interrupted (Ctrl-C).)";

} // namespace

std::optional<Options> kvbuf::run::parseCommandLine(int argc, char **argv) {
  Options o;
  std::string footer =
      kExamples + chipList() + scheduleList() + kEmulatorList + kExitStatus;
  CommandLine line("kvbuf-run", kDescription, footer.c_str());
  CLI::App &app = line.app;
  std::vector<std::string> outputs;
  std::string checkRows;
  line.addKernel(o, "artifact or .mlir file");
  app.add_option("--schedule", o.schedule,
                 "schedule for the compiler, as BM=128,BN=64,...")
      ->type_name("LIST");
  line.addWorkload();
  addRepeated(app, "--output", outputs, "write a tensor; may be repeated",
              "NAME=FILE.npy");
  app.add_flag("--check", o.check, "compare with a float64 reference");
  app.add_option("--check-rows", checkRows,
                 "rows to compare: a number, all, or auto [auto]")
      ->type_name("N");
  app.add_flag("--bench", o.bench, "measure time, TFLOP/s and GB/s");
  app.add_option("--repeat", o.repeat,
                 "launches that --bench measures [about a second's]")
      ->type_name("N");
  app.add_flag("--report{text}", o.report,
               "print what the emulator counted; --report=PAGE.html writes a "
               "page about the kernel")
      ->type_name("")
      ->run_callback_for_default(false);
  app.add_option("--json", o.json, "write all that is printed to a file")
      ->type_name("FILE");

  if (!line.parse(argc, argv, o))
    return std::nullopt;
  if (!o.report.empty() && o.report != "text" && !isPage(o.report))
    throw Error("--report=" + o.report +
                ": expected text, or a file whose name ends in .html");
  if (!checkRows.empty() && !o.check)
    throw Error("--check-rows is for --check, which is not given");
  if (o.repeat && !o.bench)
    throw Error("--repeat is for --bench, which is not given");
  if (app.count("--repeat") && !o.repeat)
    throw Error("--repeat: expected 1 or more, got 0");
  for (const std::string &text : outputs)
    o.outputs.insert(splitPair("--output", text));
  if (checkRows == "all") {
    o.checkRows = -1;
  } else if (!checkRows.empty() && checkRows != "auto") {
    o.checkRows = parseInteger("--check-rows", checkRows);
    if (o.checkRows < 1)
      throw Error("--check-rows: expected a positive number, all or auto");
  }
  return o;
}
