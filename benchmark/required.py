#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is required of speeds on an H200, and what this card has: one table, in one go.

    benchmark/required.py --build DIR                # needs kvbuf-compile
    benchmark/required.py --run DIR [ROW...]         # needs a GPU and PyTorch
    benchmark/required.py --join FILE...             # runs on several cards as one table

Rows and what is required of them are in benchmark/required.json; the measurements are
those of the other scripts of this folder. ROW: names that begin so; all without. A
number is a ratio of rates to a peer's on the same tensors, in the same process, in a
mode:

    cycles     turns of 5 ms without a pause
    sustained  turns at the clock that a contestant's own power allows
    cold       one launch after a flush of the L2
    graph      launches in one graph, over tensors beyond the L2

or, where a row says "at most", a part of the peer's time, or microseconds. A row's
"limit" is the number that can be reached, "because" says what binds there. --build
compiles all kernels at once, and, where there is a GPU, makes the first calls of the
Python package's functions, whose kernels lie in DIR/cache then. A copy of K and V alone
(benchmark/decode.py) needs DIR/libread_kv.so, or nvcc. --join takes what --json wrote,
and writes the file of docs/measured.

Exit status: 0 every row that was measured has what is required; 1 one has not, is wrong
or could not be measured; 2 bad usage.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402
import decode  # noqa: E402
import fp8_compare  # noqa: E402
import guard  # noqa: E402
import latent  # noqa: E402
import mixed  # noqa: E402
import parts  # noqa: E402
import scores  # noqa: E402
import trees  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
#: Rows of scores by their name: sequences and rows of each.
SHAPES = {"4096x4": (4, 4096), "16384x1": (1, 16384)}


def wanted(rows=()):
    """Rows of required.json whose names begin so."""
    data = json.loads((HERE / "required.json").read_text(encoding="utf-8"))
    return [row for row in data["rows"]
            if not rows or row["row"].startswith(tuple(rows))]


def named(cases, name):
    """The case of a name."""
    return next(c for c in cases if c.name == name)


class Missing(RuntimeError):
    """There is no kernel, or no peer."""


class Lab:
    """Measures on the GPU. A measurement takes rows with one "measure" and "group", and
    gives {row's name: {mode: number}}; raises RuntimeError where a result is wrong."""

    def __init__(self, folder, seconds):
        os.environ["KVBUF_CACHE_DIR"] = str(folder / "cache")
        import gpu
        import kvbuf
        self.gpu, self.kvbuf, self.torch = gpu, kvbuf, gpu.torch
        self.folder, self.seconds = folder, seconds
        self.loaded, self.copies = {}, None
        gpu.WARMUP_SECONDS = seconds / 4

    def machine(self):
        driver = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True, text=True).stdout.strip().split("\n")[0]
        return {**self.gpu.machine(), "driver": driver,
                "kvbuf": self.kvbuf.version()}

    def load(self, name):
        path = self.folder / f"{name}.kvbuf"
        if not path.exists():
            raise Missing(f"there is no {path.name}")
        if name not in self.loaded:
            self.loaded[name] = self.kvbuf.load(str(path))
        return self.loaded[name]

    def loader(self, kind):
        return lambda name: self.load(f"{kind}/{name}")

    def ceiling(self):
        if self.copies is None:
            self.copies = decode.Ceiling(self.folder)
        return self.copies

    def medians(self, runs, mode):
        return self.gpu.medians(runs, mode, rounds=8, turns=2, seconds=self.seconds)

    def modes(self, rows, runs, ours, peer):
        """Numbers of rows: the rate of `ours(row)`, of that of `peer(row)`."""
        found = {row["row"]: {} for row in rows}
        for mode in ("cycles", "sustained"):
            rows_of = [row for row in rows if mode in row["modes"]]
            names = {f(row) for row in rows_of for f in (ours, peer)}
            if missing := names - runs.keys():
                raise Missing(f"there is no {' and no '.join(sorted(missing))}")
            took = names and self.medians(
                {name: run for name, run in runs.items() if name in names}, mode)
            for row in rows_of:
                share = row.get("share", 1)
                found[row["row"]][mode] = (took[peer(row)] * share
                                           / took[ours(row)])
        return found

    def parts(self, rows, kind, made):
        """Numbers of contestants of parts.py, by a row's "case" and its "peer"."""
        runs, wrong = made if isinstance(made, tuple) else (made, {})
        used = {row["case"] for row in rows} | {row["peer"] for row in rows}
        runs = {name: run for name, run in runs.items() if name in used}
        for run in runs.values():
            run()
        if not isinstance(made, tuple):
            plain = runs[rows[0]["peer"]]
            wrong = {name: f"not the result of {rows[0]['peer']}"
                     for name in parts.far_from(plain.out, runs)}
        for name, said in wrong.items():
            raise RuntimeError(f"{kind} {name}: {said}")
        return self.modes(rows, runs, lambda row: row["case"],
                          lambda row: row["peer"])


