"""Writes a file of results as kvbuf-tune does: results.py FILE KEY=VALUE...
SCHEDULE:MEDIAN:LOW:HIGH..., in microseconds; SCHEDULE:COUNT for instructions,
SCHEDULE:CYCLES:INSTRUCTIONS for a model."""

import json
import sys

record = {"version": "0.1.0", "commit": "0123456789ab", "date": "2026-11-22T18:00:00Z",
          "chip": "sm_90a", "device": "NVIDIA H200", "sizes": {"batch": 4}, "ranked_by": "time",
          "results": []}
for arg in sys.argv[2:]:
    if "=" in arg and ":" not in arg:
        key, value = arg.split("=")
        record[key] = value
        continue
    schedule, *numbers = arg.split(":")
    numbers = [float(n) for n in numbers]
    keys = ["median_us", "lower_quartile_us", "upper_quartile_us"]
    if len(numbers) == 1:
        record["ranked_by"], keys = "instructions", ["warp_instructions"]
    if len(numbers) == 2:
        record["ranked_by"], keys = "model", ["modelled_cycles", "warp_instructions"]
    record["results"].append({"schedule": schedule, **dict(zip(keys, numbers))})
json.dump(record, open(sys.argv[1], "w"))
