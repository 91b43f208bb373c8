# RUN: env KVBUF_LIB_DIR=%build/test/mock KVBUF_CACHE_DIR=none %python %s
"""Artifacts of several functions: chosen by name, called like those of one, and
what the runtime refuses in their manifests."""

import copy
import json
import pathlib
import random
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Runtime/Inputs"))
import kvbuf  # noqa: E402
import numpy as np  # noqa: E402
from make_manifest import manifest, several  # noqa: E402


TWO = several({"narrow": {"head_size": 64}, "wide": {"head_size": 128, "heads": 4}})


def opened(content):
    return kvbuf.compile(json.dumps(content) + "\n", target="sm_80")


def refusal(content):
    """The message for this manifest."""
    try:
        opened(content)
    except kvbuf.Error as error:
        return str(error)
    return "accepted"


def changed(path, value, content=TWO):
    content = copy.deepcopy(content)
    *outer, last = path
    at = content
    for step in outer:
        at = at[step]
    at[last] = value
    return content


def attention(q, k, v):
    q, k, v = (kvbuf.from_bf16(x).astype(float) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[2] // x.shape[2], 2) for x in (k, v))
    scores = np.einsum("bihd,bjhd->bhij", q, k) * 0.125
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bhij,bjhd->bihd", weights, v)


class Calls(unittest.TestCase):
    def run_on(self, function, heads, size):
        rng = np.random.default_rng(size)
        q, k, v = (kvbuf.to_bf16(rng.standard_normal((1, n, h, size)))
                   for n, h in ((5, heads), (9, 2), (9, 2)))
        result = function(q=q, k=k, v=v, device="emulator")
        np.testing.assert_allclose(kvbuf.from_bf16(result), attention(q, k, v),
                                   atol=0.02)

    def test_by_name(self):
        artifact = opened(TWO)
        self.assertEqual(artifact.names, ("narrow", "wide"))
        self.assertEqual(artifact.name, "model")
        self.assertEqual(list(artifact), ["narrow", "wide"])
        self.assertIn("wide", artifact)
        self.assertNotIn("other", artifact)
        self.assertEqual(repr(artifact),
                         "<kvbuf.Artifact model for sm_80: narrow, wide>")
        self.assertEqual(repr(artifact["wide"]),
                         "<kvbuf.Artifact wide for sm_80: q, k, v, o, out>")
        self.run_on(artifact["narrow"], 2, 64)
        self.run_on(artifact["wide"], 4, 128)
        self.assertIs(artifact["wide"], artifact["wide"])
        # What another function ran is not its report.
        self.assertTrue(artifact["narrow"].report())
        self.assertFalse(opened(TWO)["narrow"].report())

    def test_missing(self):
        artifact = opened(TWO)
        with self.assertRaisesRegex(
                kvbuf.Error, "^there is no function 'other'; the artifact has "
                             "'narrow' and 'wide'$"):
            artifact["other"]
        with self.assertRaisesRegex(TypeError, "^functions have names; 0 is none$"):
            artifact[0]
        called = ("^the artifact has 2 functions; call one of them: "
                  r'artifact\["narrow"\], artifact\["wide"\]$')
        for call in artifact, lambda **a: artifact.plan(a, {}):
            with self.assertRaisesRegex(kvbuf.Error, called):
                call(q=np.zeros((1, 2, 2, 64), np.uint16))

    def test_one(self):
        """An artifact of one function has its name, and no other."""
        artifact = opened(manifest())
        self.assertEqual(artifact.names, ("mock",))
        self.assertIs(artifact["mock"], artifact)
        self.run_on(artifact["mock"], 2, 64)
        with self.assertRaisesRegex(kvbuf.Error, "^there is no function 'x'; the "
                                                 "artifact has 'mock'$"):
            artifact["x"]

    def test_save(self):
        """Whole, and one function as an artifact of its own."""
        with tempfile.TemporaryDirectory() as folder:
            artifact = opened(TWO)
            artifact.save(folder + "/two.kvbuf")
            again = kvbuf.load(folder + "/two.kvbuf")
            self.assertEqual(again.manifest, artifact.manifest)
            again["wide"].save(folder + "/one.kvbuf")
            alone = kvbuf.load(folder + "/one.kvbuf")
            self.assertEqual(alone.names, ("wide",))
            self.assertEqual(alone.manifest, TWO["functions"][1]["manifest"])
            self.run_on(alone, 4, 128)
            self.run_on(again["narrow"], 2, 64)


class Manifests(unittest.TestCase):
    def expect(self, message, path, value, content=TWO):
        self.assertEqual(refusal(changed(path, value, content)), message)

    def test_accepted(self):
        self.assertEqual(refusal(TWO), "accepted")
        # Code may be of none, and of more sections than one.
        self.expect("accepted", ["functions", 0, "sections"], [])
        content = changed(["functions", 0, "sections"], [])
        self.expect("accepted", ["functions", 1, "sections"], [1, 0], content)

    def test_functions(self):
        self.expect("manifest: manifest.functions is not an array", ["functions"], {})
        for number, entries in enumerate([[], TWO["functions"][:1]]):
            self.expect(f"manifest: manifest.functions has {number} entries; expected 2 to "
                        "1024", ["functions"], entries)
        self.expect("manifest: manifest.functions has 1025 entries; expected 2 to 1024",
                    ["functions"], TWO["functions"][:1] * 1025)
        self.expect("manifest: manifest.functions[1] is not an object", ["functions", 1], 7)
        content = copy.deepcopy(TWO)
        del content["functions"]
        self.assertEqual(refusal(content), 'manifest: manifest lacks "functions"')

    def test_sections(self):
        at = ["functions", 1, "sections"]
        who = "manifest: manifest.functions[1].sections "
        for number in 2, -1, 2**32, 2**64 - 1, 1.0, "1", None:
            self.expect(f"{who}holds {json.dumps(number)}; the artifact has 2 sections, "
                        "from 0 on", at, [number])
        for numbers, second in ([0], 0), ([1, 1], 1):
            self.expect(f"{who}holds {second}, a section that was named before", at, numbers)
        self.expect(who + "is not an array", at, 1)

    def test_names(self):
        at = ["functions", 1, "manifest", "name"]
        self.expect("manifest: manifest.functions[1] has the name 'narrow' of a function "
                    "before it", at, "narrow")
        for length in 0, 1025:
            self.expect(f"manifest: manifest.functions[1].manifest.name has {length} bytes; "
                        "expected 1 to 1024", at, "x" * length)
        self.expect("accepted", at, "x" * 1024)
        self.expect("manifest: manifest.functions[1].manifest.name holds a zero", at, "a\0b")

    def test_manifest(self):
        who = "manifest.functions[1]: manifest"
        self.expect(who + " version 3 is of several functions; expected one",
                    ["functions", 1, "manifest"], TWO)
        self.expect(who + ": problem.head_size is 60; expected a multiple of 8",
                    ["functions", 1, "manifest", "problem", "head_size"], 60)
        self.expect(who + ": manifest is not an object", ["functions", 1, "manifest"], [])
        self.expect('manifest: manifest.functions[1] lacks "manifest"',
                    ["functions", 1], {"sections": [1]})

    def test_nesting(self):
        """As deep as alone, and no deeper."""
        def shape(levels):
            value = 1
            for _ in range(levels):
                value = {"sum": [value]}
            return value
        path = ["functions", 1, "manifest", "kernels", 0, "grid", 2]
        alone = (path[3:], manifest())

        def deepest(path, content):
            return max(levels for levels in range(20)
                       if refusal(changed(path, shape(levels), content)) == "accepted")
        levels = deepest(*alone)
        self.assertEqual(levels, deepest(path, TWO))
        message = "manifest: objects and arrays nest deeper than 32"
        self.expect(message, alone[0], shape(levels + 1), alone[1])
        self.expect(message, path, shape(levels + 1))

    def test_random(self):
        """Whatever a manifest holds, it is refused with a message or its functions
        are found."""
        random.seed(1)
        values = [None, True, -1, 0, 1, 3, 2**31, 2**64 - 1, 0.5, "", "narrow", "q", [], {},
                  [0], [[]], {"": 0}]
        accepted = 0
        for _ in range(3000):
            content = copy.deepcopy(TWO)
            for _ in range(random.choice([1, 1, 1, 2, 4])):
                at, key = None, None
                node = content
                while isinstance(node, (dict, list)) and node and random.random() < 0.9:
                    at = node
                    key = random.choice(list(node) if isinstance(node, dict)
                                        else range(len(node)))
                    node = at[key]
                if at is None:
                    continue
                if random.random() < 0.3:
                    del at[key]
                else:
                    at[key] = copy.deepcopy(random.choice([*values, node, at, content]))
            try:
                artifact = opened(content)
            except kvbuf.Error as error:
                self.assertTrue(str(error))
                continue
            accepted += 1
            for name in artifact.names:
                self.assertEqual(artifact[name].names, (name,))
        self.assertTrue(30 < accepted < 2970, accepted)


if __name__ == "__main__":
    unittest.main()