class Prefill:
    """Beside cuDNN. "over": a number that the ratio is divided by, that of a commit."""

    @staticmethod
    def kernels(rows):
        made = guard.kernels()
        return {name: made[name] for name in
                {named(guard.prefill_cases(), row["case"]).problem for row in rows}}

    @staticmethod
    def measure(lab, rows):
        case = named(guard.prefill_cases(), rows[0]["case"])
        work = lab.gpu.Work(case.heads, case.kv_heads, case.head_size, case.causal,
                            case.batch, case.seq)
        runs = {"kvbuf": lab.gpu.kernel(work, lab.load(f"prefill/{case.problem}")),
                "cuDNN": lab.gpu.cudnn(work)}
        said = lab.gpu.check(work, {"kvbuf": lab.gpu.output(runs["kvbuf"])})
        if said["kvbuf"].wrong:
            raise RuntimeError(said["kvbuf"].wrong)
        found = lab.modes(rows, runs, lambda _: "kvbuf", lambda _: "cuDNN")
        return {row["row"]: {mode: x / row["over"]
                             for mode, x in found[row["row"]].items()}
                for row in rows}


class Float8:
    @staticmethod
    def kernels(rows):
        made = fp8_compare.kernels()
        return {name: made[name] for name in
                {named(fp8_compare.CASES, row["case"]).kernel for row in rows}}

    @staticmethod
    def measure(lab, rows):
        case = named(fp8_compare.CASES, rows[0]["case"])
        runs, off = fp8_compare.contestants(lab.torch, case,
                                            lab.load(f"fp8/{case.kernel}"))
        if not off["kvbuf"] < fp8_compare.LIMIT:
            raise RuntimeError(f"off by {off['kvbuf']:.3g}")
        return lab.modes(rows, runs, lambda _: "kvbuf", lambda _: "cuDNN")


class Latent:
    """Beside FlashMLA, or what a row's "peer" says: another case, or "copies"."""

    @staticmethod
    def kernels(rows):
        return {}

    @staticmethod
    def prepare(lab, row):
        """Makes the package compile what the row needs."""
        tensors = latent.Tensors(lab.torch, named(latent.CASES, row["case"]))
        latent.contestants(tensors)["kvbuf"]()

    @staticmethod
    def measure(lab, rows):
        torch, runs = lab.torch, {}
        for row in rows:
            case = named(latent.CASES, row["case"])
            tensors = latent.Tensors(torch, case)
            these = latent.contestants(tensors)
            if said := latent.wrong(torch, tensors, these["kvbuf"]):
                raise RuntimeError(said)
            runs |= {(case.name, name): run for name, run in these.items()}
            if row.get("peer") == "copies":
                first, second = tensors.cache.view(-1).chunk(2)
                runs[case.name, "copies"] = lab.ceiling().runner(torch, first, second)
            elif "peer" in row:
                other = latent.Tensors(torch, named(latent.CASES, row["peer"]))
                runs[row["peer"], "kvbuf"] = latent.contestants(other)["kvbuf"]

        def peer(row):
            if row.get("peer") in (None, "copies"):
                return row["case"], row.get("peer", "FlashMLA")
            return row["peer"], "kvbuf"
        names = {key: " ".join(key) for key in runs}
        return lab.modes(rows, {names[key]: run for key, run in runs.items()},
                         lambda row: f"{row['case']} kvbuf",
                         lambda row: " ".join(peer(row)))


