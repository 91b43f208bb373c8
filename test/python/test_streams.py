# RUN: env KVBUF_LIB_DIR=%lib LD_LIBRARY_PATH=%build/test/mock-cuda %python %s %t
"""Counters of a kernel's launches on several streams, with a driver that prints
what it gets and whose device memory is the host's."""

import ctypes
import gc
import json
import os
import pathlib
import re
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Runtime/Inputs"))
import kvbuf  # noqa: E402
from make_manifest import artifact, manifest  # noqa: E402

WORK = sys.argv.pop()


class OnDevice:
    """An array that says that it is in CUDA's memory."""

    def __init__(self, array):
        self.__cuda_array_interface__ = dict(array.__array_interface__)
        self.array = array


def kernel(parameters=b"mmmmiiic", **options):
    text = json.dumps(manifest(tensor_maps=True, **options)).encode()
    pathlib.Path(WORK + ".kvbuf").write_bytes(
        artifact(text, {"ptx": b"mock " + parameters + b"\0"}))
    return kvbuf.load(WORK + ".kvbuf")


class Driver:
    """The stand-in's streams and graphs."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")

    def capture(self, stream, work):
        """The graph of what `work` puts on the stream."""
        assert not self.lib.cuStreamBeginCapture_v2(ctypes.c_void_p(stream), 0)
        graph = ctypes.c_void_p()
        try:
            work()
        finally:
            assert not self.lib.cuStreamEndCapture(ctypes.c_void_p(stream),
                                                   ctypes.byref(graph))
        return graph

    def replay(self, *graphs):
        """All at once: a step of each in turn."""
        self.lib.mockReplay((ctypes.c_void_p * len(graphs))(
            *[g.value for g in graphs]), len(graphs))

    def destroy(self, graph):
        assert not self.lib.cuGraphDestroy(graph)


class Streams(unittest.TestCase):
    def setUp(self):
        self.driver = Driver()
        self.run_kernel = kernel()
        self.x, self.o = (OnDevice(np.zeros((1, 8, 2, 64), np.uint16))
                          for _ in "xo")
        # Loads the code, which no capture allows.
        self.log(self.calls(4))

    def call(self, stream):
        self.run_kernel(q=self.x, k=self.x, v=self.x, out=self.o, stream=stream)

    def log(self, work):
        """What the stand-in says meanwhile."""
        with open(WORK + ".log", "w") as log:
            kept = os.dup(2)
            os.dup2(log.fileno(), 2)
            try:
                work()
            finally:
                os.dup2(kept, 2)
                os.close(kept)
        return pathlib.Path(WORK + ".log").read_text()

    def counters(self, work):
        """The counters' addresses, all of which have to be 0."""
        found = re.findall(r"counter (\d+) at (\w+)", self.log(work))
        self.assertEqual({value for value, _ in found}, {"0"})
        return [address for _, address in found]

    def calls(self, *streams):
        return lambda: [self.call(stream) for stream in streams]

    def test_streams(self):
        # More than the counters that are allocated at first; each is left
        # dirty by the stand-in's kernels.
        streams = [8 * (i + 1) for i in range(100)]
        addresses = self.counters(self.calls(*streams, *streams))
        self.assertEqual(len(set(addresses)), 200)

    def test_one_clearing_serves_many(self):
        text = self.log(self.calls(*[16] * 129))
        self.assertEqual(len(re.findall(r"counter 0 at", text)), 129)
        self.assertEqual(text.count("set 1024 words"), 3)

    def test_many_streams_take_no_more_memory(self):
        addresses = self.counters(self.calls(*range(16, 16 + 3000)))
        self.assertEqual(len(set(addresses)), 1024)

    def test_graphs_of_one_stream(self):
        graphs = [self.driver.capture(8, self.calls(8, 8, 8)) for _ in "ab"]
        eager = self.counters(self.calls(8, 16))
        for _ in range(3):
            replayed = self.counters(lambda: self.driver.replay(*graphs))
            self.assertEqual(len(set(replayed)), 6)
            self.assertFalse(set(replayed) & set(eager))
            eager += self.counters(self.calls(8, 16))

    def test_streams_of_one_capture(self):
        # Fork and join: the clearing of one stream does not come before what
        # is on the other.
        def work():
            self.driver.lib.cuStreamBeginCapture_v2(ctypes.c_void_p(16), 0)
            self.calls(8, 16, 8, 16)()
        graphs = [self.driver.capture(8, work)]
        graphs.append(ctypes.c_void_p())
        self.driver.lib.cuStreamEndCapture(ctypes.c_void_p(16),
                                           ctypes.byref(graphs[1]))
        for order in graphs, graphs[::-1]:
            addresses = self.counters(lambda: self.driver.replay(*order))
            self.assertEqual(len(set(addresses)), 4)

    def test_first_seen_in_a_capture(self):
        # The stand-in refuses what may wait for the device there.
        streams = [8 * (i + 1) for i in range(40)]
        self.counters(self.calls(*streams))
        graphs = [self.driver.capture(1000 + s, self.calls(1000 + s))
                  for s in streams]
        addresses = self.counters(lambda: self.driver.replay(*graphs))
        self.assertEqual(len(set(addresses)), 40)

    def test_long_graph(self):
        graph = self.driver.capture(8, self.calls(*[8] * 130))
        for _ in range(2):
            text = self.log(lambda: self.driver.replay(graph))
            self.assertEqual(len(re.findall(r"counter 0 at", text)), 130)
            self.assertEqual(text.count("set 1024 words"), 3)

    def test_destroyed_graph_gives_back(self):
        seen = set()
        for _ in range(100):
            graph = self.driver.capture(8, self.calls(8))
            seen |= set(self.counters(lambda: self.driver.replay(graph)))
            self.driver.destroy(graph)
        self.assertEqual(len(seen), 1)

    def test_graph_outlives_the_artifact(self):
        graph = self.driver.capture(8, self.calls(8))
        self.run_kernel = None
        gc.collect()
        self.counters(lambda: self.driver.replay(graph))
        self.driver.destroy(graph)


class Ragged(unittest.TestCase):
    log = Streams.log

    def test_longest_query_is_not_known(self):
        # Offsets in device memory: a sequence may have all rows.
        run = kernel(b"mwmwmwmiiic", query="ragged", cache="ragged")
        x, o = (OnDevice(np.zeros((300, 2, 64), np.uint16)) for _ in "xo")
        offsets = OnDevice(np.array([0, 100, 300], np.int32))
        for sizes, tiles in ({}, 3), ({"seq_q": 200}, 2):
            text = self.log(lambda: run(
                q=x, k=x, v=x, out=o, q_offsets=offsets, k_offsets=offsets,
                v_offsets=offsets, stream=8, **sizes))
            self.assertIn(f"launch mock grid={tiles * 2 * 2},1,1", text)


if __name__ == "__main__":
    unittest.main()
