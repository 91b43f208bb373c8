#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill of e4m3 Q, K and V, beside cuDNN's FP8 attention in one process.

    benchmark/fp8_compare.py DIR --build [--target=sm_90a]   # needs kvbuf-compile
    benchmark/fp8_compare.py DIR [--mode=cycles|sustained]   # needs a GPU and PyTorch

cuDNN is called through its frontend (nvidia-cudnn-frontend on PyPI) with scales of 1
and O in e4m3, as its kernels for Hopper have it; kvbuf's O is bf16, its sums are of two
levels. Without the frontend kvbuf runs alone. Contestants take turns as CUDA graphs,
a second of warming up before: without a pause, or each holding the card at the power
limit. Results are compared with fp32 attention on some heads; P rounded to e4m3 costs
2 to 3 %. Causal cases count half of the operations.

Exit status: 0 done; 1 a result is wrong, or a kernel is missing; 2 bad usage.
"""

import dataclasses
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import common  # noqa: E402
import problem  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Case:
    heads: int
    size: int
    batch: int
    seq: int
    causal: bool

    @property
    def kernel(self):
        return f"d{self.size}-h{self.heads}-{'causal' if self.causal else 'full'}"

    @property
    def name(self):
        return f"{self.kernel}-{self.seq}x{self.batch}"

    def flop(self):
        return (4 * self.batch * self.heads * self.seq ** 2 * self.size
                / (2 if self.causal else 1))

    def options(self):
        options = {"heads": self.heads, "head_size": self.size,
                   "dtype": "f8E4M3FN", "o_dtype": "bf16"}
        return options | ({"causal": True} if self.causal else {})


CASES = tuple(Case(heads, size, batch, seq, causal)
              for heads, size, causal in ((16, 128, False), (16, 128, True),
                                          (8, 256, False), (32, 64, False))
              for batch, seq in ((1, 16384), (4, 4096)))


#: What a result may be off by: P rounded to e4m3 costs 2 to 3 %.
LIMIT = 0.04


def kernels():
    """{file name without .kvbuf: (module, schedule)}."""
    return {c.kernel: (problem.problem(**c.options()), "") for c in CASES}


def cudnn(torch, case, q, k, v):
    """cuDNN's attention as a function, or None without its frontend."""
    try:
        import cudnn as front
    except ImportError:
        return None
    kind, single = front.data_type, [1, 1, 1, 1]
    handle = front.create_handle()
    graph = front.pygraph(io_data_type=kind.FP8_E4M3,
                          intermediate_data_type=kind.FLOAT,
                          compute_data_type=kind.FLOAT, handle=handle)
    shape = [case.batch, case.heads, case.seq, case.size]
    stride = [case.seq * case.heads * case.size, case.size,
              case.heads * case.size, 1]
    ins = [graph.tensor(name=n, dim=shape, stride=stride,
                        data_type=kind.FP8_E4M3) for n in "qkv"]
    scales = {n: graph.tensor(name=n, dim=single, stride=single,
                              data_type=kind.FLOAT)
              for n in ("descale_q", "descale_k", "descale_v", "descale_s",
                        "scale_s", "scale_o")}
    o, _, amax_s, amax_o = graph.sdpa_fp8(
        q=ins[0], k=ins[1], v=ins[2], **scales, generate_stats=False,
        attn_scale=1 / math.sqrt(case.size), use_causal_mask=case.causal,
        name="attention")
    o.set_output(True).set_dim(shape).set_stride(stride).set_data_type(
        kind.FP8_E4M3)
    for amax in (amax_s, amax_o):
        amax.set_output(True).set_dim(single).set_stride(single).set_data_type(
            kind.FLOAT)
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([front.heur_mode.A])
    graph.check_support()
    graph.build_plans()
    one = torch.ones(1, device="cuda")
    out = torch.empty_like(q)
    pack = {**dict(zip(ins, (q, k, v))), **{s: one for s in scales.values()},
            o: out, amax_s: torch.empty(1, device="cuda"),
            amax_o: torch.empty(1, device="cuda")}
    room = torch.empty(graph.get_workspace_size(), device="cuda",
                       dtype=torch.uint8)

    def run():
        front.set_stream(handle=handle,
                         stream=torch.cuda.current_stream().cuda_stream)
        graph.execute(pack, room, handle=handle)
        return out
    return run


def error(torch, case, q, k, v, out):
    """Relative error of some heads' results, of the last sequence."""
    worst = 0.0
    for h in (0, case.heads - 1):
        x, y, z = (t[-1, :, h].float() for t in (q, k, v))
        rows = slice(-2048, None)
        scores = x[rows] @ y.T / math.sqrt(case.size)
        if case.causal:
            at = torch.arange(case.seq, device="cuda")
            scores.masked_fill_(at[None] > at[rows, None], float("-inf"))
        exact = scores.softmax(-1) @ z
        got = out[-1, rows, h].float()
        worst = max(worst, ((got - exact).norm() / exact.norm()).item())
    return worst


def contestants(torch, case, kernel):
    """({name: a function that launches and returns O}, {name: what it is off by})."""
    q, k, v = (torch.randn(case.batch, case.seq, case.heads, case.size,
                           device="cuda").to(torch.float8_e4m3fn) for _ in "qkv")
    out = torch.full(q.shape, float("nan"), device="cuda", dtype=torch.bfloat16)

    def ours():
        kernel(q=q, k=k, v=v, out=out)
        return out
    theirs = cudnn(torch, case, q, k, v)
    runs = {"kvbuf": ours} | ({"cuDNN": theirs} if theirs else {})
    return runs, {name: error(torch, case, q, k, v, run())
                  for name, run in runs.items()}


def main(arguments=None):
    parser = common.kernels_parser(__doc__, rounds=10, launches=1)
    parser.add_argument("--mode", default="cycles",
                        choices=("cycles", "sustained"))
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args(arguments)
    if options.build:
        return 1 if common.build(options.folder, kernels(), options.target,
                                 options.kvbuf_compile) else 0
    common.need_gpu("fp8_compare.py")
    import gpu
    import kvbuf
    torch, records, bad = gpu.torch, [], False
    print(", ".join(f"{k} {v}" for k, v in gpu.machine().items()))
    for case in CASES:
        path = options.folder / f"{case.kernel}.kvbuf"
        if not path.exists():
            print(f"{case.name}: no {path}")
            bad = True
            continue
        runs, off = contestants(torch, case, kvbuf.load(str(path)))
        for name, far in off.items():
            print(f"{case.name} {name}: off by {far:.3g}")
            bad |= name == "kvbuf" and not far < LIMIT
        seconds = {n: ms / 1e3 for n, ms in
                   gpu.medians(runs, options.mode, options.rounds).items()}
        for name, s in seconds.items():
            print(f"{case.name:24} {name:6} {s * 1e6:9.1f} us "
                  f"{case.flop() / s / 1e12:7.1f} TFLOP/s"
                  + (f"  {seconds['cuDNN'] / s:.3f} of cuDNN"
                     if name == "kvbuf" and "cuDNN" in seconds else ""),
                  flush=True)
            records.append({"case": case.name, "mode": options.mode,
                            "name": name, "us": s * 1e6,
                            "tflops": case.flop() / s / 1e12})
        torch.cuda.empty_cache()
    if options.json:
        options.json.write_text(json.dumps(records, indent=1))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
