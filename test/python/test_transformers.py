# REQUIRES: torch, transformers
# RUN: env KVBUF_LIB_DIR=%lib HF_HUB_OFFLINE=1 %python %s
"""kvbuf.transformers on the emulator: random small models of many architectures
beside the same weights in float32 by transformers' eager attention, which may be
off from that by bfloat16's rounding alone. Needs torch and transformers, and is
skipped without. `test_transformers.py llama t5` takes these alone."""

import copy
import inspect
import os
import unittest
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import masking_utils  # noqa: E402
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS  # noqa: E402

import kvbuf  # noqa: E402
import kvbuf.torch  # noqa: E402
import kvbuf.transformers  # noqa: E402
from kvbuf import _masks, _own_attention  # noqa: E402

transformers.logging.set_verbosity_error()
NAME = "kvbuf"
VOCABULARY = 60
#: What models call their cache, which has two names.
CACHE = "cache" if "cache" in inspect.signature(
    transformers.LlamaForCausalLM.forward).parameters else "past_key_values"

SIZES = dict(vocab_size=VOCABULARY, hidden_size=64, intermediate_size=64,
             num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=128, pad_token_id=0, bos_token_id=1,
             eos_token_id=2)
GROUPED = dict(SIZES, num_key_value_heads=2)
WIDE = dict(GROUPED, head_dim=32)
MIXTURE = dict(num_experts_per_tok=2, num_local_experts=4)

#: Decoders, by their configurations.
DECODERS = {
    "llama": dict(WIDE),
    "qwen3": dict(WIDE),
    "gemma2": dict(WIDE, sliding_window=6, query_pre_attn_scalar=1,
                   attn_logit_softcapping=2.0),
    "gemma3_text": dict(WIDE, sliding_window=6, query_pre_attn_scalar=32),
    "gpt_oss": dict(WIDE, sliding_window=6, **MIXTURE),
    "mistral": dict(WIDE, sliding_window=6),
    "mixtral": dict(WIDE, **MIXTURE),
    "deepseek_v3": dict(
        SIZES, num_key_value_heads=4, q_lora_rank=16, kv_lora_rank=16,
        qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
        n_routed_experts=4, num_experts_per_tok=2, n_group=1, topk_group=1,
        moe_intermediate_size=32, first_k_dense_replace=1),
    "phi": dict(SIZES, num_key_value_heads=4),
    "starcoder2": dict(GROUPED, sliding_window=6),
    "opt": dict(SIZES, ffn_dim=64, word_embed_proj_dim=64),
    "gpt2": dict(vocab_size=VOCABULARY, n_embd=64, n_layer=2, n_head=4,
                 n_positions=128, pad_token_id=0, bos_token_id=1,
                 eos_token_id=2),
    "gpt_neox": dict(SIZES),
    "cohere2": dict(WIDE, sliding_window=6, layer_types=[
        "sliding_attention", "full_attention"]),
    "olmo2": dict(GROUPED),
}
SEQ2SEQ = {
    "t5": dict(vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=64, num_layers=2,
               num_heads=4, dropout_rate=0.0, pad_token_id=0,
               decoder_start_token_id=1),
    "bart": dict(vocab_size=VOCABULARY, d_model=64, encoder_layers=2,
                 decoder_layers=2, encoder_attention_heads=4,
                 decoder_attention_heads=4, encoder_ffn_dim=64,
                 decoder_ffn_dim=64, max_position_embeddings=128, pad_token_id=0,
                 decoder_start_token_id=1),
}
ENCODERS = {
    "bert": dict(SIZES),
    "modernbert": dict(SIZES, local_attention=8, global_attn_every_n_layers=2,
                       cls_token_id=1, sep_token_id=2),
}


