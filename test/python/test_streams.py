# RUN: env KVBUF_LIB_DIR=%lib LD_LIBRARY_PATH=%build/test/mock-cuda %python %s %t
"""Counters of a kernel's launches on several streams, with a driver that prints
what it gets and whose device memory is the host's."""

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


def kernel():
    text = json.dumps(manifest(tensor_maps=True)).encode()
    pathlib.Path(WORK + ".kvbuf").write_bytes(
        artifact(text, {"ptx": b"mock mmmmiiic\0"}))
    return kvbuf.load(WORK + ".kvbuf")


class Streams(unittest.TestCase):
    def launches(self, streams):
        """(value, address) of the counter at each launch."""
        run = kernel()
        x = OnDevice(np.zeros((1, 8, 2, 64), np.uint16))
        with open(WORK + ".log", "w") as log:
            kept = os.dup(2)
            os.dup2(log.fileno(), 2)
            try:
                for stream in streams:
                    run(q=x, k=x, v=x, out=x, stream=stream)
            finally:
                os.dup2(kept, 2)
        return re.findall(r"counter (\d+) at (\w+)",
                          pathlib.Path(WORK + ".log").read_text())

    def test_each_has_its_own(self):
        # More than the counters that are allocated at first.
        streams = [8 * (i + 1) for i in range(100)]
        values, addresses = zip(*self.launches(streams + streams))
        self.assertEqual(set(values), {"0"})
        self.assertEqual(len(set(addresses)), 100)
        self.assertEqual(addresses[:100], addresses[100:])


if __name__ == "__main__":
    unittest.main()
