# REQUIRES: cuda, torch
# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""kvbuf.torch.flex_attention on a GPU, in CUDA graphs and compiled, against float64:
what functions capture changes between replays, which the host launches nothing for."""

import importlib.util
import math
import unittest

import torch
from torch.nn.attention.flex_attention import create_block_mask

import kvbuf.torch as kt
from kvbuf import _flex_attention

HEADS, ROWS, SIZE = 8, 1024, 128
SLOPES = torch.rand(HEADS, device="cuda") / 8
DOCUMENT = (torch.arange(ROWS, device="cuda") // 300).int()


def documents(batch, head, row, key):
    return (DOCUMENT[row] == DOCUMENT[key]) & (row >= key)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.slopes = torch.nn.Parameter(SLOPES.clone(), requires_grad=False)

    def forward(self, q, k, v, mask):
        slopes = self.slopes

        def alibi(score, batch, head, row, key):
            return score + slopes[head] * (key - row)

        out, lse = kt.flex_attention(q * 1, k, v, alibi, mask, return_lse=True)
        return out + 1, lse


def exact(q, k, v, slopes):
    at = torch.arange(ROWS, device="cuda")
    s = q.double() @ k.double().transpose(2, 3) * SIZE ** -0.5
    s = s + slopes.double()[:, None, None] * (at - at[:, None])
    s = s.masked_fill(~documents(0, 0, at[:, None], at), -math.inf)
    return s.softmax(-1) @ v.double() + 1, s.logsumexp(-1)


class Graphs(unittest.TestCase):
    def setUp(self):
        self.model = Model()
        self.mask = create_block_mask(documents, None, None, ROWS, ROWS,
                                      device="cuda")
        self.tensors = torch.randn(3, 1, HEADS, ROWS, SIZE, device="cuda").bfloat16()
        _flex_attention.record.__init__()
        torch._dynamo.reset()

    def call(self, model):
        return model(*self.tensors, self.mask)

    def replays(self, run, warm=0):
        """Results of `run` as queries and slopes change; after `warm` calls the host
        launches nothing."""
        for step in range(warm + 2):
            self.tensors[0].copy_(torch.randn_like(self.tensors[0]))
            self.model.slopes.copy_(SLOPES * (step + 1))
            before = _flex_attention.record.taken
            out, lse = run()
            expected = exact(*self.tensors, self.model.slopes)
            torch.testing.assert_close(out.double(), expected[0], rtol=0, atol=4e-2)
            torch.testing.assert_close(lse.double(), expected[1], rtol=0, atol=2e-5)
            if step >= warm:
                self.assertEqual(_flex_attention.record.taken, before)
        self.assertFalse(_flex_attention.record.refused)

    @torch.no_grad()
    def test_graph(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self.call(self.model)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            results = self.call(self.model)

        def run():
            graph.replay()
            return results

        self.replays(run)

    @torch.no_grad()
    def test_compiled(self):
        """Torch's own graphs, of its plain backend and of Inductor."""
        ways = [dict(backend="cudagraphs")]
        if importlib.util.find_spec("triton"):
            ways.append(dict(mode="reduce-overhead"))
        for way in ways:
            with self.subTest(way):
                torch._dynamo.reset()
                compiled = torch.compile(self.model, fullgraph=True, **way)

                def run():
                    torch.compiler.cudagraph_mark_step_begin()
                    return [x.clone() for x in self.call(compiled)]

                self.replays(run, warm=2)


if __name__ == "__main__":
    unittest.main()
