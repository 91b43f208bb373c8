#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shows the progress of lit, and counts what it ran.

    show-tests.py --log FILE --limit SECONDS -- LIT ARGUMENTS...

LIT runs with its output in FILE. On a terminal one line is kept up to date; else
a line appears every ten seconds. What failed is printed whole as soon as it is
known. The last line is 'N passed, N failed', with ', N skipped' if any were.
Exit status: lit's own; 1 if it ended without a result for every test.
"""

import argparse
import re
import subprocess
import sys
import time

RESULT = re.compile(r"^([A-Z]+): (.*) \((\d+) of (\d+)\)$")
PASSED = {"PASS", "FLAKYPASS", "XFAIL"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}
SECONDS_BETWEEN_LINES = 10


class Progress:
    """What is known of a run, and how it is shown."""

    def __init__(self, out):
        self.out, self.terminal = out, out.isatty()
        self.start = self.shown = time.monotonic()
        self.passed, self.failed, self.skipped = 0, [], 0
        self.timeouts, self.total = [], None

    def counts(self):
        text = f"{self.passed} passed, {len(self.failed)} failed"
        return text + (f", {self.skipped} skipped" if self.skipped else "")

    def clear(self):
        if self.terminal:
            self.out.write("\r\x1b[K")

    def note(self, code, name, total):
        self.total = total
        if code in PASSED:
            self.passed += 1
        elif code in SKIPPED:
            self.skipped += 1
        else:
            self.failed.append(name)
            if code == "TIMEOUT":
                self.timeouts.append(name)
        self.show(name)

    def show(self, name):
        now = time.monotonic()
        if not self.terminal and now - self.shown < SECONDS_BETWEEN_LINES:
            return
        self.shown = now
        done = self.passed + len(self.failed) + self.skipped
        line = f"[{done}/{self.total}] {now - self.start:.0f} s"
        if self.failed:
            line += f", {len(self.failed)} failed"
        self.clear()
        self.out.write(f"{line}  {name}"[:100] + ("" if self.terminal else "\n"))
        self.out.flush()

    def print(self, text):
        self.clear()
        self.out.write(text)
        self.out.flush()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--log", required=True)
    parser.add_argument("--limit", required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command

    progress = Progress(sys.stdout)
    printing = False  # inside what lit says of a failed test, or of itself
    with open(args.log, "w", encoding="utf-8") as log, subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace") as lit:
        for line in lit.stdout:
            log.write(line)
            match = RESULT.match(line)
            if match:
                code, name, _, total = match.groups()
                printing = code not in PASSED | SKIPPED
                progress.note(code, name, int(total))
            elif re.match(r"lit: .*(error|warning|fatal): |Testing Time:|"
                          r"Traceback ", line):
                printing = not line.startswith("Testing Time:")
            if printing:
                progress.print(line)
        status = lit.wait()

    progress.clear()
    for name in progress.timeouts:
        print(f"{name} took more than {args.limit} s and was stopped; "
              "KVBUF_TEST_TIMEOUT sets the limit of a test")
    done = progress.passed + len(progress.failed) + progress.skipped
    if progress.total is None or done < progress.total:
        print(f"the run ended after {done} of {progress.total or '?'} tests "
              f"(status {status}); see {args.log}")
        status = status or 1
    print(progress.counts())
    return status


if __name__ == "__main__":
    sys.exit(main())
