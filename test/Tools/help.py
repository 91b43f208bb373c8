"""Each tool's help lists all that its options may be: chips, parameters of
schedules, the emulator's options. What there is, the sources tell. LLVM's own
options, of which there are hundreds, are left out.

RUN: %python %s %src
"""

import pathlib
import re
import subprocess
import sys

source = pathlib.Path(sys.argv[1])


def names(path, pattern):
    found = re.findall(pattern, (source / path).read_text())
    assert len(found) > 5, (path, found)
    return set(found)


chips = names("include/kvbuffer/Target/Chips.def", r'KVBUF_CHIP\("(\w+)"\)')
schedule = names("include/kvbuffer/Dialect/KVBuffer/IR/ScheduleParameters.def",
                 r'KVBUF_(?:TILE|SCHEDULE)_PARAMETER\([^"]*"(\w+)"')
emulator = names("lib/Emulator/Options.cpp", r'\bname == "(\w+)"')
# Those that only the runtime knows.
emulator |= {"landing", "check_lengths", "multiprocessors"}
lists = {"kvbuf-run": [chips, schedule, emulator], "kvbuf-tune": [chips, schedule, emulator],
         "kvbuf-compile": [chips, schedule], "kvbuf-emulate": [emulator]}
for tool, wanted in lists.items():
    text = subprocess.run([tool, "--help"], check=True, text=True, capture_output=True).stdout
    assert max(map(len, text.splitlines())) < 1000, tool
    words = set(re.findall(r"[\w.]+", text))
    for group in wanted:
        assert group <= words, f"{tool} --help lacks {sorted(group - words)}"
# A tool's own options, and nobody else's.
own = {"kvbuf-lsp-server": {"log", "pretty"},
       "kvbuf-inspect": {"extract", "function", "json"},
       **{f"kvbuf-{tool}": {"function"} for tool in ("compile", "run", "tune")},
       "kvbuf-compare": {"csv", "fail-above"},
       "kvbuf-tile-run": names("tools/kvbuf-tile-run/kvbuf-tile-run.cpp",
                               r'cl::(?:opt|list)<[^=;]*?>\s*\w+\(\s*"([\w-]+)"')}
for tool in own.keys() | lists:
    text = subprocess.run([tool, "--help"], check=True, text=True, capture_output=True).stdout
    options = set(re.findall(r"--([\w-]+)", text))
    assert own.get(tool, set()) <= options, (tool, own[tool] - options)
    assert not {o for o in options if re.match("aarch64|amdgpu|x86|polly", o)}, tool
# The compiler knows these chips and no others.
message = subprocess.run(["kvbuf-compile", "--target=sm_1", "x"], text=True,
                         capture_output=True).stderr
assert set(message.split("one of ")[1].strip().split(", ")) == chips, message
