# RUN: %python %s %t
"""What kvbuf-tune tries: where keys are split over blocks, schedules that split them, on
chips with several dies another order of blocks, too; else none that does. On AMD's chips the
ranking without a GPU is by the model of their units, and the compiler's own schedule is
within 3 % of the same one with another order of blocks. Where one block has all keys of a
head, two multiprocessors do what six could: it has fewer instructions, and takes longer.
"""

import ctypes
import json
import os
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parents[2] / "benchmark"))
from problem import problem  # noqa: E402

STEM = sys.argv[1]
LIBRARY = ctypes.CDLL(os.path.join(os.environ["KVBUF_LIB_DIR"], "libKVBufferC.so"))
LIBRARY.kvbufProblemCandidates.restype = ctypes.c_char_p
ROWS = {"few": {"heads": 8, "kv_heads": 2, "seq_q": 1, "head_size": 64},
        "many": {"heads": 8, "kv_heads": 2, "head_size": 64},
        "many heads": {"heads": 256, "kv_heads": 1, "seq_q": 1, "head_size": 64},
        "latent": {"latent": True, "heads": 16, "kv_heads": 1, "seq_q": 1,
                   "head_size": 192, "v_head_size": 128}}

for chip in "sm_80", "sm_90a", "gfx942", "gfx950":
    for rows, options in ROWS.items():
        text = problem(**options).encode()
        lists = LIBRARY.kvbufProblemCandidates(
            text, ctypes.c_size_t(len(text)), b"", chip.encode()).decode().split("\n")
        split = ["split_keys=true" in one for one in lists]
        assert len(lists) > 0 and all(split) == any(split), (chip, rows, lists)
        assert all(split) == (rows in ("few", "latent")), (chip, rows, lists)
        assert any("xcds=1" in one for one in lists) == chip.startswith("gfx"), (chip, lists)

pathlib.Path(f"{STEM}.mlir").write_text(problem(**ROWS["few"]), encoding="utf-8")
for chip in "gfx942", "gfx950":
    done = subprocess.run(
        ["kvbuf-tune", f"{STEM}.mlir", "--device=emulator", f"--target={chip}",
         "--size", "batch=1", "--size", "seq_k=300", "--json", f"{STEM}.json",
         "--candidates", "split_keys=true;xcds=1,8",
         "--candidates", "split_keys=true;split_size=512"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "a model, no measurement: cycles of the busiest unit" in done.stdout, done.stdout
    record = json.loads(pathlib.Path(f"{STEM}.json").read_text(encoding="utf-8"))
    assert record["multiprocessors"] == {"gfx942": 304, "gfx950": 256}[chip], record
    results = {r["schedule"]: r for r in record["results"] if r["offered"]}
    assert set(results) == {"", "split_keys=true,xcds=1", "split_keys=true,split_size=512"}
    own, other = (results[name]["modelled_cycles"]
                  for name in ("", "split_keys=true,xcds=1"))
    assert own < 1.03 * other, (chip, own, other)
    alone = results["split_keys=true,split_size=512"]
    assert (results[""]["blocks"], alone["blocks"]) == (6, 2), results
    assert alone["warp_instructions"] < results[""]["warp_instructions"], results
    assert alone["modelled_cycles"] > 2 * own, results
