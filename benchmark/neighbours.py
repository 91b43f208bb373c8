#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether a schedule near the compiler's own is faster, for kernels of the required rows.

    benchmark/neighbours.py --build DIR [ROW...]    # needs kvbuf-compile and PyTorch
    benchmark/neighbours.py --run DIR [ROW...]      # needs a GPU and PyTorch

kvbuf-tune times all schedules that it knows for a problem that it has tensors for, in a
minute or two. This script times few, those that differ from the compiler's own by one
parameter or two (`moves`), for every row of required.json: on the row's own tensors, as
the row is measured, in a second. ROW: names that begin so; all without.

Schedules that do not compile, spill, or are the compiler's own are left out. Results
are compared with the own kernel's. All take short turns; the fastest, and the compiler's
own, take long ones then, behind turns of the same kernel that do not count.

Exit status: 0 no schedule is more than 3 % ahead of the compiler's own; 1 one is, has
another result, or could not be measured; 2 bad usage.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402
import decode  # noqa: E402
import fp8_compare  # noqa: E402
import latent  # noqa: E402
import mixed  # noqa: E402
import parts  # noqa: E402
import required  # noqa: E402
import scores  # noqa: E402
import trees  # noqa: E402

#: What a schedule may be ahead of the compiler's own: the part of a time.
AHEAD = 0.03
#: How far results may be from those of the compiler's own: both round weights.
APART = 0.04
#: Milliseconds of a short turn, of a long one, and of what runs in front of it.
SHORT, LONG, SETTLE = 15, 70, 30
#: How many take long turns, how many, and how near in short ones they have to be.
FINALS, ROUNDS, NEAR = 2, 3, 0.95


def parameters(schedule):
    """{name: value} of a schedule as the compiler writes it, whatever part they are of;
    what has its default is not written."""
    found = dict(re.findall(r"(\w+) = (\[[^\]]*\]|[\w.]+)", schedule))
    found["overlap_products"] = str("ahead = softmax" in schedule).lower()
    return found


def of_roles(own):
    """Moves of a schedule with a team that moves tiles."""
    def number(name, default=0):
        return int(own.get(name, default))
    alone, turns = number("cluster", 1) == 1, own.get("ping_pong") == "true"
    other = f"cluster={2 if alone else 1}"
    keys, step = number("BN"), 32 if number("wideners") else 16
    yield other
    yield f"ping_pong={'false' if turns else 'true'}"
    yield f"{other},ping_pong={'false' if turns else 'true'}"
    three = number("warps") == 12
    if not three and number("warps") == 8 and not number("wideners"):
        for fewer in (80, 112):
            if fewer != keys:
                yield ("BM=192,warps=12,producer_registers=32,consumer_registers=160,"
                       f"q_in_regs=false,ping_pong=true,BN={fewer}")
    if three:
        yield ("BM=128,warps=8,producer_registers=40,consumer_registers=232,"
               "q_in_regs=true,ping_pong=true")
        yield ("BM=128,warps=8,producer_registers=40,consumer_registers=232,"
               "q_in_regs=true,ping_pong=true,cluster=2")
    yield f"BN={keys - step}"
    yield f"BN={keys + step}"
    yield f"q_in_regs={'false' if own.get('q_in_regs') == 'true' else 'true'}"
    yield f"BN={max(step, keys // 2 // step * step)}"
    yield "stages=3"
    yield f"overlap_products={'false' if own['overlap_products'] == 'true' else 'true'}"


def of_latent(own):
    """Moves of a schedule of latent rows with roles."""
    alone = int(own.get("cluster", 1)) == 1
    yield f"cluster={2 if alone else 1}"
    yield f"equal_shares={'false' if own.get('equal_shares') == 'true' else 'true'}"
    yield f"stages={int(own['stages']) - 1}"
    yield f"overlap={'false' if 'ahead' in own else 'true'}"
    yield "producer_registers=40,consumer_registers=152"
    yield "split_size=1024"