def build(kind, factory="AutoModelForCausalLM", **sizes):
    """A random model in bfloat16 and the same weights in float32."""
    config = transformers.AutoConfig.for_model(kind, **sizes)
    torch.manual_seed(0)
    auto = getattr(transformers, factory)
    small = auto.from_config(copy.deepcopy(config), dtype=torch.bfloat16,
                             attn_implementation="eager").eval()
    with torch.no_grad():
        # Scores that differ: as initialized every key weighs the same.
        for name, x in small.named_parameters():
            if x.dim() == 2 and "embed" not in name:
                x.mul_(4)
            if "sinks" in name:
                x.normal_()
    exact = auto.from_config(config, dtype=torch.float32,
                             attn_implementation="eager").eval()
    exact.load_state_dict({n: x.float() for n, x in small.state_dict().items()})
    return small, exact


class Case(unittest.TestCase):
    def setUp(self):
        self.registration = kvbuf.transformers.register(NAME, emulate=True)
        self.addCleanup(self.registration.remove)

    def compare(self, model, exact, run):
        """Runs three times; `run(model)` is a list of tensors of numbers."""
        with torch.no_grad():
            want = run(exact)
            model.set_attn_implementation("eager")
            eager = run(model)
            model.set_attn_implementation(NAME)
            got = run(model)
        self.assertEqual(dict(self.registration.refused), {})
        for n, (w, e, g) in enumerate(zip(want, eager, got)):
            plain = (e.double() - w.double()).abs().mean().item()
            own = (g.double() - w.double()).abs().mean().item()
            self.assertGreater(plain, 0)
            self.assertLessEqual(own, 1.5 * plain, f"result {n}")

    def taken(self, least=1):
        self.assertGreaterEqual(self.registration.taken, least)


def tokens(*shape):
    return torch.randint(3, VOCABULARY, shape)


def forced(model, ids, mask, counts, **options):
    """Scores of ids that come in parts of `counts` through a cache."""
    results, at = [], 0
    cache = options.pop("cache", None)
    for n in counts:
        end = at + n
        options_now = dict(options)
        if mask is not None:
            options_now["attention_mask"] = mask[:, :end]
        out = model(ids[:, at:end], use_cache=True, **{CACHE: cache},
                    **options_now)
        cache = getattr(out, CACHE, None) or out.past_key_values
        part = out.logits
        if mask is not None:
            part = part[mask[:, at:end].bool()]
        results.append(part)
        at = end
    return results


def compiled(model):
    """One graph, where attention is kvbuf's."""
    if model.config._attn_implementation != NAME:
        return model
    torch._dynamo.reset()
    return torch.compile(model, backend="eager", fullgraph=True)


class Decoders(Case):
    def check(self, kind):
        torch.manual_seed(1)
        small, exact = build(kind, **DECODERS[kind])
        ids = tokens(2, 14)
        mask = torch.ones_like(ids)
        mask[0, :5] = 0
        counts = (11, 1, 1, 1)
        with self.subTest("prefill and decode"):
            self.compare(small, exact, lambda m: forced(m, ids, None, counts))
        with self.subTest("left padding"):
            self.compare(small, exact, lambda m: forced(m, ids, mask, counts))
        with self.subTest("static cache"):
            self.compare(small, exact, lambda m: forced(
                m, ids, mask, counts, cache=transformers.StaticCache(
                    config=m.config, max_cache_len=20)))
        self.taken()
        with self.subTest("compiled"):
            self.compare(small, exact, lambda m: [compiled(m)(
                ids, attention_mask=x, use_cache=False).logits[mask.bool()]
                for x in (None, mask)])


for kind in DECODERS:
    setattr(Decoders, f"test_{kind}", lambda self, kind=kind: self.check(kind))



