# REQUIRES: torch, transformers
# RUN: env KVBUF_LIB_DIR=%lib HF_HUB_OFFLINE=1 %python %s %src
"""benchmark/generate.py on the emulator: what its contestants compute is right, the
stand-in for flash-attn included, and what is not makes it fail. Needs torch and
transformers, and is skipped without."""

import contextlib
import io
import os
import pathlib
import sys
import unittest
from unittest import mock

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(sys.argv.pop()) / "benchmark"))
import flash_stand_in  # noqa: E402
import generate  # noqa: E402
import torch  # noqa: E402

SIZES = ("--device=cpu --batch=2 --prompt=9 --new=1 --layers=1 --heads=4 --kv-heads=2 "
         "--head-size=16 --rounds=1").split()


class Generate(unittest.TestCase):
    def run_it(self, *more):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = generate.main([*SIZES, *more])
        return status, said.getvalue()

    def test_right(self):
        status, said = self.run_it("--growing")
        self.assertEqual(status, 0, said)
        for name in ("kvbuf", "sdpa", "flash-attn 2's kernel (torch's)",
                     "kvbuf, cache that grows",
                     "flash_attention_2 (torch's kernel), cache that grows"):
            self.assertIn(f"\n{name}: prefill ", said)

    def test_wrong(self):
        """A kernel that sees keys which are not there yet."""
        right = flash_stand_in._on_host

        def all_keys(q, k, v, causal, scale, rows, keys, used):
            return right(q, k, v, causal, scale, rows, keys, None)

        with mock.patch.object(flash_stand_in, "_on_host", all_keys):
            status, said = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("wrong logits: flash-attn 2's kernel (torch's)\n", said)

    def test_padding(self):
        """Texts of different lengths, which transformers makes ragged."""
        generate.kvbuf.transformers.register(emulate=True)
        flash_stand_in.register()
        options = generate.parse(SIZES)
        model = generate.made(options, torch.bfloat16)
        ids, mask = torch.randint(0, 99, (2, 7)), torch.ones(2, 7, dtype=torch.long)
        mask[0, :3] = 0
        rows = []
        with torch.no_grad():
            for name in "eager", flash_stand_in.FLASH:
                model.set_attn_implementation(name)
                logits = model(ids, attention_mask=mask).logits
                rows.append(logits[mask.bool()])
        torch.testing.assert_close(*rows, atol=2e-2, rtol=0)


if __name__ == "__main__":
    unittest.main()