def of_split_keys(own):
    """Moves of a schedule that splits keys over blocks of the same warps."""
    keys, stages, warps = (int(own.get(x, 1)) for x in ("BN", "stages", "warps"))
    yield f"BN={2 * keys},stages=2"
    yield f"stages={stages + 1}"
    if stages > 2:
        yield f"stages={stages - 1}"
    yield f"warps={1 if warps > 1 else 4}"
    yield f"equal_shares={'false' if own.get('equal_shares') == 'true' else 'true'}"
    yield f"BN={2 * keys}"
    if keys > 16:
        yield f"BN={keys // 2},stages={2 * stages}"


def moves(schedule):
    """Schedules near one that the compiler has chosen, the likely ones first."""
    own = parameters(schedule)
    splits = "split_keys" in schedule
    if "producers" in own:
        return list(of_latent(own) if splits else of_roles(own))
    return list(of_split_keys(own))


class Found(Exception):
    """A problem's text."""


def latent_source(case):
    """What the package compiles for a case of latent.py, asked with few tokens on the
    CPU."""
    import torch
    from kvbuf import _kernels

    class OnHost:
        """torch, whose tensors lie on the host."""

        def __getattr__(self, name):
            own = getattr(torch, name)
            if name == "Generator":
                return lambda device: own("cpu")
            if name in ("randn", "randperm", "zeros", "tensor", "ones", "empty"):
                return lambda *a, device=None, **named: own(*a, **named)
            return own

    few = dataclasses.replace(case, batch=1, tokens=128, listed=min(case.listed, 64))
    run, find = latent.contestants(latent.Tensors(OnHost(), few))["kvbuf"], _kernels.find

    def tell(problem, *rest, **named):
        source = problem.source()
        if "kvbuffer.attention" not in source:
            return find(problem, *rest, **named)
        raise Found(source)
    _kernels.find = tell
    try:
        run()
    except Found as found:
        return str(found)
    finally:
        _kernels.find = find
    raise RuntimeError(f"{case.name}: no kernel was asked for")


def file_of(row):
    """The name of the kernel that a row measures, and those that it needs besides."""
    kind, case = row["measure"], row["case"]
    group = str(row.get("group", "")).split()
    if kind == "latent":
        return f"latent/{case}", []
    if kind == "prefill":
        return f"prefill/{case.rsplit('-', 1)[0]}", []
    if kind == "fp8":
        return f"fp8/{required.named(fp8_compare.CASES, case).kernel}", []
    if kind == "scores":
        return f"scores/{case}{group[0]}", []
    if kind == "trees":
        return f"trees/tree-{case}", [f"trees/decode-{case.split('-')[0]}"]
    if kind == "mixed":
        return "mixed/kvbuf", []
    if kind == "decode":
        name = f"decode/{required.Decode.case(row).problem}"
        return name + ("@open" if row.get("peer") == "fixed" else ""), []
    names = {"pages": f"p{case}", "caps": f"d{group[1] if len(group) > 1 else 0}-cap{case}",
             "bytes": f"grouped-{group[1] if len(group) > 1 else 0}-e4m3",
             "wide": f"wide{case}", "odd": "dense"}
    return f"parts/{names[group[0]]}", []


def sources(rows):
    """{kernel: (module, schedule)} of what rows measure."""
    made = required.kernels([row for row in rows if row["measure"] != "latent"])
    for row in rows:
        if row["measure"] == "latent":
            made[f"latent/{row['case']}"] = latent_source(
                required.named(latent.CASES, row["case"])), ""
    return made


def compiled(compiler, target, job, schedule, path, alone=False):
    """The schedule in full as the compiler tells it; why there is none."""
    text, asked = job
    asked = ",".join(filter(None, [asked, schedule]))
    own = ["--no-alternatives"] if schedule or alone else []
    done = subprocess.run(
        [compiler, "-", "-o", str(path), f"--target={target}", f"--schedule={asked}",
         "--remarks", *own], input=text, capture_output=True, text=True)
    if done.returncode:
        return "", done.stderr.strip().split("\n")[0]
    chosen = re.search(r"chose #kvbuffer\.schedule<(.*?)> for", done.stderr)
    inspect = pathlib.Path(compiler)
    inspect = inspect.with_name(inspect.name.replace("compile", "inspect"))
    shown = subprocess.run([str(inspect), str(path), "--json"], capture_output=True,
                           text=True)
    kernels = json.loads(shown.stdout)["manifest"]["kernels"] if not shown.returncode else []
    if schedule and any(kernel.get("spill_bytes", 0) for kernel in kernels):
        path.unlink()
        return "", "spills"
    return chosen.group(1) if chosen else "", ""