class Others(Case):
    def test_sequences_to_sequences(self):
        """t5's biases of positions, cross attention over padded encodings."""
        for kind, sizes in SEQ2SEQ.items():
            with self.subTest(kind):
                torch.manual_seed(1)
                small, exact = build(kind, "AutoModelForSeq2SeqLM", **sizes)
                ids, later = tokens(2, 12), tokens(2, 9)
                mask = torch.ones_like(ids)
                mask[0, 7:] = 0

                def run(model):
                    whole = model(input_ids=ids, attention_mask=mask,
                                  decoder_input_ids=later)
                    first = model(input_ids=ids, attention_mask=mask,
                                  decoder_input_ids=later[:, :8], use_cache=True)
                    name = CACHE if CACHE in first else "past_key_values"
                    more = model(
                        encoder_outputs=(first.encoder_last_hidden_state,),
                        attention_mask=mask, decoder_input_ids=later[:, 8:],
                        **{CACHE: getattr(first, name)})
                    graph = compiled(model)(
                        input_ids=ids, attention_mask=mask, decoder_input_ids=later,
                        use_cache=False)
                    return [whole.logits, more.logits, graph.logits]

                self.compare(small, exact, run)
        self.taken()

    def test_whisper(self):
        torch.manual_seed(1)
        small, exact = build(
            "whisper", "AutoModelForSpeechSeq2Seq", vocab_size=VOCABULARY,
            num_mel_bins=8, d_model=64, encoder_layers=2, decoder_layers=2,
            encoder_attention_heads=4, decoder_attention_heads=4,
            encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=24,
            max_target_positions=32, pad_token_id=0, decoder_start_token_id=1,
            bos_token_id=1, eos_token_id=2)
        sound, later = torch.randn(1, 8, 48), tokens(1, 6)
        self.compare(small, exact, lambda m: [f(
            input_features=sound.to(m.dtype), decoder_input_ids=later,
            use_cache=False).logits for f in (m, compiled(m))])
        self.taken()

    def test_encoders(self):
        """Padding on the right, and modernbert's windows with two sides."""
        for kind, sizes in ENCODERS.items():
            for padded in False, True:
                with self.subTest(kind, padded=padded):
                    torch.manual_seed(1)
                    small, exact = build(kind, "AutoModel", **sizes)
                    ids = tokens(2, 40)
                    mask = torch.ones_like(ids)
                    if padded:
                        mask[0, 29:] = 0
                    self.compare(small, exact, lambda m: [f(
                        input_ids=ids, attention_mask=mask
                        ).last_hidden_state[mask.bool()] for f in (m, compiled(m))])
        self.taken()

    def test_falcon(self):
        """Its attention is its own: with ALiBi by torch's function, patched, which it
        keeps where it is given the name."""
        torch.manual_seed(1)
        small, exact = build("falcon", vocab_size=VOCABULARY, hidden_size=64,
                             num_hidden_layers=2, num_attention_heads=4, alibi=True,
                             pad_token_id=0)
        ids = tokens(2, 9)
        mask = torch.ones_like(ids)
        mask[0, :4] = 0
        # What transformers adds to scores is not the same in its eager attention.
        models = []
        for model in small, exact:
            models.append(transformers.AutoModelForCausalLM.from_config(
                copy.deepcopy(model.config), dtype=model.dtype,
                attn_implementation=NAME).eval())
            self.assertEqual(models[-1].config._attn_implementation, "sdpa")
            models[-1].load_state_dict(model.state_dict())

        def run(model):
            return model(ids, attention_mask=mask).logits[mask.bool()].float()

        with torch.no_grad():
            plain, want = map(run, models)
            with kvbuf.torch.patch_sdpa(emulate=True) as patch:
                got = run(models[0])
        self.assertEqual((patch.taken, dict(patch.refused)), (2, {}))
        self.assertLessEqual((got - want).abs().mean().item(),
                             1.5 * (plain - want).abs().mean().item())

    def test_attention_of_its_own(self):
        """Models that AttentionInterface does not reach compute what they did, and say
        so: they would misread the name's masks."""
        for kind, name, own, sizes in (
                ("bloom", "BloomForCausalLM", "BloomAttention", dict(n_layer=1)),
                ("mpt", "MptForCausalLM", "MptAttention", dict(
                    d_model=64, n_layers=1, n_heads=4, max_seq_len=32)),
                ("gpt_neo", "GPTNeoForCausalLM", "GPTNeoSelfAttention", dict(
                    num_layers=2, num_heads=4, window_size=4,
                    attention_types=[[["global", "local"], 1]]))):
            small, _ = build(kind, **dict(SIZES, **sizes))
            small.config._attn_implementation = NAME
            why = (f"{name} computes attention by its own code ({own}), not through "
                   "transformers' AttentionInterface")
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                other = type(small)(copy.deepcopy(small.config)).eval()
            self.assertIn(f"attn_implementation is 'kvbuf', and {why}; the model keeps "
                          "it", [str(x.message) for x in seen])
            small.config._attn_implementation = "eager"
            other.to(small.dtype).load_state_dict(small.state_dict())
            ids = tokens(2, 9)
            mask = torch.ones_like(ids)
            mask[0, :4] = 0
            for options in {}, {"attention_mask": mask}:
                with torch.no_grad():
                    want, got = (m(ids, **options).logits for m in (small, other))
                self.assertTrue(torch.equal(got, want), kind)
            self.assertEqual(self.registration.report().splitlines(), [
                "0 calls by kvbuf, 1 by torch", f"1 times: {why}"])
            self.registration.refused.clear()

    def test_code_of_models(self):
        """Which classes have attention of their own, by a module's text."""
        source = """
class FastAttention(nn.Module):
    def forward(self, x, attention_mask):
        return ALL_ATTENTION_FUNCTIONS.get_interface(x)(self, x, attention_mask)
class OwnAttention(nn.Module):
    def forward(self, x, attention_mask):
        return (x + attention_mask).softmax(-1)
class PoolAttention(nn.Module):
    def forward(self, x):
        return x.softmax(-1)
TABLE = {"own": OwnAttention}
class Base(PreTrainedModel):
    def _init_weights(self, module):
        isinstance(module, OwnAttention)
class Text(Base):
    def __init__(self):
        self.parts = FastAttention(), PoolAttention()
    def forward(self, x):
        return self.parts[0](x, create_causal_mask(x))
class Sound(Base):
    def __init__(self):
        self.parts = TABLE["own"]()
class Both(Sound):
    pass
"""
        code = _own_attention._Code(source)
        for name, own in (("Text", set()), ("Sound", {"OwnAttention"}),
                          ("Both", {"OwnAttention"}), ("Elsewhere", set())):
            self.assertEqual(code.reached(name), own, name)
        # A module that asks for no mask may do with masks what it likes.
        asks = "create_causal_mask"
        self.assertEqual(_own_attention._Code(source.replace(asks, "mask_of")).own,
                         set())
        none = source.replace("ALL_ATTENTION_FUNCTIONS", "FUNCTIONS")
        self.assertEqual(_own_attention._Code(none.replace(asks, "mask_of")).own,
                         {"OwnAttention", "PoolAttention"})

    def test_vit(self):
        torch.manual_seed(1)
        small, exact = build("vit", "AutoModel", hidden_size=64,
                             intermediate_size=64, num_hidden_layers=2,
                             num_attention_heads=4, image_size=16, patch_size=4)
        image = torch.randn(2, 3, 16, 16)
        self.compare(small, exact, lambda m: [f(pixel_values=image.to(
            m.dtype)).last_hidden_state for f in (m, compiled(m))])
        self.taken()

    def test_packed(self):
        """Sequences one after the other: found by their positions, or given."""
        small, exact = build("mistral", **DECODERS["mistral"])
        torch.manual_seed(1)
        lengths = 9, 14, 3
        ids = tokens(1, sum(lengths))
        places = torch.cat([torch.arange(n) for n in lengths])[None]
        offsets = torch.tensor([0, 9, 23, 26], dtype=torch.int32)
        longest = max(lengths)
        given = dict(cu_seq_lens_q=offsets, cu_seq_lens_k=offsets,
                     max_length_q=longest, max_length_k=longest)

        def apart(model):
            return [torch.cat([model(part).logits
                               for part in ids.split(lengths, 1)], 1)] * 2

        def run(model):
            if model.config._attn_implementation != NAME:
                return apart(model)
            return [model(ids, position_ids=places, use_cache=False,
                          **options).logits for options in ({}, given)]

        self.compare(small, exact, run)
        self.taken()

    def test_long_left_padding(self):
        """More rows than a mask is made of: ranges of keys. In a static cache,
        too, whose keys go on."""
        small, exact = build("gemma2", **DECODERS["gemma2"])
        torch.manual_seed(1)
        ids = tokens(2, 41)
        mask = torch.ones_like(ids)
        mask[0, :17] = 0
        for options in {}, {"max_cache_len": 48}:
            self.compare(small, exact, lambda m: forced(
                m, ids, mask, (40, 1), cache=options and transformers.StaticCache(
                    config=m.config, **options) or None))
        self.taken()

    def test_generate(self):
        """Words by generate, with a cache that grows and a static one, that also
        compiled: the same."""
        small, _ = build("llama", **DECODERS["llama"])
        small.set_attn_implementation(NAME)
        ids = tokens(2, 9)
        mask = torch.ones_like(ids)
        mask[1, :3] = 0
        options = dict(attention_mask=mask, max_new_tokens=4, do_sample=False,
                       pad_token_id=0)
        grows = small.generate(ids, **options)
        static = small.generate(ids, cache_implementation="static",
                                disable_compile=True, **options)
        self.assertTrue(torch.equal(grows, static))
        # Steps of a word are one graph, as generate has it on GPUs.
        config = transformers.CompileConfig(backend="eager", mode=None,
                                            fullgraph=True)
        config._compile_all_devices = True
        before = self.registration.taken
        compiled = small.generate(ids, cache_implementation="static",
                                  compile_config=config, **options)
        self.assertTrue(torch.equal(grows, compiled))
        # The prefill's two layers, and none in graphs.
        self.assertEqual(self.registration.taken, before + 2)
        self.assertEqual(dict(self.registration.refused), {})

    def test_compiled(self):
        """A whole forward pass in one graph."""
        small, _ = build("gpt_oss", **DECODERS["gpt_oss"])
        small.set_attn_implementation(NAME)
        ids = tokens(2, 9)
        mask = torch.ones_like(ids)
        mask[1, :3] = 0
        for options in {}, {"attention_mask": mask}:
            with torch.no_grad():
                want = small(ids, use_cache=False, **options).logits
                compiled = torch.compile(small.model, backend="eager",
                                         fullgraph=True)
                got = small.lm_head(compiled(
                    ids, use_cache=False, **options).last_hidden_state)
            seen = options.get("attention_mask", mask | 1).bool()
            torch.testing.assert_close(got[seen], want[seen], atol=2e-2, rtol=0)

    def test_float32(self):
        """Rounded where that is asked for, torch's where not."""
        _, exact = build("llama", **DECODERS["llama"])
        ids = tokens(1, 9)
        with torch.no_grad():
            want = exact(ids).logits
            exact.set_attn_implementation(NAME)
            by_torch = exact(ids).logits
            rounding = kvbuf.transformers.register("kvbuf_rounding", emulate=True,
                                                   float32="bfloat16")
            self.addCleanup(rounding.remove)
            exact.set_attn_implementation("kvbuf_rounding")
            got = exact(ids).logits
        self.assertEqual(self.registration.report().splitlines(), [
            "0 calls by kvbuf, 2 by torch", "2 times: the tensors are float32, "
            "and register was not told to round them"])
        torch.testing.assert_close(by_torch, want, atol=1e-4, rtol=1e-4)
        self.assertEqual(rounding.taken, 2)
        self.assertEqual(got.dtype, torch.float32)
        torch.testing.assert_close(got, want, atol=5e-2, rtol=0)

    def test_by_torch(self):
        """What no kernel takes is torch's: with gradients, on the host, with soft
        caps and sinks."""
        for kind in "gemma2", "gpt_oss", "llama":
            small, _ = build(kind, **DECODERS[kind])
            ids = tokens(2, 9)
            mask = torch.ones_like(ids)
            mask[1, :3] = 0
            want = small(ids, attention_mask=mask).logits
            small.set_attn_implementation(NAME)
            got = small(ids, attention_mask=mask).logits
            got.sum().backward()
            torch.testing.assert_close(got[mask.bool()], want[mask.bool()],
                                       atol=5e-2, rtol=0)
        self.assertEqual(dict(self.registration.refused),
                         {"a tensor requires gradients": 6})
        host = kvbuf.transformers.register("kvbuf_host")
        self.addCleanup(host.remove)
        small.set_attn_implementation("kvbuf_host")
        with torch.no_grad():
            small(ids)
        self.assertEqual(dict(host.refused),
                         {"the tensors are in host memory": 2})

    def test_remove(self):
        with kvbuf.transformers.register("kvbuf_here"):
            self.assertIn("kvbuf_here", ALL_ATTENTION_FUNCTIONS.valid_keys())
        self.assertNotIn("kvbuf_here", ALL_ATTENTION_FUNCTIONS.valid_keys())
        with self.assertRaisesRegex(ValueError, "float32 is 'float64'; expected "):
            kvbuf.transformers.register(float32="float64")


