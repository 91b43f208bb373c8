# RUN: env KVBUF_LIB_DIR=%build/test/mock %python %s
"""What the runtime refuses in a manifest, and how it says so."""

import copy
import ctypes
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Runtime/Inputs"))
import kvbuf  # noqa: E402
import numpy as np  # noqa: E402
from kvbuf import _library, _tensors  # noqa: E402
from kvbuf._compiled import _evaluate  # noqa: E402
from make_manifest import manifest  # noqa: E402


def refusal(content):
    """The message for this manifest."""
    try:
        kvbuf.compile(json.dumps(content) + "\n", target="sm_90a")
    except kvbuf.Error as error:
        return str(error)
    return "accepted"


class Version(unittest.TestCase):
    def test_known(self):
        for version in 1, 2:
            self.assertEqual(
                refusal({**manifest(tensor_maps=True), "kvbuf": version}),
                "accepted")

    def test_later(self):
        self.assertEqual(
            refusal({**manifest(tensor_maps=True), "kvbuf": 4}),
            "manifest version 4, but this runtime reads versions 1 to 3; "
            "compile the kernel again")


class TensorMaps(unittest.TestCase):
    GOOD = manifest(tensor_maps=True)
    #: Of the first argument, a map of q.
    WHO = "manifest: kernels[0].args[0]"

    def expect(self, message, **changes):
        content = copy.deepcopy(self.GOOD)
        content["kernels"][0]["args"][0] |= changes
        self.assertEqual(refusal(content), message)

    def test_accepted(self):
        self.expect("accepted")
        self.expect("accepted", box=[16, 256, 1, 1], swizzle=32,
                    l2_promotion=256, interleave="none", oob_fill="zero")
        self.expect("accepted", box=[256, 1, 1, 1], swizzle=0, l2_promotion=0)

    def test_dims(self):
        who = f"{self.WHO}: the map of 'q' of rank 4 "
        self.expect(f"{self.WHO}.dims holds 4; expected integers from 0 to 3",
                    dims=[4, 1, 2, 0])
        for dims in [3, 1, 2, 1], [3, 1, 2]:
            self.expect(f"{who}has \"dims\" {json.dumps(dims).replace(' ', '')};"
                        " expected each of the tensor's dimensions once",
                        dims=dims)
        self.expect(f"{who}begins with dimension 1; expected the innermost one,"
                    " 3", dims=[1, 3, 2, 0])

    def test_box(self):
        who = f"{self.WHO}: the map of 'q' of rank 4 has a "
        for extent in 0, 257, -1, 1.5:
            self.expect(f"{self.WHO}.box holds {extent}; expected integers "
                        "from 1 to 256", box=[64, extent, 1, 1])
        self.expect(f"{who}\"box\" of 3 extents; expected one for each "
                    "dimension", box=[64, 128, 1])
        self.expect(f"{who}box of 24 contiguous bytes; expected a multiple of "
                    "16", box=[12, 128, 1, 1])
        self.expect(f"{who}box of 256 contiguous bytes; a swizzle of 128 bytes "
                    "takes at most as many", box=[128, 128, 1, 1])

    def test_choices(self):
        self.expect(f"{self.WHO}.swizzle is 16; expected 0, 32, 64 or 128",
                    swizzle=16)
        self.expect(f"{self.WHO}.l2_promotion is 32; expected 0, 64, 128 or "
                    "256", l2_promotion=32)
        newer = "(the artifact may come from a newer compiler)"
        self.expect(f"{self.WHO}.interleave is '16B'; this runtime knows none "
                    + newer, interleave="16B")
        self.expect(f"{self.WHO}.oob_fill is 'nan'; this runtime knows zero "
                    + newer, oob_fill="nan")
        self.expect(f"{self.WHO} has kind 'texture'; this runtime knows "
                    f"pointer, stride, size, tensor_map and launch_counter {newer}",
                    kind="texture")
        self.expect(f"{self.WHO} names tensor 'x', which \"tensors\" lacks",
                    tensor="x")

    def test_rank(self):
        content = manifest(tensor_maps=True)
        content["problem"]["op"] = "something"
        content["tensors"][0]["shape"] = ["batch", 2, 2, 2, 2, 8]
        content["kernels"][0]["args"][0] |= {"dims": [5, 4, 3, 2, 1, 0],
                                             "box": [8, 1, 1, 1, 1, 1]}
        self.assertEqual(refusal(content), f"{self.WHO}: the map of 'q' of "
                         "rank 6; expected a rank of at most 5")


