"""Drops the last line of a program that matches a pattern; fails if none does."""

import re
import sys

lines = sys.stdin.readlines()
matching = [i for i, line in enumerate(lines) if re.search(sys.argv[1], line)]
del lines[matching[-1]]
sys.stdout.writelines(lines)
