"""grid.py ARTIFACT [N]: the grid in the manifest of an artifact's kernel N, by
default its first."""

import json
import pathlib
import sys

content = pathlib.Path(sys.argv[1]).read_bytes()
# The manifest is the one object with this key first.
start = content.rindex(b"{", 0, content.index(b'"kvbuf"'))
manifest, _ = json.JSONDecoder().raw_decode(
    content[start:].decode(errors="replace"))
number = int(sys.argv[2]) if len(sys.argv) > 2 else 0
print(f"{manifest['target']['chip']}: "
      f"{json.dumps(manifest['kernels'][number]['grid'])}")
