"""Swaps two lines of a program that stand next to each other.

swap_lines.py FIRST SECOND: each line that matches FIRST and whose successor
matches SECOND changes places with it. Fails if there are none.
"""

import re
import sys

first, second = map(re.compile, sys.argv[1:])
lines = sys.stdin.readlines()
found = False
for i in range(len(lines) - 1):
    if first.search(lines[i]) and second.search(lines[i + 1]):
        lines[i : i + 2] = lines[i + 1], lines[i]
        found = True
sys.stdout.writelines(lines)
sys.exit(not found)