class Alternatives(unittest.TestCase):
    def expect(self, message, change):
        content = manifest(tensor_maps=True, instead="portable")
        change(content["kernels"])
        self.assertEqual(refusal(content), message)

    def test_accepted(self):
        self.expect("accepted", lambda kernels: None)

    def test_absent(self):
        self.expect("manifest: kernel 'mock' names 'other' as what runs "
                    "instead, which \"kernels\" lacks",
                    lambda kernels: kernels[0].update(instead="other"))

    def test_circle(self):
        self.expect("manifest: following \"instead\" from kernel 'mock' comes "
                    "back to where it was",
                    lambda kernels: kernels[0].update(instead="mock"))

    def test_needless(self):
        self.expect("manifest: kernels[1] has \"requires\", but no argument of "
                    "kind tensor_map",
                    lambda kernels: kernels[1].update(requires="tensor_maps"))
        self.expect("manifest: kernels[1] has \"instead\", but no argument of "
                    "kind tensor_map, no \"launch_if\" and an alignment of 2, so "
                    "that nothing can keep it from running",
                    lambda kernels: kernels[1].update(instead="mock",
                                                      alignment=2))

    def test_condition(self):
        self.expect("accepted",
                    lambda kernels: kernels[0].update(launch_if="seq_q"))
        self.expect("manifest: kernels[1] has \"launch_if\", but no \"instead\" "
                    "for launches that do not fulfil it",
                    lambda kernels: kernels[1].update(launch_if="seq_q"))
        self.expect("manifest: kernels[0].launch_if holds {\"most\":[\"seq_q\"]}; "
                    "expected an integer, a size name, or one of product, sum, "
                    "ceildiv, floordiv, min, max with operands",
                    lambda kernels: kernels[0].update(
                        launch_if={"most": ["seq_q"]}))

    def test_beside(self):
        def twice(kernels):
            kernels.append({**kernels[1], "entry": "other", "beside": ["mock"]})
            kernels[0].update(beside=["other"])
        who = "manifest: kernel 'mock' names '{}' as what runs beside it; " \
              "expected another of \"kernels\", with nothing beside that"
        self.expect("accepted",
                    lambda kernels: kernels[0].update(beside=["portable"]))
        self.expect(who.format("absent"),
                    lambda kernels: kernels[0].update(beside=["absent"]))
        self.expect(who.format("mock"),
                    lambda kernels: kernels[0].update(beside=["mock"]))
        self.expect(who.format("other"), twice)
        self.expect("manifest: kernels[0].beside holds 1; expected names of "
                    "kernels", lambda kernels: kernels[0].update(beside=[1]))

    def test_ahead(self):
        def twice(kernels):
            kernels.append({**kernels[1], "entry": "other", "ahead": ["portable"]})
            kernels[0].update(ahead=["other"])
        who = "manifest: kernel 'mock' names '{}' as what runs ahead of it; " \
              "expected another of \"kernels\", with nothing ahead of that, " \
              "beside it or in its place"
        self.expect("accepted",
                    lambda kernels: kernels[0].update(ahead=["portable"]))
        self.expect(who.format("absent"),
                    lambda kernels: kernels[0].update(ahead=["absent"]))
        self.expect(who.format("mock"),
                    lambda kernels: kernels[0].update(ahead=["mock"]))
        self.expect(who.format("other"), twice)
        self.expect("manifest: kernels[0].ahead holds 1; expected names of "
                    "kernels", lambda kernels: kernels[0].update(ahead=[1]))

    def test_copies(self):
        def copies(change=lambda copy: None):
            content = manifest(tensor_maps=True, instead="portable")
            content["scratch"] = [{"name": "q.copy", "access": "workspace",
                                   **{key: content["tensors"][0][key]
                                      for key in ("dtype", "shape")}}]
            pointer = {"kind": "pointer", "tensor": "q"}
            content["copies"] = [{
                **content["kernels"][1], "entry": "copies", "copies": "q",
                "args": [pointer, {**pointer, "tensor": "q.copy"}]}]
            content["kernels"][0]["copies_if"] = "seq_q"
            change(content["copies"])
            return refusal(content)
        self.assertEqual(copies(), "accepted")
        for name in "x", "q.copy":
            self.assertEqual(
                copies(lambda copy: copy[0].update(copies=name)),
                f"manifest: copies[0].copies is '{name}'; expected one of "
                "\"tensors\" that is read or written")
        self.assertEqual(
            copies(lambda copy: copy.append({**copy[0], "entry": "more"})),
            "manifest: copies[1].copies is 'q', as that of a kernel before")
        self.assertEqual(
            copies(lambda copy: copy[0]["args"].pop()),
            "manifest: copies[0] copies 'q', but has no argument of "
            "\"scratch\" of its type and shape")

    def test_chain(self):
        def longer(kernels):
            kernels[1].update(instead="last")
            kernels.append({**kernels[1], "entry": "last", "alignment": 2})
            del kernels[2]["instead"]
        self.expect("accepted", longer)

    def test_alignment(self):
        self.expect("manifest: kernels[0].alignment is 32; expected 2, 4, 8 or "
                    "16",
                    lambda kernels: kernels[0].update(alignment=32))

    def test_unknown_requirement(self):
        self.expect("manifest: kernels[0].requires is 'clusters'; this runtime "
                    "knows tensor_maps (the artifact may come from a newer "
                    "compiler)",
                    lambda kernels: kernels[0].update(requires="clusters"))


