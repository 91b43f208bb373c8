"""Compares kvbuf-tune's ranking with its JSON lines.
  ranking.py OUTPUT JSONL"""

import json
import sys

records = [json.loads(line) for line in open(sys.argv[2])]
counts = [r["warp_instructions"] for r in records]
# Those that spill come last.
order = [(r.get("spill_bytes", 0) > 0, r["warp_instructions"]) for r in records]
assert order == sorted(order), order
own = next(r for r in records if r["schedule"] == "")
for r in records:
    # A count is no time.
    assert "speedup" not in r, r
    assert (r["share_of_instructions"] ==
            r["warp_instructions"] / own["warp_instructions"]), r
for r in records:
    assert r["full_schedule"].startswith("#kvbuffer.schedule<BM = "), r
table = [line.split()[1:] for line in open(sys.argv[1])
         if line.split()[0].isdigit() and "refused" not in line]
names = [r["schedule"] or "(compiler's" for r in records]
assert [row[0] for row in table] == names, (table, names)
p, = {json.dumps(r["problem"]) for r in records}
s, = {json.dumps(r["sizes"]) for r in records}
chip, = {r["chip"] for r in records}
p, s = json.loads(p), json.loads(s)
print(f"{len(records)} kernels, chip {chip}, problem {p['op']} of head size "
      f"{p['head_size']}, sizes {' '.join(f'{k}={v}' for k, v in s.items())}")
