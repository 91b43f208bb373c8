"""A manifest's tensors and sizes may have any names: the problem's `tensors` say
which part each tensor plays, a kernel's `defaults` what sizes are that no shape
tells. kvbuf-run checks such an artifact, and Python calls it, like any other.

RUN: %python %s kvbuf-compile %t sm_90a
"""

import functools
import json
import struct
import subprocess
import sys
import unittest
import zlib

import numpy as np

sys.path.insert(0, f"{sys.path[0]}/../../benchmark")
import kvbuf
from problem import problem

compiler, base, chip = sys.argv[1:4]
PARTS = {"q": "rows", "k": "left", "v": "right", "o": "result", "q_offsets": "starts"}
SIZES = {"total_q": "tokens", "batch": "users", "seq_k": "keys"}


def run(*command, **options):
    return subprocess.run(command, text=True, capture_output=True, check=False, **options)


def renamed(value, names, key=""):
    """A manifest's entry with other names of tensors, where `key` names one, and
    of sizes."""
    if isinstance(value, dict):
        return {k: renamed(v, names, k) for k, v in value.items()}
    if isinstance(value, list):
        return [renamed(v, names, key) for v in value]
    if not isinstance(value, str):
        return value
    if key == "tensor" or (key == "name" and value not in names):
        part, dot, own = value.partition(".")
        return PARTS.get(part, part) + dot + own
    return names.get(value, value)


def own_names(path, to, change=None):
    """Writes an artifact again, its tensors and sizes under names of their own."""
    with open(path, "rb") as file:
        data = file.read()
    length, count = struct.unpack_from("<II", data, 20)
    table = [struct.unpack_from("<16sQQ", data, 28 + 32 * i) for i in range(count)]
    start = 28 + 32 * count
    manifest = json.loads(data[start:start + length])
    ragged = manifest["problem"]["query"] == "ragged"
    names = SIZES | {"seq_q": "longest" if ragged else "length"}
    for key in "kernels", "tensors", "scratch":
        if key in manifest:
            manifest[key] = renamed(manifest[key], names)
    for kernel in manifest["kernels"]:
        kernel.pop("defaults", None)
        if ragged:
            kernel["defaults"] = {"longest": "tokens"}
    manifest["problem"]["tensors"] = dict(PARTS)
    if change:
        change(manifest)
    text = json.dumps(manifest).encode()
    table = [(kind, offset - length + len(text), size) for kind, offset, size in table]
    body = b"".join([struct.pack("<II", len(text), count),
                     *(struct.pack("<16sQQ", *entry) for entry in table),
                     text, data[start + length:]])
    head = b"KVBUF\0\0\1" + struct.pack("<QI", 20 + len(body), zlib.crc32(body))
    with open(to, "wb") as file:
        file.write(head + body)
    return to


@functools.cache
def compiled(**options):
    path = f"{base}-{chip}-{'-'.join(map(str, options.values()))}.kvbuf"
    done = run(compiler, "-", "--target=" + chip, "--no-alternatives", "-o", path,
               input=problem(heads=4, kv_heads=2, head_size=64, dtype="f16", causal=True,
                             **options))
    assert done.returncode == 0, done.stderr
    return path


def artifact(name, change=None, **options):
    return own_names(compiled(**options), f"{base}-{chip}-{name}-own.kvbuf", change)


def check(path, *options):
    return run("kvbuf-run", path, "--device=emulator", "--check", *options)


class OwnNames(unittest.TestCase):
    def passes(self, path, *options):
        done = check(path, *options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def fails(self, path, message, *options):
        done = check(path, *options)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(message, done.stderr)

    def test_dense(self):
        self.passes(artifact("dense"), "--size", "batch=2", "--size", "seq_q=70",
                    "--size", "seq_k=90")

    def test_ragged(self):
        self.passes(artifact("ragged", query="ragged", cache="ragged"),
                    "--lengths-q", "3,70,0", "--lengths-k", "9,70,5")

    def test_paged(self):
        self.passes(artifact("paged", query="ragged", cache="paged", page_size=64),
                    "--lengths-q", "5,1", "--cache-lengths", "7,60")

    def test_parts(self):
        def unknown(manifest):
            manifest["problem"]["tensors"]["queries"] = "rows"
        self.fails(artifact("unknown", unknown),
                   "manifest: problem.tensors names the unknown part 'queries'; expected "
                   "'q', 'k', 'v', 'o', 'q_offsets', 'lse', 'sink', 'k_new' or 'v_new'")

        def missing(manifest):
            del manifest["problem"]["tensors"]["q"]
        self.fails(artifact("missing", missing),
                   "manifest: the attention problem needs a tensor 'q'")

        def of_nothing(manifest):
            manifest["kernels"][0]["defaults"] = {"longest": {"sum": ["length", "rest"]}}
        self.fails(artifact("nothing", of_nothing),
                   "manifest: kernels[0].defaults.longest mentions 'rest', which no shape of "
                   '"tensors" does')

        def differing(manifest):
            first = manifest["kernels"][0]
            manifest["kernels"] = [first | {"defaults": {"longest": "length"}},
                                   first | {"defaults": {"longest": 7}}]
        self.fails(artifact("differing", differing),
                   "manifest: kernels[1].defaults.longest is 7, but length in a kernel before")

        # Parts that change places are another problem.
        def swapped(manifest):
            manifest["problem"]["tensors"] |= {"k": "right", "v": "left"}
        done = check(artifact("swapped", swapped), "--size", "batch=1",
                     "--size", "seq_q=20", "--size", "seq_k=40")
        self.assertNotEqual(done.returncode, 0, done.stdout)

    def test_python(self):
        """A size that no shape tells may be said, by its name, and need not be."""
        call = kvbuf.load(artifact("python", query="ragged", cache="ragged"))
        random = np.random.default_rng(7)
        lengths = [3, 70, 0, 21]
        starts = np.cumsum([0] + lengths).astype(np.int32)
        new = lambda heads: random.standard_normal((starts[-1], heads, 64)).astype(np.float16)
        rows, left, right = new(4), new(2), new(2)
        tensors = {"rows": rows, "left": left, "right": right, "starts": starts,
                   "left_offsets": starts, "right_offsets": starts}
        for sizes in {}, {"longest": 70}:
            result = call(**tensors, **sizes, device="emulator")
            for begin, end in zip(starts, starts[1:]):
                for head in range(4):
                    q, k, v = (x[begin:end, h].astype(float) for x, h in
                               ((rows, head), (left, head // 2), (right, head // 2)))
                    weights = np.exp(q @ k.T / 8) * np.tri(end - begin)
                    expected = weights / weights.sum(1, keepdims=True) @ v
                    np.testing.assert_allclose(result[begin:end, head], expected, atol=4e-3)
        bad = tensors | {"starts": np.array([0, 3, 2, 73, 94], np.int32)}
        with self.assertRaisesRegex(kvbuf.Error, "tensor 'starts' .*the rows of 'rows'"):
            call(**bad, device="emulator")


unittest.main(argv=sys.argv[:1])