def build(folder, rows, options):
    """Compiles the own schedules of all kernels, and `most` others of each; writes
    DIR/schedules.json: {kernel: [schedule]}, the own one first, as "". Returns how many
    own schedules failed."""
    jobs, failed, names = sources(rows), 0, {}
    for row in rows:
        name, more = file_of(row)
        names |= {name: True} | {other: False for other in more}
    table = folder / "schedules.json"
    made = json.loads(table.read_text()) if table.exists() else {}

    def one(name):
        path = folder / f"{name}.kvbuf"
        path.parent.mkdir(parents=True, exist_ok=True)
        own, why = compiled(options.kvbuf_compile, options.target, jobs[name], "", path,
                            options.alone)
        if why or not names[name]:
            return name, [""], why
        seen, kept, left = {own}, [""], []
        for schedule in moves(own):
            if len(kept) > options.most:
                break
            file = folder / f"{name}@{len(kept)}.kvbuf"
            full, said = compiled(options.kvbuf_compile, options.target, jobs[name],
                                  schedule, file)
            if said or full in seen:
                left.append(f"{schedule}: {said or 'the same'}")
                continue
            seen.add(full)
            kept.append(schedule)
        return name, kept, "; ".join(left)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, kept, said in pool.map(one, [n for n in names if n not in made]):
            if not (folder / f"{name}.kvbuf").exists():
                print(f"{name}: {said}", flush=True)
                failed += 1
                continue
            made[name] = kept
            print(f"{name}: {len(kept) - 1} others: {kept[1:]}; left out: {said[:600]}",
                  flush=True)
            table.write_text(json.dumps(made, indent=1) + "\n")
    return failed


class Switch:
    """An artifact that stands for several: calls go to that of `now`."""

    def __init__(self, load, name):
        self.load, self.name, self.now, self.known = load, name, 0, {}

    @property
    def artifact(self):
        if self.now not in self.known:
            self.known[self.now] = self.load(
                self.name + (f"@{self.now}" if self.now else ""))
        return self.known[self.now]

    def __call__(self, *given, **named):
        return self.artifact(*given, **named)


