# RUN: %python %s --seed 1 --count 120 --tests %src
"""Mutated modules: every tool ends with a result or an error, never otherwise.

Takes the modules of the tests and the examples, changes a few words, and gives
them to kvbuf-opt, with the passes of the test that they are from or with any
others, and to kvbuf-compile. What fails: a signal, a failed assertion, more than
LIMIT seconds or 4 GiB, a status that no tool documents.

    test/Fuzz/mutate.py --seed 7 --count 20000        # about an hour
    test/Fuzz/mutate.py --seed 7 --keep found         # writes what failed there
    test/Fuzz/mutate.py --seed 7 --seconds 600        # as many as fit

A run depends on its seed alone. Modules go to kvbuf-opt many at a time
(--split-input-file); a batch that fails is taken apart.
"""

import argparse
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time

MEMORY = 4 << 30
BATCH = 24
OK = {"kvbuf-opt": (0, 1, 2), "kvbuf-compile": (0, 2)}

KERNEL_PASSES = [
    "kvbuf-lazy-rescale", "kvbuf-run-ahead{orders=scores,turns,softmax}",
    "kvbuf-assign-work",
    "kvbuf-assign-teams",
    "kvbuf-share-loads", "kvbuf-async-products", "kvbuf-run-ahead{orders=blocks,loads}",
    "kvbuf-assign-slots", "canonicalize", "kvbuf-count-waits", "kvbuf-split-masked-loops",
    "kvbuf-tile-fragments", "canonicalize", "cse",
]
CHIPS = ["sm_80", "sm_89", "sm_90", "sm_90a", "gfx942", "gfx950"]


def kernels(passes):
    return f"gpu.module(gpu.func({passes}))"


def pipelines(rng):
    """A pipeline that a module of any stage may meet."""
    chip = rng.choice(CHIPS)
    vendor = "nvvm" if chip.startswith("sm") else "rocdl"
    return rng.choice([
        lambda: f"kvbuf-to-{rng.choice(['tile', 'scheduled', 'thread', 'target'])}"
                f"{{chip={chip}}}",
        lambda: kernels(rng.choice(KERNEL_PASSES)),
        lambda: kernels(",".join(KERNEL_PASSES)),
        lambda: kernels(",".join(p for p in KERNEL_PASSES
                                 if rng.random() < 0.5) or "cse"),
        lambda: kernels(",".join(KERNEL_PASSES)) +
        ",gpu.module(convert-kvbuffer-to-gpu)",
        lambda: "gpu.module(convert-kvbuffer-to-gpu)",
        lambda: "gpu.module(expand-strided-metadata,lower-affine,"
                f"convert-scf-to-cf,convert-kvbuffer-to-{vendor})",
        lambda: "gpu.module(kvbuf-verify-target)",
        lambda: "kvbuf-report-buffers",
        lambda: f"kvbuf-list-visible-blocks,kvbuf-to-target{{chip={chip}}}",
    ])()


# ---------------------------------------------------------------------------
# Modules
# ---------------------------------------------------------------------------

def own_pipeline(text):
    """The options of a test's first kvbuf-opt, where they stand there plainly."""
    # Not as one word: lit would take it for a line of this file's own.
    run = re.search("RUN" r": (?:not )?kvbuf-opt %s ([^|\n]*)", text)
    if not run or "%" in run.group(1) or "\\" in run.group(1):
        return None
    options = re.sub(r"\s(2>&1|>|-o)\s.*", " ", run.group(1) + " ")
    found = re.search(r"-?-pass-pipeline='([^']*)'", options)
    if found:
        return found.group(1)
    return None


def modules(root):
    """(name, text, pipeline or None) of every module of the tests and the
    examples."""
    found = []
    for folder in ["test/Dialect", "test/Conversion", "test/Target",
                   "test/Emulator", "test/Kernels", "test/Programs", "examples"]:
        for where, _, names in sorted(os.walk(os.path.join(root, folder))):
            for name in sorted(names):
                if not name.endswith(".mlir"):
                    continue
                path = os.path.join(where, name)
                with open(path) as file:
                    text = file.read()
                pipeline = own_pipeline(text)
                for part in text.split("// -----\n"):
                    # Comments would be most of what is changed.
                    part = re.sub(r"(?m)^\s*//.*\n", "", part)
                    if part.strip() and len(part) < 30000:
                        found.append((os.path.relpath(path, root), part,
                                      pipeline))
    return found


