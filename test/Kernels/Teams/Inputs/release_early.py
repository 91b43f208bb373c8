"""Moves the first release of a ring in a team's loop, of the ring whose slot the team's
products read as values, in front of the first product's wait.

    release_early.py TEAM < SCHEDULED > BROKEN
"""

import sys

lines = sys.stdin.read().split("\n")
team = next(i for i, line in enumerate(lines) if f"kvbuffer.team @{sys.argv[1]} " in line)
wait = next(i for i in range(team, len(lines)) if "kvbuffer.mma_wait" in lines[i])
release = next(i for i in range(wait, len(lines)) if "kvbuffer.ring_release" in lines[i])
lines.insert(wait, lines.pop(release))
print("\n".join(lines))
