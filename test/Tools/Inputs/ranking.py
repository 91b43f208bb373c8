"""Compares kvbuf-tune's ranking with its JSON.
  ranking.py OUTPUT JSON"""

import json
import re
import sys

record = json.load(open(sys.argv[2]))
records = record["results"]
assert record["ranked_by"] == "model"
assert record["version"] and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record["date"])
assert "commit" not in record or re.fullmatch("[0-9a-f]{12}(-changed)?", record["commit"])
# Each refused schedule with its reason.
assert record["refused"] and all(r["reason"] for r in record["refused"])
# Those that spill come last, and are not offered.
order = [(r.get("spill_bytes", 0) > 0, r["modelled_cycles"]) for r in records]
assert order == sorted(order), order
own = next(r for r in records if r["schedule"] == "")
for r in records:
    # A model is no time.
    assert "speedup" not in r, r
    assert r["share_of_cycles"] == r["modelled_cycles"] / own["modelled_cycles"], r
    assert r["offered"] == (r.get("spill_bytes", 0) == 0), r
    # A scheduler of four issues an instruction a cycle: no unit's bound is less, where
    # blocks are dealt evenly to the chip's 108 multiprocessors.
    busy = min(record["multiprocessors"], r["blocks"])
    assert record["multiprocessors"] == 108 and r["blocks"] > 0, r
    assert r["modelled_cycles"] >= 0.999 * r["warp_instructions"] / 4 / busy > 0, r
    assert r["bound_by"] in ("issue", "float", "integer", "convert", "transcendental",
                             "shuffle", "load/store", "shared memory", "matrix"), r
for r in records:
    assert r["full_schedule"].startswith("#kvbuffer.schedule<BM = "), r
table = [line.split()[1:] for line in open(sys.argv[1])
         if line.split()[0].isdigit() and "refused" not in line]
names = [r["schedule"] or "(compiler's" for r in records if r["offered"]]
assert [row[0] for row in table] == names, (table, names)
p, s, chip = record["problem"], record["sizes"], record["chip"]
print(f"{len(records)} kernels, chip {chip}, problem {p['op']} of head size "
      f"{p['head_size']}, sizes {' '.join(f'{k}={v}' for k, v in s.items())}")
