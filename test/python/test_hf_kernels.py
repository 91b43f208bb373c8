# REQUIRES: torch, kernels
# RUN: rm -rf %t
# RUN: %python -m kvbuf.hf_kernels %t/kernel
# RUN: env KVBUF_LIB_DIR=%lib HF_HUB_OFFLINE=1 %python %s %t
"""The folder in the layout of Hugging Face's `kernels`: loaded by that package, and
by transformers in place of flash-attn's. Needs torch and kernels, and is skipped
without."""

import importlib.util
import inspect
import os
import pathlib
import subprocess
import sys
import unittest
from unittest import mock

FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["LOCAL_KERNELS"] = f"kvbuf/attention={FOLDER / 'kernel'}"

import kernels  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

HAVE_TRANSFORMERS = importlib.util.find_spec("transformers") is not None


def normal(*shape):
    return torch.randn(shape).bfloat16()


def exact(q, k, v, **options):
    out = F.scaled_dot_product_attention(
        *(x.double().transpose(-2, -3) for x in (q, k, v)), enable_gqa=True,
        **options)
    return out.transpose(-2, -3)


class Kernel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.kernel = kernels.get_local_kernel(FOLDER / "kernel")

    def close(self, got, want):
        torch.testing.assert_close(got.double(), want, atol=2e-2, rtol=0)

    def test_functions(self):
        q, k, v = normal(2, 9, 4, 32), normal(2, 9, 2, 32), normal(2, 9, 2, 32)
        out = self.kernel.flash_attn_func(q, k, v, causal=True,
                                          window_size=(None, None))
        self.close(out, exact(q, k, v, is_causal=True))
        offsets = torch.tensor([0, 9, 18], dtype=torch.int32)
        ragged = self.kernel.flash_attn_varlen_func(
            *(x.flatten(0, 1) for x in (q, k, v)), cu_seqlens_q=offsets,
            cu_seqlens_k=offsets, max_seqlen_q=torch.tensor(9),
            max_seqlen_k=9, causal=True)
        self.close(ragged.unflatten(0, (2, 9)), exact(q, k, v, is_causal=True))
        table = torch.tensor([[1], [0]], dtype=torch.int32)
        pages = [F.pad(x.flip(0), (0, 0, 0, 0, 0, 7)) for x in (k, v)]
        lengths = torch.full((2,), 9, dtype=torch.int32)
        out = self.kernel.flash_attn_with_kvcache(
            q, *pages, cache_seqlens=lengths, page_table=table, causal=True)
        self.close(out, exact(q, k, v, is_causal=True))

    def test_sinks(self):
        """Both names of sinks, of any type: a key of value 0."""
        q, k, v = normal(1, 5, 4, 32), normal(1, 5, 4, 32), normal(1, 5, 4, 32)
        sinks = normal(4)
        scores = torch.einsum("bihd,bjhd->bhij", q.double(), k.double()) / 32 ** 0.5
        column = sinks.double()[None, :, None, None].expand(1, 4, 5, 1)
        weights = torch.cat([scores, column], -1).softmax(-1)[..., :-1]
        want = torch.einsum("bhij,bjhd->bihd", weights, v.double())
        for name in "s_aux", "learnable_sink":
            self.close(self.kernel.flash_attn_func(q, k, v, **{name: sinks}), want)
        with self.assertRaisesRegex(ValueError, "s_aux and learnable_sink are one "
                                    "argument; expected one of them"):
            self.kernel.flash_attn_func(q, k, v, s_aux=sinks, learnable_sink=sinks)

    def test_names(self):
        """What transformers looks up by signature."""
        for name, wanted in {
                "flash_attn_func": "softcap s_aux window_size deterministic "
                                   "dropout_p",
                "flash_attn_varlen_func": "softcap s_aux learnable_sink "
                    "block_table max_seqlen_q max_seqlen_k window_size",
                "flash_attn_with_kvcache": "block_table page_table cache_seqlens "
                    "softcap s_aux window_size"}.items():
            names = inspect.signature(getattr(self.kernel, name)).parameters
            self.assertLessEqual(set(wanted.split()), set(names), name)

    def test_alone(self):
        """A folder with a copy of the package needs none that is installed."""
        import kvbuf
        subprocess.run([sys.executable, "-m", "kvbuf.hf_kernels", "--alone",
                        str(FOLDER / "alone")], check=True, capture_output=True)
        program = ("import kernels, pathlib\n"
                   "module = kernels.get_local_kernel(pathlib.Path("
                   f"{str(FOLDER / 'alone')!r}))\n"
                   "print(module._kvbuf.__file__)\n")
        own = pathlib.Path(kvbuf.__file__).resolve().parents[1]
        paths = [x for x in sys.path[1:] if pathlib.Path(x).resolve() != own]
        shown = subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True,
            text=True, env=dict(os.environ, PYTHONPATH=os.pathsep.join(paths))
            ).stdout
        self.assertIn(str(FOLDER / "alone"), shown)
        self.assertNotIn(str(pathlib.Path(kvbuf.__file__).parent), shown)

    @unittest.skipUnless(HAVE_TRANSFORMERS, "transformers is not installed")
    def test_transformers(self):
        """A model's attention_implementation, where transformers asks for a
        repository of kernels: padding, soft caps and windows."""
        import transformers
        from transformers import Gemma2Config, Gemma2ForCausalLM
        from transformers.integrations import hub_kernels
        transformers.logging.set_verbosity_error()
        if not hub_kernels.is_kernels_available():
            # It wants another version of kernels: this one loads in its place.
            for name, stand_in in {
                    "is_kernels_available": lambda: True,
                    "get_kernel": lambda repository, **_: self.kernel}.items():
                patch = mock.patch.object(hub_kernels, name, stand_in)
                patch.start()
                self.addCleanup(patch.stop)
        model = Gemma2ForCausalLM(Gemma2Config(
            vocab_size=60, hidden_size=64, intermediate_size=64, head_dim=32,
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            sliding_window=6, attn_logit_softcapping=5.0)).bfloat16().eval()
        ids = torch.randint(3, 60, (2, 12))
        mask = torch.ones_like(ids)
        mask[0, :4] = 0
        model.set_attn_implementation("eager")
        with torch.no_grad():
            want = model(ids, attention_mask=mask).logits
            model.set_attn_implementation("kvbuf/attention", allow_all_kernels=True)
            got = model(ids, attention_mask=mask).logits
        self.assertEqual(model.config._attn_implementation, "kvbuf/attention")
        torch.testing.assert_close(got[mask.bool()], want[mask.bool()], atol=3e-2,
                                   rtol=0)


if __name__ == "__main__":
    unittest.main()