class Layer(torch.nn.Module):
    is_causal = True


class Calls(Case):
    """The function that layers call."""

    def call(self, *arguments, **options):
        with torch.no_grad():
            return self.registration.attention(Layer(), *arguments, **options)[0]

    def normal(self, *shape):
        return torch.randn(shape).bfloat16()

    def test_pages(self):
        """transformers' continuous batching: tokens of several sequences in one
        row over gathered keys, and one token each over pages, which are written."""
        torch.manual_seed(1)
        lengths = [5, 18]
        size = 16
        k_cache, v_cache = self.normal(2, 7, size, 2, 32)
        table = torch.tensor([[4, 0], [2, 6]], dtype=torch.int32)
        q, k, v = (self.normal(1, h, 2, 32) for h in (4, 2, 2))
        ends = torch.tensor([0, 6, 25], dtype=torch.int32)
        before = k_cache.clone()
        got = self.call(
            q, k, v, None, cu_seq_lens_q=torch.tensor([0, 1, 2]),
            cu_seq_lens_k=ends, max_length_q=1, max_length_k=1,
            block_table=table, k_cache=k_cache, v_cache=v_cache)
        self.assertEqual(got.shape, (1, 2, 4, 32))
        keys, values = [], []
        for b, n in enumerate(lengths):
            page, row = table[b, n // size], n % size
            torch.testing.assert_close(k_cache[page, row], k[0, :, b])
            before[page, row] = k[0, :, b]
            rows = [x[table[b].long()].flatten(0, 1)[:n + 1] for x in
                    (k_cache, v_cache)]
            keys.append(rows[0])
            values.append(rows[1])
        self.assertTrue(torch.equal(before, k_cache))
        k, v = (torch.cat(x).transpose(0, 1)[None] for x in (keys, values))
        for b in range(2):
            part = slice(ends[b], ends[b + 1])
            want = torch.nn.functional.scaled_dot_product_attention(
                *(x.double() for x in (q[:, :, b:b + 1], k[:, :, part],
                                       v[:, :, part])), enable_gqa=True)
            torch.testing.assert_close(got[:, b:b + 1].double(),
                                       want.transpose(1, 2), atol=2e-2, rtol=0)
        flat = self.call(q, k, v, None, cu_seq_lens_q=torch.tensor([0, 1, 2]),
                         cu_seq_lens_k=ends, max_length_q=1, max_length_k=19)
        torch.testing.assert_close(flat, got, atol=2e-2, rtol=0)

    def test_masks_of_ones_own(self):
        """Booleans and numbers in four dimensions, padding in two."""
        torch.manual_seed(1)
        q, k, v = (self.normal(2, h, 9, 32) for h in (4, 2, 2))
        seen = torch.rand(2, 1, 9, 9) < 0.5
        seen |= torch.eye(9, dtype=torch.bool)
        added = torch.randn(2, 4, 9, 9)
        there = torch.ones(2, 9, dtype=torch.bool)
        there[1, 6:] = False
        square = torch.ones(9, 9, dtype=torch.bool).tril()
        for mask, want in ((seen, seen), (added, added.double()),
                           (there, there[:, None, None] & square)):
            want = torch.nn.functional.scaled_dot_product_attention(
                q.double(), k.double(), v.double(), want, enable_gqa=True)
            torch.testing.assert_close(self.call(q, k, v, mask).double(),
                                       want.transpose(1, 2), atol=2e-2, rtol=0)


class Masks(unittest.TestCase):
    def test_forms(self):
        """What masks become says what transformers' own say, of rows that count."""
        mask_of, m = kvbuf.transformers.mask, masking_utils
        functions = {
            "causal": m.causal_mask_function,
            "sliding": m.sliding_window_causal_mask_function(5),
            "all": m.bidirectional_mask_function,
            "both sides": m.sliding_window_bidirectional_mask_function(4)}
        paddings = {
            "none": lambda x: x, "left": lambda x: x[:, :7].fill_(0),
            "right": lambda x: x[:, 29:].fill_(0), "hole": lambda x:
                x[:, 9:12].fill_(0), "all": lambda x: x.fill_(0)}
        found = set()
        for name, function in functions.items():
            causal = name in ("causal", "sliding")
            for padded, pad in paddings.items():
                for rows, before, room in ((40, 0, 0), (8, 32, 0), (1, 39, 0),
                                           (40, 0, 9), (36, 4, 9), (1, 39, 9)):
                    if not causal and (before or room):
                        continue
                    keys = 40 + room
                    there = torch.ones(2, 40, dtype=torch.bool)
                    pad(there[:1])
                    for given in ([None] if padded == "none" else []) + [there]:
                        offset = torch.tensor(before) if room else before
                        options = dict(
                            batch_size=2, q_length=rows, kv_length=keys,
                            q_offset=offset, mask_function=function,
                            attention_mask=given)
                        want = m.sdpa_mask(**options, allow_is_causal_skip=False)
                        got = mask_of(**options)
                        form = None if got is None else _masks.form_of(got)
                        flags = _masks.Form(causal, -1, "flags")
                        found.add((name, padded, form and form.kind or
                                   ("none" if got is None else "elements")))
                        if got is None or form:
                            got = _masks.as_booleans(form or flags, rows, keys,
                                                     "cpu")
                        if got is None:
                            got = torch.ones(1, 1, 1, 1, dtype=torch.bool)
                        got = got.expand(2, 1, rows, keys)
                        counts = there[:, before:before + rows]
                        with self.subTest(name, padded=padded, rows=rows,
                                          room=room, form=form):
                            self.assertTrue(torch.equal(
                                got[:, 0][counts], want[:, 0][counts]))
        for case in (("causal", "none", "none"), ("causal", "none", "lengths"),
                     ("causal", "left", "segments"), ("causal", "left", "elements"),
                     ("causal", "right", "none"), ("causal", "hole", "elements"),
                     ("sliding", "none", "flags"), ("sliding", "none", "lengths"),
                     ("sliding", "left", "segments"), ("all", "right", "lengths"),
                     ("all", "left", "segments"),
                     ("both sides", "none", "flags"),
                     ("both sides", "right", "segments")):
            self.assertIn(case, found)

    def test_functions_of_ones_own(self):
        """A mask function that is not transformers' is read element by element."""
        def own(batch, head, row, key):
            return key >= row

        got = kvbuf.transformers.mask(1, 4, 4, mask_function=own, use_vmap=True)
        self.assertTrue(torch.equal(got[0, 0], torch.ones(4, 4).triu().bool()))
        both = masking_utils.and_masks(own, masking_utils.causal_mask_function)
        self.assertIsNone(_masks.pattern_of(both))
        chunks = masking_utils.chunked_causal_mask_function(2, torch.zeros(1))
        self.assertIsNone(_masks.pattern_of(chunks))


if __name__ == "__main__":
    unittest.main()