class Sizes(unittest.TestCase):
    #: Expressions, and what they are where n = 5 and m = 7.
    VALUES = [
        (3, 3), ("m", 7), ({"product": [2, "n", "m"]}, 70), ({"sum": ["n"]}, 5),
        ({"sum": ["n", -3, "m"]}, 9), ({"ceildiv": ["m", 2]}, 4),
        ({"ceildiv": [6, 2]}, 3), ({"floordiv": ["m", 2]}, 3),
        ({"min": ["m", "n", 6]}, 5), ({"max": [1, "m", "n"]}, 7),
        ({"max": [1, {"ceildiv": [{"product": ["n", "m"]},
                                  {"min": ["n", 4]}]}]}, 9)]

    def infer(self, *shape):
        """What the runtime says of `o` of this shape, where `x` has n by m
        elements."""
        tensors = [{"name": name, "dtype": "f32", "shape": extents,
                    "access": access}
                   for name, extents, access in (("x", ["n", "m"], "read"),
                                                 ("o", shape, "write"))]
        kernel = {"entry": "mock", "block": [1, 1, 1], "grid": [1, 1, 1],
                  "dynamic_shared_bytes": 0, "args": [
                      {"kind": "pointer", "tensor": name} for name in "xo"]}
        content = {**manifest(), "tensors": tensors, "kernels": [kernel]}
        del content["problem"]
        artifact = kvbuf.compile(json.dumps(content) + "\n", target="sm_90a")
        x = np.zeros((5, 7), np.float32)
        tensors, _keep = artifact._pack({"x": _tensors.view("x", x)})
        extents, rank = (ctypes.c_int64 * 16)(), ctypes.c_int32()
        _library.check(_library.lib.kvbufArtifactInferShape(
            artifact.handle, b"o", tensors, 1, (_library.Size * 1)(), 0, extents,
            ctypes.byref(rank)))
        return extents[:rank.value]

    def test_values(self):
        """The runtime's evaluator, and Python's for fake tensors."""
        shape = [expression for expression, _ in self.VALUES]
        expected = [value for _, value in self.VALUES]
        self.assertEqual(self.infer(*shape), expected)
        self.assertEqual([_evaluate(e, {"n": 5, "m": 7}) for e in shape],
                         expected)

    def test_faults(self):
        for expression, message in (
                ({"product": ["n", 2 ** 62]}, "overflows 64 bits"),
                ({"floordiv": ["n", {"sum": ["m", -7]}]}, "divides 5 by 0"),
                ({"ceildiv": [{"sum": ["n", -6]}, 2]}, "divides -1 by 2")):
            with self.assertRaisesRegex(kvbuf.Error, message):
                self.infer(expression)

    def test_min(self):
        content = manifest()
        content["kernels"][0]["grid"][0] = {"min": []}
        self.assertEqual(refusal(content), "manifest: kernels[0].grid holds "
                         "{\"min\":[]}; expected an integer, a size name, or one"
                         " of product, sum, ceildiv, floordiv, min, max with "
                         "operands")

    def test_scratch(self):
        content = manifest()
        counter = {"name": "arrived", "dtype": "i32", "access": "counter",
                   "shape": [{"max": [1, {"floordiv": ["batch", 2]}]}]}
        content["scratch"] = [counter]
        self.assertEqual(refusal(content), "accepted")
        content["scratch"] = [counter, counter]
        self.assertEqual(refusal(content), "manifest: \"scratch\" has two of "
                         "the name 'arrived'")
        content["scratch"] = [counter | {"access": "read"}]
        self.assertEqual(refusal(content), "manifest: scratch[0].access is "
                         "'read'; expected workspace or counter")
        content["scratch"] = [counter | {"dtype": "f32"}]
        self.assertEqual(refusal(content), "manifest: scratch[0].dtype is "
                         "'f32'; counters are i32")

    def test_multiprocessors_in_a_shape(self):
        content = manifest()
        content["tensors"][0]["shape"][0] = {"product": ["sms", 2]}
        self.assertEqual(refusal(content), "manifest: tensors[0].shape mentions"
                         " 'sms', which is the device's number of "
                         "multiprocessors and for grids and arguments alone")

    def test_dimensions(self):
        content = manifest()
        content["tensors"][0]["shape"] = [1] * 17
        self.assertEqual(refusal(content), "manifest: tensors[0].shape has 17 "
                         "dimensions; expected at most 16")

    def test_names(self):
        content = manifest()
        content["tensors"].append(content["tensors"][1])
        self.assertEqual(refusal(content),
                         "manifest: \"tensors\" has two of the name 'k'")


