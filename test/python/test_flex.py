# REQUIRES: torch
# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""kvbuf.torch.flex_attention on the emulator, on the masks and scores that are
published for FlexAttention, beside torch's own in float64; what kernels get of them;
what goes to torch. Needs torch, and is skipped without."""

import functools
import math
import unittest
import warnings
from unittest import mock

import torch
from torch._dynamo.backends.common import aot_autograd
from torch.nn.attention import flex_attention as theirs

import kvbuf.torch as kt
from kvbuf import _attention, _flex, _flex_attention

warnings.simplefilter("ignore")
BATCH, HEADS, SIZE, N = 2, 4, 32, 44
torch.manual_seed(5)
SLOPES = torch.rand(HEADS)
TABLE = torch.randn(HEADS, 31).bfloat16()
DOCUMENT = torch.sort(torch.randint(0, 4, (BATCH, N)), dim=1)[0]
OFFSETS = torch.tensor([0, 7, 7, 30, N])
OF_ROW = torch.searchsorted(OFFSETS, torch.arange(N), right=True) - 1
PREFIX = torch.tensor([9, 0], dtype=torch.int32)
KEPT = torch.rand(BATCH, HEADS, N, N) < 0.5
CAP = torch.tensor(8.0)


def causal(b, h, q, k):
    return q >= k


def window(b, h, q, k):
    return (q >= k) & (q - k <= 5)


def around(b, h, q, k):
    return (q - k).abs() <= 6


def prefix_lm(b, h, q, k):
    return (k < PREFIX[b]) | (q >= k)


def documents(b, h, q, k):
    return (DOCUMENT[b, q] == DOCUMENT[b, k]) & causal(b, h, q, k)


def jagged(b, h, q, k):
    """Sequences in one row, each with a window of its own places."""
    q_at, k_at = q - OFFSETS[OF_ROW[q]], k - OFFSETS[OF_ROW[k]]
    return (OF_ROW[q] == OF_ROW[k]) & (q_at >= k_at) & (q_at - k_at < 4)


def natten(b, h, q, k, width=11, kernel=3):
    """Neighbours of a place of a canvas, as torch's examples have them."""
    q_x, q_y, k_x, k_y = q // width, q % width, k // width, k % width
    middle = q_x.clamp(kernel // 2, N // width - 1 - kernel // 2)
    beside = q_y.clamp(kernel // 2, width - 1 - kernel // 2)
    return ((middle - k_x).abs() <= kernel // 2) & (
        (beside - k_y).abs() <= kernel // 2)


def booleans(b, h, q, k):
    return KEPT[b][h, q, k]


def alibi(s, b, h, q, k):
    return s + SLOPES[h] * (k - q)


def alibi_of_heads(s, b, h, q, k):
    return s + torch.exp2(-((h + 1) * 8.0 / HEADS)) * (k - q)


def relative(s, b, h, q, k):
    return s + TABLE[h, torch.clamp(k - q, -15, 15) + 15]


def from_the_end(s, b, h, q, k):
    """Indices below 0 count from the end."""
    return s + TABLE[h, (k - q) % 31 - 31]


def capped(s, b, h, q, k):
    return 20 * torch.tanh(s / 20)


def capped_by_tensor(s, b, h, q, k):
    return CAP * torch.tanh(s / CAP)


def hidden(s, b, h, q, k):
    return torch.where(q >= k, s, -float("inf"))


def in_place(s, b, h, q, k):
    far = s - 0.25 * (q - k).abs()
    far.clamp_(max=1.0).mul_(1.5)
    return far


def hidden_by_score(s, b, h, q, k):
    return torch.where((s < 0.5) & (q != 3), s, float("-inf"))


def numbers(s, b, h, q, k):
    """Many operators."""
    x = (q * 3 - k) // 4 + (k - q) % 5 - torch.fmod(k - 2 * q, 7)
    y = torch.sigmoid(s) + (s * s + 1).sqrt() - s.abs().log1p() + torch.sign(s)
    z = torch.maximum(s, y.floor()) + torch.where(x.bool(), (s % 0.7), -s)
    far = torch.bitwise_and(x, 3).to(torch.bfloat16) / 3
    return y * 0.25 + z * 0.125 + x / 8 + far + (k << 1) * 0.01 + h ** 2


def far_mask(b, h, q, k):
    """Sums of products past 2^31, as hashes of places have them."""
    return (q * 100003 * 5003 + k * 99983 * 7919) % 7 < 4


def far_score(s, b, h, q, k):
    return s + ((q * N + k) * 2654435761 % 2**32).float() / 2**31


WORDS = torch.randint(-2**31, 2**31 - 1, (N,), dtype=torch.int32)
FEWER = torch.arange(N, dtype=torch.int32) % 3


def shifts(b, h, q, k):
    """By counts that a number of 32 bits has no such bits for, too."""
    left = torch.full((), -3, dtype=torch.int32) << FEWER[q] * 20
    right = WORDS[q] >> (FEWER[k] * 17 + 1)
    return ((left & 64) != 0) | ((right & 1) == 1)


def quotients(b, h, q, k):
    """By 0 where nobody takes the quotient."""
    n = FEWER[q]
    return torch.where(n != 0, (k + n) // torch.where(n != 0, n, 1), k) % 3 != 1


def unchosen(b, h, q, k):
    """As a compiler has it; torch's own operators refuse that 0."""
    n = FEWER[q]
    return torch.where(n != 0, (k + n) // n, k) % 3 != 1


def down(s, b, h, q, k):
    """The quotient of 1 and 0.1 of floats is 9, below 10 by what 0.1 is more."""
    return s + k.float() // 0.1 / 64 - (k.float() - 20.0) // -0.7 / 32


def again(s, b, h, q, k):
    """Of which each step has two of the one before."""
    for i in range(40):
        s = torch.where(q > i, s * 0.99, s)
    return s


def by_torch(q, k, v, score_mod=None, block_mask=None, **more):
    return theirs.flex_attention(q.double(), k.double(), v.double(), score_mod,
                                 block_mask, return_lse=True, **more)


class Case(unittest.TestCase):
    def setUp(self):
        _flex_attention.record.__init__()

    def operands(self, kv_heads=HEADS, rows=N):
        return (torch.randn(BATCH, h, n, SIZE).bfloat16()
                for h, n in ((HEADS, rows), (kv_heads, N), (kv_heads, N)))

    def mask(self, mask_mod, rows=N):
        return mask_mod and theirs.create_block_mask(
            mask_mod, BATCH, HEADS, rows, N, device="cpu")

    def check(self, score_mod=None, mask_mod=None, flex=kt.flex_attention, rows=N,
              kv_heads=HEADS, atol=2e-2, **more):
        q, k, v = self.operands(kv_heads, rows)
        block_mask = self.mask(mask_mod, rows)
        if kv_heads != HEADS:
            more["enable_gqa"] = True
        out, lse = flex(q, k, v, score_mod, block_mask, return_lse=True, **more)
        exact, exact_lse = by_torch(q, k, v, score_mod, block_mask, **more)
        torch.testing.assert_close(out.double(), exact, rtol=0, atol=atol)
        torch.testing.assert_close(lse.double(), exact_lse.double(), rtol=0,
                                   atol=2e-5)
        self.assertEqual((out.dtype, out.stride()), (q.dtype, q.stride()))
        self.assertFalse(_flex_attention.record.refused)
        self.assertEqual(_flex_attention.record.taken, 1)


class Kinds(Case):
    def test_masks(self):
        for mask_mod in (causal, window, around, prefix_lm, documents, jagged, natten,
                         booleans):
            with self.subTest(mask_mod.__name__):
                self.setUp()
                self.check(None, mask_mod)

    def test_scores(self):
        for score_mod in (alibi, alibi_of_heads, relative, from_the_end, capped,
                          capped_by_tensor, hidden, hidden_by_score, in_place):
            with self.subTest(score_mod.__name__):
                self.setUp()
                self.check(score_mod)

    def test_many_operators(self):
        self.check(numbers)

    def test_numbers_of_64_bits(self):
        """Places are of 64 bits where 32 do not hold what is made of them, and of 32
        where they do."""
        self.check(far_score, far_mask)
        self.setUp()
        self.check(None, far_mask, rows=3)
        for mask, wide in (far_mask, True), (documents, True), (natten, False), (
                prefix_lm, False):
            traced, _ = _flex.traced(None, mask, torch.device("cpu"))
            self.assertEqual("i64" in traced.regions(False).visible, wide, mask)

    def test_what_a_region_leaves_open(self):
        for score, mask in ((None, shifts), (None, quotients), (down, None),
                            (again, None)):
            with self.subTest((score or mask).__name__):
                self.setUp()
                self.check(score, mask)
        q, k, v = self.operands()
        keep = theirs.create_block_mask(quotients, BATCH, HEADS, N, N, device="cpu")
        own = theirs.BlockMask.from_kv_blocks(
            keep.kv_num_blocks, keep.kv_indices, mask_mod=unchosen, BLOCK_SIZE=128,
            seq_lengths=(N, N))
        torch.testing.assert_close(kt.flex_attention(q, k, v, block_mask=own).double(),
                                   by_torch(q, k, v, None, keep)[0], rtol=0, atol=2e-2)

    def test_both(self):
        both = theirs.and_masks(theirs.or_masks(causal, documents), around)
        self.check(alibi, both, kv_heads=2, scale=0.25)

    def test_few_rows(self):
        """Fewer rows than keys: a row's number is not its place."""
        self.check(alibi, window, rows=3)

    def test_rows_without_keys(self):
        self.check(None, lambda b, h, q, k: (k > q + 3) & (q != 5))


class Kernels(Case):
    """What kernels get: regions only where they have nothing else."""

    def fields(self, score_mod=None, mask_mod=None, square=True):
        traced, _ = _flex.traced(score_mod, mask_mod, torch.device("cpu"))
        r = traced.regions(square)
        return (r.causal, r.left, r.right, r.softcap, bool(r.score),
                bool(r.visible))

    def test_windows(self):
        self.assertEqual(self.fields(None, causal),
                         (True, -1, -1, 0, False, False))
        self.assertEqual(self.fields(hidden), (True, -1, -1, 0, False, False))
        self.assertEqual(self.fields(None, window), (True, 5, -1, 0, False, False))
        self.assertEqual(self.fields(None, around), (False, 6, 6, 0, False, False))
        self.assertEqual(self.fields(None, documents),
                         (True, -1, -1, 0, False, True))
        self.assertEqual(
            self.fields(None, lambda b, h, q, k: (k - 2 < q) & (q < k + 9)),
            (False, 8, 1, 0, False, False))
        # Not about a row's own place: the region says it.
        self.assertEqual(self.fields(None, lambda b, h, q, k: k < q),
                         (False, -1, -1, 0, False, True))
        self.assertEqual(self.fields(None, window, square=False),
                         (False, -1, -1, 0, False, True))

    def test_softcap(self):
        self.assertEqual(self.fields(capped), (False, -1, -1, 20, False, False))
        self.assertEqual(self.fields(capped_by_tensor)[3:], (0, True, False))

    def test_traced_once(self):
        """Other tensors of the same kind are the same kernel and the same trace;
        numbers are not."""
        def made(tensor, number):
            return lambda s, b, h, q, k: s + tensor[h] * number

        q, k, v = self.operands()
        traced = _flex_attention._flex.traced
        seen = []
        with mock.patch.object(_flex_attention._flex, "traced", side_effect=lambda
                               *a: seen.append(traced(*a)[0]) or traced(*a)):
            results = []
            for tensor, number in ((SLOPES, 2), (SLOPES.flip(0), 2), (SLOPES, 3)):
                mod = made(tensor, number)
                results.append(kt.flex_attention(q, k, v, mod, return_lse=True)[1])
                torch.testing.assert_close(
                    results[-1], by_torch(q, k, v, mod)[1].float(), rtol=0,
                    atol=2e-5)
        self.assertIs(seen[0], seen[1])
        self.assertIsNot(seen[0], seen[2])

    def test_tensors_are_read_at_each_call(self):
        slopes = SLOPES.clone()
        mod = lambda s, b, h, q, k: s + (slopes * 2)[h]  # noqa: E731
        q, k, v = self.operands()
        for _ in range(2):
            lse = kt.flex_attention(q, k, v, mod, return_lse=True)[1]
            torch.testing.assert_close(lse, by_torch(q, k, v, mod)[1].float(),
                                       rtol=0, atol=2e-5)
            slopes += 1

    def test_globals_are_read_at_each_call(self):
        q, k, v = self.operands()
        for shift in 1, 2:
            with mock.patch.dict(globals(), SHIFT=shift):
                lse = kt.flex_attention(q, k, v, shifted, return_lse=True)[1]
            plain = by_torch(q, k, v)[1].float()
            torch.testing.assert_close(lse, plain + shift, rtol=0, atol=2e-5)


def shifted(s, b, h, q, k):
    return s + SHIFT  # noqa: F821


class Calls(Case):
    def test_partial(self):
        self.check(None, functools.partial(natten, width=4))

    def test_lists_alone(self):
        """A BlockMask without a function is what its lists say."""
        lists = torch.tensor([[[[0, 1], [1, 0]]]]).expand(BATCH, 1, 2, 2)
        count = torch.tensor([[[1, 1]]]).expand(BATCH, 1, 2)
        block_mask = theirs.BlockMask.from_kv_blocks(
            count, lists, BLOCK_SIZE=22, seq_lengths=(N, N))
        q, k, v = self.operands()
        out = kt.flex_attention(q, k, v, None, block_mask)
        tiles = torch.arange(N) // 22
        s = (q.double() @ k.double().transpose(2, 3) * SIZE ** -0.5).masked_fill(
            tiles[:, None] != tiles, -math.inf)
        torch.testing.assert_close(out.double(), s.softmax(-1) @ v.double(),
                                   rtol=0, atol=2e-2)

    def test_lists(self):
        """Kernels visit the blocks that a BlockMask lists, and believe it: one that is
        wrong gives another result."""
        rows, size = 130, 64
        document = torch.arange(rows) // 70

        def by_document(b, h, q, k):
            return document[q] == document[k]

        def by_head(b, h, q, k):
            return by_document(b, h, q, k) & ((h > 1) | (q >= k))

        q, k, v = (torch.randn(1, HEADS, rows, SIZE).bfloat16() for _ in "qkv")

        def run(block_mask, score_mod=None):
            seen = []
            with mock.patch.object(_attention, "on_run", seen.append):
                out = kt.flex_attention(q, k, v, score_mod, block_mask)
            return out.double(), seen[0].problem.block_mask

        for mask_mod, heads in (by_document, None), (by_head, HEADS):
            block_mask = theirs.create_block_mask(
                mask_mod, None, heads, rows, rows, device="cpu", BLOCK_SIZE=size)
            for score_mod in None, alibi:
                exact = by_torch(q, k, v, score_mod, block_mask)[0]
                out, kind = run(block_mask, score_mod)
                self.assertEqual(kind, "64x64")
                torch.testing.assert_close(out, exact, rtol=0, atol=2e-2)
            exact = by_torch(q, k, v, None, block_mask)[0]
            for count in block_mask.kv_num_blocks, block_mask.full_kv_num_blocks:
                self.assertTrue(count.any())
                less = (count > 0).int()
                count -= less
                self.assertGreater((run(block_mask)[0] - exact).abs().max(), 0.1)
                count += less
            # What the score hides, blocks that are wholly visible do not show.
            self.assertEqual(run(block_mask, hidden)[1], "")
        # Of lists alone.
        block_mask = theirs.BlockMask.from_kv_blocks(
            torch.tensor([[[1, 2, 0]]]), torch.tensor([[[[1, 0, 0], [2, 0, 0], [0, 0, 0]]]]),
            BLOCK_SIZE=size, seq_lengths=(rows, rows))
        tile = torch.arange(rows) // size
        shown = (tile[:, None] + 1 == tile) | ((tile[:, None] == 1) & (tile == 0))
        s = (q.double() @ k.double().transpose(2, 3) * SIZE ** -0.5).masked_fill(
            ~shown, -math.inf)
        out, kind = run(block_mask)
        self.assertEqual(kind, "64x64 partly")
        torch.testing.assert_close(
            out, (s.softmax(-1) @ v.double()).nan_to_num(), rtol=0, atol=2e-2)

    def own_lists(self, rows, keys, size, mask_mod, shape=(1, 1)):
        """(a BlockMask of lists of its own beside a function, what both show)."""
        tall, wide = -(-rows // size), -(-keys // size)
        named = torch.rand(*shape, tall, wide) < 0.5
        block_mask = theirs.BlockMask.from_kv_blocks(
            named.sum(-1, dtype=torch.int32),
            torch.argsort(named.int(), dim=-1, descending=True, stable=True).int(),
            mask_mod=mask_mod, BLOCK_SIZE=size, seq_lengths=(rows, keys))
        seen = named.repeat_interleave(size, 2).repeat_interleave(size, 3)
        return block_mask, seen[..., :rows, :keys] & mask_mod(
            0, 0, torch.arange(rows)[:, None], torch.arange(keys))

    def test_lists_and_function(self):
        """What a key has to be in, whatever kernel has the call: lists that say less than
        the function."""
        def odd(b, h, q, k):
            return (q >= k) | (k % 7 == 1)

        def exact(q, k, v, seen, score_mod=None):
            s = q.double() @ k.double().transpose(2, 3) * SIZE ** -0.5
            if score_mod:
                s = score_mod(s, 0, 0, torch.arange(s.shape[2])[:, None],
                              torch.arange(s.shape[3]))
            return s.masked_fill(~seen, -math.inf).softmax(-1).nan_to_num() @ v.double()

        for mask_mod in causal, odd:
            for rows, keys, size, shape, score_mod in (
                    (256, 256, 64, (1, HEADS), None), (256, 200, 64, (BATCH, 1), None),
                    (4, 200, 64, (1, 1), None), (130, 130, 22, (1, 1), None),
                    (256, 256, 64, (1, 1), hidden)):
                with self.subTest(mask_mod.__name__, rows=rows, keys=keys, size=size):
                    q = torch.randn(BATCH, HEADS, rows, SIZE).bfloat16()
                    k, v = torch.randn(2, BATCH, HEADS, keys, SIZE).bfloat16()
                    block_mask, seen = self.own_lists(rows, keys, size, mask_mod, shape)
                    want = exact(q, k, v, seen, score_mod)
                    torch._dynamo.reset()
                    for call in kt.flex_attention, torch.compile(
                            lambda *a: kt.flex_attention(*a), fullgraph=True,
                            dynamic=False, backend="aot_eager"):
                        taken = _flex_attention.record.taken
                        torch.testing.assert_close(
                            call(q, k, v, score_mod, block_mask).double(), want, rtol=0,
                            atol=2e-2)
                        self.assertEqual(_flex_attention.record.taken, taken + 1)

    def test_windows_need_no_lists(self):
        """As long as these name what the window shows."""
        q, k, v = (torch.randn(1, HEADS, 256, SIZE).bfloat16() for _ in "qkv")

        def kind(block_mask):
            seen = []
            with mock.patch.object(_attention, "on_run", seen.append):
                kt.flex_attention(q, k, v, None, block_mask)
            return seen[0].problem.block_mask

        for mask_mod in (causal, lambda b, h, q, k: (q >= k) & (q - k <= 70),
                         lambda b, h, q, k: (q - k).abs() < 65,
                         lambda b, h, q, k: q - k <= 3):
            block_mask = theirs.create_block_mask(mask_mod, None, None, 256, 256,
                                                  device="cpu", BLOCK_SIZE=64)
            self.assertEqual(kind(block_mask), "")
            for count in block_mask.kv_num_blocks, block_mask.full_kv_num_blocks:
                for row in range(4):
                    if count[0, 0, row]:
                        count[0, 0, row] -= 1
                        self.assertEqual(kind(block_mask), "64x64")
                        count[0, 0, row] += 1
            self.assertEqual(kind(block_mask), "")

    def test_refused_as_torch_does(self):
        q, k, v = self.operands()
        longer = theirs.create_block_mask(causal, None, None, 128, N, device="cpu")
        no_boolean = theirs.BlockMask.from_kv_blocks(
            torch.tensor([[[1]]]), torch.tensor([[[[0]]]]), BLOCK_SIZE=128,
            mask_mod=lambda b, h, q, k: (q >= k).int(), seq_lengths=(N, N))
        batches = self.own_lists(N, N, 22, causal, (3, 1))[0]
        for words, keys, block_mask in (
                ("block_mask has a batch of 3; expected 1 or 2", N, batches),
                ("block_mask is of 128 rows and 44 keys; expected those of the call, 44 "
                 "and 44", N, longer),
                ("the mask's function returns a number that is no boolean, which torch "
                 "refuses", N, no_boolean),
                ("there are no keys, which torch refuses", 0, None)):
            self.setUp()
            # Whether torch's function, which is not compiled, looks at it or not.
            try:
                kt.flex_attention(q, k[:, :, :keys], v[:, :, :keys], None, block_mask)
            except (RuntimeError, IndexError, ValueError):
                pass
            else:
                self.assertIs(block_mask, batches)
            self.assertEqual(dict(_flex_attention.record.refused), {words: 1})
        self.setUp()

    def test_aux(self):
        q, k, v = self.operands()
        out, aux = kt.flex_attention(q, k, v, alibi, return_aux=theirs.AuxRequest(
            lse=True))
        torch.testing.assert_close(aux.lse, by_torch(q, k, v, alibi)[1].float(),
                                   rtol=0, atol=2e-5)

    def refused(self, words, *call, **more):
        """The call is torch's, with a reason."""
        with mock.patch.object(_flex_attention, "_by_torch",
                               return_value="torch's") as called:
            self.assertEqual(kt.flex_attention(*call, **more), "torch's")
        self.assertEqual(called.call_args.args[:len(call)], call)
        self.assertIn(f"1 times: {words}", kt.flex_report())
        self.setUp()

    def test_bytes_are_not_computed(self):
        """Whose operators wrap at 8 bits."""
        of_bytes = torch.arange(N).to(torch.uint8)
        for mask in (lambda b, h, q, k: ~of_bytes[k] > 250,
                     lambda b, h, q, k: (of_bytes[k] - 1) > of_bytes[q]):
            self.setUp()
            q, k, v = self.operands()
            block_mask = self.mask(mask)
            out = kt.flex_attention(q, k, v, block_mask=block_mask)
            self.assertEqual(_flex_attention.record.taken, 0)
            self.assertRegex(next(iter(_flex_attention.record.refused)),
                             "computes a number of type torch.uint8")
            torch.testing.assert_close(
                out.double(), by_torch(q, k, v, None, block_mask)[0], rtol=0, atol=2e-2)

    def test_refused(self):
        q, k, v = self.operands()
        self.refused("aten.lgamma.default is no operator that kvbuf has as a "
                     "region", q, k, v,
                     lambda s, b, h, q, k: s + torch.special.gammaln(q + 1.0))
        self.refused("branching is not traced: ", q, k, v, branching)
        self.refused("a captured tensor of shape (3,) is indexed by the head in "
                     "dimension 0; expected 4 elements or more", q, k, v,
                     lambda s, b, h, q, k: s + SLOPES[:3][h])
        self.refused("aten.mul.Tensor computes a tensor that depends on a place; "
                     "kvbuf computes numbers", q, k, v, lambda s, b, h, q, k: s + (SLOPES * q).sum())
        self.refused("a number of type torch.float64 is computed", q, k, v,
                     lambda s, b, h, q, k: s + SLOPES.double()[h])
        self.refused("aten.add_.Tensor changes what depends on no place, such as a "
                     "captured tensor", q, k, v,
                     lambda s, b, h, q, k, own=SLOPES.clone(): s + own.add_(1)[h])
        self.refused("flex_attention has no backward pass, and a tensor requires "
                     "gradients", q, k, v,
                     functools.partial(with_bias, SLOPES.clone().requires_grad_()))
        self.refused("q has type float32; expected float16 or bfloat16",
                     q.float(), k.float(), v.float())
        self.refused("return_aux asks for max_scores", q, k, v,
                     return_aux=theirs.AuxRequest(max_scores=True))
        self.refused("query has 4 heads, and key 2; expected as many, or enable_gqa",
                     q, k[:, :2], v[:, :2])

    def test_float32(self):
        with kt.configure(float32="bfloat16"):
            q, k, v = (x.float() for x in self.operands())
            out = kt.flex_attention(q, k, v, None, self.mask(causal))
        self.assertEqual(out.dtype, torch.float32)
        torch.testing.assert_close(out.double(), by_torch(
            q, k, v, None, self.mask(causal))[0], rtol=0, atol=2e-2)


class Compiled(Case):
    """A call is one operator of a graph, for all that it captures."""

    def setUp(self):
        super().setUp()
        torch._dynamo.reset()

    def compiled(self, model, backend="aot_eager", **more):
        return torch.compile(model, backend=backend, fullgraph=True, **more)

    def close(self, out, exact):
        torch.testing.assert_close(out.double(), exact.double(), rtol=0, atol=2e-2)

    def test_kinds(self):
        """Those that have torch's published names, in one graph."""
        q, k, v = self.operands()
        masks = [self.mask(mask_mod) for mask_mod in (
            causal, window, prefix_lm, documents, jagged, natten, booleans, far_mask)]
        scores = (alibi, alibi_of_heads, relative, from_the_end, capped, hidden,
                  numbers, far_score)

        def model(q, k, v, masks):
            own = q.new_zeros(HEADS, dtype=torch.float32) + 0.5

            def of_the_graph(s, b, h, row, key):
                return s + own[h] * 2

            return [kt.flex_attention(q * 1, k, v, score, mask, return_lse=True)
                    for score, mask in zip((*scores, of_the_graph),
                                           (*masks, None))]

        for backend in "eager", "aot_eager":
            results = self.compiled(model, backend)(q, k, v, masks)
            for (out, lse), score, mask in zip(results, scores, masks):
                exact, exact_lse = by_torch(q, k, v, score, mask)
                self.close(out, exact)
                torch.testing.assert_close(lse, exact_lse.float(), rtol=0, atol=2e-5)
            torch.testing.assert_close(results[-1][1], by_torch(q, k, v)[1].float() + 1,
                                       rtol=0, atol=2e-5)
        self.assertEqual((_flex_attention.record.taken,
                          sum(_flex_attention.record.refused.values())), (18, 0))

    def test_captured_tensors_are_arguments(self):
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.slopes = torch.nn.Parameter(SLOPES.clone(), requires_grad=False)

            def forward(self, q, k, v, document):
                def score(s, b, h, row, key):
                    return torch.where(document[row] == document[key],
                                       s + self.slopes[h] * (key - row), -math.inf)
                return kt.flex_attention(q, k, v, score)

        model = Model()
        compiled = self.compiled(model, dynamic=True)
        for rows in N, N + 3:
            q, k, v = (torch.randn(BATCH, HEADS, rows, SIZE).bfloat16()
                       for _ in "qkv")
            document = torch.randint(0, 3, (rows,))

            def score(s, b, h, row, key):
                return torch.where(document[row] == document[key],
                                   s + model.slopes[h] * (key - row), -math.inf)

            with torch._dynamo.config.patch(error_on_recompile=True):
                out = compiled(q, k, v, document)
            self.close(out, by_torch(q, k, v, score)[0])
            model.slopes.add_(0.5)
        self.assertEqual(_flex_attention.record.taken, 2)

    def test_arguments_are_lines(self):
        """Inductor writes the text of nodes into comments."""
        seen = []

        def look(graph, _):
            seen.extend(node.format_node() for node in graph.graph.nodes)
            return graph

        q, k, v = self.operands()
        self.compiled(lambda *a: kt.flex_attention(*a), aot_autograd(fw_compiler=look))(
            q, k, v, alibi, self.mask(documents))
        calls = [text for text in seen if text and "kvbuf.flex_attention" in text]
        self.assertEqual(len(calls), 1)
        self.assertNotIn("\n", calls[0])

    def test_lists(self):
        rows, size = 130, 64
        document = torch.arange(rows) // 70
        q, k, v = (torch.randn(1, HEADS, rows, SIZE).bfloat16() for _ in "qkv")
        of_function = theirs.create_block_mask(
            lambda b, h, q, k: document[q] == document[k], None, None, rows, rows,
            device="cpu", BLOCK_SIZE=size)
        of_lists = theirs.BlockMask.from_kv_blocks(
            torch.tensor([[[1, 2, 1]]]),
            torch.tensor([[[[1, 0, 0], [2, 0, 0], [0, 0, 0]]]]),
            BLOCK_SIZE=size, seq_lengths=(rows, rows))
        tile = torch.arange(rows) // size
        shown = torch.tensor([[0, 1, 0], [1, 0, 1], [1, 0, 0]])[tile][:, tile] > 0
        s = (q.double() @ k.double().transpose(2, 3) * SIZE ** -0.5).masked_fill(
            ~shown, -math.inf)
        seen = []
        with mock.patch.object(_attention, "on_run", seen.append):
            compiled = self.compiled(lambda *a: kt.flex_attention(*a))
            self.close(compiled(q, k, v, None, of_function),
                       by_torch(q, k, v, None, of_function)[0])
            self.close(compiled(q, k, v, None, of_lists), s.softmax(-1) @ v.double())
        self.assertEqual([request.problem.block_mask for request in seen],
                         ["64x64", "64x64 partly"])

    def test_torchs(self):
        """What no kernel takes is torch's, in the same graph, with the reason."""
        def lgamma(s, b, h, row, key):
            return s + torch.special.gammaln(row + 1.0)

        def model(q, k, v, own):
            return (kt.flex_attention(q, k, v, lgamma, return_lse=True),
                    kt.flex_attention(q.float(), k.float(), v.float()),
                    kt.flex_attention(q, k, v, lambda s, b, h, row, key: s + own[h]))

        q, k, v = self.operands()
        own = SLOPES.clone()
        (out, lse), plain, last = self.compiled(model)(q, k, v, own)
        exact, exact_lse = by_torch(q, k, v, lgamma)
        self.close(out, exact)
        torch.testing.assert_close(lse, exact_lse.float(), rtol=0, atol=1e-2)
        self.close(plain, by_torch(q, k, v)[0])
        self.close(last, by_torch(q, k, v, lambda s, b, h, row, key: s + own[h])[0])
        self.assertEqual(dict(_flex_attention.record.refused), {
            "aten.lgamma.default is no operator that kvbuf has as a region": 1,
            "q has type float32; expected float16 or bfloat16": 1})
        self.assertEqual(_flex_attention.record.taken, 1)

    def test_gradients_are_torchs(self):
        q, k, v = self.operands()
        own, q = SLOPES.clone().requires_grad_(), q.requires_grad_()

        def model(q, k, v, own):
            return kt.flex_attention(q.detach(), k, v, functools.partial(
                with_bias, own)), kt.flex_attention(q, k, v)

        seen = torch.compile(model, backend="aot_eager")
        # Torch has none on the host.
        with self.assertRaisesRegex(Exception, "backward|gradient|grad|inference"):
            seen(q, k, v, own)
        self.assertTrue(_flex_attention.record.refused)
        self.assertFalse(_flex_attention.record.taken)


def branching(s, b, h, q, k):
    return s + 1 if h == 0 else s


def with_bias(bias, s, b, h, q, k):
    return s + bias[h]


if __name__ == "__main__":
    unittest.main()
