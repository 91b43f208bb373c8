# RUN: %python %s %src %t
"""The comparisons' cases, judgement and tables, with a laboratory that knows its
numbers in advance; no GPU and no torch."""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import types
import unittest
import unittest.mock

WORK, SOURCE = pathlib.Path(sys.argv.pop()), sys.argv.pop()
sys.path.insert(0, str(pathlib.Path(SOURCE) / "benchmark"))
import build_artifacts  # noqa: E402
import common  # noqa: E402
import cudnn_compare  # noqa: E402
import guard  # noqa: E402
import neighbours  # noqa: E402
import problem  # noqa: E402
import required  # noqa: E402
import tuner  # noqa: E402


def named(name):
    return common.select(common.all_cases(), name)[0]


class WithoutGpu(unittest.TestCase):
    @unittest.skipIf(not common.why_no_gpu(), "there is a GPU")
    def test_says_so(self):
        for script in ("append", "cudnn_compare", "fa2_compare", "decode",
                       "guard", "neighbours", "required", "scaling", "tuner",
                       "verify_table"):
            result = subprocess.run(
                [sys.executable, f"{SOURCE}/benchmark/{script}.py"], text=True,
                capture_output=True)
            self.assertNotEqual(result.returncode, 0, script)
            self.assertEqual(result.stdout, "", script)
            self.assertIn(f"{script}.py: there is no GPU here: ",
                          result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)


class Help(unittest.TestCase):
    def test_says_what_there_is(self):
        """Names of problems with "%" are text, too."""
        for script in ("append", "cudnn_compare", "decode", "guard", "latent", "mixed",
                       "neighbours", "parts", "required", "scaling", "scores", "tuner",
                       "verify_table"):
            result = subprocess.run(
                [sys.executable, f"{SOURCE}/benchmark/{script}.py", "--help"],
                text=True, capture_output=True)
            self.assertEqual((result.returncode, result.stderr), (0, ""), script)
            self.assertIn("usage: ", result.stdout, script)


class Cases(unittest.TestCase):
    def test_required_ratios(self):
        table = {c.name: (c.required, c.aim) for c in common.all_cases()}
        self.assertEqual(len(table), 17)
        for name, ratios in {
                "d128-full-4096x4": (1.08, 1.15),
                "d128-causal-16384x1": (1.18, 1.27),
                "d64-causal-4096x4": (1.10, 1.18),
                "d256-full-16384x1": (1.05, 1.15),
                "d256-causal-4096x4": (1.15, 1.27),
                "d128-causal-gqa32_8-4096x4": (1.15, 1.25),
                "d128-causal-gqa32_8-32768x1": (1.10, 1.20),
                "d128-full-1024x16": (1.05, 1.15),
                "d128-causal-1024x16": (1.10, 1.20)}.items():
            self.assertEqual(table[name], ratios, name)

    def test_sixteen_thousand_tokens(self):
        for case in common.all_cases():
            if case.lengths or case.kv_heads != case.heads:
                continue
            self.assertEqual(case.batch * case.seq, 16384)
            self.assertEqual(case.heads * case.head_size, 2048)

    def test_operations(self):
        # Two products of 2 * 4096 * 4096 * 128 operations a head.
        self.assertEqual(named("d128-full-4096x4").flop(),
                         2 * 2 * 4096 * 4096 * 128 * 16 * 4)
        self.assertEqual(named("d128-causal-4096x4").flop() * 2,
                         named("d128-full-4096x4").flop())

    def test_ragged_lengths(self):
        lengths = named("d128-causal-ragged").lengths
        self.assertEqual((len(lengths), min(lengths), max(lengths)),
                         (16, 100, 4000))
        self.assertFalse([n for n in lengths if n % 128 == 0])
        whole = common.whole_tiles(lengths)
        self.assertFalse([n for n in whole if n % 128 or n == 0])
        # As much work, but for the rounding.
        self.assertAlmostEqual(sum(n * n for n in whole) /
                               sum(n * n for n in lengths), 1, delta=0.02)

    def test_select(self):
        cases = common.all_cases()
        self.assertEqual(len(common.select(cases, "d64-*,d128-full")), 7)
        with self.assertRaisesRegex(ValueError, "no case matches 'd65"):
            common.select(cases, "d64-*,d65-*")

    def test_problems_compile(self):
        for case in common.all_cases():
            text = problem.problem(**case.options())
            self.assertIn(f"head_size = {case.head_size}", text)
            self.assertEqual("ragged" in text, bool(case.lengths))


