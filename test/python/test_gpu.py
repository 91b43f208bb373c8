# REQUIRES: cuda, torch
# RUN: env KVBUF_LIB_DIR=%lib %python %s
"""kvbuf.torch on a GPU: 500 random calls beside torch's operators, and a model
that generates the same texts whether torch or kvbuf computes its attention, but for
ties (rotary_model.py).

    test_gpu.py [--calls N] [--seed N]

A call's error, against float64, may be twice that of the same mathematics done
plainly by torch, with weights rounded to the tensors' type, and a rounding of
the result. Lengths, values and what is asked for are random; the kernels are
those of CASES, so that they can be made ahead on another machine.
"""

import argparse
import collections
import contextlib
import math
import pathlib
import random
import sys

import torch
import torch.nn.functional as F

import kvbuf.torch as kt

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))
import rotary_model  # noqa: E402

DEVICE = "cuda"
BF16, F16 = torch.bfloat16, torch.float16

#: Query heads, key heads, head size, type, and what the functions are told.
CASES = {
    "dense": [
        (8, 2, 128, BF16, {"causal": True}),
        (4, 4, 64, BF16, {"window_size": (37, 5)}),
        (4, 1, 96, F16, {"softcap": 8.0}),
    ],
    "varlen": [
        (8, 2, 128, BF16, {"causal": True}),
        (4, 4, 64, F16, {"window_size": (20, -1)}),
    ],
    "paged": [(8, 2, 128, BF16, {"causal": True, "rows": 1}),
              (8, 2, 64, BF16, {"causal": True, "rows": 40})],
    "slots": [(8, 2, 64, BF16, {"causal": True, "rows": 4})],
    "sdpa": [(8, 2, 64, BF16, {"is_causal": True}), (8, 2, 64, BF16, {})],
    "masked": [(8, 2, 64, BF16, {})],
}


def normal(*shape, dtype):
    return torch.randn(shape, device=DEVICE, dtype=torch.float32).to(dtype)


def scores_seen(rows, keys, causal=False, window_size=(-1, -1), first=None):
    """Which keys each row sees; row i stands at key `first` + i."""
    at = torch.arange(rows, device=DEVICE)[:, None] + (
        keys - rows if first is None else first)
    j = torch.arange(keys, device=DEVICE)[None]
    seen = torch.ones(rows, keys, dtype=torch.bool, device=DEVICE)
    left, right = window_size
    if causal:
        seen &= j <= at
        right = -1
    if left >= 0:
        seen &= j >= at - left
    if right >= 0:
        seen &= j <= at + right
    return seen


def plainly(q, k, v, seen, softcap=0.0, exact=False, bias=0.0):
    """(output, log-sum-exp) of [rows, heads, size] on [keys, KV heads, size]; the
    output is in float64 if `exact`, else with weights of the tensors' type."""
    if not k.shape[0]:
        return (torch.zeros_like(q, dtype=torch.float64 if exact else q.dtype),
                torch.full((q.shape[1], q.shape[0]), -math.inf, device=q.device))
    group = q.shape[1] // k.shape[1]
    wide = torch.float64 if exact else torch.float32
    a, b, c = (x.to(wide) for x in (q, k.repeat_interleave(group, 1),
                                    v.repeat_interleave(group, 1)))
    s = torch.einsum("ihd,jhd->hij", a, b) / math.sqrt(q.shape[-1])
    if softcap:
        s = softcap * torch.tanh(s / softcap)
    s = s + bias
    s = s.masked_fill(~seen, -math.inf)
    lse = torch.logsumexp(s, -1)
    most = s.amax(-1, keepdim=True)
    p = torch.exp(s - torch.where(most.isinf(), 0, most))
    total = p.sum(-1, keepdim=True)
    if not exact:
        p = p.to(q.dtype).to(wide)
    o = torch.einsum("hij,jhd->hid", p, c) / torch.where(total == 0, 1, total)
    o = o.transpose(0, 1)
    return (o if exact else o.to(q.dtype)), lse


