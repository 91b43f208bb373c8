# REQUIRES: node
# The pictures of the pages are what a kernel's page draws now.
# RUN: rm -rf %t && mkdir -p %t && %python %s %src %t
#
# A buffer without its swizzle is found, and so is a timeline with less in it.
# RUN: mkdir -p %t.bad && cp %src/docs/pictures/*.svg %t.bad
# RUN: sed -i 's|y="68">12</text>|y="68">16</text>|' %t.bad/banks.svg
# RUN: not %python %s %src %t %t.bad | FileCheck %s --check-prefix=BANKS
# BANKS: banks.svg: line {{[0-9]+}} differs
# RUN: cp %src/docs/pictures/banks.svg %t.bad
# RUN: sed -i '/class="product"/d' %t.bad/timeline.svg
# RUN: not %python %s %src %t %t.bad | FileCheck %s --check-prefix=TIMELINE
# TIMELINE: timeline.svg: 0 bars of kind product
"""Draws docs/pictures anew, from a page about examples/gqa.mlir for sm_90a, and
compares. To renew them:

    PATH=build/bin:$PATH python3 test/Docs/check_pictures.py . /tmp --renew

A buffer's picture is the same to the letter. A timeline's instructions change a
little with every pass: its bars may differ in number, and its length, by a
tenth; all else is the same.
"""

import collections
import pathlib
import re
import subprocess
import sys

SOURCE, FOLDER = map(pathlib.Path, sys.argv[1:3])
PICTURES = SOURCE / "docs/pictures"
GIVEN = pathlib.Path(sys.argv[3]) if sys.argv[3:] and sys.argv[3] != "--renew" else PICTURES
TITLES = {"banks.svg": "Banks of k", "timeline.svg": "Timeline of block 0,0,0"}
KINDS = "copy", "product", "wait", "barrier"


def page():
    path = FOLDER / "page.html"
    if not path.exists():
        subprocess.run(
            ["kvbuf-run", SOURCE / "examples/gqa.mlir", "--device=emulator",
             "--target=sm_90a", "--size", "batch=1", "--size", "seq=256",
             f"--report={path}"], check=True, stdout=subprocess.DEVNULL)
    return path


def draw(name, folder):
    subprocess.run(["node", PICTURES / "draw.js", page(), TITLES[name],
                    folder / name], check=True)
    return (folder / name).read_text()


def bars(text):
    """How many of each kind, how long, and what is left: everything else."""
    kinds = collections.Counter(re.findall(r'<rect class="(\w+)"', text))
    length = int(re.search(r"over ([\d,]+) instructions", text)[1].replace(",", ""))
    rest = [line for line in text.splitlines()
            if not re.match(r'<rect class="(%s)"' % "|".join(KINDS), line)]
    # Where the ticks are does not depend on the length, what they say does.
    rest = [re.sub(r'( y="12">|over )[\d,]+', r"\1", line) for line in rest]
    return kinds, length, rest


def near(a, b):
    return abs(a - b) <= 0.1 * max(a, b)


def differences(name, given, drawn):
    if name == "timeline.svg":
        kinds, length, given = bars(given)
        now, now_length, drawn = bars(drawn)
        for kind in KINDS:
            if not near(kinds[kind], now[kind]):
                yield f"{kinds[kind]} bars of kind {kind}, drawn now: {now[kind]}"
        if not near(length, now_length):
            yield f"{length} instructions, drawn now: {now_length}"
    else:
        given, drawn = given.splitlines(), drawn.splitlines()
    for number, (a, b) in enumerate(zip(given, drawn), 1):
        if a != b:
            yield f"line {number} differs: '{a}', drawn now: '{b}'"
            return
    if len(given) != len(drawn):
        yield f"{len(given)} lines, drawn now: {len(drawn)}"


def main():
    if sys.argv[3:] == ["--renew"]:
        (FOLDER / "page.html").unlink(missing_ok=True)
        for name in TITLES:
            draw(name, PICTURES)
        return
    found = [f"{name}: {what}" for name in TITLES for what in
             differences(name, (GIVEN / name).read_text(), draw(name, FOLDER))]
    print("\n".join(found))
    sys.exit(bool(found))


main()