class Artifacts(unittest.TestCase):
    def test_labels(self):
        folder = WORK / "labels"
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("d128-full", "d128-full@bn176", "d128-full-1024x16",
                     "d128-fuller", "d64-full"):
            (folder / f"{name}.kvbuf").touch()
        found = common.find_artifacts(folder, named("d128-full-4096x4"))
        self.assertEqual({k: v.name for k, v in found.items()}, {
            "kvbuf": "d128-full.kvbuf",
            "kvbuf bn176": "d128-full@bn176.kvbuf"})
        found = common.find_artifacts(folder, named("d128-full-1024x16"))
        self.assertEqual([v.name for v in found.values()],
                         ["d128-full-1024x16.kvbuf"])
        self.assertEqual(common.find_artifacts(folder, named("d256-full-4096x4")),
                         {})

    def test_plan(self):
        cases = common.select(common.all_cases(), "d64-*")
        jobs = build_artifacts.plan(cases, [
            "d64-full=--schedule=BM=128,BN=64", "d64-full@b=--schedule=BN=32",
            "d64-causal-4096x4=--no-prefetch"])
        self.assertEqual({n: extra for n, (_, extra) in jobs.items()}, {
            "d64-full": ["--schedule=BM=128,BN=64"], "d64-causal": [],
            "d64-full@b": ["--schedule=BN=32"],
            "d64-causal-4096x4": ["--no-prefetch"]})
        with self.assertRaisesRegex(ValueError, "^--options d32=x: expected"):
            build_artifacts.plan(cases, ["d32=x"])


class FakeLab:
    """Milliseconds and errors from a table: {implementation: (ms, wrong)}."""

    def __init__(self, table):
        self.table, self.note, self.ran = table, "", []

    def __call__(self, rounds, sample_ms, graphs, tile, seconds, fa2):
        self.rounds, self.seconds = rounds, seconds
        return self

    def machine(self):
        return {"gpu": "none"}

    def run(self, case, paths):
        self.ran.append(case.name)
        names = [common.CUDNN, common.FA2, *paths]
        if case.lengths:
            names = [n for label in paths
                     for n in (label, f"{label}, {common.WHOLE_TILES}")]
        results = []
        for name in names:
            ms, wrong = self.table[name]
            flop = case.flop(common.whole_tiles(case.lengths)
                             if common.WHOLE_TILES in name else ())
            results.append(common.Result(
                name, common.Timing([ms * (1 + i / 1000) for i in range(-2, 3)]),
                flop, 1.01, 0.99, wrong))
        return results