class Scores:
    """Beside the plain kernel of as many tiles, or a "peer". The group: a head size
    and a shape. "own": by kvbuf's flex_attention, given what the peer is given, lists of
    visible blocks too."""

    #: Functions of scores.Work that launch peers.
    PEERS = {"FlexAttention": "flex", "FlashAttention 4": "flash4"}

    @staticmethod
    def kernels(rows):
        made = scores.kernels()
        names = set()
        for row in rows:
            if "own" in row:
                continue
            size = row["group"].split()[0]
            names |= {f"{row['case']}{size}", f"{scores.plain_of(row['case'])}{size}"}
        return {name: made[name] for name in names}

    @staticmethod
    def work(lab, row):
        size, shape, *_ = row["group"].split()
        batch, seq = SHAPES[shape]
        return scores.Work(lab.torch, batch, seq, int(size))

    @staticmethod
    def prepare(lab, row):
        """Makes the package compile what the row needs."""
        Scores.work(lab, row).own_flex(row["case"])

    @staticmethod
    def measure(lab, rows):
        size = rows[0]["group"].split()[0]
        work = Scores.work(lab, rows[0])
        load, runs = lab.loader("scores"), {}

        def own(row):
            return f"{row['own']} {row['case']}" if "own" in row else row["case"]

        def peer(row):
            return (f"{row['peer']} {row['case']}" if "peer" in row
                    else scores.plain_of(row["case"]))
        for row in rows:
            name, plain = row["case"], scores.plain_of(row["case"])
            if "own" in row:
                runs[own(row)] = work.own_flex(name)
            else:
                kernel = load(f"{name}{size}")
                # As many keys as a tile divides, and not.
                if not all(scores.check(lab.torch, kernel, name, int(size), keys)
                           for keys in scores.KEYS):
                    raise RuntimeError(f"{name}{size} is wrong")
                if name not in runs:
                    runs[name] = work.runner(kernel, name)
            if "peer" in row:
                try:
                    runs[peer(row)] = getattr(work, Scores.PEERS[row["peer"]])(name)
                except ImportError as error:
                    raise Missing(f"there is no {error.name}") from error
                mine, other = runs[own(row)]().float(), runs[peer(row)]().float()
                if not (mine - other).abs().max() < 0.05:
                    raise RuntimeError(f"{name}: {row['peer']} has another result")
            elif plain not in runs:
                runs[plain] = work.runner(load(f"{plain}{size}"))
        return lab.modes([row | {"share": work.share(row["case"])} for row in rows],
                         runs, own, peer)


class Trees:
    """Beside decode of one token over the same keys. The case: heads and tokens."""

    @staticmethod
    def kernels(rows):
        made = trees.kernels()
        names = set()
        for row in rows:
            names |= {f"tree-{row['case']}", f"decode-{row['case'].split('-')[0]}"}
        return {name: made[name] for name in names}

    @staticmethod
    def measure(lab, rows):
        case = rows[0]["case"]
        runs, right = trees.contestants(
            lab.torch, lab.kvbuf.load, lab.folder / "trees",
            *(int(x) for x in case.split("-")))
        if not all(right.values()):
            raise RuntimeError(f"wrong: {right}")
        return lab.modes(rows, runs, lambda _: f"tree-{case}", lambda _: "decode")


class Parts:
    """What a kernel of parts.py costs. The group: the kind, and what it needs."""

    @staticmethod
    def kernels(rows):
        made, names = parts.kernels(), set()
        for row in rows:
            kind, *what = row["group"].split()
            if kind == "pages":
                names |= {"dense", f"p{row['case']}"}
            elif kind == "caps":
                names |= {f"d{what[0]}", f"d{what[0]}-cap{row['case']}"}
            elif kind == "bytes":
                names |= {f"grouped-{what[0]}", f"grouped-{what[0]}-e4m3"}
            elif kind == "wide":
                names |= {f"wide{row['case']}", f"wide{row['peer']}"}
            else:
                names.add("dense")
        return {name: made[name] for name in names}

    @staticmethod
    def measure(lab, rows):
        kind, *what = rows[0]["group"].split()
        load, torch = lab.loader("parts"), lab.torch
        if kind == "pages":
            made = parts.page_runs(torch, load, " ".join(what),
                                   [int(row["case"]) for row in rows])
        elif kind == "caps":
            size, factor = (int(x) for x in what)
            made = parts.cap_runs(torch, load, size, dict(parts.SIZES)[size], factor,
                                  [float(row["case"]) for row in rows])
        elif kind == "bytes":
            try:
                made = parts.byte_runs(torch, load, *what)
            except ImportError as error:
                raise Missing(f"there is no {error.name}") from error
        elif kind == "wide":
            made = parts.wide_runs(torch, load)
        else:
            made = parts.odd_runs(torch, load)
        return lab.parts(rows, kind, made)


