# REQUIRES: torch
# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""Models that patch_sdpa switches over, on the emulator, beside torch's own
attention. Needs torch, and is skipped without."""

import contextlib
import pathlib
import sys
import unittest

import torch
import torch.nn.functional as F
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.attention import SDPBackend, bias, sdpa_kernel
from torch.overrides import TorchFunctionMode

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
import kvbuf  # noqa: E402
import kvbuf.torch as kt  # noqa: E402
from attention_reference import attention  # noqa: E402
from torch_case import Case, normal  # noqa: E402


class Patched(Case):
    def model(self, q, k, v, **options):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v,
                                                                **options)

    def test_switch(self):
        own = F.scaled_dot_product_attention
        q, k, v = normal(3, 1, 2, 8, 64)
        expected = own(q, k, v, is_causal=True)
        with kt.patch_sdpa(emulate=True) as patch:
            self.close(self.model(q, k, v, is_causal=True), expected)
            self.model(q.float(), k.float(), v.float())
            compiled = torch.compile(self.model, fullgraph=True,
                                     backend="aot_eager")
            self.close(compiled(q, k, v, is_causal=True), expected)
        self.assertIs(F.scaled_dot_product_attention, own)
        self.assertEqual(patch.taken, 1)
        lines = patch.report().splitlines()
        self.assertEqual(lines[0], "1 calls by kvbuf, 1 by torch")
        self.assertRegex(lines[1], "^1 times: q has type float32")

    def test_masks(self):
        """As models make them: a key's padding, a causal square with it, what is
        added to scores."""
        own = F.scaled_dot_product_attention
        q, k, v = (normal(2, 2, n, 64) for n in (7, 20, 20))
        padding = torch.ones(2, 1, 1, 20, dtype=torch.bool)
        padding[1, ..., :9] = False
        square = torch.ones(7, 20, dtype=torch.bool).tril(13)
        lowest = torch.finfo(q.dtype).min
        added = torch.zeros(2, 1, 7, 20, dtype=q.dtype).masked_fill(
            ~(padding & square), lowest)
        added[0, 0, 4] = lowest  # of these keys alone a row is the mean
        masks = (padding, square, padding & square, added,
                 torch.randn(2, 2, 7, 20).to(q.dtype))
        with kt.patch_sdpa(emulate=True) as patch:
            for mask in masks:
                self.close(self.model(q, k, v, attn_mask=mask),
                           own(q, k, v, mask))
            plans = len(kt._plans)
            # Other values, whose launches are known.
            q, k, v = (x.flip(-2) for x in (q, k, v))
            for mask in masks:
                other = mask.flip(-1)
                self.close(self.model(q, k, v, attn_mask=other),
                           own(q, k, v, other))
            self.assertEqual(len(kt._plans), plans)
            compiled = torch.compile(self.model, fullgraph=True,
                                     backend="aot_eager")
            for mask in padding, added:
                self.close(compiled(q, k, v, attn_mask=mask), own(q, k, v, mask))
        self.assertEqual((patch.taken, sum(patch.refused.values())), (10, 0))

    def test_masks_of_others(self):
        """What only torch computes, or refuses, is torch's."""
        own = F.scaled_dot_product_attention
        q, k, v = normal(3, 1, 2, 8, 64)
        wide = torch.randn(2, 8, 8, dtype=torch.float64).to(q.dtype)
        bias = wide.clone().requires_grad_()
        with kt.patch_sdpa(emulate=True) as patch:
            with self.assertRaises(RuntimeError):
                self.model(q, k, v, attn_mask=torch.ones(5, 8, dtype=torch.bool))
            with self.assertRaises(RuntimeError):
                self.model(q, k, v, attn_mask=wide, is_causal=True)
            out = self.model(q, k, v, attn_mask=bias)
            out.float().sum().backward()
            self.assertIsNotNone(bias.grad)
            compiled = torch.compile(self.model, fullgraph=True,
                                     backend="aot_eager")
            self.assertTrue(compiled(q, k, v, attn_mask=bias).requires_grad)
        self.close(out, own(q, k, v, wide))
        lines = sorted(patch.report().splitlines()[1:])
        self.assertRegex(lines[0], "^1 times: attn_mask has shape")
        self.assertRegex(lines[1], "^1 times: attn_mask is given and is_causal")
        self.assertRegex(lines[2], "no backward pass, and a tensor requires")

    def alike(self, f):
        """f's value with torch's function and with kvbuf's, or torch's error with
        both: what the report says of the latter."""
        try:
            want = f()
        except Exception as error:
            with kt.patch_sdpa(emulate=True) as patch, \
                    self.assertRaises(type(error)) as got:
                f()
            self.assertEqual(str(got.exception), str(error))
        else:
            with kt.patch_sdpa(emulate=True) as patch:
                self.close(f(), want)
        return patch

    def test_dimensions(self):
        """Leading dimensions that differ, and heads, as torch has them."""
        def call(*shapes, **options):
            x = [normal(*shape) for shape in shapes]
            return self.alike(lambda: self.model(*x, x[-1], **options))

        e = 64
        for q, k, options in (
                ((3, 9, e), (3, 5, e), {}), ((9, e), (5, e), {}),
                ((2, 3, 2, 9, e), (2, 3, 1, 5, e), {}),
                ((2, 4, 9, e), (2, 2, 5, e), {"enable_gqa": True})):
            self.assertEqual(call(q, k, **options).taken, 1)
        for q, k, options in (
                # Broadcast: heads of one sequence, for a batch of three.
                ((3, 3, 9, e), (3, 5, e), {}), ((3, 3, 9, e), (5, e), {}),
                ((9, e), (1, 5, e), {}), ((2, 1, 9, e), (2, 4, 5, e), {}),
                ((3, 2, 9, e), (1, 2, 5, e), {}), ((3, 9, e), (1, 5, e), {}),
                ((4, 9, e), (2, 5, e), {"enable_gqa": True}),
                # Refused by torch.
                ((2, 3, 2, 9, e), (6, 2, 5, e), {}),
                ((6, 2, 9, e), (2, 3, 2, 5, e), {}),
                ((3, 2, 2, 9, e), (2, 3, 2, 5, e), {}),
                ((2, 1, 9, e), (2, 4, 5, e), {"enable_gqa": True}),
                ((2, 3, 9, e), (2, 2, 5, e), {"enable_gqa": True}),
                # Empty.
                ((2, 0, 9, e), (2, 0, 5, e), {}), ((2, 2, 9, 0), (2, 2, 5, 0), {})):
            with self.subTest(q=q, k=k):
                self.assertEqual(call(q, k, **options).taken, 0)
                torch._dynamo.reset()
                x = [normal(*shape) for shape in (q, k)]
                with kt.patch_sdpa(emulate=True):
                    graph = make_fx(lambda q, k: torch.compile(
                        self.model, backend="eager")(q, k, k, **options))
                    try:
                        self.assertNotIn("kvbuf", str(graph(*x).graph))
                    except RuntimeError as error:
                        self.assertNotIn("kvbuf", str(error))

    def test_classes(self):
        """Causal biases mean a triangle; classes and modes that have torch's
        functions in their hands are asked, under the name that they look for."""
        q, k = normal(1, 2, 9, 64), normal(1, 2, 20, 64)
        for make, size, taken in (
                (bias.causal_lower_right, (9, 20), 1), (bias.causal_upper_left,
                                                        (9, 20), 1),
                (bias.causal_lower_right, (9, 21), 0)):
            mask = make(*size)
            patch = self.alike(lambda: self.model(q, k, k, attn_mask=mask))
            self.assertEqual(patch.taken, taken)
            if taken:
                torch._dynamo.reset()
                with kt.patch_sdpa(emulate=True):
                    compiled = torch.compile(self.model, backend="eager")
                    self.close(compiled(q, k, k, attn_mask=mask),
                               self.model(q, k, k, attn_mask=mask), 0)
        self.alike(lambda: self.model(q, k, k, attn_mask=mask, is_causal=True))
        with self.assertRaisesRegex(NotImplementedError, "mask is a CausalBias"):
            kvbuf.attention(q, q, q, mask=bias.causal_upper_left(2, 2))

        class Twice(torch.Tensor):
            """Its memory is half of what it holds."""
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                with torch._C.DisableTorchFunctionSubclass():
                    if func is torch.nn.functional.scaled_dot_product_attention:
                        args = [x.as_subclass(torch.Tensor) * 2
                                if isinstance(x, cls) else x for x in args]
                    return func(*args, **(kwargs or {}))

        class Mode(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                if func is torch.nn.functional.scaled_dot_product_attention:
                    return func(args[0] * 2, *args[1:], **(kwargs or {}))
                return func(*args, **(kwargs or {}))

        class Plain(torch.Tensor):
            pass

        twice = q.as_subclass(Twice)
        for f, why in (
                (lambda: self.model(twice, k, k), "the class Twice is torch's"),
                (lambda: self.model(q, k, k.as_subclass(Twice)), "the class Twice"),
                (lambda: self.in_mode(Mode(), q, k, k), "the mode Mode is torch's")):
            patch = self.alike(f)
            self.assertRegex(patch.report(), "0 calls by kvbuf, 1 by torch\n"
                             f"1 times: {why}")
        for f in (lambda: self.model(q.as_subclass(Plain), k, k),
                  lambda: self.model(q, k.as_subclass(Plain), k),
                  lambda: self.in_mode(torch.device("cpu"), q, k, k)):
            self.assertEqual(self.alike(f).taken, 1)
        patch = kt.patch_sdpa(emulate=True)
        self.model(twice, k, k)
        self.assertIs(F.scaled_dot_product_attention, patch.function)
        patch.remove()
        self.assertIsNot(F.scaled_dot_product_attention, patch.function)

    def in_mode(self, mode, *tensors):
        with mode:
            return self.model(*tensors)

    def test_transforms(self):
        """What torch alone computes."""
        x = normal(3, 1, 2, 9, 64, dtype=torch.float16)
        ragged = torch.nested.nested_tensor([normal(2, 5, 64), normal(2, 9, 64)])

        def call(x):
            return self.model(x, x, x)

        def math(x):
            with sdpa_kernel(SDPBackend.MATH):
                return call(x)

        def dual():
            with forward_ad.dual_level():
                y = math(forward_ad.make_dual(x[0], x[1]))
                return forward_ad.unpack_dual(y).tangent

        for f, why in (
                (lambda: torch.vmap(call)(x), "called under torch.func's vmap"),
                (lambda: torch.vmap(torch.func.grad(
                    lambda y: call(y).float().sum()))(x), "requires gradients"),
                (lambda: torch.func.jvp(math, (x[0],), (x[1],))[1], "a tangent"),
                (dual, "a tangent"),
                (lambda: call(ragged).to_padded_tensor(0), "query is a nested"),
                (lambda: self.model(x[0], x[0], x[0],
                                    attn_mask=torch.ones(9, 9).to_sparse()),
                 "attn_mask is a tensor of layout torch.sparse_coo")):
            with torch.no_grad() if "nested" in why else contextlib.nullcontext():
                call(x[0])  # a remembered call
                patch = self.alike(f)
            self.assertEqual(patch.taken, 0)
            self.assertRegex(patch.report(), why)
        self.assertEqual(self.alike(
            lambda: torch.func.functionalize(call)(x[0])).taken, 1)
        # The functions themselves refuse, in words.
        for f, why in (
                (lambda: torch.vmap(lambda y: kt.flash_attn_func(y, y, y))(x),
                 "^flash_attn_func is called under torch.func's vmap"),
                (lambda: torch.vmap(lambda y: kvbuf.attention(y, y, y))(x),
                 "^kvbuf.attention is called under torch.func's vmap"),
                (lambda: kt.flash_attn_func(ragged, ragged, ragged),
                 "^q is a nested tensor; expected strides"),
                (lambda: kt.flash_attn_func(x[0], x[0].to_sparse(), x[0]),
                 "^k is a tensor of layout torch.sparse_coo; expected strides")):
            with self.assertRaisesRegex(NotImplementedError, why):
                f()

    def test_types_of_masks(self):
        """Those that torch takes; the others are not read as something else."""
        x = normal(1, 2, 8, 64)
        ones = torch.rand(8, 8) > 0.3
        for kind in (torch.bool, torch.float32, torch.bfloat16, torch.float16,
                     torch.float64, torch.int32, torch.int64, torch.uint8):
            for shape in (8, 8), (1, 8), (8, 1):
                mask = ones[:shape[0], :shape[1]].to(kind)
                mask[0, 0] = 1
                with self.subTest(kind=kind, shape=shape):
                    for _ in range(2):  # remembered calls of the first ones
                        patch = self.alike(lambda: self.model(x, x, x, attn_mask=mask))
                    self.assertEqual(patch.taken, kind in (
                        torch.bool, torch.float32, torch.bfloat16))
        for mask in torch.ones(8, dtype=torch.bool), torch.ones((), dtype=torch.bool):
            self.alike(lambda: self.model(x, x, x, attn_mask=mask))

    def test_host(self):
        """Without being asked, no model goes to the emulator."""
        q, k, v = normal(3, 1, 2, 8, 64)
        patch = kt.patch_sdpa()
        self.addCleanup(patch.remove)
        self.model(q, k, v)
        self.assertEqual((patch.taken, dict(patch.refused)),
                         (0, {"the tensors are in host memory": 1}))


if __name__ == "__main__":
    unittest.main()
