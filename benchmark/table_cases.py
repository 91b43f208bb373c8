# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What verify_table.py runs: problems by the rows of docs/support.md's table."""

import pathlib

TESTS = pathlib.Path(__file__).resolve().parent.parent / "test/Kernels"

#: (row of the table, case, problem, arguments of kvbuf-run). A problem is a
#: dictionary of problem.py's options, beside which "compile" has arguments of
#: kvbuf-compile, and "exchange" the schedule of a kernel whose fragments change their
#: layout and back; a list of options of test/Kernels/Inputs/append.py; or the path of a
#: file of MLIR.
CASES = []

#: (name, problem, the same with more in its types, arguments of kvbuf-run for the
#: first, and for the second): of two kernels whose launches do the same, the first,
#: which leaves more open, may take `OPEN_TIME` times as long.
TIMED = []
OPEN_TIME = 1.04


def case(row, name, problem, *runs):
    """Adds a problem and the sizes to run it at."""
    CASES.append((row, name, problem, runs))


def alone(row, name, problem, *runs):
    """Likewise, where an artifact of one kernel does: fast to compile."""
    case(row, name, {"compile": ["--no-alternatives"], **problem}, *runs)


def fill_basics():
    """Masks, lengths, heads, caches and inputs."""
    square = "--size batch=2 --size seq=2048"
    odd = "--size batch=3 --size seq_q=1999 --size seq_k=3001"
    causal = {"causal": True, "lse": True, "head_size": 128}

    case("heads", "MHA 16", {"heads": 16, **causal}, square, odd)
    case("heads", "GQA 16/4", {"heads": 16, "kv_heads": 4, **causal}, odd)
    case("heads", "MQA 16/1", {"heads": 16, "kv_heads": 1, **causal}, odd)
    for heads, kv_heads in (3, 1), (10, 2), (28, 4):
        case("heads", f"GQA {heads}/{kv_heads}",
             {"heads": heads, "kv_heads": kv_heads, **causal}, odd)

    for size in 64, 80, 96, 128, 256:
        for dtype in "bf16", "f16":
            case("head size, type", f"{size} {dtype}",
                 {"heads": 4, "head_size": size, "dtype": dtype,
                  "causal": dtype == "bf16", "lse": dtype == "f16"},
                 odd + " --row-pad=8")
    for size in 40, 72, 192:
        case("head size, type", f"{size} bf16",
             {"heads": 4, "head_size": size, "causal": True}, odd)

    inputs = {"heads": 8, "head_size": 128, "lse": True}
    for dtype in "bf16", "f16":
        for mask in False, True:
            case("inputs", f"{dtype} {'causal' if mask else 'full'}",
                 {**inputs, "dtype": dtype, "causal": mask},
                 *(f"{square} --init={i}" for i in
                   ("normal", "outliers", "octaves", "ramp")))

    for mask in False, True:
        case("lengths", "causal" if mask else "full",
             {"heads": 4, "head_size": 128, "causal": mask, "lse": True},
             "--size batch=4 --size seq_q=1 --size seq_k=4999",
             "--size batch=2 --size seq_q=5000 --size seq_k=1",
             "--size batch=2 --size seq_q=4097 --size seq_k=1023",
             "--size batch=2 --size seq_q=1023 --size seq_k=4097",
             "--size batch=2 --size seq_q=1000 --size seq_k=0",
             "--size seq_q=0 --size seq_k=1000", "--size batch=0 --size seq=1000")

    masks = {"none": {}, "causal": {"causal": True},
             "left": {"window_left": 700}, "right": {"window_right": 300},
             "both": {"window_left": 64, "window_right": 64},
             "causal, left": {"causal": True, "window_left": 1000}}
    for name, mask in masks.items():
        for cap in 0.0, 20.0:
            case("masks", name + (", soft cap" if cap else ""),
                 {"heads": 8, "kv_heads": 2, "head_size": 128, "softcap": cap,
                  "lse": True, **mask}, odd)
    case("masks", "causal, fewer keys", {"heads": 4, "lse": True,
                                         "causal": True},
         "--size batch=2 --size seq_q=3001 --size seq_k=1999")
    sink = {"heads": 8, "kv_heads": 2, "sink": True, "lse": True,
            "head_size": 128}
    case("sink", "full", sink, odd,
         "--size batch=2 --size seq_q=1000 --size seq_k=0")
    case("sink", "causal", {**sink, "causal": True}, odd,
         "--size batch=2 --size seq_q=3000 --size seq_k=1000")
    case("scale", "negative", {**inputs, "scale": -0.1, "causal": True},
         square + " --init=ramp")
    case("scale", "zero", {**inputs, "scale": 0.0}, odd)

    group = {"heads": 8, "kv_heads": 2, "head_size": 128, "causal": True,
             "lse": True}
    lengths = "--lengths-q 1999,0,1,3000"
    cached = "--cache-lengths 0,1777,4096,50"
    case("caches", "ragged", {**group, "query": "ragged", "cache": "ragged"},
         lengths + " --lengths-k 3001,5,0,3000", "--size batch=4 --size seq=2500")
    for query, new in ("dense", "--size seq_q=513"), ("ragged", lengths):
        problem = {**group, "query": query}
        case("caches", f"continuous, {query} queries",
             {**problem, "cache": "continuous"}, f"{new} {cached}",
             f"{new} {cached} --share-pages --separate-tables")
        for page in 256, 128, 64, 32, 16, 1:
            case("caches", f"pages of {page}, {query} queries",
                 {**problem, "cache": "paged", "page_size": page},
                 f"{new} {cached}",
                 f"{new} {cached} --share-pages --separate-tables")
    case("caches", "pages of 64, decode",
         {**group, "cache": "paged", "page_size": 64},
         "--size seq_q=1 --cache-lengths 5000,0,63,64,4097,1,2000,3000")

    case("strides", "dense", {**group}, square + " --layout=heads-major",
         square + " --row-pad=64",
         "--size batch=2 --size seq=1000 --strides q=1024,2048,128,1 "
         "--strides o=4096000,2048,128,1")
    case("strides", "pages of 16",
         {**group, "cache": "paged", "page_size": 16},
         f"--size seq_q=513 {cached} --layout=heads-major --row-pad=8")
    # K and V of 5 GB each: 40000 pages of 64 x 8 x 128, in random order.
    case("64 bit", "pages of 64",
         {"heads": 8, "head_size": 128, "cache": "paged", "page_size": 64,
          "causal": True, "lse": True},
         "--size batch=4 --size seq_q=1000 --size cache=4000 "
         "--size num_blocks=40000")
    # K of 2 x 2.2e9 elements.
    case("64 bit", "dense, distant batches",
         {"heads": 4, "head_size": 128, "causal": True, "lse": True},
         "--size batch=2 --size seq=2000 --strides k=2200000000,512,128,1")