class Decode:
    """Beside copies alone, in microseconds where a row is no ratio, or, where "peer"
    says "fixed", a kernel that leaves the number of rows open beside one that does
    not. Cases are decode.py's, or a list of a Case's arguments."""

    @staticmethod
    def case(row):
        case = row["case"]
        return named(decode.CASES, case) if isinstance(case, str) else decode.Case(*case)

    @staticmethod
    def kernels(rows):
        made = decode.kernels([Decode.case(row) for row in rows])
        return made | decode.open_kernels(
            [Decode.case(row) for row in rows if row.get("peer") == "fixed"])

    @staticmethod
    def measure(lab, rows):
        row, case = rows[0], Decode.case(rows[0])
        kernels = {"kvbuf": lab.load(f"decode/{case.problem}")}
        found, wrong, torch = {}, [], lab.torch
        if row.get("peer") == "fixed":
            kernels["open"] = lab.load(f"decode/{case.problem}@open")
        if "cold" in row["modes"]:
            took = decode.measure(torch, case, kernels, None if "open" in kernels
                                  else lab.ceiling(), 3, 8, wrong)
            if wrong:
                raise RuntimeError(wrong[0])
            found["cold"] = (took["kvbuf"] / took["open"] if "open" in kernels else
                             took["ceiling"] / took["kvbuf"])
        if "graph" in row["modes"]:
            us = decode.replay(torch, case, kernels["kvbuf"])
            found["graph"] = us if row.get("unit") == "us" else (
                decode.replay(torch, case, ceiling=lab.ceiling()) / us)
        return {row["row"]: found}


class Mixed:
    """Time of one launch, of that of two."""

    @staticmethod
    def kernels(rows):
        return mixed.kernels()

    @staticmethod
    def measure(lab, rows):
        runs, wrong = mixed.contestants(lab.torch, rows[0]["case"],
                                        {"kvbuf": lab.load("mixed/kvbuf")})
        if wrong:
            raise RuntimeError(str(wrong))
        return lab.modes(rows, runs, lambda _: "kvbuf mixed", lambda _: "kvbuf two")


#: Measurements by the name of their folder.
MEASURES = {"prefill": Prefill, "fp8": Float8, "latent": Latent, "scores": Scores,
            "trees": Trees, "parts": Parts, "decode": Decode, "mixed": Mixed}


def kernels(rows):
    """{name: (module, schedule)} of what rows need."""
    made = {}
    for name, kind in MEASURES.items():
        own = [row for row in rows if row.get("measure") == name]
        made |= {f"{name}/{file}": job for file, job in
                 (kind.kernels(own) if own else {}).items()}
    return made


def groups(rows):
    """Lists of rows that are measured side by side."""
    found = {}
    for row in rows:
        if "why" not in row:
            case = row["case"] if isinstance(row["case"], str) else tuple(row["case"])
            found.setdefault((row["measure"], row.get("group", case)), []).append(row)
    return list(found.values())


def judge(row, numbers):
    """(whether a row has what is required, by how much it misses)."""
    if "at_most" in row:
        worst = max(numbers.values())
        return worst <= row["at_most"], worst - row["at_most"]
    worst = min(numbers.values())
    return worst >= row["required"], row["required"] - worst


