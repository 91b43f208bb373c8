# Every example of the dialect's and the passes' descriptions, of the README and
# of the documents parses and verifies.
# RUN: %python %s kvbuf-opt \
# RUN:   %src/include/kvbuffer/Dialect/KVBuffer/IR/*.td \
# RUN:   %src/include/kvbuffer/Dialect/KVBuffer/Transforms/*.td \
# RUN:   %src/include/kvbuffer/Conversion/*.td \
# RUN:   %src/include/kvbuffer/Pipelines/*.td \
# RUN:   %src/include/kvbuffer/Transforms/AMD/*.td \
# RUN:   %src/*.md %src/docs/*.md %src/docs/design/*.md %src/docs/targets/*.md
#
# The checker is no yes-man: it accepts and refuses these.
# RUN: not %python %s kvbuf-opt %S/Inputs/examples.md | FileCheck %s
# CHECK-NOT: examples.md:{{[0-9]+}}: the example fails
# CHECK: examples.md:29: the example fails
# CHECK: error: {{.*}}nosuch
# CHECK: examples.md:33: the example fails
# CHECK: error: {{.*}}(C3)
# CHECK: examples.md:39: the example fails
# CHECK: 7 examples, 3 failed
#
# A file without examples does not pass for one whose examples are right.
# RUN: not %python %s kvbuf-opt %s
"""Parses and verifies every MLIR example of the documentation.

  check_examples.py KVBUF_OPT FILE...

An example is a fenced block that begins with ```mlir, in a .td or a Markdown
file. (Blocks that only quote a part of something, with `...` in it, say
```text.) It is
  - a module or functions, taken as they stand; or
  - attributes and types, one a line; or
  - a fragment: ops whose operands nothing defines. Those get a definition of
    the type that the op expects, which the parser tells. The aliases of PRELUDE
    stand for buffers.
Prints one line a failing example and exits with 1 if there is any, or if there
are no examples at all.
"""

import os
import re
import subprocess
import sys
import textwrap

PRELUDE = """\
#kbuf = #kvbuffer.kv_buffer<k, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 128, stages = 2>
#vbuf = #kvbuffer.kv_buffer<v, bf16, double_buffered, mma_shape = [16, 8, 16], swizzle = [3, 0, 3], BN = 64, WN = 64, BK = 64, num_threads = 128, depth = 128, stages = 2>
"""

FENCE = re.compile(r"^( *)```mlir[ \t]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
UNDECLARED = re.compile(r"use of undeclared SSA value name")
MISMATCH = re.compile(
    r"definition of SSA value '(%[\w$.-]+)#\d+' has type '[^\n]*'\n"
    r".*?previously used here with type '([^\n]*)'\n",
    re.DOTALL,
)
VALUE = re.compile(r"%[A-Za-z_$.-][\w$.-]*|%\d+")
# What stands on the left of a `=`: results of an op, or arguments of a loop.
RESULTS = re.compile(r"((?:%[\w$.-]+(?::\d+)? *, *)*%[\w$.-]+(?::\d+)?) *= ")


def examples(path):
    """The examples of a file as pairs of a line number and a text."""
    text = open(path).read()
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        yield line, textwrap.dedent(match.group(2))


def run(opt, source):
    """The messages of a run on this source; empty if all went well."""
    result = subprocess.run(
        [opt, "-", "--allow-unregistered-dialect"],
        input=source,
        capture_output=True,
        text=True,
    )
    if result.returncode == 0:
        return ""
    return result.stderr or f"exit status {result.returncode}"


def split_aliases(text):
    """Alias definitions, which stand at the top of a module, and the rest."""
    aliases, rest = [], []
    for line in text.splitlines():
        into = aliases if re.match(r"[#!][\w.]+ *=", line) else rest
        into.append(line)
    return "\n".join(aliases), "\n".join(rest)


def is_list_of_attributes(rest):
    lines = [line for line in rest.splitlines() if line.strip()]
    return bool(lines) and all(line[0] in "#!" for line in lines)


def as_module(text):
    """The source that an example stands for, without missing operands."""
    aliases, rest = split_aliases(text)
    if is_list_of_attributes(rest):
        uses = []
        for line in rest.splitlines():
            if line.startswith("#"):
                uses.append(f'"test.use"() {{attr = {line}}} : () -> ()')
            elif line.startswith("!"):
                uses.append(f'%{len(uses)} = "test.use"() : () -> {line}')
        rest = "\n".join(uses)
    unused = "\n".join(
        line for line in PRELUDE.splitlines() if line.split()[0] + " =" not in aliases
    )
    return f"{unused}\n{aliases}\n", rest


def check(opt, text):
    """What is wrong with an example; empty if nothing is."""
    head, rest = as_module(text)
    message = run(opt, head + rest)
    if not UNDECLARED.search(message):
        return message
    # A module's body is a graph: definitions may stand behind their uses. Those
    # that are missing begin with a type that no op takes, and are mended until
    # the parser is content.
    types = {name: "!test.unknown" for name in VALUE.findall(rest)}
    for results in RESULTS.findall(rest):
        for name in VALUE.findall(results):
            types.pop(name, None)
    for _ in range(len(types) + 1):
        definitions = "\n".join(
            f'{name} = "test.define"() : () -> {type}' for name, type in types.items()
        )
        message = run(opt, f"{head}{rest}\n{definitions}\n")
        mismatch = MISMATCH.search(message)
        if not mismatch or types.get(mismatch.group(1)) != "!test.unknown":
            return message
        types[mismatch.group(1)] = mismatch.group(2)
    return message


def main():
    opt, paths = sys.argv[1], sys.argv[2:]
    count = failures = 0
    # A pattern that stands for no file yet (docs/*.md) is no mistake.
    for path in (path for path in paths if "*" not in path):
        for line, text in examples(path):
            count += 1
            message = check(opt, text)
            if message:
                failures += 1
                print(f"{os.path.relpath(path)}:{line}: the example fails:")
                print(textwrap.indent(text + "\n" + message, "    "))
    print(f"{count} examples, {failures} failed")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
