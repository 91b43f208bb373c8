"""Runs a command, prints all of its output, and checks its exit status.
  expect.py STATUS COMMAND..."""

import subprocess
import sys

done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE,
                      stderr=subprocess.STDOUT, text=True, errors="replace")
print(done.stdout)
if done.returncode != int(sys.argv[1]):
    sys.exit(f"exit status {done.returncode}, expected {sys.argv[1]}")