def later_stages(root, folder):
    """Problems at the stages that no test file holds whole."""
    sys.path.insert(0, os.path.join(root, "benchmark"))
    from problem import problem
    found = []
    for chip, options in [
            ("sm_80", {"head_size": 64, "causal": True, "lse": True}),
            ("sm_90a", {"head_size": 128, "cache": "paged", "page_size": 16}),
            ("gfx950", {"head_size": 64, "sink": True, "query": "ragged"})]:
        path = os.path.join(folder, "problem.mlir")
        with open(path, "w") as file:
            file.write(problem(**options))
        for stage in "tile", "scheduled", "thread", "target":
            done = subprocess.run(
                ["kvbuf-compile", path, f"--target={chip}", f"--emit={stage}",
                 "--ptxas=none", "--no-alternatives", "-o", "-"],
                capture_output=True, text=True)
            found.append((f"{chip} {stage}", done.stdout, None))
    return found


# ---------------------------------------------------------------------------
# Mutations
# ---------------------------------------------------------------------------

TOKEN = re.compile(r"%[\w#]+|[#!@][\w.]+|-?\d+\.\d+(?:e[+-]?\d+)?|0x[0-9A-Fa-f]+"
                   r"|-?\d+|[A-Za-z_][\w.$]*|\"[^\"]*\"|\S")
NUMBERS = ["0", "1", "-1", "2", "3", "7", "8", "15", "16", "17", "24", "32", "33",
           "48", "63", "64", "96", "128", "255", "256", "512", "1000", "4096",
           "65535", "65536", "65537", "16777216", "2147483647", "2147483648",
           "4294967296", "9223372036854775807", "-9223372036854775808"]
WORDS = ["true", "false", "bf16", "f16", "f32", "i8", "i1", "i64", "index", "f8E4M3FN",
         "dense", "ragged", "continuous", "paged", "k", "v", "q", "o", "a", "b",
         "acc", "row", "double_buffered", "streaming", "register_staged", "grid",
         "static", "dynamic", "tile", "scheduled", "thread", "target", "unit",
         "slt", "ult", "sge", "eq", "muli", "addi", "x", "y", "z", "null"]


def kind(token):
    return ("value" if token[0] == "%" else
            "number" if re.fullmatch(r"-?\d+", token) else
            "word" if re.match(r"[A-Za-z_]", token) else
            "string" if token[0] == '"' else
            "symbol" if token[0] in "#!@" and len(token) > 1 else "mark")


def replace_token(rng, text, other):
    tokens = list(TOKEN.finditer(text))
    if not tokens:
        return text
    # Numbers and words rather than marks, without which nothing parses.
    for _ in range(4):
        token = rng.choice(tokens)
        if kind(token.group()) != "mark":
            break
    what = kind(token.group())
    alike = [t.group() for t in tokens if kind(t.group()) == what]
    if what == "number":
        new = rng.choice(NUMBERS + alike[:8])
    elif what == "word":
        new = rng.choice(rng.choice([WORDS, alike, alike,
                                     re.findall(r"[A-Za-z_][\w.$]*", other)
                                     or WORDS]))
    elif what == "mark":
        new = rng.choice(["", token.group() * 2, ",", "]", "[", "{", "}"])
    else:
        new = rng.choice(alike)
    return text[:token.start()] + new + text[token.end():]


def change_line(rng, text, other):
    lines = text.split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    what = rng.randrange(5)
    if what == 0:
        del lines[i]
    elif what == 1:
        lines.insert(j, lines[i])
    elif what == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif what == 3:
        lines.insert(j, rng.choice(other.split("\n")))
    else:
        low, high = min(i, j), max(i, j)
        if high - low < 8:
            del lines[low:high]
    return "\n".join(lines)


def change_entry(rng, text, _):
    """Drops or doubles one entry of a list: an operand, a type, an attribute."""
    entries = list(re.finditer(r"[^,()\[\]{}<>\n]+,", text))
    if not entries:
        return text
    entry = rng.choice(entries)
    new = rng.choice(["", entry.group() * 2])
    return text[:entry.start()] + new + text[entry.end():]