class Lab:
    """Rows on a GPU."""

    def __init__(self, folder):
        import gpu
        import kvbuf
        self.gpu, self.kvbuf, self.torch, self.folder = gpu, kvbuf, gpu.torch, folder

    def artifact(self, name):
        return self.kvbuf.load(str(self.folder / f"{name}.kvbuf"))

    def launcher(self, row):
        """The switch of a row's kernel, a function that launches it on the row's
        tensors, and one that gives the result."""
        torch, kind, case = self.torch, row["measure"], row["case"]
        group = str(row.get("group", "")).split()
        name, _ = file_of(row)
        switch = Switch(self.artifact, name)

        def load(other):
            other = f"{kind}/{pathlib.Path(other).name.removesuffix('.kvbuf')}"
            return switch if other == name else Switch(self.artifact, other)
        if kind == "latent":
            return self.latent(switch, required.named(latent.CASES, case))
        if kind == "prefill":
            c = required.named(required.guard.prefill_cases(), case)
            work = self.gpu.Work(c.heads, c.kv_heads, c.head_size, c.causal, c.batch, c.seq)
            run = self.gpu.kernel(work, switch)
            return switch, run, lambda: run.out
        if kind == "fp8":
            c = required.named(fp8_compare.CASES, case)
            q, k, v = (torch.randn(c.batch, c.seq, c.heads, c.size, device="cuda").to(
                torch.float8_e4m3fn) for _ in "qkv")
            out = torch.empty(q.shape, device="cuda", dtype=torch.bfloat16)
            return switch, lambda: switch(q=q, k=k, v=v, out=out), lambda: out
        if kind == "scores":
            size, shape, *_ = group
            batch, seq = required.SHAPES[shape]
            work = scores.Work(torch, batch, seq, int(size))
            return switch, work.runner(switch, case), lambda: work.o
        if kind == "trees":
            runs, _ = trees.contestants(torch, load, self.folder / "trees",
                                        *(int(x) for x in case.split("-")))
            run = runs[f"tree-{case}"]
            return switch, run, None
        if kind == "mixed":
            runs, _ = mixed.contestants(torch, case, {"kvbuf": switch})
            return switch, runs["kvbuf mixed"], None
        if kind == "decode":
            tensors = decode.Tensors(torch, required.Decode.case(row))
            return switch, lambda: switch(**tensors.given), lambda: tensors.out
        if group[0] == "pages":
            run = parts.page_runs(torch, load, " ".join(group[1:]), [int(case)])[case]
        elif group[0] == "caps":
            size, factor = int(group[1]), int(group[2])
            q, k, v = (torch.randn(4, 4096, dict(parts.SIZES)[size], size,
                                   device="cuda").to(torch.bfloat16) for _ in "qkv")
            run = parts.runner(torch, switch, q * factor, {"k": k, "v": v})
        elif group[0] == "bytes":
            run = parts.byte_runs(torch, load, group[1])["e4m3"]
        elif group[0] == "wide":
            heads = dict(parts.WIDE)[int(case)]
            q, k, v = (torch.randn(1, 16384, heads, int(case), device="cuda").to(
                torch.bfloat16) for _ in "qkv")
            run = parts.runner(torch, switch, q, {"k": k, "v": v})
        else:
            run = parts.odd_runs(torch, load)[case]
        return switch, run, lambda: run.out

    def latent(self, switch, case):
        """Through the package, which is handed the switch's artifact."""
        from kvbuf import _kernels, _plans
        call = latent.contestants(latent.Tensors(self.torch, case))["kvbuf"]
        find, kept = _kernels.find, {"plans": []}

        def ours(problem, *rest, **named):
            if "kvbuffer.attention" not in problem.source():
                return find(problem, *rest, **named)
            return switch.artifact

        def run():
            if kept.get("now") != switch.now:
                # Graphs still have what plans allocated.
                kept["plans"].append((dict(_plans._plans),
                                      dict(_plans._calls_by_options)))
                _plans._forget()
                kept["now"] = switch.now
            _kernels.find = ours
            try:
                kept["out"] = call()
            finally:
                _kernels.find = find
        return switch, run, lambda: kept["out"]

    def turn(self, launch, milliseconds, each):
        """Milliseconds of a launch in a turn of about so many."""
        first, last = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        repeats = max(1, round(milliseconds / each))
        first.record()
        for _ in range(repeats):
            launch()
        last.record()
        self.torch.cuda.synchronize()
        return first.elapsed_time(last) / repeats

    def measure(self, row, schedules):
        """{schedule: (milliseconds in short turns, in long ones or None)}, and what is
        wrong."""
        torch = self.torch
        switch, run, out = self.launcher(row)
        graphs, wrong, own = {}, {}, None
        for number, schedule in enumerate(schedules):
            switch.now = number
            try:
                if out and number:
                    out().fill_(float("nan"))
                run()
                if out:
                    result = out().float()
                    own = result.clone() if number == 0 else own
                    if not (result - own).abs().max() < APART:
                        wrong[schedule] = "another result"
                        continue
                    del result
                graphs[schedule] = self.gpu.capture(run, 1)
            except Exception as error:  # whatever it is, others are measured
                wrong[schedule] = (str(error).splitlines() or [repr(error)])[0][:200]
        del own
        if "" not in graphs:
            return {}, wrong
        each = {name: self.turn(graph, 3, 1) for name, graph in graphs.items()}
        short = {name: [] for name in graphs}
        self.turn(graphs[""], SETTLE, each[""])
        for name in common.in_turns(graphs, 2):
            short[name].append(self.turn(graphs[name], SHORT, each[name]))
        short = {name: min(times) for name, times in short.items()}
        near = [name for name in sorted(short, key=short.get)
                if name and short[""] / short[name] > NEAR][:FINALS]
        final = {name: [] for name in (["", *near] if near else [])}
        for number in range(ROUNDS if final else 0):
            # Nobody runs behind the same one each time, nor always first.
            for name in self.gpu.order(list(final), number):
                self.turn(graphs[name], SETTLE, short[name])
                final[name].append(self.turn(graphs[name], LONG, short[name]))
        return {name: (short[name], statistics.median(final[name]) if name in final else None)
                for name in graphs}, wrong


