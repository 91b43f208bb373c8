#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokens a second of a transformers model on a GPU, by who computes its attention.

    benchmark/generate.py [--batch 8] [--prompt 4096] [--new 64] [--growing]

A llama of random weights in bf16 (heads, head size and width of an 8 B model, fewer
layers) with a static cache: a prefill of the prompt, then steps of a token each as
replays of one CUDA graph. Contestants are `kvbuf` (kvbuf.transformers), torch's `sdpa`
and the kernel that flash-attn 2 has for caches (flash_stand_in.py), which take turns;
with --eager transformers' own. With --growing caches that grow by a token a step, as
`generate` has them by default, take turns, too: their steps are calls, and the third is
transformers' `flash_attention_2` on the stand-in. First all of them decode the same
given tokens, and their logits are compared with those of the model in fp32, with eager
attention: the mean error may be 1.5 times that of eager attention in bf16.

With --device=cpu (small sizes) kvbuf's kernels run on the emulator, and steps are calls.

Exit status: 0 done; 1 logits are wrong, or kvbuf left attention to torch; 2 bad usage.
"""

import argparse
import statistics
import sys
import time

import torch
import transformers

import flash_stand_in
import kvbuf.transformers

KVBUF, SDPA, EAGER = "kvbuf", "sdpa", "eager"
FLASH, LENGTHS = flash_stand_in.FLASH, flash_stand_in.LENGTHS
#: Who takes part, with static caches and with those that grow.
STATIC, GROWING = (KVBUF, SDPA, LENGTHS), (KVBUF, SDPA, FLASH)
#: What is printed of them.
NAMES = {FLASH: "flash_attention_2 (torch's kernel)",
         LENGTHS: "flash-attn 2's kernel (torch's)"}


class Text:
    """One model with the cache of one text, and its step as a graph. `room`: of a
    static cache; None for one that grows."""

    def __init__(self, model, attention, prompt, room=None):
        self.model, self.attention, self.prompt = model, attention, prompt
        self.cache = room and transformers.StaticCache(config=model.config,
                                                       max_cache_len=room)
        self.static = room is not None
        self.token = torch.zeros(len(prompt), 1, dtype=torch.long,
                                 device=prompt.device)
        self.graph = self.logits = None

    def call(self, ids):
        if self.model.config._attn_implementation != self.attention:
            self.model.set_attn_implementation(self.attention)
        return self.model(ids, past_key_values=self.cache,
                          logits_to_keep=1).logits

    def prefill(self):
        if self.static:
            self.cache.reset()
        else:
            self.cache = transformers.DynamicCache(config=self.model.config)
        return self.call(self.prompt)

    def record(self):
        """After a prefill: warms up, and takes a step as a graph. The cache then
        holds tokens of the warming up; the next prefill forgets them."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.call(self.token)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.logits = self.call(self.token)

    def step(self, token):
        self.token.copy_(token)
        if self.graph is None:
            return self.call(self.token)
        self.graph.replay()
        return self.logits

    def forced(self, tokens):
        """Logits of the prompt's last row, and of each of the tokens [batch, n]."""
        rows = [self.prefill().float()]
        for token in tokens.unbind(1):
            rows.append(self.step(token[:, None]).float().clone())
        return torch.cat(rows, 1)


def config(options):
    return transformers.LlamaConfig(
        hidden_size=options.heads * options.head_size, vocab_size=32000,
        intermediate_size=options.heads * options.head_size * 7 // 2,
        num_hidden_layers=options.layers, num_attention_heads=options.heads,
        num_key_value_heads=options.kv_heads, head_dim=options.head_size,
        max_position_embeddings=1 << 17)


def made(options, dtype):
    """A model of random weights, which are drawn where they stay: on a host that takes
    longer than all else. Not by `.to(torch.bfloat16)`, which would round the rotations'
    frequencies."""
    with torch.device(options.device):
        return transformers.AutoModelForCausalLM.from_config(config(options),
                                                             dtype=dtype).eval()


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def seconds(device, work):
    wait(device)
    start = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - start


def check(texts, options, prompt):
    """{contestant: mean error against fp32}, eager's too."""
    model = texts[KVBUF].model
    given = torch.randint(0, 32000, (options.batch, 4), device=options.device)
    room = prompt.shape[1] + 8
    exact_model = made(options, torch.float32)
    exact_model.load_state_dict(model.state_dict())
    exact = Text(exact_model, EAGER, prompt, room).forced(given)
    del exact_model
    return {name: (text.forced(given) - exact).abs().mean().item()
            for name, text in {EAGER: Text(model, EAGER, prompt, room),
                               **texts}.items()}


def times(texts, options):
    """{contestant: (prefills' seconds, a step's seconds)}, by turns."""
    took = {name: ([], []) for name in texts}
    for _ in range(options.rounds):
        for name, text in texts.items():
            took[name][0].append(seconds(options.device, text.prefill))
            took[name][1].append(seconds(options.device, lambda: [
                text.step(text.token) for _ in range(options.new)]) / options.new)
    return {name: [statistics.median(x) for x in both]
            for name, both in took.items()}


def parse(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default, what in (
            ("batch", 8, "texts"), ("prompt", 4096, "tokens of a prompt"),
            ("new", 64, "steps of a token"), ("layers", 8, "layers"),
            ("heads", 32, "query heads"), ("kv-heads", 8, "heads of keys"),
            ("head-size", 128, "elements of a head"),
            ("rounds", 5, "turns of each")):
        parser.add_argument(f"--{name}", type=int, default=default,
                            help=f"{what} [{default}]")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--eager", action="store_true",
                        help="eager attention takes turns too")
    parser.add_argument("--growing", action="store_true",
                        help="caches that grow take turns too")
    return parser.parse_args(arguments)


def contestants(model, prompt, options):
    """{name: Text}."""
    texts = {}
    for attention in STATIC + (EAGER,) * options.eager:
        texts[NAMES.get(attention, attention)] = text = Text(
            model, attention, prompt, options.prompt + options.new + 8)
        text.prefill()
        if options.device == "cuda":
            text.record()
    for attention in GROWING * options.growing:
        name = NAMES.get(attention, attention)
        texts[f"{name}, cache that grows"] = Text(model, attention, prompt)
    return texts


@torch.no_grad()
def main(arguments=None):
    options = parse(arguments)
    torch.manual_seed(0)
    registration = kvbuf.transformers.register(emulate=options.device == "cpu")
    flash_stand_in.register()
    model = made(options, torch.bfloat16)
    prompt = torch.randint(0, 32000, (options.batch, options.prompt),
                           device=options.device)
    texts = contestants(model, prompt, options)
    errors = check(texts, options, prompt)
    for name, error in errors.items():
        print(f"mean error of logits against fp32, {name}: {error:.3g}",
              flush=True)
    bad = [name for name, error in errors.items()
           if not error <= 1.5 * errors[EAGER]]
    if bad:
        print(f"wrong logits: {', '.join(bad)}")
    if registration.refused:
        print(f"torch computed attention: {dict(registration.refused)}")
    for name, (prefill, step) in times(texts, options).items():
        print(f"{name}: prefill {options.batch * options.prompt / prefill:,.0f} "
              f"tokens/s ({prefill * 1e3:.2f} ms), decode "
              f"{options.batch / step:,.0f} tokens/s ({step * 1e3:.3f} ms a step)",
              flush=True)
    return int(bool(bad or registration.refused))


if __name__ == "__main__":
    sys.exit(main())
