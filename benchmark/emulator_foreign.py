"""The emulator's speed on a kernel in CUDA: a product of matrices in tiles of 16.

    benchmark/emulator_foreign.py [BUILD] [--runs=5] [--size=256]

Lane instructions a second of a core: of the processor's time, so that other work on the
machine counts little. clang has to be installed.
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import tempfile

SOURCE = """
#include <cuda_runtime.h>
__global__ void product(float *c, const float *a, const float *b, int n) {
  __shared__ float left[16][16], right[16][16];
  int x = threadIdx.x, y = threadIdx.y;
  int column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    left[y][x] = a[row * n + k + x];
    right[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i)
      sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
"""
OFF = {"races": False, "uninitialized": False, "landing_checks": False}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build", type=pathlib.Path)
    parser.add_argument("--runs", default=5, type=int)
    parser.add_argument("--size", default=256, type=int)
    options = parser.parse_args()
    n, tool = options.size, options.build / "bin/kvbuf-emulate"
    with tempfile.TemporaryDirectory() as folder:
        source, code = pathlib.Path(folder) / "product.cu", pathlib.Path(folder) / "product.bc"
        source.write_text(SOURCE, encoding="utf-8")
        subprocess.run([tool, source, "--list", f"--keep={code}"], check=True,
                       stdout=subprocess.DEVNULL)

        def run(settings, size):
            """Lane instructions, and seconds of the processor."""
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            report = subprocess.run(
                [tool, code, f"--grid={size // 16},{size // 16}", "--block=16,16",
                 f"f32[{size},{size}]", f"f32[{size},{size}]=random",
                 f"f32[{size},{size}]=random:2", f"i32:{size}", "--report",
                 f"--options={json.dumps({'jobs': 1, **settings})}"],
                check=True, stdout=subprocess.PIPE).stdout
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            kernel = json.loads(report)["kernels"][0]
            return (kernel["lane_instructions"], after.ru_utime - before.ru_utime
                    + after.ru_stime - before.ru_stime)

        for title, settings in (("all detectors", {}), ("no detectors but bounds", OFF)):
            # What a launch of one block takes is the start of the program.
            start = min(run(settings, 16)[1] for _ in range(options.runs))
            rates = []
            for _ in range(options.runs):
                count, seconds = run(settings, n)
                rates.append(count / (seconds - start) / 1e6)
            print(f"{title:26}{statistics.median(rates):7.0f} million lane instructions a second "
                  f"of a core ({min(rates):.0f} to {max(rates):.0f}; {options.runs} runs)")


if __name__ == "__main__":
    main()