class Ratios:
    """How far errors are from their limits."""

    def __init__(self):
        self.worst, self.count, self.bad = 0.0, 0, []

    def check(self, note, o, lse, q, k, v, seen, softcap=0.0, bias=0.0):
        exact, exact_lse = plainly(q, k, v, seen, softcap, exact=True, bias=bias)
        base, _ = plainly(q, k, v, seen, softcap, bias=bias)
        self.count += 1
        if not exact.numel():
            return
        step = 2.0 ** (-8 if q.dtype == BF16 else -11)
        limit = (2 * (base.double() - exact).abs().max()
                 + step * exact.abs().max() + 1e-6)
        ratio = float((o.double() - exact).abs().max() / limit)
        if lse is not None:
            known = exact_lse.isfinite()
            if not torch.equal(lse.isfinite(), known):
                ratio = math.inf
            elif known.any():
                wrong = (lse.double() - exact_lse)[known].abs().max()
                ratio = max(ratio, float(wrong) / 2e-3)
        if not ratio <= 1:
            self.bad.append((ratio, note))
        self.worst = max(self.worst, ratio)


def masks(options):
    return {k: v for k, v in options.items() if k in ("causal", "window_size")}


def dense(r, check):
    heads, kv, size, dtype, options = r.choice(CASES["dense"])
    # Few rows have kernels of their own; 33 and more share one.
    batch, rows, keys = r.randint(1, 3), r.randint(33, 400), r.randint(1, 400)
    q, k, v = (normal(batch, n, h, size, dtype=dtype)
               for n, h in ((rows, heads), (keys, kv), (keys, kv)))
    o, lse = kt.flash_attn_func(q, k, v, return_lse=True, **options)
    seen = scores_seen(rows, keys, **masks(options))
    for b in range(batch):
        check(f"dense {options} {rows} on {keys}", o[b], lse[b], q[b], k[b], v[b],
              seen, options.get("softcap", 0.0))


def varlen(r, check):
    heads, kv, size, dtype, options = r.choice(CASES["varlen"])
    lengths = [(r.choice((0, 1, r.randint(2, 300))), r.choice((0, r.randint(1, 300))))
               for _ in range(r.randint(1, 6))]
    at = [torch.tensor([0, *n], dtype=torch.int32, device=DEVICE).cumsum(0).int()
          for n in zip(*lengths)]
    total_q, total_k = (sum(n) for n in zip(*lengths))
    if not total_q:
        return
    q, k, v = (normal(n, h, size, dtype=dtype)
               for n, h in ((total_q, heads), (total_k, kv), (total_k, kv)))
    o, lse = kt.flash_attn_varlen_func(
        q, k, v, *at, max(n for n, _ in lengths), max(n for _, n in lengths),
        return_lse=True, **options)
    first_q = first_k = 0
    for n, m in lengths:
        rows, keys = slice(first_q, first_q + n), slice(first_k, first_k + m)
        check(f"varlen {options} {lengths}", o[rows], lse[:, rows], q[rows], k[keys],
              v[keys], scores_seen(n, m, **masks(options)))
        first_q, first_k = first_q + n, first_k + m


def cached(r, check, paged):
    heads, kv, size, dtype, options = r.choice(CASES["paged" if paged else "slots"])
    options = dict(options)
    rows = options.pop("rows")
    batch, page = r.randint(1, 4), 16
    most = 400
    # With or without new rows, which the call appends.
    new = r.random() < 0.5
    lengths = [r.randint(0 if new else 1, most - rows) for _ in range(batch)]
    if paged:
        pages = -(-most // page)
        k_cache, v_cache = (normal(batch * pages, page, kv, size, dtype=dtype)
                            for _ in "kv")
        table = torch.randperm(batch * pages, device=DEVICE).int().view(batch, pages)
        where = {"block_table": table}
    else:
        k_cache, v_cache = (normal(batch + 2, most, kv, size, dtype=dtype)
                            for _ in "kv")
        table = torch.randperm(batch + 2, device=DEVICE).int()[:batch]
        where = {"cache_batch_idx": table}
    q = normal(batch, rows, heads, size, dtype=dtype)
    more = ({name: normal(batch, rows, kv, size, dtype=dtype) for name in "kv"}
            if new else {})
    count = torch.tensor(lengths, dtype=torch.int32, device=DEVICE)
    o, lse = kt.flash_attn_with_kvcache(q, k_cache, v_cache, **more,
                                        cache_seqlens=count, **where,
                                        return_softmax_lse=True, **options)
    for b, length in enumerate(lengths):
        length += rows if new else 0
        held = [x[table[b].long()].reshape(-1, kv, size)[:length]
                for x in (k_cache, v_cache)]
        if new:
            assert torch.equal(held[0][-rows:], more["k"][b]), "an append is lost"
        check(f"cache {options} rows {rows} lengths {lengths} new {new}", o[b],
              lse[b], q[b], *held, scores_seen(rows, length, **masks(options)))


def sdpa(r, check):
    heads, kv, size, dtype, options = r.choice(CASES["sdpa"])
    # Beside torch's own; what is left of a causal square has 33 rows or more.
    keys = r.randint(33, 300)
    rows = keys if options else r.randint(33, 300)
    q, k, v = (normal(2, h, n, size, dtype=dtype)
               for n, h in ((rows, heads), (keys, kv), (keys, kv)))
    o = kt.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)
    own = F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)
    seen = scores_seen(rows, keys, causal=bool(options), first=0)
    for b in range(2):
        of = [x[b].transpose(0, 1) for x in (q, k, v)]
        check(f"sdpa {options} {rows} on {keys}", o[b].transpose(0, 1), None, *of, seen)
        check(f"torch's sdpa {options} {rows} on {keys}", own[b].transpose(0, 1), None,
              *of, seen)