class Numbers(unittest.TestCase):
    """Numbers that do not fit what they are read into."""

    def expect(self, message, path, value):
        content = manifest()
        *outer, last = path
        at = content
        for step in outer:
            at = at[step]
        at[last] = value
        self.assertEqual(refusal(content), "manifest: " + message)

    def test_unsigned(self):
        most = 2**64 - 1
        self.expect(f"manifest.kvbuf is out of range: {most}", ["kvbuf"], most)
        self.expect(f"kernels[0].block holds {most}; expected integers from 1 "
                    "to 1024", ["kernels", 0, "block", 1], most)
        self.expect(f"tensors[0].shape holds {most}; expected an integer, a "
                    "size name, or one of product, sum, ceildiv, floordiv, "
                    "min, max with operands", ["tensors", 0, "shape", 0], most)

    def test_problem(self):
        for name in "heads", "kv_heads", "head_size", "v_head_size":
            self.expect(f"problem.{name} is out of range: {2**40}",
                        ["problem", name], 2**40)
        for name in "window_left", "window_right":
            self.expect(f"problem.{name} is out of range: {2**63 - 1}",
                        ["problem", name], 2**63 - 1)

    def test_nesting(self):
        value = 1
        for _ in range(40):
            value = {"sum": [value]}
        self.expect("objects and arrays nest deeper than 32",
                    ["tensors", 0, "shape", 0], value)


if __name__ == "__main__":
    unittest.main()
