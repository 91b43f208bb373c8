# REQUIRES: cuda, torch
# RUN: env KVBUF_LIB_DIR=%lib PYTORCH_NO_CUDA_MEMORY_CACHING=1 %python %s
# RUN: %if compute-sanitizer %{ env KVBUF_LIB_DIR=%lib PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --error-exitcode 9 %python %s %}
"""Lengths past the page table, or past a slot, on a GPU, where no host reads them: the
same as the room that there is, and nothing is read or written elsewhere. Every tensor
is an allocation of its own, of just its size, so compute-sanitizer sees what lies
beside it; without it, tensors that are to stay what they were are compared."""

import unittest

import torch

import kvbuf
import kvbuf.torch as kt

HEADS, KV_HEADS, SIZE, PAGES, WIDTH = 8, 2, 128, 17, 5
torch.set_default_device("cuda")


def normal(*shape):
    return torch.randn(shape).bfloat16()


def ints(*values):
    return torch.tensor(values, dtype=torch.int32)


class Bounds(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def paged(self, size):
        cache = [normal(PAGES, size, KV_HEADS, SIZE) for _ in "kv"]
        table = torch.randperm(PAGES)[:3 * WIDTH].view(3, WIDTH).int()
        room = WIDTH * size
        return cache, table, room, ints(room + 1, 2**31 - 1, -5), ints(room, room, 0)

    def same(self, call, lengths, clamped):
        """Results of lengths that cannot be, and of those that they count as."""
        got, want = call(lengths), call(clamped)
        torch.cuda.synchronize()
        for x, y in zip(got, want):
            self.assertTrue(torch.equal(x, y))

    def test_pages(self):
        """Few rows and many, of dense queries."""
        for size, rows in (16, 1), (64, 3), (16, 70):
            with self.subTest(size=size, rows=rows):
                cache, table, _, lengths, clamped = self.paged(size)
                q = normal(3, rows, HEADS, SIZE)
                self.same(lambda n: kt.flash_attn_with_kvcache(
                    q, *cache, cache_seqlens=n, block_table=table, causal=True,
                    return_softmax_lse=True), lengths, clamped)

    def test_ragged(self):
        """A batch of mixed lengths: several kernels of one launch."""
        cache, table, _, lengths, clamped = self.paged(16)
        q = normal(90, HEADS, SIZE)
        self.same(lambda n: kvbuf.attention(
            q, *cache, q_offsets=ints(0, 70, 71, 90), longest_query=70,
            page_table=table, lengths=n, causal=True, return_lse=True), lengths,
            clamped)

    def test_offsets(self):
        """Rows past the tensors: what lies beside the output stays."""
        q, k, v = normal(40, HEADS, SIZE), *(normal(40, KV_HEADS, SIZE) for _ in "kv")
        around = torch.full((60, HEADS, SIZE), 7.0).bfloat16()
        kt.flash_attn_varlen_func(q, k, v, ints(0, 30, 55), ints(0, 30, 55), 30, 30,
                                  causal=True, out=around[10:50])
        torch.cuda.synchronize()
        self.assertTrue((around[:10] == 7).all() and (around[50:] == 7).all())

    def test_slots(self):
        cache = [normal(4, 48, KV_HEADS, SIZE) for _ in "kv"]
        q = normal(3, 1, HEADS, SIZE)
        self.same(lambda n: kt.flash_attn_with_kvcache(
            q, *cache, cache_seqlens=n, cache_batch_idx=ints(2, 0, 3),
            return_softmax_lse=True), ints(49, 2**31 - 1, -1), ints(48, 48, 0))

    def test_appends(self):
        """By the kernel that attends, and by one before it: tokens without room are
        stored nowhere."""
        for rows in 1, 40:
            with self.subTest(rows):
                cache, table, room, _, _ = self.paged(16)
                before = [x.clone() for x in cache]
                q = normal(3, rows, HEADS, SIZE)
                new = [normal(3, rows, KV_HEADS, SIZE) for _ in "kv"]
                cached = ints(room, 2**31 - 1, 11)
                kt.flash_attn_with_kvcache(q, *cache, *new, cache_seqlens=cached,
                                           block_table=table, causal=True)
                torch.cuda.synchronize()
                at = torch.arange(11, 11 + rows)
                for x, y, z in zip(cache, before, new):
                    y[table[2, at // 16].long(), at % 16] = z[2]
                    self.assertTrue(torch.equal(x, y))

    def test_slot_mapping(self):
        cache = [normal(PAGES, 16, KV_HEADS, SIZE) for _ in "kv"]
        before = [x.clone() for x in cache]
        new = [normal(5, KV_HEADS, SIZE) for _ in "kv"]
        slots = torch.tensor([-1, PAGES * 16, 33, 2**40, -2**40])
        kvbuf.append_slots(*new, *cache, slots)
        torch.cuda.synchronize()
        for x, y, z in zip(cache, before, new):
            y[2, 1] = z[2]
            self.assertTrue(torch.equal(x, y))


if __name__ == "__main__":
    unittest.main()
