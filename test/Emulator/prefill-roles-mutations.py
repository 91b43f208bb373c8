# RUN: %python %s %bin/kvbuf-compile %bin/kvbuf-emu-test %src/examples/prefill.mlir %t.mlir
"""A compiled kernel with warp roles (sm_90a), whole and broken in one place at
a time.

Taking out a wait, an arrival, a fence or a barrier, or loosening a wait by one,
must be found, or be harmless: the same output, bit for bit.
"""
import os
import re
import subprocess
import sys

compiler, emulator, source, path = sys.argv[1:]
# Two tiles of queries, the second one with a tail, of two heads; up to three of
# keys. One block works on all of them in turn.
HEADS, SIZE, ROWS = 2, 128, {"seq_q": 140, "seq_k": 300, "batch": 1}
SCHEDULE = ("BM=128,BN=128,warps=8,producers=4,producer_registers=24,consumer_registers=240,overlap_products=true,"
            "split_masks=true,sums_in_lds=false,stage_output=true,tiles=dynamic,q_in_regs=true")

problem = path + ".problem.mlir"
with open(source) as f, open(problem, "w") as out:
    out.write(f.read().replace("x16x128", f"x{HEADS}x128").replace("heads = 16", f"heads = {HEADS}"))
target = subprocess.run([compiler, problem, "--target=sm_90a", f"--schedule={SCHEDULE}", "--emit=target"], check=True,
                        capture_output=True, text=True).stdout
shared = re.search(r"dynamic_shared_bytes = (\d+)", target)[1]
lines = target.split("\n")

# The arguments, as the kernel describes them.
described = re.search(r"kvbuffer\.kernel = #kvbuffer\.launch<.*?\bargs = \[(.*?)\], block = ", target)[1]
arguments, places = [], {}
for kind, what, entry in re.findall(r'<(\w+)(?: "?([\w.]*)"?)?(.*?)>', described):
    field = lambda name: re.search(rf"\b{name} = (\w+)", entry)[1]
    numbers = lambda name: [int(x) for x in re.search(rf"\b{name} = \[(.*?)\]", entry)[1].split(",")]
    shape = lambda tensor: [1, ROWS["seq_k" if tensor in "kv" else "seq_q"], HEADS, SIZE]
    if kind == "pointer":
        name = what
        count = shape(name)[1] * HEADS * SIZE
        init = "uninit" if name == "o" else {"q": "mod=7", "k": "mod=5", "v": "mod=3"}[name]
        places[name] = len(arguments)
        arguments.append(f"buf:bf16:{count}:{init}:{name}")
    elif kind == "stride":
        stride = 1
        for n in shape(what)[int(field("dim")) + 1:]:
            stride *= n
        arguments.append(f"i64:{stride}")
    elif kind == "size":
        arguments.append(f"i32:{ROWS[what]}")
    elif kind == "tensor_map":
        name, dims = what, numbers("dims")
        sizes, strides = shape(name), [2, 2, 2, 2]
        for d in (2, 1, 0):
            strides[d] = strides[d + 1] * sizes[d + 1]
        join = lambda values: "x".join(map(str, values))
        arguments.append(f"map:{places[name]}:2:{join(sizes[d] for d in dims)}:{join(numbers('box'))}:{field('swizzle')}:"
                         f"{join(strides[d] for d in dims[1:])}")
    else:
        assert kind == "launch_counter", kind
        arguments.append("buf:i32:1:zero:counter")


def run(text):
    """Exit status, output tensor, messages."""
    with open(path, "w") as f:
        f.write(text)
    command = [emulator, path, "--entry=prefill", "--block=384", "--grid=1,1,1", f"--shared={shared}"]
    command += [f"--arg={a}" for a in arguments] + [f"--print={places['o']}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout, done.stderr


status, good, messages = run(target)
assert status == 0 and not messages, messages

MUTATIONS = {
    "wait for an mbarrier": (r"nvvm\.mbarrier\.try_wait\.parity", lambda s: ""),
    "arrival": (r"nvvm\.mbarrier\.arrive", lambda s: ""),
    "initialisation": (r"nvvm\.mbarrier\.init", lambda s: ""),
    "fence": (r"nvvm\.fence\.(proxy|mbarrier)", lambda s: ""),
    "barrier": (r"^ *nvvm\.barrier", lambda s: ""),
    "commit": (r"bulk\.commit\.group", lambda s: ""),
    "wait for a store": (r"bulk\.wait_group", lambda s: ""),
    "box": (r"bulk\.tensor\.shared", lambda s: ""),
    "registers": (r"nvvm\.setmaxregister +decrease", lambda s: ""),
    "looser wait for products": (r"wgmma_wait .*pending = (\d+)",
                                 lambda s: re.sub(r"pending = (\d+)", lambda m: f"pending = {int(m[1]) + 1}", s)),
}
caught, missed = {}, []
for number, line in enumerate(lines):
    for what, (pattern, change) in MUTATIONS.items():
        if not re.search(pattern, line):
            continue
        changed = list(lines)
        changed[number] = change(line)
        status, output, messages = run("\n".join(changed))
        caught.setdefault(what, []).append(status)
        if status == 0 and output != good:
            missed.append((what, number + 1, line.strip()))
        if os.environ.get("SHOW"):
            print(what, number + 1, status, output == good, messages.split("\n")[0][:250])
assert not missed, missed
assert all(sum(caught.get(what, [0])) for what in MUTATIONS), caught
print({what: f"{sum(found)} of {len(found)} found" for what, found in caught.items()})