#: Cached tokens of sequences, and new ones: of many rows, of few.
CACHED = "--cache-lengths 0,1777,4096,50"
MANY = "--lengths-q 1999,0,1,1300"
FEW = "--lengths-q 1,0,3,8"
GROUP = {"heads": 8, "kv_heads": 2, "head_size": 128, "causal": True, "lse": True}
#: One new token each, of sequences of very different lengths.
DECODE = "--cache-lengths 0,15,63,64,9000,1,2000,3000"


def fill_shapes():
    """Sizes and types that one operand has and others do not, and large ones."""
    odd = "--size batch=2 --size seq_q=999 --size seq_k=1501"
    for size in 320, 512:
        alone("large heads", f"{size}", {"heads": 2, "head_size": size, "lse": True},
              odd, "--size batch=1 --size seq_q=300 --size seq_k=0")
        alone("large heads", f"{size} causal",
              {"heads": 4, "kv_heads": 1, "head_size": size, "causal": True,
               "dtype": "f16"}, odd)
        alone("large heads", f"{size} pages of 16",
              {"heads": 4, "kv_heads": 1, "head_size": size, "causal": True,
               "cache": "paged", "page_size": 16}, f"--size seq_q=200 {CACHED}")
        alone("large heads", f"{size} one row",
              {"heads": 4, "kv_heads": 1, "head_size": size, "cache": "paged",
               "page_size": 64, "seq_q": 1, "lse": True}, DECODE)

    for size, values in (192, 128), (128, 64), (64, 128), (80, 112):
        both = {"head_size": size, "v_head_size": values}
        name = f"{size}, {values}"
        alone("V's heads", f"{name} dense", {"heads": 4, "lse": True, **both},
              odd + " --row-pad=8 --init=octaves")
        alone("V's heads", f"{name} ragged",
              {"heads": 4, "query": "ragged", "cache": "ragged", "causal": True,
               "dtype": "f16", **both},
              "--lengths-q 1999,0,1,1000 --lengths-k 3001,5,0,1000")
        alone("V's heads", f"{name} continuous",
              {"heads": 4, "kv_heads": 2, "cache": "continuous", "causal": True,
               **both}, f"--size seq_q=513 {CACHED}")
        alone("V's heads", f"{name} pages of 16",
              {"heads": 4, "kv_heads": 2, "cache": "paged", "page_size": 16,
               "causal": True, **both},
              f"--size seq_q=513 {CACHED} --separate-tables")
        alone("V's heads", f"{name} few rows",
              {"heads": 8, "kv_heads": 2, "cache": "paged", "page_size": 16,
               "seq_q": 1, "lse": True, **both}, DECODE)
    alone("V's heads", "K and V in one tensor",
          {"heads": 4, "kv_heads": 2, "cache": "paged", "page_size": 16,
           "head_size": 192, "v_head_size": 128, "k_cache_depth": 320,
           "v_cache_depth": 320, "v_head_dim_offset": 192},
          f"--size seq_q=513 {CACHED}")

    for dtype, out in ("bf16", "f32"), ("bf16", "f16"), ("f16", "f32"), ("f16", "bf16"):
        types = {"dtype": dtype, "o_dtype": out}
        alone("O's type", f"{dtype}, O {out}", {**GROUP, **types},
              odd + " --row-pad=8", odd + " --init=ramp")
        alone("O's type", f"{dtype}, O {out}, ragged",
              {**GROUP, "query": "ragged", "cache": "ragged", "head_size": 80, **types},
              "--lengths-q 1999,0,1,1000 --lengths-k 3001,5,0,1000")
        alone("O's type", f"{dtype}, O {out}, few rows",
              {**GROUP, "cache": "paged", "page_size": 16, "seq_q": 1, **types}, DECODE)
        alone("O's type", f"{dtype}, O {out}, e4m3",
              {**GROUP, "kv_dtype": "f8E4M3FN", "granularity": "head", **types}, odd)
    # Chips without a kernel for tensors at any element refuse those.
    for name, more, sizes in (("", {}, odd), (", few rows", {
            "cache": "paged", "page_size": 16, "seq_q": 1}, DECODE)):
        case("O's type", "f32 at any element" + name, {**GROUP, "o_dtype": "f32", **more},
             *(f"{sizes} --offset o={by}" for by in (1, 2)))


