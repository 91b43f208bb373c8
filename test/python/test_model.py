# REQUIRES: torch
# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""A small model of rotary layers with a cache, its attention by kvbuf on the
emulator: as near to exact scores as torch's back ends, its texts the same but for
ties. Faults of a position and of a cache's length are seen."""

import contextlib
import pathlib
import sys
import unittest

try:
    import torch
except ImportError:
    print("skipped: no torch")
    sys.exit(0)

import kvbuf.torch as kt

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))
import rotary_model  # noqa: E402


class Texts(unittest.TestCase):
    def setUp(self):
        seed = torch.seed()
        print("seed", seed)
        self.model = rotary_model.Model(layers=2, width=256, heads=4, kv=2, words=61
                                        ).bfloat16().eval()
        self.prompt = torch.randint(61, (4, 34))

    def judge(self, fault=None):
        patches = []

        @contextlib.contextmanager
        def ours():
            with kt.patch_sdpa(emulate=True) as patch, \
                    rotary_model.planted(self.model, fault):
                patches.append(patch)
                yield

        good = rotary_model.judge(self.model, self.prompt, 6, ours)
        self.assertGreater(patches[0].taken, 0)
        self.assertFalse(patches[0].refused)
        return good

    def test_model(self):
        self.assertTrue(self.judge())

    def test_position(self):
        self.assertFalse(self.judge("position"))

    def test_length(self):
        self.assertFalse(self.judge("length"))


if __name__ == "__main__":
    unittest.main()
