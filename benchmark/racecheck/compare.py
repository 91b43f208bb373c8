"""Compares the emulator's detectors with compute-sanitizer's racecheck.

    compare.py [--emulator=kvbuf-emulate] [--out=FILE.json] [--no-gpu]

cases.cu has 40 kernels, each right and with one planted race. A race that is named in
the wrong one counts as caught; one that is named in the right one is a false alarm.
Without a GPU only the emulator's half is run (as with --no-gpu); on a machine with one,
nvcc and compute-sanitizer are found in PATH or in /usr/local/cuda/bin.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE / "cases.cu"


def find(tool):
    return shutil.which(tool, path=os.pathsep.join([os.environ.get("PATH", ""),
                                                    "/usr/local/cuda/bin"]))


def case_names():
    text = SOURCE.read_text()
    listed = text[text.index("#define ALL_CASES"):text.index("#define INSTANCES")]
    return re.findall(r"X\((\w+)\)", listed)


def bitcode(folder, emulator):
    """The kernels for the emulator: by clang once, where there is one."""
    made = folder / "cases.bc"
    done = subprocess.run([emulator, str(SOURCE), "--list", f"--keep={made}"],
                          capture_output=True, text=True, check=False)
    return made if done.returncode == 0 and made.exists() else SOURCE


def emulate(emulator, code, name, right):
    """Whether the emulator names a fault: True, False, or None: it refuses."""
    try:
        done = subprocess.run(
            [emulator, str(code), f"--kernel={name}<{'true' if right else 'false'}>",
             "--grid=2", "--block=256", "i32[1024]=0", "i32[1024]=random"],
            capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return None
    return {0: False, 1: True}.get(done.returncode)


def sanitize(program, sanitizer, name, right):
    """Whether racecheck names a hazard: True, False, or None and why: it did not run."""
    try:
        done = subprocess.run(
            [sanitizer, "--tool", "racecheck", "--racecheck-report", "all",
             str(program), name, "right" if right else "wrong"],
            capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return None, "no end within 120 s"
    found = re.search(r"RACECHECK SUMMARY: (\d+) hazards? displayed", done.stdout)
    if not found or done.returncode == 2:
        return None, (done.stdout + done.stderr).strip()[-300:]
    return int(found.group(1)) > 0, ""


def measure(case, code, program, options, sanitizer):
    row = {"case": case}
    for side, right in [("caught", False), ("false_alarm", True)]:
        if code:
            row[f"emulator_{side}"] = emulate(options.emulator, code, case, right)
        if program:
            row[f"racecheck_{side}"], why = sanitize(program, sanitizer, case, right)
            if why:
                row[f"racecheck_{side}_why"] = why
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--emulator", default="kvbuf-emulate")
    parser.add_argument("--out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--no-gpu", action="store_true")
    parser.add_argument("--no-emulator", action="store_true")
    options = parser.parse_args()
    nvcc, sanitizer = find("nvcc"), find("compute-sanitizer")
    with_gpu = bool(not options.no_gpu and nvcc and sanitizer
                    and os.path.exists("/dev/nvidiactl"))
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = folder / "cases" if with_gpu else None
        if program:
            subprocess.run([nvcc, "-O2", "-lineinfo", "-std=c++17", "-arch=native",
                            "-DWITH_MAIN", "-o", str(program), str(SOURCE)],
                           check=True)
        code = None if options.no_emulator else bitcode(folder, options.emulator)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for row in pool.map(lambda case: measure(case, code, program, options,
                                                     sanitizer), case_names()):
                rows.append(row)
                print(" ".join(f"{k}={v}" for k, v in row.items()), flush=True)
    for who in ["emulator", "racecheck"]:
        if f"{who}_caught" in rows[0]:
            caught = sum(r[f"{who}_caught"] is True for r in rows)
            alarms = sum(r[f"{who}_false_alarm"] is True for r in rows)
            silent = sum(None in (r[f"{who}_caught"], r[f"{who}_false_alarm"])
                         for r in rows)
            print(f"{who}: {caught} of {len(rows)} caught, {alarms} false alarms, "
                  f"{silent} not run")
    if "emulator_caught" in rows[0] and "racecheck_caught" in rows[0]:
        both = sum(r["emulator_caught"] is True and r["racecheck_caught"] is True
                   for r in rows)
        print(f"both: {both}")
    if options.out:
        pathlib.Path(options.out).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
