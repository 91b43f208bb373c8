"""A small decoder as libraries of models write it, and whether kvbuf's attention
in it is as near to exact scores as torch's own back ends are.

Two implementations that round differently choose different words where the best
two are a tie, and what follows differs. So texts alone prove nothing; `judge`
compares scores with those of the same weights in float64, on one text, and a
difference of texts with the errors that torch's own back ends make there.
"""

import contextlib
import copy

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


class Model(torch.nn.Module):
    """Grouped heads, rotary positions, a cache that grows,
    F.scaled_dot_product_attention."""

    def __init__(self, layers=4, width=512, heads=8, kv=2, words=101):
        super().__init__()
        self.heads, self.kv, self.size = heads, kv, width // heads
        #: What a planted fault adds to the positions of new words.
        self.off = 0

        def linear(a, b):
            return torch.nn.Linear(a, b, bias=False)
        self.embed = torch.nn.Embedding(words, width)
        self.layers = torch.nn.ModuleList(torch.nn.ModuleDict({
            "q": linear(width, width), "k": linear(width, kv * self.size),
            "v": linear(width, kv * self.size), "o": linear(width, width),
            "up": linear(width, 2 * width), "gate": linear(width, 2 * width),
            "down": linear(2 * width, width)}) for _ in range(layers))
        self.head = linear(width, words)

    def rotate(self, x, first):
        half = self.size // 2
        at = torch.arange(first, first + x.shape[2], device=x.device).float()
        angle = at[:, None] * 1e4 ** (-torch.arange(half, device=x.device) / half)
        # The table is part of the model: bfloat16 in float64 too.
        cos, sin = (f(angle).bfloat16().to(x.dtype) for f in (torch.cos, torch.sin))
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def forward(self, tokens, cache, last=1):
        """Scores of the `last` words' followers (batch, last, words)."""
        x = self.embed(tokens)
        batch, rows = tokens.shape
        for n, layer in enumerate(self.layers):
            y = F.rms_norm(x, x.shape[-1:])
            q, k, v = (layer[name](y).view(batch, rows, -1, self.size).transpose(1, 2)
                       for name in "qkv")
            first = cache[n][0].shape[2] + self.off if cache[n] else 0
            q, k = self.rotate(q, first), self.rotate(k, first)
            if cache[n]:
                k, v = (torch.cat(pair, 2) for pair in zip(cache[n], (k, v)))
            cache[n] = k, v
            # Looked up here, where a patch takes its place.
            o = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=rows > 1, enable_gqa=True)
            x = x + layer["o"](o.transpose(1, 2).reshape(batch, rows, -1))
            y = F.rms_norm(x, x.shape[-1:])
            x = x + layer["down"](F.silu(layer["gate"](y)) * layer["up"](y))
        return self.head(F.rms_norm(x[:, -last:], x.shape[-1:]))

    def generate(self, prompt, count):
        """`count` words that follow, each the best one."""
        cache, words = [None] * len(self.layers), []
        for _ in range(count):
            prompt = self(prompt, cache)[:, -1].argmax(-1, keepdim=True)
            words.append(prompt)
        return torch.cat(words, 1)

    def follow(self, prompt, words):
        """The scores (batch, words, all words) from which each of `words` is to be
        chosen, with the cache, as in `generate`."""
        cache = [None] * len(self.layers)
        scores = [self(prompt, cache)]
        for i in range(words.shape[1] - 1):
            scores.append(self(words[:, i:i + 1], cache))
        return torch.cat(scores, 1).double()

    def exactly(self, prompt, words):
        """The same in float64, without a cache, by torch's plain operators."""
        exact = copy.deepcopy(self).double()
        text = torch.cat([prompt, words[:, :-1]], 1)
        with sdpa_kernel(SDPBackend.MATH):
            return exact(text, [None] * len(self.layers), last=words.shape[1])