def fill_caches():
    """What callers' caches look like."""
    for page in 3, 96, 528:
        paged = {**GROUP, "cache": "paged", "page_size": page}
        alone("pages", f"of {page}", paged, f"--size seq_q=513 {CACHED}",
              f"--size seq_q=513 {CACHED} --share-pages --separate-tables")
        alone("pages", f"of {page}, ragged", {**paged, "query": "ragged"},
              f"{MANY} {CACHED}")
        alone("pages", f"of {page}, few rows", {**paged, "seq_q": 1}, DECODE)
    fewer = "--lengths-k 1,1777,0,4096,50"
    for index in "", "i64":
        own = {**GROUP, "lengths": "all", "index": index}
        name = "all tokens" + (", 64 bits" if index else "")
        for cache in {"cache": "paged", "page_size": 64}, {"cache": "continuous"}:
            kind = cache["cache"]
            alone("counted lengths", f"{name}, {kind}", {**own, **cache},
                  f"--size seq_q=200 {fewer}")
            alone("counted lengths", f"{name}, {kind}, ragged",
                  {**own, **cache, "query": "ragged", "dtype": "f16"},
                  f"--lengths-q 3,1999,20,513,70 {fewer}")
            alone("counted lengths", f"{name}, {kind}, few rows",
                  {**own, **cache, "seq_q": 3}, fewer)
    wide = {**GROUP, "index": "i64"}
    alone("64-bit indices", "ragged", {**wide, "query": "ragged", "cache": "ragged"},
          "--lengths-q 1999,0,1,1000 --lengths-k 3001,5,0,1000")
    alone("64-bit indices", "pages of 16", {**wide, "cache": "paged", "page_size": 16},
          f"--size seq_q=513 {CACHED} --separate-tables")
    alone("64-bit indices", "pages of 96, ragged",
          {**wide, "query": "ragged", "cache": "paged", "page_size": 96},
          f"{MANY} {CACHED}")
    alone("64-bit indices", "few rows",
          {**wide, "cache": "paged", "page_size": 64, "seq_q": 1}, DECODE)

    odd = "--size batch=2 --size seq_q=999 --size seq_k=1501"
    part = {"k_cache_depth": 576, "k_head_dim_offset": 448, "v_cache_depth": 512,
            "v_head_dim_offset": 64}
    alone("rows of K and V", "dense", {**GROUP, **part}, odd,
          odd + " --layout=heads-major --row-pad=8")
    alone("rows of K and V", "80 of 96, of 176",
          {**GROUP, "head_size": 80, "k_cache_depth": 96, "k_head_dim_offset": 16,
           "v_cache_depth": 176, "v_head_dim_offset": 96}, odd)
    for page in 64, 16:
        alone("rows of K and V", f"pages of {page}",
              {**GROUP, **part, "cache": "paged", "page_size": page},
              f"--size seq_q=513 {CACHED} --share-pages")
    alone("rows of K and V", "ragged",
          {**GROUP, **part, "query": "ragged", "cache": "ragged"},
          "--lengths-q 1999,0,1,1000 --lengths-k 3001,5,0,1000")
    alone("rows of K and V", "continuous", {**GROUP, **part, "cache": "continuous"},
          f"--size seq_q=513 {CACHED}")
    alone("rows of K and V", "few rows",
          {**GROUP, **part, "cache": "paged", "page_size": 16, "seq_q": 1}, DECODE)


