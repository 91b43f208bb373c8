"""Runs the cases of a test on several chips.

    cases.py TEST ARTIFACT CHIP...

A case is a line `PROBLEM: options` of the test, what benchmark/problem.py takes, and
after it lines `SIZES: options`, what kvbuf-run takes, one a run. Each problem is compiled
for each chip, or for those of `PROBLEM(CHIP,CHIP): options` alone, and each run is checked
row by row. What fails is printed as a command.
"""

import pathlib
import re
import subprocess
import sys

PROBLEM = pathlib.Path(__file__).resolve().parents[3] / "benchmark/problem.py"


def cases(text):
    """(chips, none for all; options of a problem; [options of a run])."""
    found = []
    for line in text.splitlines():
        match = re.match(r"(PROBLEM|SIZES)(?:\(([\w,]+)\))?:(.*)", line)
        if match and match.group(1) == "PROBLEM":
            found.append(((match.group(2) or "").split(","), match.group(3).split(), []))
        elif match:
            found[-1][2].append(match.group(3).split())
    return found


def run(command, **arguments):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **arguments)
    if result.returncode:
        print(" ".join(command), result.stdout, result.stderr, sep="\n")
        sys.exit(1)
    return result.stdout


def main():
    test, artifact, *chips = sys.argv[1:]
    runs = 0
    for chip in chips:
        for only, problem, sizes in cases(pathlib.Path(test).read_text(encoding="utf-8")):
            if only != [""] and chip not in only:
                continue
            text = run([sys.executable, str(PROBLEM), *problem])
            print(chip, *problem)
            run(["kvbuf-compile", "-", f"--target={chip}", "--code=none", "-o", artifact], input=text)
            for options in sizes:
                run(["kvbuf-run", artifact, "--device=emulator", "--check", "--check-rows=all", *options])
                runs += 1
    print(f"{runs} runs")
    sys.exit(0 if runs else 1)


main()
