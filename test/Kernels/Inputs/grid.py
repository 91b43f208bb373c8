"""The grid in the manifest of an artifact's first kernel."""

import json
import pathlib
import sys

content = pathlib.Path(sys.argv[1]).read_bytes()
# The manifest is the one object with this key first.
start = content.rindex(b"{", 0, content.index(b'"kvbuf"'))
manifest, _ = json.JSONDecoder().raw_decode(
    content[start:].decode(errors="replace"))
print(f"{manifest['target']['chip']}: {json.dumps(manifest['kernels'][0]['grid'])}")
