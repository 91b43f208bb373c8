"""Runs a command with a terminal for its output, and prints what it drew.
  terminal.py COMMAND..."""

import os
import pty
import sys

pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
output = b""
while True:
    try:
        chunk = os.read(master, 4096)
    except OSError:
        break
    if not chunk:
        break
    output += chunk
os.waitpid(pid, 0)
print(output.decode().replace("\033", "<ESC>").replace("\r", ""))
