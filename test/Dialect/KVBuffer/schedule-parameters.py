# RUN: %python %s
"""A parameter of a schedule is a part of it, or refused: none is dropped.

Each parameter that `kvbuf-compile --help` lists is added to one schedule of each
kind. What is accepted is printed again, by kinds, and what is printed is the same
schedule; what is refused is named in the message, and each parameter is a part of
some schedule.
"""

import re
import subprocess
import unittest

KINDS = {
    "one team": {},
    "one slot": {"stages": 1},
    "halves": {"overlap": "true", "ping_pong": "true", "lazy_rescale": "true"},
    "roles": {"producers": 4},
    "several tiles": {"producers": 4, "overlap_products": "true",
                      "tiles": "static"},
    "split keys": {"split_keys": "true"},
    "widening": {"producers": 4, "wideners": 4},
}
BASE = {"BM": 64, "BN": 64, "BK": 32, "stages": 2, "warps": 4,
        "mma_shape": "[16, 8, 16]"}
# Instructions of each product, in place of one for all.
EACH = {"scores": "#kvbuffer.instruction<mma_sync, [16, 8, 16]>",
        "values": "#kvbuffer.instruction<mma_sync, [16, 16, 32]>"}
# A value that is not the default.
VALUES = {
    "BM": [128], "BN": [128], "BK": [16], "stages": [3], "warps": [2],
    "mma_shape": ["[16, 16, 16]"], "producers": [8],
    "producer_registers": [24], "consumer_registers": [240],
    "wideners": [8], "widener_registers": [24],
    "tiles": ["static", "dynamic"],
    "k_path": ["registers", "streaming"], "v_path": ["registers", "streaming"],
    "reg_chunk_depth": [32], "split_masks": ["false"], "full_kv": ["false"],
    "xcds": [2], "cluster": [2], "split_size": [64], "warp_cols": [2],
    "sum_keys": [64], "accumulate": ["fast"],
    **{name: [value] for name, value in EACH.items()},
}
# Parameters that say which kind answers a question, and what that is printed as.
CHOOSERS = {
    "overlap": "ahead = scores", "overlap_products": "ahead = softmax",
    "split_keys": "work = split_keys", "full_kv": "slots = blocks",
}


def parameters():
    text = subprocess.run(["kvbuf-compile", "--help"], capture_output=True,
                          text=True, check=True).stdout
    block = re.search(r"Parameters of schedules(?:.*\n)+?((?:  .*\n)+)", text)
    return block.group(1).replace(",", " ").split()


def parse(schedule):
    """(the schedule as it is printed, or None; the messages)."""
    return parse_text(", ".join(f"{name} = {value}"
                                for name, value in schedule.items()))


def parse_text(text):
    done = subprocess.run(
        ["kvbuf-opt", "-"], capture_output=True, text=True,
        input="func.func private @f() attributes "
              f"{{a = #kvbuffer.schedule<{text}>}}\n")
    printed = re.search(r"#kvbuffer\.schedule<(.*)>$", done.stdout, re.M)
    return printed and printed.group(1), done.stderr


def said(name, value, kind):
    """What the text of a schedule of a kind says where a list says NAME = VALUE."""
    if name == "ping_pong" and kind == "halves":
        return "teams = halves"
    return CHOOSERS.get(name, f"{name} = {value}")


class Parameters(unittest.TestCase):
    def test_kinds(self):
        for kind, its in KINDS.items():
            printed, message = parse(BASE | its)
            self.assertTrue(printed, f"{kind}: {message}")
            self.assertEqual(parse_text(printed)[0], printed)

    def test_each(self):
        names = parameters()
        self.assertGreaterEqual(set(names), set(VALUES) | set(BASE))
        for name in names:
            base = BASE
            if name in EACH:
                base = {k: v for k, v in BASE.items() if k != "mma_shape"} | EACH
            kinds = []
            for value in VALUES.get(name, ["true"]):
                for kind, its in KINDS.items():
                    printed, message = parse(base | its | {name: value})
                    with self.subTest(name=name, value=value, kind=kind):
                        if printed:
                            kinds.append(kind)
                            self.assertIn(said(name, value, kind), printed)
                        else:
                            self.assertRegex(message, rf"error: .*\b{name}\b")
            self.assertTrue(kinds, f"no schedule has {name}")


unittest.main()