def run(folder, rows, seconds, lab):
    """Measures and prints; gives {row: {schedule: (of the own rate in short turns, in
    long ones)}} and how many rows failed."""
    table = json.loads((folder / "schedules.json").read_text())
    begun, found, failed = time.monotonic(), {}, 0
    for row in rows:
        name, _ = file_of(row)
        if name not in table or time.monotonic() - begun > seconds:
            print(f"{row['row']}: not measured", flush=True)
            failed += 1
            continue
        at = time.monotonic()
        try:
            times, wrong = lab.measure(row, table[name])
        except Exception as error:  # whatever it is, other rows are measured
            times, wrong = {}, {"": f"{type(error).__name__}: {error}"[:300]}
        lab.torch.cuda.empty_cache()
        failed += bool(wrong) or not times
        if not times:
            print(f"{row['row']}: {wrong}", flush=True)
            continue
        own = times[""]
        found[row["row"]] = {
            schedule: (own[0] / short, own[1] / long if long else None)
            for schedule, (short, long) in times.items() if schedule}
        print(f"{row['row']}: {1e3 * (own[1] or own[0]):.1f} us; " + "; ".join(
            f"{schedule} {a:.3f}" + (f" LONG {b:.3f}" if b else "")
            for schedule, (a, b) in found[row["row"]].items())
            + (f" WRONG {wrong}" if wrong else "") + f" ({time.monotonic() - at:.1f} s)",
            flush=True)
    return found, failed


def main(arguments=None, make_lab=Lab):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--build", metavar="DIR", type=pathlib.Path)
    what.add_argument("--run", metavar="DIR", type=pathlib.Path)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--target", default="sm_90a", help="chip [sm_90a]")
    parser.add_argument("--kvbuf-compile", default="kvbuf-compile", metavar="PATH")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="kernels that are compiled for at a time [cores]")
    parser.add_argument("--most", type=int, default=6, metavar="N",
                        help="schedules of a kernel beside its own [6]")
    parser.add_argument("--alone", action="store_true",
                        help="compile the own schedules without the kernels that launches\n"
                             "choose between, a tenth of the time")
    parser.add_argument("--at-most", type=float, default=float("inf"), metavar="S",
                        help="begin no more rows after so many seconds")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write what was found")
    options = parser.parse_args(arguments)
    rows = [row for row in required.wanted(options.rows)
            if "why" not in row and "own" not in row]
    if not rows:
        parser.error(f"no row begins with {' or '.join(map(repr, options.rows))}")
    if options.rows:  # in the order asked for
        rows.sort(key=lambda row: next(n for n, begin in enumerate(options.rows)
                                       if row["row"].startswith(begin)))
    if options.build:
        return 1 if build(options.build, rows, options) else 0
    found, failed = run(options.run, rows, options.at_most, make_lab(options.run))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    ahead = [f"{row}: {schedule}" for row, own in found.items()
             for schedule, (_, long) in own.items() if long and long > 1 + AHEAD]
    for name in ahead:
        print(f"{name} is more than {AHEAD:.0%} ahead")
    return 1 if failed or ahead else 0


if __name__ == "__main__":
    common.need_gpu("neighbours.py", "--build")
    sys.exit(main())
