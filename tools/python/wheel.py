#!/usr/bin/env python3
# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs wheels of a build tree; also the build backend of pyproject.toml.

    tools/python/wheel.py [--level=9] BUILD OUT [kvbuf] [kvbuf-runtime]

Writes both by default, compressed at this level, and prints their sizes.
``kvbuf`` holds the package, the runtime, the compiler with the emulator, the
LLVM that these were built with, its linker, and every library that a bare
machine may lack (not those of the C and C++ languages). ``kvbuf-runtime`` holds
the package and the runtime alone: it launches kernels that were compiled
elsewhere. Both install the package `kvbuf`, so one of them at a time.

Needs strip, readelf and ldd, and for ``kvbuf`` patchelf, so that the libraries
find each other.
"""

import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Parts of every Linux system that runs Python: the C library, and the C++
#: library, of which a process must have one alone.
SYSTEM = re.compile(r"^(ld-linux.*|linux-vdso|lib(c|m|dl|pthread|rt|util|gcc_s|"
                    r"stdc\+\+))\.so")
COMPILER, RUNTIME = "libKVBufferC.so", "libkvbuf_runtime.so"


class CannotPack(Exception):
    """Something is missing; the message says what."""


def run(*command):
    try:
        return subprocess.run(command, check=True, capture_output=True,
                              text=True).stdout
    except FileNotFoundError:
        raise CannotPack(f"{command[0]} was not found; on Debian: apt-get "
                         f"install {command[0]}") from None
    except subprocess.CalledProcessError as e:
        raise CannotPack(f"{' '.join(map(str, command))} failed:\n{e.stderr}"
                         ) from None


def project(key):
    """A string of pyproject.toml's [project]; Python 3.10 has no reader."""
    text = (ROOT / "pyproject.toml").read_text()
    return re.search(rf'^{key} = "(.*)"$', text, re.MULTILINE).group(1)


def libraries(path):
    """{name: file} of what a program loads, the system's parts excepted."""
    found = {}
    for line in run("ldd", path).splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if not arrow or SYSTEM.match(name):
            continue
        if rest.startswith("not found"):
            raise CannotPack(f"{path} needs {name}, which was not found")
        found[name] = pathlib.Path(rest.split(" (")[0]).resolve()
    return found


def platform(files):
    """The platform tag: of the newest C library that a file asks for."""
    minor = 17
    for file in files:
        for version in re.findall(r"GLIBC_2\.(\d+)", run("readelf", "-V", file)):
            minor = max(minor, int(version))
    return f"manylinux_2_{minor}_{os.uname().machine}"


def collect(build, folder, name):
    """Copies the binaries; {path in the wheel: file}."""
    lib = build / "lib"
    chosen = {"kvbuf/lib/" + RUNTIME: lib / RUNTIME}
    if name == "kvbuf":
        chosen["kvbuf/lib/" + COMPILER] = lib / COMPILER
        tools = re.search(r"^LLVM_DIR:[^=]*=(.*)/lib/cmake/llvm$",
                          (build / "CMakeCache.txt").read_text(), re.MULTILINE)
        linker = pathlib.Path(tools.group(1)) / "bin" / "ld.lld" if tools else None
        if linker is None or not linker.exists():
            raise CannotPack("ld.lld of the LLVM that kvbuf was built with was "
                             "not found; on Debian: apt-get install lld-22")
        chosen["kvbuf/bin/ld.lld"] = linker.resolve()
        for binary in (lib / COMPILER, linker):
            for soname, file in libraries(binary).items():
                chosen["kvbuf/lib/" + soname] = file
    result = {}
    for inside, file in chosen.items():
        if not file.exists():
            raise CannotPack(f"{file} was not found; build the project first")
        copy = folder / inside
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        copy.chmod(0o755)
        run("strip", "--strip-unneeded", copy)
        if name == "kvbuf":
            run("patchelf", "--set-rpath", "$ORIGIN/../lib", copy)
        result[inside] = copy
    return result


def sources():
    package = ROOT / "python" / "kvbuf"
    return {f"kvbuf/{path.name}": path for path in sorted(package.iterdir())
            if path.suffix == ".py" or path.name == "py.typed"}


def metadata(name):
    about = project("description")
    # The emulator works on numpy's arrays; a server has its framework's.
    requires = "Requires-Dist: numpy\n"
    if name != "kvbuf":
        about += "; runtime without the compiler"
        requires = ("Provides-Extra: numpy\n"
                    "Requires-Dist: numpy; extra == 'numpy'\n")
    return (f"Metadata-Version: 2.1\nName: {name}\nVersion: {project('version')}"
            f"\nSummary: {about}\nRequires-Python: "
            f"{project('requires-python')}\nLicense: Apache-2.0 WITH "
            f"LLVM-exception\n{requires}Provides-Extra: torch\n"
            "Requires-Dist: torch>=2.4; extra == 'torch'\n"
            "Description-Content-Type: text/markdown\n\n"
            + (ROOT / "README.md").read_text()).encode()


def pack(build, out, name="kvbuf", level=9):
    """Writes a wheel and returns its path."""
    build, out = pathlib.Path(build).resolve(), pathlib.Path(out)
    with tempfile.TemporaryDirectory() as folder:
        files = collect(build, pathlib.Path(folder), name)
        tag = f"py3-none-{platform(files.values())}"
        stem = f"{name.replace('-', '_')}-{project('version')}"
        info = stem + ".dist-info"
        contents = {inside: file.read_bytes()
                    for inside, file in {**sources(), **files}.items()}
        contents[f"{info}/METADATA"] = metadata(name)
        contents[f"{info}/WHEEL"] = (
            "Wheel-Version: 1.0\nGenerator: kvbuf\nRoot-Is-Purelib: false\n"
            f"Tag: {tag}\n").encode()
        contents[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
        record = []
        for inside, data in contents.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
            record.append(f"{inside},sha256={digest.rstrip(b'=').decode()},"
                          f"{len(data)}")
        record.append(f"{info}/RECORD,,\n")
        contents[f"{info}/RECORD"] = "\n".join(record).encode()
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"{stem}-{tag}.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            for inside, data in contents.items():
                # The same contents make the same file.
                entry = zipfile.ZipInfo(inside, (2020, 1, 1, 0, 0, 0))
                mode = 0o755 if inside.startswith("kvbuf/bin/") else 0o644
                entry.external_attr = (0o100000 | mode) << 16
                wheel.writestr(entry, data, zipfile.ZIP_DEFLATED, level)
    return path


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """PEP 517. ``KVBUF_BUILD`` names the build tree; by default build/, which is
    made if it is not there."""
    build = pathlib.Path(os.environ.get("KVBUF_BUILD", ROOT / "build"))
    if not (build / "lib" / COMPILER).exists():
        subprocess.run(["make", "-C", ROOT, "build", f"BUILD={build}"], check=True)
    return pack(build, wheel_directory).name


def build_sdist(sdist_directory, config_settings=None):
    raise CannotPack("there is no source package; install from a checkout")


def main():
    levels = [a for a in sys.argv[1:] if a.startswith("--level=")]
    arguments = [a for a in sys.argv[1:] if a not in levels]
    names = arguments[2:] or ["kvbuf", "kvbuf-runtime"]
    if len(arguments) < 2 or not {*names} <= {"kvbuf", "kvbuf-runtime"}:
        sys.exit(__doc__)
    level = int(levels[-1].partition("=")[2]) if levels else 9
    try:
        for name in names:
            path = pack(arguments[0], arguments[1], name, level)
            print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    except CannotPack as e:
        sys.exit(f"wheel: error: {e}")


if __name__ == "__main__":
    main()
