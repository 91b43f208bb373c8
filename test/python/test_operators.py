# REQUIRES: torch
# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""torch's operators kvbuf::...: every parameter of a function reaches its operator
or is refused, and whatever records operators records them. Needs torch, and is
skipped without."""

import inspect
import pathlib
import sys
import unittest
import warnings
from unittest import mock

import torch
import torch.nn.functional as F
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
import kvbuf  # noqa: E402
import kvbuf.torch as kt  # noqa: E402
from kvbuf import _sdpa  # noqa: E402
from kvbuf._operators import Operator  # noqa: E402

torch.manual_seed(torch.seed())


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(shape).to(dtype)


class Special(torch.Tensor):
    """A class that may have a say in operators."""


class Parameters(unittest.TestCase):
    #: Values that no default has, by the annotation.
    VALUES = {"bool": True, "float": 0.25, "float | None": 0.25, "int": 7,
              "int | None": 7, "str": "cached", "str | None": "e4m3",
              "int | Tensor | None": 3, "tuple[int, int]": (3, 1),
              "tuple | None": (3, 1)}

    def test_all_arrive(self):
        """Each parameter by itself: the operator gets its value, the function
        itself takes care of it, or it is refused by its name."""
        q = normal(1, 4, 2, 64).as_subclass(Special)
        index = torch.tensor([0, 4], dtype=torch.int32)
        names = "q", "k", "v"
        flat = dict(zip(names, (q[0], q[0], q[0])))
        dense = dict(zip(names, (q, q, q)))
        result = torch.zeros(q.shape), torch.zeros(1, 2, 4)
        for function, operator, base in (
                (kt.flash_attn_func, kt._flash_attn, dense),
                (kt.flash_attn_varlen_func, kt._flash_attn_varlen, {
                    **flat, "cu_seqlens_q": index, "cu_seqlens_k": index,
                    "max_seqlen_q": 4, "max_seqlen_k": 4}),
                (kt.flash_attn_with_kvcache, kt._flash_attn_kvcache,
                 {"q": q, "k_cache": q, "v_cache": q}),
                (kt.scaled_dot_product_attention, _sdpa._sdpa,
                 {"query": q, "key": q, "value": q}),
                (kt.attention, kt._attention_operator, dense)):
            for name, parameter in inspect.signature(function).parameters.items():
                if parameter.kind is parameter.VAR_KEYWORD:
                    continue  # other names of these: test_flash_arguments.py
                value = base.get(name)
                if value is None:
                    value = self.VALUES.get(parameter.annotation)
                if value is None and name == "out":
                    value = torch.ones(q.shape)
                elif value is None and name == "lse":
                    value = torch.ones(1, 2, 4)
                elif value is None and name == "device":
                    value = "emulator"
                elif value is None:
                    self.assertEqual(parameter.annotation, "Tensor | None", name)
                    value = torch.ones(2)
                with self.subTest(function=function.__name__, name=name):
                    self.arrives(function, operator, {**base, name: value}, name,
                                 value, result)

    def arrives(self, function, operator, arguments, name, value, result):
        seen = []

        def call(self, **given):
            seen.append((self, given))
            both = [x.clone() for x in result]
            return both if self.lse else both[0]

        try:
            with mock.patch.object(Operator, "__call__", call):
                got = function(**arguments)
        except (NotImplementedError, ValueError) as refusal:
            self.assertRegex(str(refusal), rf"\b{name}\b")
            return
        (self_, given), = seen
        self.assertIs(self_, operator)
        if name == operator.window:
            self.assertEqual(given[name], value)
        elif name == "out":
            self.assertIs(got, value)
            self.assertEqual((given["out_type"], value.abs().max().item()),
                             (value.dtype, 0))
        elif name == "lse":
            self.assertIs(got[1], value)
            self.assertEqual((given[operator.lse], value.abs().max().item()),
                             (True, 0))
        elif name == "return_attn_probs":
            self.assertEqual((given[operator.lse], len(got)), (True, 3))
        elif name == "cache_seqlens":
            self.assertEqual(given[name].tolist(), [value])
        elif name != "deterministic":
            have = given[name]
            self.assertTrue(have is value or have == value, have)


class Same(unittest.TestCase):
    """What a compiled call computes."""

    def same(self, function, *tensors, dynamic=False):
        want = function(*(x.clone() for x in tensors))
        torch._dynamo.reset()
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager",
                                 dynamic=dynamic)
        torch.testing.assert_close(compiled(*(x.clone() for x in tensors)), want,
                                   rtol=0, atol=0)
        return want

    def test_scales(self):
        q = normal(1, 5, 4, 64)
        k, v = (normal(1, 9, 2, 64).to(torch.float8_e4m3fn) for _ in "kv")
        scales = torch.tensor([0.25]), torch.tensor([4.0])

        def own(q, k, v, *scales):
            names = dict(zip(("k_descale", "v_descale"), scales))
            return kvbuf.attention(q, k, v, **names)

        got = self.same(own, q, k, v, *scales)
        self.assertGreater((got - own(q, k, v)).abs().max().item(), 0.1)
        codes = [x.view(torch.uint8) for x in (k, v)]
        self.assertTrue(torch.equal(self.same(
            lambda q, k, v, a, b: kvbuf.attention(
                q, k, v, k_descale=a, v_descale=b, kv_dtype="e4m3"),
            q, *codes, *scales), got))
        lengths = torch.tensor([7], dtype=torch.int32)
        new = normal(2, 1, 1, 2, 64)

        def cache(q, k, v, a, b, k_new, v_new):
            o = kt.flash_attn_with_kvcache(
                q, k, v, k_new, v_new, cache_seqlens=lengths, k_descale=a,
                v_descale=b)
            return o, k.view(torch.uint8), v.view(torch.uint8), a, b

        tokens = [torch.rand(1, 9, 2) + 0.5 for _ in "kv"]
        self.same(cache, q[:, :1], k, v, *tokens, *new)

    def test_output_scale(self):
        """A result of 8 bits, divided by a scale that is a tensor of the graph: off by
        half of its last bit (1/16), and by weights of as many bits."""
        q, k, v = (normal(1, n, 2, 64).to(torch.float8_e4m3fn) for n in (5, 9, 9))

        def own(q, k, v, scale):
            return kvbuf.attention(q, k, v, out=torch.empty_like(q), target="sm_90a",
                                   output_scale=scale).float()

        got = self.same(own, q, k, v, torch.tensor([0.25])) * 0.25
        q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
        exact = (q @ k.transpose(2, 3) / 8).softmax(-1) @ v
        torch.testing.assert_close(got.double(), exact.transpose(1, 2), rtol=1 / 16,
                                   atol=0.06)

    def test_tree(self):
        q, k, v = normal(3, 1, 5, 2, 64)
        tree = torch.tensor([[1, 3, 5, 9, 17]], dtype=torch.int32)
        got = self.same(lambda q, k, v, t: kvbuf.attention(q, k, v, tree=t),
                        q, k, v, tree)
        self.assertFalse(torch.equal(got, kvbuf.attention(q, k, v)))

    def test_outputs(self):
        """An output of another type holds what a kernel writes to it."""
        q, k, v = normal(3, 1, 5, 2, 64)

        def into(q, k, v):
            out = torch.zeros(q.shape)
            kt.flash_attn_func(q, k, v, out=out)
            lse = torch.zeros(1, 2, 5)
            own = torch.zeros(q.shape)
            kvbuf.attention(q, k, v, out=own, lse=lse)
            return out, own, lse

        out, own, lse = self.same(into, q, k, v)
        self.assertFalse(torch.equal(out, out.bfloat16().float()))
        torch._dynamo.reset()
        with self.assertRaisesRegex(Exception, "out has shape"):
            torch.compile(lambda q, k, v: kt.flash_attn_func(
                q, k, v, out=torch.zeros(3, *q.shape)[:, 0]),
                backend="eager")(q, k, v)

    def test_layouts(self):
        """Results lie as their fake ones are said to."""
        class Strides(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        for q in (normal(1, 2, 5, 64).transpose(1, 2), normal(1, 5, 64, 2).mT,
                  normal(1, 2, 5, 60).transpose(1, 2)):
            k = normal(1, 5, 2, q.shape[-1])
            for f in (lambda q, k: kt.flash_attn_func(q, k, k),
                      lambda q, k: kvbuf.attention(q, k, k[..., :56])):
                with torch._subclasses.fake_tensor.FakeTensorMode() as mode:
                    fake = f(mode.from_tensor(q), mode.from_tensor(k))
                with Strides():
                    real = f(q, k)
                self.assertEqual((fake.shape, fake.stride(), fake.dtype),
                                 (real.shape, real.stride(), real.dtype))


    def test_dynamic(self):
        """Sizes, and numbers that defaults name, are symbols."""
        q = normal(1, 5, 2, 64)
        offsets = torch.tensor([0, 5], dtype=torch.int32)
        self.same(lambda q: (
            kt.flash_attn_func(q, q, q, causal=True),
            kt.flash_attn_varlen_func(q[0], q[0], q[0], offsets, offsets, 5, 5),
            kt.flash_attn_with_kvcache(q, q, q),
            kt.scaled_dot_product_attention(q, q, q),
            kvbuf.attention(q, q, q)), q, dynamic=True)


class Tracers(unittest.TestCase):
    """What records operators while plain tensors run."""

    def functions(self):
        lengths = torch.tensor([5], dtype=torch.int32)
        offsets = torch.tensor([0, 5], dtype=torch.int32)

        def patched(x):
            with kt.patch_sdpa(emulate=True):
                return F.scaled_dot_product_attention(x, x, x)

        def appended(x):
            caches = torch.zeros(2, 1, 9, 2, 64, dtype=x.dtype)
            o = kt.flash_attn_with_kvcache(x, caches[0], caches[1], x, x, cache_seqlens=4)
            return o, caches

        return {
            "flash_attn": lambda x: kt.flash_attn_func(x, x, x, causal=True),
            "flash_attn_varlen": lambda x: kt.flash_attn_varlen_func(
                x[0], x[0], x[0], offsets, offsets, 5, 5),
            "flash_attn_kvcache": lambda x: kt.flash_attn_with_kvcache(
                x, x, x, cache_seqlens=lengths),
            "kvcache": appended,
            "sdpa": lambda x: kt.scaled_dot_product_attention(x, x, x),
            "patched sdpa": patched,
            "attention": lambda x: kvbuf.attention(x, x, x),
        }

    def test_graphs(self):
        a, b = normal(2, 1, 5, 2, 64)
        for name, f in self.functions().items():
            f(a)  # what is remembered is not found by tracers
            want = f(b)
            traced = {"make_fx": lambda: make_fx(f)(a),
                      "before dispatch": lambda: make_fx(f, pre_dispatch=True)(a),
                      "jit": lambda: torch.jit.trace(f, a)}
            for how, trace in traced.items():
                with self.subTest(name=name, how=how), warnings.catch_warnings():
                    # jit.trace says that it is old, and checks what it traced.
                    warnings.filterwarnings("ignore", "`torch.jit.trace")
                    warnings.filterwarnings("error", category=torch.jit.TracerWarning)
                    graph = trace()
                    self.assertRegex(str(graph.graph),
                                     "kvbuf.*" + name.split()[-1])
                    torch.testing.assert_close(graph(b), want, rtol=0, atol=0)

    def test_artifacts(self):
        text = """