def show(row, numbers, said=""):
    """The cells of a row: name, peer, numbers, what is required, verdict."""
    digits = 1 if row.get("unit") == "us" else 3
    asked = (f"at most {row['at_most']:g}" if "at_most" in row
             else f"{row['required']:g}")
    cells = [row["row"], row["of"],
             ", ".join(f"{mode} {x:.{digits}f}" for mode, x in numbers.items()), asked]
    if said:
        return cells + [said]
    good, by = judge(row, numbers)
    return cells + ["ok" if good else f"misses by {by:.{digits}f}"]


def limit_of(row):
    """What a row can reach and what binds it, as its "limit" and "because" say: measured
    or counted, not estimated. Empty where neither is there."""
    return f"{row['limit']:g}: {row['because']}" if "limit" in row else ""


def as_time(row, numbers):
    """Ratios of rates as the ratios of times that "at most" is about."""
    if "at_most" not in row or row.get("unit") == "us":
        return numbers
    return {mode: 1 / x for mode, x in numbers.items()}


def measure(group, lab):
    """[(row, numbers, why it has none)] of rows that are measured side by side."""
    try:
        found, said = MEASURES[group[0]["measure"]].measure(lab, group), ""
    except Missing as error:
        found, said = {}, f"not measured: {error}"
    except Exception as error:  # whatever it is, other rows are measured
        lines = str(error).splitlines() or [repr(error)]
        found, said = {}, f"WRONG: {lines[0]}"
    lab.torch.cuda.empty_cache()
    return [(row, found.get(row["row"], {}), said) for row in group]


def alone(group, lab):
    """Likewise, in lists: rows of a group that fails, one by one."""
    found = measure(group, lab)
    if len(group) == 1 or all(numbers for _, numbers, _ in found):
        return [found]
    return [measure([row], lab) for row in group]


def run(rows, lab, seconds_left=float("inf")):
    """Measures and prints; gives {row: (numbers, cells, why it has none)}."""
    found, begun = {}, time.monotonic()
    print(f"{'row':62} {'of':28} {'measured':34} {'required':>12}  verdict")

    def tell(row, numbers, said=""):
        cells = show(row, numbers, said)
        found[row["row"]] = numbers, cells, said
        print(f"{cells[0]:62} {cells[1]:28} {cells[2]:34} {cells[3]:>12}  {cells[4]}",
              flush=True)

    for row in rows:
        if "why" in row:
            tell(row, {}, f"not measured: {row['why']}")
    for group in groups(rows):
        if time.monotonic() - begun > seconds_left:
            for row in group:
                tell(row, {}, "not measured: no time was left")
            continue
        for own in alone(group, lab):
            for row, numbers, said in own:
                tell(row, as_time(row, numbers), said)
    print(f"{time.monotonic() - begun:.0f} s")
    return found


def record(machine, rows, found):
    """A run as docs/measured has them."""
    cells = [found[row["row"]][1] for row in rows]
    return {"id": "required", "title": "required and measured",
            "date": datetime.date.today().isoformat(),
            "card": machine["gpu"].removeprefix("NVIDIA "),
            "driver": machine["driver"],
            "versions": {"torch": machine["torch"], "cuDNN": str(machine["cudnn"])},
            "commit": "", "mode": "each row's",
            "columns": ["row", "of", "measured", "required", "verdict"],
            "rows": cells,
            "values": {name: {mode: round(x, 4) for mode, x in numbers.items()}
                       for name, (numbers, _, _) in found.items()},
            "notes": ["`benchmark/required.py`"]}


def join(runs, limits):
    """One run of several cards', with the limits of rows that a card misses."""
    by_name = [{row[0]: row for row in run["rows"]} for run in runs]
    rows = []
    for name, row in by_name[0].items():
        own = [cells.get(name, [""] * 4 + ["not measured"]) for cells in by_name]
        verdicts = [cells[-1] for cells in own]
        missed = any(verdict != "ok" for verdict in verdicts)
        rows.append([name, row[1], row[3], *(cells[2] for cells in own),
                     verdicts[0] if len(set(verdicts)) == 1 else "; ".join(verdicts),
                     limits.get(name, "") if missed else ""])
    cards = [f"card {n}" for n in range(1, len(runs) + 1)]
    return runs[0] | {
        "id": "cards", "columns": ["row", "of", "required", *cards, "verdict", "limit"],
        "rows": rows, "values": {card: run["values"] for card, run in zip(cards, runs)}}


