# REQUIRES: torch
# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""kvbuf.distributed with 2 and 4 processes of gloo on the emulator, against
float64 and itself. Needs torch, and is skipped without."""

import os
import pathlib
import socket
import sys
import unittest

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

sys.path.insert(0, str(pathlib.Path(__file__).parent / "Inputs"))
from attention_reference import attention  # noqa: E402

H, G, D = 2, 1, 64


def exact(x):
    return x.double().numpy()


def close(o, e, limit=3e-2):
    assert tuple(o.shape) == e.shape, (o.shape, e.shape)
    error = (o.double() - torch.as_tensor(e)).abs().max()
    assert error < limit, float(error)


def expected(q, k, v, **options):
    return attention(exact(q), exact(k), exact(v), **options)


def prefill(kd, rank, size, tokens):
    torch.manual_seed(1)
    q, k, v = (torch.randn(1, tokens, h, D).bfloat16() for h in (H, G, G))
    mine = [kd.shard(x) for x in (q, k, v)]
    assert torch.equal(kd.unshard(mine[0]), q)
    straight = [kd.shard(x, order="contiguous") for x in (q, k, v)]
    assert torch.equal(kd.unshard(straight[0], order="contiguous"), q)
    for causal in True, False:
        e, el = expected(q[0], k[0], v[0], causal=causal)
        for f in kd.ring_attention, kd.allgather_attention:
            o, lse = f(*mine, causal=causal, return_lse=True)
            close(kd.unshard(o)[0], e)
            close(kd.unshard(lse, dim=2)[0], el, 1e-3)
            # Bits are equal between runs.
            again, lse2 = f(*mine, causal=causal, return_lse=True)
            assert torch.equal(o, again) and torch.equal(lse, lse2)
    for causal, window in ((True, (9, -1)), (False, (5, 3))):
        e, _ = expected(q[0], k[0], v[0], causal=causal, window=window)
        for order, x in ("zigzag", mine), ("contiguous", straight):
            o = kd.allgather_attention(*x, causal=causal, window_size=window,
                                       order=order)
            close(kd.unshard(o, order=order)[0], e)


def ragged(kd, rank, size):
    """Sequences of several lengths, one of none."""
    torch.manual_seed(3)
    lengths = [2 * size * n for n in (5, 0, 1, 4)]
    cu = torch.tensor([0, *lengths]).cumsum(0).int()
    q, k, v = (torch.randn(sum(lengths), h, D).bfloat16() for h in (H, G, G))
    (mq, mcu), (mk, _), (mv, _) = (kd.shard_varlen(x, cu) for x in (q, k, v))
    assert torch.equal(kd.unshard_varlen(mq, cu), q)
    assert mcu.tolist() == [n // size for n in cu.tolist()]
    for causal in True, False:
        for offsets in mcu, mcu.long():
            o, lse = kd.ring_attention_varlen(
                mq, mk, mv, offsets, 10, causal=causal, return_lse=True)
            again = kd.ring_attention_varlen(mq, mk, mv, mcu, 10, causal=causal)
            assert torch.equal(o, again)
        whole = kd.unshard_varlen(o, cu)
        lses = kd.unshard_varlen(lse.T.contiguous(), cu).T
        for first, last in zip(cu.tolist(), cu.tolist()[1:]):
            if first == last:
                continue
            e, el = expected(*(x[first:last] for x in (q, k, v)), causal=causal)
            close(whole[first:last], e)
            close(lses[:, first:last], el, 1e-3)


def decode(kd, rank, size):
    """Pages, and slots; a sequence of which some processes have no token."""
    torch.manual_seed(2)
    q = torch.randn(2, 1, H, D).bfloat16()
    lengths = torch.tensor([[20, 4], [7, 0], [0, 3], [16, 30]][:size])
    k, v = torch.randn(2, size, 4, 16, G, D).bfloat16()
    table = torch.tensor([[3, 1], [0, 2]], dtype=torch.int32)
    mine = lengths[rank].int()
    o, lse = kd.sharded_decode(q, k[rank], v[rank], cache_seqlens=mine,
                               block_table=table, return_lse=True)
    slots = [x[rank][table.long()].reshape(2, 32, G, D) for x in (k, v)]
    of_slots = kd.sharded_decode(q, *slots, cache_seqlens=mine)
    for b in range(2):
        held = [torch.cat([x[r][table[b].long()].reshape(32, G, D)[:lengths[r, b]]
                           for r in range(size)]) for x in (k, v)]
        e, el = expected(q[b], *held)
        close(o[b], e)
        close(of_slots[b], e)
        close(lse[b], el, 1e-3)
    whole = [torch.empty_like(o) for _ in range(size)]
    dist.all_gather(whole, o)
    assert all(torch.equal(x, o) for x in whole)


def empty(kd):
    """Nobody has a key."""
    q, cache = torch.ones(1, 1, H, D).half(), torch.ones(1, 16, G, D).half()
    o, lse = kd.sharded_decode(
        q, cache, cache, cache_seqlens=torch.zeros(1, dtype=torch.int32),
        return_lse=True)
    assert not o.any() and torch.isneginf(lse).all()


def programs(kd):
    """Under torch.compile, in a mesh, in a group that is not all processes."""
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    q, k, v = torch.randn(3, 1, 16, H, D).bfloat16()

    def f(q, k, v):
        return kd.ring_attention(q, k, v, causal=True, group=mesh) * 2

    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(q, k, v), f(q, k, v))
    group = dist.new_group([dist.get_rank()], use_local_synchronization=True)
    o = kd.ring_attention(q, k, v, causal=True, group=group)
    close(o[0], expected(q[0], k[0], v[0], causal=True)[0])


def errors(kd, size):
    q = torch.zeros(1, 6, H, D).bfloat16()
    for kind, text, call in (
            (NotImplementedError, "window_size is (3, -1); ring_attention takes "
             "none", lambda: kd.ring_attention(q, q, q, window_size=(3, -1))),
            (NotImplementedError, 'order is "contiguous" with causal',
             lambda: kd.ring_attention(q, q, q, causal=True,
                                       order="contiguous")),
            (ValueError, "order is 'spiral'", lambda: kd.shard(q, order="spiral")),
            (ValueError, f"dimension 1 has 6 tokens; expected a multiple of "
             f"{2 * size}", lambda: kd.shard(q)),
            (ValueError, "q has 5 tokens on this process",
             lambda: kd.ring_attention(q[:, 1:], q, q)),
            (ValueError, f"sequence 1 has 5 tokens; expected a multiple of "
             f"{2 * size}", lambda: kd.shard_varlen(
                 q[0], torch.tensor([0, 0, 5]))),
            (ValueError, "k has 5 tokens on this process; expected an even "
             "number, and as many as q", lambda: kd.ring_attention_varlen(
                 q[0], q[0, 1:], q[0], torch.tensor([0, 6]), 6)),
            (ValueError, "sequence 1 has 3 tokens on this process; expected an "
             "even number", lambda: kd.ring_attention_varlen(
                 q[0], q[0], q[0], torch.tensor([0, 0, 3, 6]), 3, causal=True)),
            (ValueError, "dimension 1 has 5 tokens on this process; expected two "
             "parts of one size", lambda: kd.unshard(q[:, 1:])),
            (ValueError, "cu_seqlens is (1, 2) of torch.float32; expected",
             lambda: kd.ring_attention_varlen(
                 q[0], q[0], q[0], torch.zeros(1, 2), 6))):
        try:
            call()
        except kind as e:
            assert text in str(e), e
        else:
            raise AssertionError(text)


def process(rank, size, port):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    import kvbuf.distributed as kd
    prefill(kd, rank, size, 32 if size == 2 else 48)
    ragged(kd, rank, size)
    decode(kd, rank, size)
    if size == 2:
        empty(kd)
        programs(kd)
        errors(kd, 2)
    dist.destroy_process_group()


class Processes(unittest.TestCase):
    def run_with(self, size):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        mp.spawn(process, (size, port), size)

    def test_two(self):
        self.run_with(2)

    def test_four(self):
        self.run_with(4)


class Merge(unittest.TestCase):
    def test_parts(self):
        import kvbuf.distributed as kd
        torch.manual_seed(3)
        q, k, v = (torch.randn(n, H, D, dtype=torch.float64)
                   for n in (5, 30, 30))
        parts = [expected(q, k[a:b], v[a:b]) for a, b in
                 ((0, 9), (9, 9), (9, 30))]
        o, lse = kd.merge(*(torch.stack([torch.as_tensor(p[i]).float()
                                         for p in parts]) for i in (0, 1)))
        e, el = expected(q, k, v)
        close(o, e, 1e-5)
        close(lse, el, 1e-5)

    def test_empty_part(self):
        """What a part without a key holds counts nothing; any dimensions in front."""
        import kvbuf.distributed as kd
        torch.manual_seed(4)
        outs, lses = torch.randn(3, 2, 4, 5, H, D), torch.randn(3, 2, 4, H, 5)
        outs[1], lses[1] = float("nan"), float("-inf")
        o, lse = kd.merge(outs, lses)
        weights = torch.softmax(lses.double(), 0).transpose(-1, -2)[..., None]
        close(o, (weights[::2] * outs[::2].double()).sum(0).numpy(), 1e-5)
        close(lse, torch.logsumexp(lses.double(), 0).numpy(), 1e-5)


if __name__ == "__main__":
    unittest.main()
