# RUN: env KVBUF_LIB_DIR=%build/test/mock LD_LIBRARY_PATH=%build/test/mock-hip %python %s gfx942
# RUN: env KVBUF_LIB_DIR=%build/test/mock LD_LIBRARY_PATH=%build/test/mock-hip KVBUF_MOCK_CAPABILITY=95 %python %s gfx950
# RUN: env KVBUF_LIB_DIR=%build/test/mock LD_LIBRARY_PATH=%build/test/mock-hip KVBUF_MOCK_CAPABILITY=110 %python %s sm_80
"""The Python package on a machine with AMD's driver alone, which a stand-in
plays."""

import json
import os
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Runtime/Inputs"))
import kvbuf  # noqa: E402
from make_manifest import artifact, manifest  # noqa: E402

CHIP = sys.argv.pop()


class OnDevice:
    """An array that says that it is in a GPU's memory: ROCm's libraries name
    the protocol as CUDA's do."""

    def __init__(self, array):
        self.__cuda_array_interface__ = dict(array.__array_interface__)
        self.array = array


class Hip(unittest.TestCase):
    def test_compiles_for_the_gpu(self):
        run = kvbuf.compile(json.dumps(manifest()) + "\n")
        self.assertEqual(run.manifest["target"]["chip"], CHIP)

    def test_chip_of_the_gpu(self):
        """No kernel for another chip where no target fits."""
        if CHIP != "sm_80":
            self.assertEqual(kvbuf._kernels.chip_on("hip"), CHIP)
            return
        with self.assertRaisesRegex(
                kvbuf.Error, r"^no target fits Mock Instinct \(version 11\.0\); "
                "expected one of the chips that kvbuf makes code for$"):
            kvbuf._kernels.chip_on("hip")

    @unittest.skipIf(CHIP == "sm_80", "no code runs on this chip")
    def test_cuda_array_interface(self):
        content = manifest()
        content["target"] = {"vendor": "amd", "chip": CHIP, "wave": 64}
        data = artifact(json.dumps(content).encode(),
                        {"hsaco": b"mock wwwwwwwwwwwwwwwwiii\0"})
        run = kvbuf.Artifact(kvbuf._library.lib.kvbufArtifactOpenBytes(
            data, len(data)))
        x, o = (OnDevice(np.zeros((1, 8, 2, 64), np.uint16)) for _ in "xo")
        kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        try:
            run(q=x, k=x, v=x, out=o)
        finally:
            os.dup2(kept, 2)
        self.assertEqual(run._last.device.kind, "hip")


if __name__ == "__main__":
    unittest.main()