class Compare(unittest.TestCase):
    def run_(self, table, *arguments, artifacts=("d128-full",)):
        folder = WORK / f"run-{self.id().rsplit('.')[-1]}"
        folder.mkdir(parents=True, exist_ok=True)
        for name in artifacts:
            (folder / f"{name}.kvbuf").touch()
        self.json = folder / "out.json"
        out, err = io.StringIO(), io.StringIO()
        lab = FakeLab(table)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = cudnn_compare.main(
                    ["--artifacts", str(folder), "--json", str(self.json),
                     *arguments], make_lab=lab)
            except SystemExit as exit_:
                status = exit_.code
        self.lab, self.out, self.err = lab, out.getvalue(), err.getvalue()
        return status

    def verdicts(self):
        return [r["verdict"] for r in json.loads(self.json.read_text())["results"]
                if r["judged"]]

    BASE = {"cuDNN": (1.2, ""), "FlashAttention-2": (2.0, "")}

    def test_judgement(self):
        for ms, word, status in ((1.2 / 1.151, "aim", 0),
                                 (1.2 / 1.081, "required", 0),
                                 (1.2 / 1.079, "MISSED", 1)):
            self.assertEqual(self.run_({**self.BASE, "kvbuf": (ms, "")},
                                       "--cases", "d128-full-4096x4"), status)
            self.assertEqual(self.verdicts(), [word])

    def test_a_wrong_result_is_no_result(self):
        self.assertEqual(self.run_(
            {**self.BASE, "kvbuf": (0.5, "largest error 1, the baseline's is "
                                    "0.01")}, "--cases", "d128-full-4096x4"), 1)
        self.assertEqual(self.verdicts(), ["WRONG"])
        self.assertIn("    largest error 1, the baseline's is 0.01\n", self.out)

    def test_a_wrong_opponent_is_reported(self):
        self.assertEqual(self.run_(
            {**self.BASE, "cuDNN": (1.2, "the result holds NaN"),
             "kvbuf": (0.5, "")}, "--cases", "d128-full-4096x4"), 1)

    def test_table(self):
        self.run_({**self.BASE, "kvbuf": (1.0, "")}, "--cases",
                  "d128-full-4096x4")
        lines = self.out.splitlines()
        self.assertEqual(lines[1].split(), [
            "case", "implementation", "median", "ms", "middle", "half", "ms",
            "TFLOP/s", "MHz", "ratio", "required", "aim", "verdict", "max", "error",
            "mean", "error"])
        # 5.4976e11 operations in 1.2, 2 and 1 ms.
        self.assertEqual(lines[2].split(), [
            "d128-full-4096x4", "cuDNN", "1.2000", "1.1988..1.2012", "458.1",
            "1.000", "1.010", "0.990"])
        self.assertEqual(lines[3].split(), [
            "FlashAttention-2", "2.0000", "1.9980..2.0020", "274.9", "0.600",
            "1.010", "0.990"])
        self.assertEqual(lines[4].split(), [
            "kvbuf", "1.0000", "0.9990..1.0010", "549.8", "1.200", "1.08",
            "1.15", "aim", "1.010", "0.990"])
        ends = {line.rindex("1.010") for line in lines[2:5]}
        self.assertEqual(len(ends), 1)
        self.assertEqual(lines[6], "1 cases: 1 reach the aim, 0 more what is "
                         "required, 0 miss it, 0 wrong, 0 without a kernel")

    def test_modes(self):
        """A ratio of 1.09 is enough in cycles; sustained it is not."""
        table = {**self.BASE, "kvbuf": (1.2 / 1.09, "")}
        for arguments, word, rounds, seconds in (
                ([], "required", 50, 0.0),
                (["--mode=sustained"], "MISSED", 3, 1.2),
                (["--mode=sustained", "--rounds=5", "--seconds=2"], "MISSED", 5,
                 2.0)):
            self.run_(table, "--cases", "d128-full-4096x4", *arguments)
            self.assertEqual(self.verdicts(), [word])
            self.assertEqual((self.lab.rounds, self.lab.seconds),
                             (rounds, seconds))
        self.assertEqual(json.loads(self.json.read_text())["machine"]["mode"],
                         "sustained")

    def test_required_when_sustained(self):
        table = {c.name: (c.required, c.aim) for c in (
            c.in_mode("sustained") for c in common.all_cases())}
        for name, ratios in {
                "d128-full-4096x4": (1.12, 1.15),
                "d128-causal-16384x1": (1.19, 1.25),
                "d64-causal-4096x4": (1.12, 1.15),
                "d256-full-16384x1": (1.09, 1.12),
                "d256-causal-4096x4": (1.17, 1.22),
                "d128-causal-gqa32_8-32768x1": (1.15, 1.20),
                "d128-causal-1024x16": (1.15, 1.20)}.items():
            self.assertEqual(table[name], ratios, name)

    def test_the_best_kernel_counts(self):
        self.assertEqual(self.run_(
            {**self.BASE, "kvbuf": (1.3, ""), "kvbuf fast": (1.1, "")},
            "--cases", "d128-full-4096x4",
            artifacts=("d128-full", "d128-full@fast")), 0)
        self.assertEqual(self.verdicts(), ["MISSED", "required"])

    def test_ragged(self):
        case = named("d128-causal-ragged")
        fair = case.flop(common.whole_tiles(case.lengths)) / case.flop()
        for slower, word, status in ((1.0, "aim", 0), (0.91, "required", 0),
                                     (0.89, "MISSED", 1)):
            self.assertEqual(self.run_(
                {"kvbuf": (1.0, ""),
                 "kvbuf, whole tiles": (fair * slower * 1.0001, "")}, "--cases",
                "d128-causal-ragged", artifacts=(
                    "d128-causal-ragged",)), status, word)
            self.assertEqual(self.verdicts(), [word])

    def test_absent_kernel(self):
        self.assertEqual(self.run_(self.BASE, "--cases", "d64-full-4096x4"), 1)
        self.assertEqual(self.verdicts(), ["absent"])
        self.assertIn("d64-full-4096x4: no d64-full.kvbuf in", self.out)

    def test_bad_usage(self):
        for arguments, message in ((["--cases", "x"], "no case matches 'x'"),
                                   (["--rounds", "1"], "expected 2 or more"),
                                   (["--seconds", "0"], "expected more than 0"),
                                   (["--mode", "warm"], "invalid choice"),
                                   (["--graphs", "maybe"], "invalid choice"),
                                   (["--artifacts", "/absent"],
                                    "no such folder")):
            self.assertEqual(self.run_(self.BASE, *arguments), 2)
            self.assertIn(message, self.err)

    def test_list_needs_nothing(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(cudnn_compare.main(["--list"], make_lab=None), 0)
        self.assertEqual(len(out.getvalue().splitlines()), 17)


class Required(unittest.TestCase):
    """required.py, with measurements that know their numbers in advance."""

    def test_every_row_is_measured_or_says_why_not(self):
        rows = required.wanted()
        self.assertEqual(len({row["row"] for row in rows}), len(rows))
        measured = [row for row in rows if "why" not in row]
        self.assertEqual(sum(len(x) for x in required.groups(rows)), len(measured))
        for row in rows:
            self.assertEqual(("required" in row) + ("at_most" in row), 1, row)
            self.assertEqual("why" in row, "measure" not in row, row)
            self.assertEqual("limit" in row, "because" in row, row)
            # A limit beyond what is required explains nothing.
            if "limit" in row:
                self.assertTrue(row["limit"] > row["at_most"] if "at_most" in row
                                else row["limit"] < row["required"], row)
        cases = {c.name for c in required.latent.CASES}
        for row in measured:
            self.assertTrue(row["modes"], row)
            # Each row has its kernels, or the package compiles them.
            if row["measure"] == "latent":
                self.assertLessEqual({row["case"], row.get("peer", row["case"])},
                                     cases | {"copies"})
            elif "own" in row:
                self.assertTrue(hasattr(required.MEASURES[row["measure"]], "prepare"),
                                row)
                self.assertFalse(required.kernels([row]), row)
            else:
                self.assertTrue(required.kernels([row]), row)

    def run_(self, rows, numbers, *arguments):
        """Exit status; `numbers`: {row: {mode: number}, or what is raised}."""
        class Fake:
            kernels = staticmethod(lambda rows: {})

            @staticmethod
            def measure(lab, rows):
                for row in rows:
                    if isinstance(numbers[row["row"]], Exception):
                        raise numbers[row["row"]]
                return {row["row"]: numbers[row["row"]] for row in rows}

        class Lab:
            class torch:
                class cuda:
                    empty_cache = staticmethod(lambda: None)

            def machine(self):
                return {"gpu": "NVIDIA none", "driver": "1", "torch": "2", "cudnn": 9}
        rows = [{"of": "a peer", "measure": "fake", "case": "all",
                 "modes": ["cycles"]} | row for row in rows]
        out = io.StringIO()
        with contextlib.redirect_stdout(out), \
                unittest.mock.patch.dict(required.MEASURES, {"fake": Fake}), \
                unittest.mock.patch.object(required, "wanted", lambda _: rows):
            status = required.main(["--run", "dir", *arguments],
                                   make_lab=lambda *_: Lab())
        self.out = out.getvalue()
        return status

    def test_verdicts(self):
        rows = [{"row": "fast", "required": 1.0}, {"row": "slow", "required": 0.9},
                {"row": "time", "at_most": 1.1}, {"row": "long", "at_most": 1.1},
                {"row": "us", "at_most": 7.5, "unit": "us"},
                {"row": "peerless", "required": 1.0, "why": "no wheel"}]
        file = WORK / "required.json"
        WORK.mkdir(parents=True, exist_ok=True)
        self.assertEqual(self.run_(rows, {
            "fast": {"cycles": 1.2, "sustained": 1.0},
            # The worse of the modes counts.
            "slow": {"cycles": 0.95, "sustained": 0.85},
            # Rates of 0.95 and 0.85 are times of 1.053 and 1.176.
            "time": {"cycles": 0.95}, "long": {"cycles": 0.85},
            "us": {"graph": 4.6}}, "--json", str(file)), 1)
        verdicts = {row[0]: row[-1] for row in json.loads(file.read_text())["rows"]}
        self.assertEqual(verdicts, {
            "fast": "ok", "slow": "misses by 0.050", "time": "ok",
            "long": "misses by 0.076", "us": "ok", "peerless": "not measured: no wheel"})
        self.assertIn("6 rows, 5 measured, 2 miss", self.out)
        # What tools/measured-tables.py asks of a run.
        (WORK / "docs/measured").mkdir(parents=True, exist_ok=True)
        (WORK / "docs/measured/speeds.json").write_text(
            json.dumps({"runs": [json.loads(file.read_text())]}))
        page = (WORK / "docs" / "page").with_suffix(".md")
        page.write_text("<!-- measured: speeds/required -->\n<!-- /measured -->\n")
        done = subprocess.run(
            [sys.executable, f"{SOURCE}/tools/measured-tables.py", f"--root={WORK}"],
            text=True, capture_output=True)
        self.assertEqual(done.stderr, "")
        self.assertIn("| slow | a peer | cycles 0.950, sustained 0.850 | 0.9 | "
                      "misses by 0.050 |", page.read_text())

    def test_two_cards_in_one_table(self):
        def card(name, fast, slow):
            numbers = {"fast": {"cycles": fast}, "slow": {"cycles": slow}}
            self.run_([{"row": row, "required": 1.0} for row in numbers], numbers,
                      "--json", str(WORK / name))
            return WORK / name
        WORK.mkdir(parents=True, exist_ok=True)
        both = WORK / "both.json"
        # A limit is told of a row that a card misses.
        limits = [{"row": row, "limit": 0.8, "because": "bytes."} for row in
                  ("fast", "slow")]
        files = [str(card("one.json", 1.25, 1.0)), str(card("two.json", 1.5, 0.75))]
        with unittest.mock.patch.object(required, "wanted", lambda _: limits):
            self.assertEqual(required.main(["--join", *files, "--json", str(both)]), 0)
        run, = json.loads(both.read_text())["runs"]
        self.assertEqual(run["columns"], ["row", "of", "required", "card 1", "card 2",
                                          "verdict", "limit"])
        self.assertEqual(run["rows"], [
            ["fast", "a peer", "1", "cycles 1.250", "cycles 1.500", "ok", ""],
            ["slow", "a peer", "1", "cycles 1.000", "cycles 0.750",
             "ok; misses by 0.250", "0.8: bytes."]])

    def test_what_fails_does_not_take_its_group_along(self):
        rows = [{"row": "good", "required": 1.0}, {"row": "bad", "required": 1.0},
                {"row": "peer", "required": 1.0}]
        self.assertEqual(self.run_(rows, {
            "good": {"cycles": 1.0}, "bad": RuntimeError("NaN"),
            "peer": required.Missing("there is no cuDNN")}), 1)
        self.assertIn("  bad: WRONG: NaN", self.out)
        self.assertIn("  peer: not measured: there is no cuDNN", self.out)
        self.assertIn("3 rows, 1 measured, 2 miss", self.out)


class Tuner(unittest.TestCase):
    """tuner.py, on what kvbuf-tune could have written."""

    def test_a_faster_schedule_and_the_order_of_a_model(self):
        folder = WORK / "tuner"
        folder.mkdir(parents=True, exist_ok=True)

        def results(field, numbers):
            return json.dumps({"results": [
                {"schedule": name, field: x, "offered": True}
                for name, x in numbers.items()]})
        # The compiler's own has no name. Two share the model's first place.
        (folder / "d64-full.gpu.json").write_text(results(
            "median_us", {"": 100.0, "fast": 80.0, "slow": 125.0}))
        (folder / "d64-full.model.json").write_text(results(
            "modelled_cycles", {"": 50, "fast": 40, "slow": 40}))
        # 2 % is not ahead; a schedule that spills has no rank.
        (folder / "d64-causal.gpu.json").write_text(results(
            "median_us", {"": 100.0, "other": 98.0}))
        (folder / "d64-causal.model.json").write_text(json.dumps({"results": [
            {"schedule": "", "modelled_cycles": 9, "offered": False}]}))
        (folder / "d128-full.gpu.json").write_text(results("median_us", {"other": 9.0}))
        # Long turns say that none is ahead, whatever short ones say.
        (folder / "d256-full.gpu.json").write_text(json.dumps({"results": [
            {"schedule": name, "median_us": us, "short_turns_us": short, "final": final}
            for name, us, short, final in [("", 100.0, 120.0, True),
                                           ("near", 99.0, 90.0, True),
                                           ("far", 95.0, 95.0, False)]]}))
        # Nobody took long turns.
        (folder / "d256-causal.gpu.json").write_text(json.dumps({"results": [
            {"schedule": name, "median_us": us, "short_turns_us": us, "final": False}
            for name, us in [("", 51.0), ("near", 50.0)]]}))
        file, out = folder / "table.json", io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(tuner.main(["--join", str(folder), "--json", str(file)]), 1)
        self.assertEqual(json.loads(file.read_text())["rows"], [
            # Ratios of cycles: 1.25, 1.25 and 1; of times: 1.25, 0.8 and 0.64.
            ["d64 full", "3", "1.250", "0.800", "0.562", "0.333"],
            ["d64 causal", "2", "1.020", "", "", ""],
            ["d128 full", "1", "", "", "", ""],
            ["d256 full", "3", "1.010", "", "", ""],
            ["d256 causal", "2", "1.020", "", "", ""]])
        self.assertIn("d64 full: a schedule is more than 3% ahead", out.getvalue())
        for near in ("d64 causal", "d256 full"):
            self.assertNotIn(f"{near}: a schedule", out.getvalue())
        self.assertIn("d128 full: the compiler's own schedule has no time",
                      out.getvalue())


    def test_only_a_gpu_takes_turns(self):
        """kvbuf-tune refuses options of turns on the emulator."""
        called = []

        def said(command, **_):
            called.append(command)
            return types.SimpleNamespace(returncode=0, stderr="")

        options = types.SimpleNamespace(kvbuf_tune="kvbuf-tune", rounds=5, turn=50,
                                        jobs=1, by="both", device="cuda")
        with unittest.mock.patch.object(tuner.subprocess, "run", said), \
                contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(tuner.run(WORK / "tuned", ["d64 full"], options), 0)
        turns = ("--rounds", "--turn", "--finals", "--final-turn")
        self.assertEqual(
            {"--device=emulator" in c: sum(a.startswith(turns) for a in c) for c in called},
            {True: 0, False: 4})


class Neighbours(unittest.TestCase):
    """neighbours.py, with turns that know their times."""

    ROLES = ("BM = 128, BN = 128, BK = 64, stages = 2, warps = 8, mma_shape = [64, 8, 16], "
             "q_in_regs = true, teams = moving<producers = 4, producer_registers = 40, "
             "consumer_registers = 232, ping_pong = true, stage_output = true>, work = "
             "several_tiles<tiles = dynamic>, ahead = softmax")
    SPLIT = ("BM = 16, BN = 16, BK = 64, stages = 3, warps = 1, mma_shape = [16, 8, 16], "
             "work = split_keys")

    def test_every_row_has_a_kernel(self):
        for row in required.wanted():
            if "why" in row or "own" in row or row["measure"] == "latent":
                continue
            name, more = neighbours.file_of(row)
            self.assertLessEqual({name, *more}, required.kernels([row]).keys(), row)

    def test_moves_change_what_a_schedule_has(self):
        own = neighbours.parameters(self.ROLES)
        self.assertEqual((own["BN"], own["mma_shape"], own["overlap_products"]),
                         ("128", "[64, 8, 16]", "true"))
        moves = neighbours.moves(self.ROLES)
        self.assertEqual(moves[:3], ["cluster=2", "ping_pong=false",
                                     "cluster=2,ping_pong=false"])
        for move in ("BN=112", "BN=144", "BN=64", "q_in_regs=false",
                     "overlap_products=false"):
            self.assertIn(move, moves)
        self.assertEqual(neighbours.moves(self.SPLIT)[:4],
                         ["BN=32,stages=2", "stages=4", "stages=2", "warps=4"])
        for schedule in self.ROLES, self.SPLIT:
            own = neighbours.parameters(schedule)
            for move in neighbours.moves(schedule):
                self.assertTrue(any(own.get(name) != value for name, value in (
                    one.split("=") for one in move.split(","))), move)

    def run_(self, times, wrong=None):
        """Exit status, and what is printed; `times`: {schedule: (short, long)}."""
        folder = WORK / "neighbours"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "schedules.json").write_text(json.dumps({"mixed/kvbuf": [*times]}))

        class Lab:
            class torch:
                class cuda:
                    @staticmethod
                    def empty_cache():
                        pass

            def __init__(self, folder):
                pass

            @staticmethod
            def measure(row, schedules):
                return {name: times[name] for name in schedules}, wrong or {}
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = neighbours.main(["--run", str(folder), "mixed: 4", "--json",
                                      str(folder / "found.json")], Lab)
        return status, out.getvalue(), json.loads((folder / "found.json").read_text())

    def test_what_is_ahead(self):
        status, out, found = self.run_({"": (1.0, 1.0), "BN=64": (0.9, 0.98),
                                        "BN=32": (2.0, None)})
        self.assertEqual(status, 0)
        (row,) = found.values()
        self.assertEqual(row["BN=32"], [0.5, None])
        self.assertAlmostEqual(row["BN=64"][1], 1 / 0.98)
        # Long turns count, not short ones.
        status, out, _ = self.run_({"": (1.0, 1.0), "BN=64": (1.0, 0.96)})
        self.assertEqual(status, 1)
        self.assertIn("over 4096: BN=64 is more than 3% ahead", out)
        self.assertEqual(self.run_({"": (1.0, 1.0)}, {"BN=64": "another result"})[0], 1)