def fill_schedules():
    """What only schedules that name it have."""
    odd = "--size batch=2 --size seq_q=999 --size seq_k=1501"

    def chosen(schedule):
        return {"compile": [f"--schedule={schedule}", "--no-alternatives"]}
    case("shared columns", "2 of 4 warps",
         {"heads": 2, "lse": True, **chosen("BM=32,BN=64,warps=4,warp_cols=2")}, odd)
    case("shared columns", "4 of 4 warps",
         {"heads": 2, "head_size": 128, "causal": True, "sink": True,
          **chosen("BM=16,BN=64,warps=4,warp_cols=4,sums_in_lds=true")}, odd)
    case("shared columns", "turned products",
         {"heads": 2, "causal": True,
          **chosen("BM=8,BN=64,warps=2,warp_cols=2,swap_a_b=true")}, odd)
    case("shared columns", "head size 120, window",
         {"heads": 2, "head_size": 120, "window_left": 200,
          **chosen("BM=32,BN=64,warps=4,warp_cols=2")}, odd)
    for mask in False, True:
        case("layouts", "causal" if mask else "full",
             {"heads": 4, "causal": mask, "exchange": "BM=64,warps=4,BN=32,producers=0",
              "compile": ["--no-alternatives"]}, odd)


def fill_few_rows():
    """Keys split over blocks, and kernels that share a launch."""
    kinds = {"pages of 16": {"cache": "paged", "page_size": 16},
             "pages of 64": {"cache": "paged", "page_size": 64},
             "pages of 1": {"cache": "paged", "page_size": 1},
             "continuous": {"cache": "continuous"}, "ragged": {"cache": "ragged"}}
    for name, cache in kinds.items():
        few = {**GROUP, **cache}
        lengths = (DECODE if name != "ragged" else
                   DECODE.replace("--cache-lengths", "--lengths-k"))
        alone("few rows", f"{name}, one row", {**few, "seq_q": 1}, lengths,
              lengths + " --init=ramp")
        alone("few rows", f"{name}, window",
              {**few, "seq_q": 2, "window_left": 1000, "softcap": 20.0, "sink": True},
              lengths)
        case("few rows", f"{name}, shares apart",
             {**few, "seq_q": 1,
              "compile": ["--schedule=split_keys=true,equal_shares=false",
                          "--no-alternatives"]}, lengths)
        cached = CACHED if name != "ragged" else "--lengths-k 500,1777,4096,50"
        mixed = ("--lengths-q 1,700,0,9,8,1,5,1300 ")
        keys = ("--cache-lengths 5000,15,63,0,3000,0,9,2048" if name != "ragged" else
                "--lengths-k 5000,715,63,9,3000,1,9,3048")
        case("few rows", f"{name}, none, one and several",
             {**few, "query": "ragged"}, f"{FEW} {cached}")
        case("mixed batches", name, {**few, "query": "ragged"}, mixed + keys,
             mixed + keys + " --seed=7")
    case("few rows", "dense, one row", {**GROUP, "seq_q": 1},
         "--size batch=1 --size seq_k=20000", "--size batch=40 --size seq_k=1999",
         "--size batch=3 --size seq_k=0")
    case("few rows", "dense, at the launch", GROUP,
         *(f"--size batch=3 --size seq_q={n} --size seq_k=4999" for n in (1, 4, 8, 9)))
    alone("few rows", "pages of 16, 320 sequences",
          {**GROUP, "cache": "paged", "page_size": 16, "seq_q": 1},
          "--size batch=320 --size cache=700")
    case("mixed batches", "pages of 16, 100 sequences",
         {**GROUP, "query": "ragged", "cache": "paged", "page_size": 16},
         "--lengths-q " + ",".join(str((1, 1, 3, 1, 0, 6, 1, 300)[i % 8])
                                   for i in range(100)) +
         " --cache-lengths " + ",".join(str(i * 37 % 1500) for i in range(100)))