def mutate(rng, text, other):
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 5])):
        change = rng.choice([replace_token, replace_token, replace_token,
                             change_line, change_entry])
        text = change(rng, text, other)
    return text


# ---------------------------------------------------------------------------
# Runs
# ---------------------------------------------------------------------------

def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command, text, seconds):
    """What is wrong with how a command ends; empty if nothing is."""
    try:
        done = subprocess.run(command, input=text, capture_output=True,
                              text=True, errors="replace", timeout=seconds,
                              preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return f"not done after {seconds} s"
    if done.returncode in OK[command[0]]:
        return ""
    lines = [line for line in done.stderr.split("\n")
             if re.search(r"ssert|LLVM ERROR|bad_alloc|UNREACHABLE|^ *#\d", line)]
    return f"status {done.returncode}\n" + "\n".join(lines[:14])


def opt(pipeline, texts, seconds):
    command = ["kvbuf-opt", "-", "--split-input-file",
               "--mlir-disable-threading", "--allow-unregistered-dialect",
               f"--pass-pipeline={pipeline}", "-o", os.devnull]
    return run(command, "\n// -----\n".join(texts), seconds)


def take_apart(pipeline, texts, seconds):
    """The first text of a batch that fails alone, and how."""
    for text in texts:
        if why := opt(pipeline, [text], seconds):
            return text, why
    return "\n// -----\n".join(texts), opt(pipeline, texts, seconds * 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000, metavar="MODULES")
    parser.add_argument("--tests", metavar="FOLDER", default=os.path.join(
        os.path.dirname(os.path.abspath(__file__)), "..", ".."),
        help="the checkout")
    parser.add_argument("--limit", type=int, default=30, metavar="SECONDS",
                        help="for one module")
    parser.add_argument("--seconds", type=float, metavar="N",
                        help="stop after N seconds, whatever --count says")
    parser.add_argument("--keep", metavar="FOLDER")
    args = parser.parse_args()
    end = time.monotonic() + args.seconds if args.seconds else float("inf")
    if args.seconds:
        args.count = sys.maxsize
    rng = random.Random(args.seed)
    failed = {}
    with tempfile.TemporaryDirectory() as folder:
        corpus = modules(args.tests)
        if args.count > 500:
            corpus += later_stages(args.tests, folder)
        done = 0
        while done < args.count and time.monotonic() < end:
            compiles = rng.random() < 0.1
            count = 1 if compiles else min(BATCH, args.count - done)
            # One pipeline a batch, and often the modules that it is for.
            name, _, pipeline = rng.choice(corpus)
            own = [m for m in corpus if m[0] == name]
            if not pipeline or rng.random() < 0.4:
                pipeline = f"builtin.module({pipelines(rng)})"
            texts = []
            for _ in range(count):
                _, text, _ = rng.choice(rng.choice([own, own, corpus]))
                texts.append(mutate(rng, text, rng.choice(corpus)[1]))
            done += count
            if compiles:
                command = ["kvbuf-compile", "-", "--ptxas=none", "-o",
                           os.devnull, "--emit=" + rng.choice(
                               ["scheduled", "thread", "target", "llvm", "asm"])]
                text = texts[0]
                why = run(command, text, args.limit)
            else:
                command = ["kvbuf-opt", f"--pass-pipeline='{pipeline}'"]
                why = opt(pipeline, texts, args.limit * 4)
                text = ""
                if why:
                    text, why = take_apart(pipeline, texts, args.limit)
            if not why:
                continue
            # The place of the fault: frames of this project.
            place = " ".join(re.findall(r"(?:kvbuf::|Pass::)[\w:]+", why)[:2])
            if failed.setdefault(place or why, done) != done:
                continue
            print(f"FAILED {' '.join(command)}: {why}\n{text[:1500]}\n",
                  flush=True)
            if args.keep:
                os.makedirs(args.keep, exist_ok=True)
                path = f"{args.keep}/{args.seed}-{done}.mlir"
                with open(path, "w") as file:
                    file.write(f"// {' '.join(command)}\n{text}")
    print(f"{done} modules, {len(failed)} kinds of faults")
    sys.exit(1 if failed else 0)


main()