@contextlib.contextmanager
def planted(model, fault):
    """A fault of the calls within: "position" (new words are rotated by one place
    too many) or "length" (they do not see the last key of the cache)."""
    functional = torch.nn.functional
    before = functional.scaled_dot_product_attention

    def short(query, key, value, **options):
        if query.shape[2] == 1:
            key, value = key[:, :, :-1], value[:, :, :-1]
        return before(query, key, value, **options)

    model.off = int(fault == "position")
    if fault == "length":
        functional.scaled_dot_product_attention = short
    try:
        yield
    finally:
        model.off = 0
        functional.scaled_dot_product_attention = before


def back_ends(model, prompt):
    """{name: a context} of torch's own that compute the model."""
    found = {}
    for name in "MATH", "FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION":
        kind = getattr(SDPBackend, name, None)
        if kind is None:
            continue
        try:
            with sdpa_kernel(kind):
                model.follow(prompt, prompt[:, :2])
        except RuntimeError:  # not for such heads, or not here
            continue
        found[name.split("_")[0].lower()] = lambda kind=kind: sdpa_kernel(kind)
    return found


def judge(model, prompt, count, ours):
    """Whether the model with attention by `ours` (a context) is as near to exact
    scores as with torch's back ends, and chooses other words in ties alone.
    Prints what it finds."""
    with torch.no_grad():
        text = model.generate(prompt, count)
        exact = model.exactly(prompt, text)
        errors, chosen = {}, {}
        for name, context in back_ends(model, prompt).items():
            with context():
                scores = model.follow(prompt, text)
            errors[name], chosen[name] = scores - exact, scores.argmax(-1)
        with ours():
            mine = model.generate(prompt, count)
            scores = model.follow(prompt, text)
    error = scores - exact

    def size(x):
        return float(x.square().mean().sqrt()), float(x.abs().max())

    theirs = {name: size(e) for name, e in errors.items()}
    mean, largest = size(error)
    # The same rounding, in other places.
    good = (mean <= 1.2 * max(m for m, _ in theirs.values())
            and largest <= 1.5 * max(m for _, m in theirs.values()))
    said = ", ".join(f"{n} {m:.4f} {x:.3f}" for n, (m, x) in theirs.items())
    print(f"model: errors of scores (deviation {float(exact.std()):.2f}), mean and "
          f"largest: kvbuf {mean:.4f} {largest:.3f}; {said}"
          f"{'' if good else '  bad'}")

    # What torch's back ends make of the difference of the best two scores.
    best = exact.topk(2)
    between = [e.gather(-1, best.indices).diff(dim=-1).abs().max()
               for e in errors.values()]
    noise = float(max(between))
    split = sum(1 for words in zip(*(c.flatten().tolist() for c in chosen.values()))
                if len(set(words)) > 1)
    same = 0
    for n, (a, b) in enumerate(zip(text.tolist(), mine.tolist())):
        at = next((i for i in range(count) if a[i] != b[i]), None)
        if at is None:
            same += 1
            continue
        # Both have the same words before.
        gap = float((exact[n, at, a[at]] - exact[n, at, b[at]]).abs())
        short = float(best.values[n, at, 0]
                      - exact[n, at, [a[at], b[at]]].min())
        tie = max(gap, short) <= 2 * noise
        good &= tie
        picks = ", ".join(f"{name} {int(c[n, at])}" for name, c in chosen.items())
        print(f"  text {n} differs from word {at} on: {a[at]} and {b[at]} are {gap:.4f} "
              f"apart in float64, {'a tie' if tie else 'bad: no tie'} (torch's back "
              f"ends are off by up to {noise:.4f}); there, on the same words: {picks}, "
              f"kvbuf {int(scores[n, at].argmax())}, float64 {int(best.indices[n, at, 0])}")
    print(f"model: {same} of {len(text)} texts of {count} words are the same; torch's "
          f"back ends differ from one another at {split} of {exact[..., 0].numel()} "
          "words")
    return good and same >= len(text) // 2
