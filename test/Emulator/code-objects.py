# REQUIRES: ld.lld
# RUN: %python %s %bin %src %t gfx942
# RUN: %python %s %bin %src %t gfx950
"""Code objects, executed as LLVM disassembles them: a prefill and a decode over pages, of
16 bits and of 8, and prefills with functions of visibility, give what the emulator makes of
the target stage, bit for bit, whether loads land when they are awaited or when they are
issued, and in whatever order waves run.
Without one of the waits that LLVM or we put in, each of them is found out.
"""

import pathlib
import re
import subprocess
import sys

import numpy as np

binaries, source, stem, chip = sys.argv[1:]
sys.path[:0] = [f"{source}/benchmark", f"{source}/tools"]

from code_objects.image import Fault  # noqa: E402
from code_objects.launch import Launch, open_artifact  # noqa: E402
import kvbuf  # noqa: E402
from problem import problem  # noqa: E402

DISASSEMBLER = "llvm-objdump"
random = np.random.default_rng(1)


def bf16(*shape):
    return (random.standard_normal(shape, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def prefill():
    rows = 70
    return problem(head_size=128, heads=1, causal=True, lse=True), {
        name: bf16(1, rows, 1, 128) for name in "qkv"}, ["o", "lse"]


def decode():
    pages, table = 16, random.permutation(16)[:12].reshape(2, 6).astype(np.int32)
    lengths = np.array([37, 90], np.int32)
    tensors = {"q": bf16(2, 1, 8, 128), "k": bf16(pages, 16, 2, 128), "v": bf16(pages, 16, 2, 128)}
    for name in "kv":
        tensors |= {f"{name}.table": table, f"{name}.lengths": lengths}
    return problem(head_size=128, heads=8, kv_heads=2, seq_q=1, cache="paged",
                   page_size=16), tensors, ["o"]


def pages_of_bytes(form, page, rows, keys=70):
    """K and V of 8-bit floats: every one of the format but infinities and what is no number."""
    codes = np.arange(256, dtype=np.uint8)
    none = {"f8E4M3FN": codes & 0x7f == 0x7f, "f8E4M3FNUZ": codes == 0x80,
            "f8E5M2": codes & 0x7c == 0x7c}[form]
    pages = -(-keys // page)
    table = random.permutation(pages + 3)[:pages].reshape(1, -1).astype(np.int32)
    tensors = {"q": bf16(1, rows, 2, 128)}
    for name in "kv":
        tensors |= {name: random.choice(codes[~none], (pages + 3, page, 1, 128)),
                    f"{name}.table": table, f"{name}.lengths": np.array([keys - rows], np.int32),
                    f"{name}.scales": np.array([2.0**-7], np.float32)}
    options = {"seq_q": 1} if rows == 1 else {"causal": True}
    return problem(head_size=128, heads=2, kv_heads=1, cache="paged", page_size=page,
                   kv_dtype=form, granularity="head", **options), tensors, ["o"]


def products_of_bytes(form):
    codes = np.arange(256, dtype=np.uint8)
    small = codes[(codes & 0x7f < 0x50) & (codes != 0x80)]
    return problem(head_size=64, heads=1, causal=True, dtype=form, o_dtype="bf16"), {
        name: random.choice(small, (1, 70, 1, 64)) for name in "qkv"}, ["o"]


def hidden(example, numbers):
    """A function of visibility. Of the tree LLVM's code spills scalars until lanes compare
    late (`LateChoices.cpp`), which the emulator does not see; documents are asked about in
    each tile, and what hides keys lies out of line."""
    text = pathlib.Path(f"{source}/examples/scores/{example}.mlir").read_text()
    rows, keys = 70, 130
    name, numbers = numbers(rows, keys)
    return text, {"q": bf16(1, rows, 4, 64), "k": bf16(1, keys, 4, 64),
                  "v": bf16(1, keys, 4, 64), name: numbers.reshape(1, -1).astype(np.int32)}, ["o"]


def last_nodes(rows, keys):
    return "last", np.minimum(np.arange(rows) + random.integers(0, 30, rows), rows - 1)


def documents(rows, keys):
    return "doc", np.sort(random.integers(0, 3, keys))


#: Formats that the chip's matrix unit multiplies, and that an instruction widens.
MULTIPLIED = {"gfx942": "f8E4M3FNUZ", "gfx950": "f8E4M3FN"}[chip]
WIDENED = {"gfx942": "f8E4M3FNUZ", "gfx950": "f8E5M2"}[chip]


def compiled(name, text):
    path = f"{stem}.{name}.{chip}.kvbuf"
    subprocess.run([f"{binaries}/kvbuf-compile", "-", f"--target={chip}", "--no-alternatives",
                    "-o", path], input=text, check=True, text=True)
    return path


def emulated(path, tensors, outputs):
    """What the target stage gives."""
    command = [f"{binaries}/kvbuf-run", path, "--device=emulator"]
    for name, array in tensors.items():
        np.save(f"{stem}.{name}.npy", array)
        command += ["--input", f"{name}={stem}.{name}.npy"]
    for name in outputs:
        command += ["--output", f"{name}={stem}.{name}.npy"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return {name: np.load(f"{stem}.{name}.npy") for name in outputs}


def launched(path, tensors, outputs):
    """The same of a program that kvbuf-run does not know, whose results are like q."""
    results = {name: np.full_like(tensors["q"], 0x7fff) for name in outputs}
    kvbuf.load(path)(**tensors, **results, device=kvbuf.Device("emulator"))
    return results


def executed(path, tensors, want, late=True, order=0, without=None):
    arrays = tensors | {name: np.full_like(array, 0x7fff if array.dtype.itemsize == 2 else np.nan)
                        for name, array in want.items()}
    manifest, _ = open_artifact(path)
    sizes = {"sms": 4}
    for spec in manifest["tensors"]:
        sizes |= {size: extent for size, extent in zip(spec["shape"], arrays[spec["name"]].shape)
                  if isinstance(size, str)}
    launch = Launch(path, DISASSEMBLER, arrays, sizes, late)
    if without is not None:
        launch.leave_out(without)
    written = launch.run(order)
    return {name: written[name].tobytes() for name in want}, launch


def found(path, tensors, want, address):
    """Whether a launch without an instruction goes wrong: what it says, or that it differs."""
    try:
        got, _ = executed(path, tensors, want, without=address)
    except Fault as fault:
        return str(fault)
    right = {name: array.tobytes() for name, array in want.items()}
    return "another result" if got != right else ""


for name, make in (
        ("prefill", prefill), ("decode", decode),
        ("bytes", lambda: pages_of_bytes("f8E4M3FN", 7, 70)),
        ("few-bytes", lambda: pages_of_bytes(WIDENED, 16, 1)),
        ("products", lambda: products_of_bytes(MULTIPLIED)),
        ("tree", lambda: hidden("tree", last_nodes)),
        ("documents", lambda: hidden("documents", documents))):
    text, tensors, outputs = make()
    path = compiled(name, text)
    emulate = launched if name in ("tree", "documents") else emulated
    want = emulate(path, tensors, outputs)
    ways = ({"late": True}, {"late": False, "order": 1})
    for options in ways[:1] if emulate is launched else ways:
        got, launch = executed(path, tensors, want, **options)
        for output in outputs:
            assert got[output] == want[output].tobytes(), (chip, name, options, output)
    if name != "prefill":
        continue

    waits = [i for i in launch.code.instructions if i.name == "s_waitcnt"]
    # Arguments; the first tile in LDS; a fragment of it; a register that is loaded.
    arguments = waits[0]
    tile = next(i for i in waits if "vmcnt(0)" in i.operands)
    fragment = waits[waits.index(tile) + 1]
    counted = next(i for i in waits if re.search(r"vmcnt\([1-9]", i.text))
    said = {i: found(path, tensors, want, i.address) for i in (arguments, tile, fragment, counted)}
    for wait, what in said.items():
        assert what, f"{chip}: nothing is found without 0x{wait.address:x}: {wait.text}"
    assert "s_load_dword" in said[arguments] and "is not awaited" in said[arguments], said
    assert "LDS that nothing has written" in said[tile], said
    assert "ds_read" in said[fragment] and "is not awaited" in said[fragment], said