class Guard(unittest.TestCase):
    """guard.py, with rows that know their ratios in advance."""

    def run_(self, ratios, *arguments):
        """Exit status; `ratios`: {row: what each measurement gives}."""
        file = WORK / "guard.json"
        WORK.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(
            {"rows": {"slow": 1.0, "same": 1.0, "gone": 1.0, "wrong": 1.0}}))
        turns = {name: iter(values) for name, values in ratios.items()}

        class Rows:
            def machine(self):
                return {"gpu": "none"}

            def rows(self):
                return {name: lambda name=name: self.next(name) for name in turns}

            def next(self, name):
                value = next(turns[name])
                if isinstance(value, str):
                    raise RuntimeError(value)
                return value
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = guard.main(["dir", "--against", str(file), *arguments],
                                make_lab=lambda *_: Rows())
        self.out = out.getvalue()
        return status

    def test_two_dozen_rows(self):
        names = [r.name for r in (*guard.prefill_cases(), *guard.decode_cases(),
                                  *guard.FEATURES)]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreaterEqual(len(names), 24)
        self.assertEqual(len(guard.decode_cases()), len(guard.DECODE))
        self.assertTrue(all(text for text, _ in guard.kernels().values()))

    def test_what_fell_is_measured_again_and_named(self):
        self.assertEqual(self.run_({"same": [0.985], "slow": [0.97, 0.979]}), 1)
        self.assertIn("slow: fell from 1.000 to 0.979", self.out)
        self.assertIn("2 rows, 1 fell or did not run", self.out)
        self.assertEqual(self.run_({"slow": [0.97, 0.99]}), 0)
        self.assertEqual(self.run_({"slow": [0.97]}, "--tolerance=0.05"), 0)

    def test_what_is_wrong_or_missing_is_no_ratio(self):
        self.assertEqual(self.run_({"gone": [None]}), 1)
        self.assertIn("gone: there is no kernel of it", self.out)
        self.assertEqual(self.run_({"wrong": ["error 1"]}), 1)
        self.assertIn("wrong: error 1", self.out)

    def test_record(self):
        file = WORK / "recorded.json"
        self.assertEqual(self.run_({"new": [1.23456]}, "--record", str(file)), 0)
        self.assertEqual(json.loads(file.read_text())["rows"], {"new": 1.2346})


if __name__ == "__main__":
    unittest.main()
