# RUN: env KVBUF_LIB_DIR=%lib LD_LIBRARY_PATH=%build/test/mock-cuda %python %s %t
"""Repeated calls, whose addresses alone are new: what reaches a driver that
prints it, and torch's tensors, where torch is installed, on the emulator."""

import json
import os
import pathlib
import re
import sys
import threading
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Runtime/Inputs"))
import kvbuf  # noqa: E402
from make_manifest import artifact, manifest  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

WORK = sys.argv.pop()


PROBLEM = """
!qo = memref<?x?x2x64xbf16>
!kv = !kvbuffer.cache<dense, bf16, heads = 2, head_size = 64>
func.func @prefill(%q: !qo, %k: !kv, %v: !kv, %o: !qo) {
  kvbuffer.attention q(%q) k(%k) v(%v) out(%o)
    {mask = #kvbuffer.mask<causal = true>} : !qo, !kv, !kv, !qo
  return
}
"""


class OnDevice:
    """An array that says that it is in CUDA's memory."""

    def __init__(self, array):
        self.__cuda_array_interface__ = dict(array.__array_interface__)
        self.address = array.ctypes.data
        self.array = array


def aligned(*shape, odd=0):
    """An array that begins `odd` elements after a multiple of 64 bytes."""
    count = int(np.prod(shape))
    raw = np.zeros(count + 64, np.uint16)
    first = -(raw.ctypes.data // 2) % 32 + odd
    return OnDevice(raw[first:first + count].reshape(shape))


class Addresses(unittest.TestCase):
    """kvbufPlanLaunch patches what kvbufPlanCreate has bound."""

    def kernel(self, code, change=lambda content: None, **problem):
        content = manifest(**problem)
        change(content)
        text = json.dumps(content).encode()
        path = pathlib.Path(WORK + ".kvbuf")
        path.write_bytes(artifact(text, {"ptx": code + b"\0"}))
        run = kvbuf.load(path)
        return run, run._module(kvbuf.Device.shared("cuda"))

    def plan(self, run, module, tensors):
        views = {n: kvbuf._tensors.view(n, t) for n, t in tensors.items()}
        packed, _keep = run._pack(views)
        return kvbuf._artifact._Plan(module, packed, len(views), None, 0)

    def launch(self, plan, tensors):
        """The stand-in's text."""
        data = kvbuf._artifact.array.array(
            "Q", [t.address for t in tensors.values()])
        with open(WORK + ".log", "w") as log:
            kept = os.dup(2)
            os.dup2(log.fileno(), 2)
            try:
                kvbuf._library.check(plan.launch(
                    plan.handle, data.buffer_info()[0], 0))
            finally:
                os.dup2(kept, 2)
                os.close(kept)
        return pathlib.Path(WORK + ".log").read_text()

    def fresh(self, keys=6, **odd):
        return {n: aligned(1, keys if n in "kv" else 5, 2, 64,
                           odd=odd.get(n, 0)) for n in "qkvo"}

    def test_words(self):
        run, module = self.kernel(b"mock WwwwWwwwWwwwWwwwiii")
        first = self.fresh()
        plan = self.plan(run, module, first)
        for tensors in (first, self.fresh(), self.fresh(), first):
            text = self.launch(plan, tensors)
            self.assertEqual(
                [int(x, 16) for x in re.findall(r"word (\w+)", text)],
                [t.address for t in tensors.values()])

    def test_output_in_the_cache(self):
        run, module = self.kernel(b"mock WwwwWwwwWwwwWwwwiii")
        first = self.fresh(keys=5)
        plan = self.plan(run, module, first)
        self.launch(plan, first)
        for name in "kv":
            with self.assertRaisesRegex(
                    kvbuf.Error, f"'o' shares memory with tensor '{name}'"):
                self.launch(plan, {**first, "o": first[name]})
        self.assertIn("word", self.launch(plan, self.fresh(keys=5)))
        # One is not in the other's range; both begin at a multiple of 64 bytes.
        both = aligned(2, 5, 2, 64).array
        near = {**first, "k": OnDevice(both[:1]), "o": OnDevice(both[1:])}
        self.assertIn("word", self.launch(plan, near))
        near["k"] = OnDevice(both.reshape(1, 10, 2, 64)[:, 4:9])
        with self.assertRaisesRegex(kvbuf.Error, "'o' shares memory"):
            self.launch(plan, near)

    def test_maps(self):
        run, module = self.kernel(b"mock MMMMiiic", tensor_maps=True)
        first = self.fresh()
        plan = self.plan(run, module, first)
        for tensors, encoded, moved in ((first, 4, 0), (self.fresh(), 0, 4),
                                        (first, 0, 4), (first, 0, 0)):
            text = self.launch(plan, tensors)
            self.assertEqual(
                [int(x, 16) for x in re.findall(r"map at (\w+)", text)],
                [t.address for t in tensors.values()])
            # Maps that are there take new addresses.
            self.assertEqual(text.count("encode"), encoded)
            self.assertEqual(text.count("move"), moved)

    def test_maps_of_an_old_driver(self):
        """Without cuTensorMapReplaceAddress each address is encoded."""
        run, module = self.kernel(b"mock MMMMiiic", tensor_maps=True)
        first = self.fresh()
        plan = self.plan(run, module, first)
        os.environ["KVBUF_MOCK_OLD"] = "1"
        self.addCleanup(os.environ.pop, "KVBUF_MOCK_OLD")
        for tensors, encoded in (first, 4), (self.fresh(), 4), (first, 4), (first, 0):
            text = self.launch(plan, tensors)
            self.assertEqual(
                [int(x, 16) for x in re.findall(r"map at (\w+)", text)],
                [t.address for t in tensors.values()])
            self.assertEqual(text.count("encode"), encoded)

    def test_maps_of_later_columns(self):
        run, module = self.kernel(b"mock MMMMiiic", tensor_maps=True,
                                  k_cache_depth=192, v_cache_depth=192,
                                  k_head_dim_offset=64, v_head_dim_offset=128)
        for _ in range(2):
            tensors = self.fresh()
            tensors["k"], tensors["v"] = (aligned(1, 6, 2, 192)
                                          for _ in "kv")
            if not _:
                plan = self.plan(run, module, tensors)
            text = self.launch(plan, tensors)
            self.assertEqual(
                [int(x, 16) for x in re.findall(r"map at (\w+)", text)],
                [t.address + 2 * c for t, c in
                 zip(tensors.values(), (0, 64, 128, 0))])

    def test_no_keys(self):
        run, module = self.kernel(b"mock MMMMiiic", tensor_maps=True)
        plan = self.plan(run, module, self.fresh(keys=0))
        at = [re.findall(r"map at (\w+)",
                         self.launch(plan, self.fresh(keys=0)))
              for _ in range(2)]
        self.assertEqual(at[0][1:3], at[1][1:3])  # the runtime's own memory

    def test_another_alignment(self):
        run, module = self.kernel(b"mock WwwwWwwwWwwwWwwwiii "
                                  b"unaligned WwwwWwwwWwwwWwwwiii",
                                  instead="unaligned", alignment=2)
        first, odd = self.fresh(), self.fresh(k=1)
        plan = self.plan(run, module, first)
        for tensors, name in ((first, "mock"), (odd, "unaligned"),
                              (self.fresh(k=1), "unaligned"), (first, "mock"),
                              (self.fresh(o=3), "unaligned")):
            text = self.launch(plan, tensors)
            self.assertRegex(text, f"^launch {name} ")
            self.assertEqual(
                [int(x, 16) for x in re.findall(r"word (\w+)", text)],
                [t.address for t in tensors.values()])
            run._last = module
            remark = "\n".join(run.remarks())
            self.assertEqual(bool(remark), name == "unaligned")
            if remark:  # of this call, not of one before it
                bad = "k" if tensors["k"].address % 16 else "o"
                self.assertIn(f"{tensors[bad].address:#x};", remark)

    def test_copies(self):
        """A map of a copy begins where the kernel that copies has written."""
        def change(content):
            q = content["tensors"][0]
            content["scratch"] = [{"name": "q.copy", "access": "workspace",
                                   "dtype": q["dtype"], "shape": q["shape"]}]
            content["copies"] = [{
                "entry": "copies", "copies": "q", "block": [64, 1, 1],
                "grid": [1, 1, 1], "dynamic_shared_bytes": 0,
                "args": [{"kind": "pointer", "tensor": name}
                         for name in ("q", "q.copy")]}]
            content["kernels"][0]["copies_if"] = "seq_q"
        run, module = self.kernel(b"mock MMMMiiic copies WW", change,
                                  tensor_maps=True)
        plan = self.plan(run, module, self.fresh())
        for odd in 0, 1, 3, 0:
            tensors = self.fresh(q=odd)
            text = self.launch(plan, tensors)
            words, maps = ([int(x, 16) for x in re.findall(f"{what} (\\w+)", text)]
                           for what in ("word", "map at"))
            self.assertEqual(re.findall(r"launch (\w+)", text),
                             ["copies", "mock"] if odd else ["mock"])
            expected = [t.address for t in tensors.values()]
            if odd:
                self.assertEqual(words[0], expected[0])
                expected[0] = words[1]
                self.assertNotIn(words[1], words[:1] + expected[1:])
            self.assertEqual(maps, expected)

    def test_bad_addresses(self):
        run, module = self.kernel(b"mock WwwwWwwwWwwwWwwwiii")
        good = self.fresh()
        plan = self.plan(run, module, good)
        for address, message in ((0, "tensor 'k' has a null address"),
                                 (2**64 - 16, "reaches beyond the end"),
                                 (good["k"].address + 1, "starts at address")):
            bad = dict(good, k=aligned(1, 6, 2, 64))
            bad["k"].address = address
            with self.assertRaisesRegex(kvbuf.Error, message):
                self.launch(plan, bad)
            text = self.launch(plan, good)
            self.assertEqual(int(re.findall(r"word (\w+)", text)[1], 16),
                             good["k"].address)


@unittest.skipUnless(torch, "torch is not installed")
class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefill = kvbuf.compile(PROBLEM, target="sm_80")
        lse = PROBLEM.replace("%o: !qo)", "%o: !qo, %l: memref<?x2x?xf32>)") \
                     .replace("out(%o)", "out(%o) lse(%l)") \
                     .replace(": !qo, !kv, !kv, !qo",
                              ": !qo, !kv, !kv, !qo, lse memref<?x2x?xf32>")
        cls.with_lse = kvbuf.compile(lse, target="sm_80")

    def tensors(self, queries=5, keys=7):
        return [torch.randn(1, n, 2, 64).bfloat16()
                for n in (queries, keys, keys)]

    def expected(self, q, k, v):
        """(output, log-sum-exp)"""
        q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
        s = q @ k.mT / 8
        i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
        s = s.masked_fill(j > i + k.shape[2] - q.shape[2], -torch.inf)
        return (s.softmax(-1) @ v).transpose(1, 2), s.logsumexp(-1)

    def check(self, o, *qkv):
        self.assertEqual(o.dtype, torch.bfloat16)
        torch.testing.assert_close(o.double(), self.expected(*qkv)[0], rtol=0,
                                   atol=2e-2)

    def test_repeated_calls(self):
        before = len(self.prefill._plans)
        for _ in range(3):
            q, k, v = self.tensors(6, 9)
            self.check(self.prefill(q=q, k=k, v=v), q, k, v)
            self.assertEqual(self.prefill.remarks(), [])
        self.assertEqual(len(self.prefill._plans), before + 1)
        # Another shape, other strides, another order, a given output.
        q, k, v = self.tensors(4, 5)
        self.check(self.prefill(q=q, k=k, v=v), q, k, v)
        q, k, v = self.tensors(6, 9)
        apart = k.transpose(1, 2).contiguous().transpose(1, 2)
        for _ in range(2):
            self.check(self.prefill(q=q, k=apart, v=v), q, k, v)
            self.check(self.prefill(v=v, q=q, k=k), q, k, v)
            o = torch.full_like(q, torch.nan)
            self.assertIs(self.prefill(q=q, k=k, v=v, out=o), o)
            self.check(o, q, k, v)
        # At odd elements, after aligned ones.
        odd = torch.empty(k.numel() + 1, dtype=k.dtype)[1:].view(k.shape)
        odd.copy_(k)
        self.check(self.prefill(q=q, k=odd, v=v), q, k, v)
        self.assertEqual(len(self.prefill.remarks()), 1)
        self.check(self.prefill(q=q, k=k, v=v), q, k, v)
        self.assertEqual(self.prefill.remarks(), [])

    def test_several_outputs(self):
        kinds = set()
        for _ in range(3):
            q, k, v = self.tensors()
            o, lse = result = self.with_lse(q=q, k=k, v=v)
            kinds.add(type(result))
            self.check(o, q, k, v)
            expected = self.expected(q, k, v)[1]
            torch.testing.assert_close(lse.double(), expected, rtol=1e-4,
                                       atol=1e-4)
            own = torch.zeros_like(lse)
            result = self.with_lse(q=q, k=k, v=v, lse=own)
            self.assertIs(result.lse, own)
            self.check(result.o, q, k, v)
            torch.testing.assert_close(own, lse, rtol=0, atol=0)
        self.assertEqual(len(kinds), 1)

    def test_errors_are_not_remembered(self):
        q, k, v = self.tensors()
        for _ in range(2):
            with self.assertRaisesRegex(kvbuf.Error, "require"):
                self.prefill(q=q.clone().requires_grad_(), k=k, v=v)
            with self.assertRaisesRegex(kvbuf.Error, "is f16; expected bf16"):
                self.prefill(q=q.half(), k=k, v=v)
            with self.assertRaisesRegex(kvbuf.Error, "tensor 'q'"):
                self.prefill(q=q.to_sparse(), k=k, v=v)
            with self.assertRaisesRegex(kvbuf.Error, "size 'batch' is -1"):
                self.prefill(q=q, k=k, v=v, batch=-1)
        self.check(self.prefill(q=q, k=k, v=v), q, k, v)

    def test_plans_are_bounded(self):
        run = kvbuf.compile(PROBLEM, target="sm_80")
        run.MOST_PLANS = 2
        for n in (1, 2, 3, 1, 2, 3):
            q, k, v = self.tensors(n, n)
            self.check(run(q=q, k=k, v=v), q, k, v)
            self.assertLessEqual(len(run._plans), 2)

    def test_threads(self):
        cases = [self.tensors(n, n + 2) for n in (2, 4)]
        wrong = []

        def work(case):
            for _ in range(4):
                o = self.prefill(q=case[0], k=case[1], v=case[2])
                if (o.double() - self.expected(*case)[0]).abs().max() > 2e-2:
                    wrong.append(case)
        threads = [threading.Thread(target=work, args=(c,)) for c in cases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_compiled(self):
        def twice(q, k, v):
            return self.prefill(q=q * 2, k=k, v=v) + 1

        def into(q, k, v, o):
            self.prefill(q=q, k=k, v=v, out=o)
            return o + 1

        def both(q, k, v):
            result = self.with_lse(q=q, k=k, v=v)
            return result.o + 1, result.lse + 1
        twice, into, both = (torch.compile(f, backend="aot_eager",
                                           fullgraph=True)
                             for f in (twice, into, both))
        for n in (5, 3, 4):  # from the second on, shapes are symbols
            q, k, v = self.tensors(n, n + 2)
            torch.testing.assert_close(
                twice(q, k, v), self.prefill(q=q * 2, k=k, v=v) + 1, rtol=0, atol=0)
            o = torch.zeros_like(q)
            torch.testing.assert_close(into(q, k, v, o), o + 1, rtol=0, atol=0)
            self.check(o, q, k, v)
            expected = self.with_lse(q=q, k=k, v=v)
            for got, want in zip(both(q, k, v), expected):
                torch.testing.assert_close(got, want + 1, rtol=0, atol=0)


if __name__ == "__main__":
    unittest.main()