def file_of(run):
    """The text of a file of docs/measured with one run, a row a line."""
    def said(x):
        return json.dumps(x, ensure_ascii=False)
    fields = [f' {said(name)}: {said(x)}' for name, x in run.items() if name != "rows"]
    rows = ",\n".join(f"  {said(row)}" for row in run["rows"])
    return ('{"runs": [{\n' + ",\n".join(fields)
            + f',\n "rows": [\n{rows}\n ]}}]}}\n')


def warm_package(folder, rows, jobs):
    """Makes the package's functions compile into the folder, one process a row."""
    cases = {row["case"]: row for row in rows if "why" not in row
             and (row.get("measure") == "latent" or "own" in row)}
    me = [sys.executable, __file__, "--prepare", str(folder)]
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        done = list(pool.map(lambda row: subprocess.run(
            [*me, row["row"]], capture_output=True, text=True), cases.values()))
    for case, one in zip(cases, done):
        print(f"{case}: " + ("done" if not one.returncode else one.stderr), flush=True)
    return sum(one.returncode != 0 for one in done)


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    for option in ("--build", "--run"):
        what.add_argument(option, metavar="DIR", type=pathlib.Path)
    what.add_argument("--join", metavar="FILE", type=pathlib.Path, nargs="+")
    what.add_argument("--prepare", metavar="DIR", type=pathlib.Path,
                      help=argparse.SUPPRESS)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--target", default="sm_90a", help="chip [sm_90a]")
    parser.add_argument("--kvbuf-compile", default="kvbuf-compile", metavar="PATH")
    parser.add_argument("-j", "--jobs", type=int, metavar="N",
                        help="kernels that are compiled at a time [cores]")
    parser.add_argument("--seconds", type=float, default=0.4, metavar="S",
                        help="seconds of a sustained turn [0.4]")
    parser.add_argument("--at-most", type=float, default=float("inf"), metavar="S",
                        help="begin no more rows after so many seconds")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="write the run as docs/measured has them")
    options = parser.parse_args(arguments)
    if not wanted(options.rows):
        parser.error(f"no row begins with {' or '.join(map(repr, options.rows))}")
    if options.seconds <= 0:
        parser.error(f"--seconds {options.seconds}: expected more than 0")
    return options


def main(arguments=None, make_lab=Lab):
    options = parse(arguments)
    rows = wanted(options.rows)
    if options.join:
        text = file_of(join([json.loads(path.read_text(encoding="utf-8"))
                             for path in options.join],
                            {row["row"]: limit_of(row) for row in rows}))
        if options.json:
            options.json.write_text(text, encoding="utf-8")
        else:
            print(text, end="")
        return 0
    if options.build:
        for name in MEASURES:
            (options.build / name).mkdir(parents=True, exist_ok=True)
        failed = common.build(options.build, kernels(rows), options.target,
                              options.kvbuf_compile, options.jobs)
        if not common.why_no_gpu():
            failed += warm_package(options.build, rows, options.jobs)
        return 1 if failed else 0
    if options.prepare:
        lab = make_lab(options.prepare, options.seconds)
        for row in rows:
            MEASURES[row["measure"]].prepare(lab, row)
        return 0
    lab = make_lab(options.run, options.seconds)
    machine = lab.machine()
    print(", ".join(f"{k} {v}" for k, v in machine.items()))
    found = run(rows, lab, options.at_most)
    if options.json:
        options.json.write_text(
            json.dumps(record(machine, rows, found), indent=1, ensure_ascii=False)
            + "\n", encoding="utf-8")
    measured = [row for row in rows if found[row["row"]][0]]
    bad = [row["row"] for row in rows if "why" not in row and
           found[row["row"]][1][-1] != "ok"]
    print(f"{len(rows)} rows, {len(measured)} measured, "
          f"{len(bad)} miss what is required, are wrong or were not measured")
    for name in bad:
        print(f"  {name}: {found[name][1][-1]}")
    return 1 if bad else 0


if __name__ == "__main__":
    common.need_gpu("required.py", "--build", "--join")
    sys.exit(main())