def masked(r, check):
    """A patched call with a mask, as models make them; each row sees a key."""
    heads, kv, size, dtype, _ = r.choice(CASES["masked"])
    rows, keys = r.randint(33, 300), r.randint(33, 300)
    q, k, v = (normal(2, h, n, size, dtype=dtype)
               for n, h in ((rows, heads), (keys, kv), (keys, kv)))
    seen = torch.ones(2, 1, rows, keys, dtype=torch.bool, device=DEVICE)
    bias = torch.zeros(2, 1, 1, 1, dtype=dtype, device=DEVICE)
    kind = r.choice(("padding", "square", "added"))
    if kind == "padding":
        mask = torch.rand(2, 1, 1, keys, device=DEVICE) < 0.7
        mask[..., 0] = True
        seen = mask.expand_as(seen)
    elif kind == "square":
        mask = torch.rand(rows, keys, device=DEVICE) < 0.5
        mask[:, -1] = True
        seen = mask.expand_as(seen)
    else:
        mask = bias = normal(2, heads, rows, keys, dtype=dtype)
    with kt.patch_sdpa() as patch:
        o = F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)
    assert patch.taken == 1, patch.report()
    for b in range(2):
        of = [x[b].transpose(0, 1) for x in (q, k, v)]
        check(f"masked {kind} {rows} on {keys}", o[b].transpose(0, 1), None, *of,
              seen[b], bias=bias[b])


def random_calls(calls, seed):
    torch.manual_seed(seed)
    r = random.Random(seed)
    kinds = {"dense": dense, "varlen": varlen, "sdpa": sdpa, "masked": masked,
             "paged": lambda r, c: cached(r, c, True),
             "slots": lambda r, c: cached(r, c, False)}
    made, ratios = collections.Counter(), Ratios()
    for _ in range(calls):
        name = r.choice(list(kinds))
        made[name] += 1
        kinds[name](r, ratios.check)
    print(f"seed {seed}: {calls} calls ({', '.join(f'{n} {m}' for m, n in made.items())}), "
          f"{ratios.count} comparisons, largest part of a limit {ratios.worst:.2f}, "
          f"{len(ratios.bad)} beyond it")
    for bad in ratios.bad[:5]:
        print("  bad:", *bad)
    return not ratios.bad


def same_tokens(seed, prompts=8, count=48):
    """Texts of a model by kvbuf and by torch; planted faults are seen."""
    torch.manual_seed(seed)
    model = rotary_model.Model().to(DEVICE, BF16).eval()
    prompt = torch.randint(101, (prompts, 70), device=DEVICE)
    patches = []

    @contextlib.contextmanager
    def ours(fault=None):
        with kt.patch_sdpa() as patch, rotary_model.planted(model, fault):
            patches.append(patch)
            yield

    good = rotary_model.judge(model, prompt, count, ours)
    for fault in "position", "length":
        print(f"planted: {fault}")
        if rotary_model.judge(model, prompt, count, lambda: ours(fault)):
            print("  bad: a planted fault is not seen")
            good = False
    refused = [p.report() for p in patches if p.refused]
    print(*refused[:1])
    return good and not refused


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--seed", type=int,
                        default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    good = [random_calls(options.calls, options.seed), same_tokens(options.seed)]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