def fill_quantized():
    """Caches of 8-bit floats."""
    kinds = [("e4m3", "f8E4M3FN", granularity, page)
             for granularity in ("tensor", "head", "128", "64", "32", "16", "")
             for page in (16, 64)]
    kinds += [("e5m2", "f8E5M2", granularity, 16)
              for granularity in ("tensor", "head", "128", "64")]
    for name, kv_dtype, granularity, page in kinds:
        cache = {**GROUP, "cache": "paged", "page_size": page, "kv_dtype": kv_dtype,
                 "granularity": granularity}
        label = f"{name} {granularity or 'no scale'}, pages of {page}"
        alone("quantized few", label, {**cache, "seq_q": 1}, DECODE)
        if page == 16:
            alone("quantized few", f"{label}, 4 rows f16",
                   {**cache, "seq_q": 4, "dtype": "f16"}, DECODE)
            alone("quantized many", label, cache, f"--size seq_q=300 {CACHED}")
            alone("quantized many", f"{label}, window, ragged",
                  {**cache, "window_left": 200, "query": "ragged", "dtype": "f16"},
                  f"{MANY} {CACHED}")
    for page in 1, 3, 528:
        cache = {**GROUP, "cache": "paged", "page_size": page, "kv_dtype": "f8E4M3FN"}
        for granularity in "tensor", "128", "32":
            alone("quantized many", f"e4m3 {granularity}, pages of {page}",
                  {**cache, "granularity": granularity}, f"--size seq_q=300 {CACHED}")
            alone("quantized few", f"e4m3 {granularity}, pages of {page}",
                  {**cache, "granularity": granularity, "seq_q": 1}, DECODE)
    for kind in "dense", "ragged", "continuous":
        cache = {**GROUP, "cache": kind, "kv_dtype": "f8E4M3FN", "granularity": "64",
                 "query": "ragged" if kind == "ragged" else "dense"}
        many, few = {"dense": ("--size batch=2 --size seq_q=500 --size seq_k=1501",
                               "--size batch=3 --size seq_k=4999"),
                     "ragged": ("--lengths-q 1999,0,1,1000 --lengths-k 3001,5,0,1000",
                                "--lengths-q 1,0,2,1 --lengths-k 3001,5,0,1000"),
                     "continuous": (f"--size seq_q=300 {CACHED}", DECODE)}[kind]
        alone("quantized many", f"e4m3 64, {kind}", cache, many)
        if kind == "ragged":
            case("quantized few", f"e4m3 64, {kind}", cache, few, many)
        else:
            alone("quantized few", f"e4m3 64, {kind}", {**cache, "seq_q": 1}, few)
    alone("quantized few", "e4m3 64 and 32, 192 with 128",
          {"heads": 8, "kv_heads": 2, "cache": "continuous", "head_size": 192,
           "v_head_size": 128, "kv_dtype": "f8E4M3FN", "granularity": "64",
           "v_granularity": "32", "seq_q": 2}, DECODE)
    alone("quantized few", "e4m3 128, 32 rows of 256",
          {"heads": 32, "kv_heads": 1, "head_size": 256, "cache": "paged",
           "page_size": 16, "kv_dtype": "f8E4M3FN", "granularity": "128", "seq_q": 1},
          DECODE)
    alone("quantized many", "e4m3 48 of 96, pages of 1",
          {"heads": 4, "kv_heads": 2, "head_size": 96, "cache": "paged", "page_size": 1,
           "kv_dtype": "f8E4M3FN", "granularity": "48", "query": "ragged",
           "window_left": 40}, f"{MANY} {CACHED}")