!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @prefill(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o) : !qo, !kv, !kv, !qo
  return
}
"""
        kernel = kvbuf.compile(text, target="sm_80")
        a, b = normal(2, 1, 5, 2, 64)
        want = kernel(q=b, k=b, v=b)
        graph = make_fx(lambda x: kernel(q=x, k=x, v=x))(a)
        self.assertTrue(torch.equal(graph(b), want))

        def into(x):
            out = torch.zeros_like(x)
            kernel(q=x, k=x, v=x, out=out)
            return out

        self.assertTrue(torch.equal(make_fx(into)(a)(b), want))
        with self.assertRaisesRegex(NotImplementedError, "^the kernel prefill is "
                                    "called under torch.func's vmap"):
            torch.vmap(lambda x: kernel(q=x, k=x, v=x))(a[None])
        with torch.autograd.forward_ad.dual_level(), self.assertRaisesRegex(
                kvbuf.Error, "^the kernel prefill has no derivatives in forward"):
            kernel(q=torch.autograd.forward_ad.make_dual(a, b), k=a, v=a)

    def test_modes(self):
        """A mode sees one operator, and the call is made."""
        seen = []

        class Log(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                return func(*args, **(kwargs or {}))

        x = normal(1, 5, 2, 64)
        want = kt.flash_attn_func(x, x, x)
        with Log():
            got = kt.flash_attn_func(x, x, x)
        self.assertTrue(torch.equal(got, want))
        self.assertEqual(seen, ["kvbuf.flash_attn.default"])

    def test_default_device(self):
        """torch.device is a mode, which records nothing: such calls are kept."""
        x = normal(1, 5, 2, 64)
        want = kt.flash_attn_func(x, x, x)
        with torch.device("cpu"), mock.patch.object(
                Operator, "__call__", side_effect=AssertionError), \
                mock.patch.object(kt._attention, "build",
                                  side_effect=AssertionError):
            self.assertTrue(torch.equal(kt.flash_attn_func(x, x, x), want))


if __name__ == "__main__":
    unittest.main()