def fill_appends():
    """New tokens into caches."""
    ragged = "--lengths-q 500,0,1,1700 --cache-lengths 0,3,15,3001"
    dense = "--size batch=5 --size seq_new=301 --size cache=2000 --separate-tables"
    size = ["heads=8", "head_size=128"]
    for page in 1, 3, 16, 528:
        case("appends", f"pages of {page}, ragged",
             [f"page_size={page}", "rope=64" if page == 16 else "rope=32", *size],
             ragged)
        case("appends", f"pages of {page}, dense, f16 of f32",
             [f"page_size={page}", "type=f16", "new=f32", "ragged=false", *size], dense)
    case("appends", "continuous", ["kind=continuous", "rope=32", *size], ragged)
    case("appends", "dense", ["kind=dense", "at=true", "type=f32", *size], ragged)
    case("appends", "ragged, rows of 192",
         ["kind=ragged", "at=true", "cache_depth=192", "head_dim_offset=64", *size],
         ragged)
    case("appends", "K alone, by neighbours",
         ["page_size=16", "rope=32", "interleaved=true", "values=false", *size], ragged)
    case("appends", "distant blocks", ["page_size=16", *size],
         ragged.replace("1700", "30").replace("3001", "31")
         + " --strides k=40000000,1024,128,1")
    for rope, interleaved in (0, False), (64, False), (64, True):
        turned = [f"rope={rope}"] * bool(rope) + ["interleaved=true"] * interleaved
        name = ("not rotated" if not rope else
                "by neighbours" if interleaved else "by halves")
        if rope:
            case("appends", f"bf16, {name}", ["page_size=64", *turned, *size], ragged)
        for kind in "f8E4M3FN", "f8E5M2":
            for granularity in "tensor", "head", "128", "64", "16":
                case("appends", f"{kind[2:6].lower()} {granularity}, {name}",
                     [f"type={kind}", f"granularity={granularity}", *turned, *size],
                     ragged)
    case("appends", "at any element", ["page_size=16", "rope=64", *size],
         ragged + " --offset k_new=1 --offset k=3 --offset cos=1 --offset v_new=2")
    case("appends", "e4m3 at any byte", ["type=f8E4M3FN", "granularity=head", *size],
         ragged + " --offset k=1 --offset v=7 --offset v_new=3")
    case("appends", "192 with 128",
         ["heads=4", "head_size=192", "v_head_size=128", "rope=96"], ragged)
    case("appends", "64 with 80",
         ["heads=4", "head_size=64", "v_head_size=80", "kind=continuous"], ragged)
    case("appends", "192 with 64, e4m3",
         ["heads=4", "head_size=192", "v_head_size=64", "type=f8E4M3FN",
          "granularity=tensor", "rope=32"], ragged)
    module = TESTS / "Inputs/functions.mlir"
    case("functions", "of one artifact", module,
         "--function=append --size batch=3 --size seq_new=500 --size cache=1000",
         "--function=prefill --size batch=3 --size seq_q=999 --size cache=2000",
         "--function=decode --size batch=9 --size cache=5000")


def fill_timed():
    """Decode where types leave the number of rows open, and where they fix it."""
    for page in 0, 16, 64:
        few = {"heads": 32, "kv_heads": 8, "head_size": 128, "lse": True,
               "cache": "paged" if page else "dense", "page_size": page}
        for batch, keys in (64, 4200), (32, 32768), (4, 131072):
            lengths = (f"--cache-lengths {','.join([str(keys)] * batch)}" if page
                       else f"--size seq_k={keys}")
            TIMED.append((f"pages of {page}, {batch} x {keys}", few,
                          {**few, "seq_q": 1},
                          f"--size batch={batch} --size seq_q=1 {lengths}",
                          f"--size batch={batch} {lengths}"))


def fill_cases():
    """All cases, in the order of the table."""
    fill_basics()
    fill_shapes()
    fill_caches()
    fill_schedules()
    fill_few_rows()
    fill_quantized()
    fill_appends()
    fill_timed()
