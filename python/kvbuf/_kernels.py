# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels by (source, chip, schedule, version): problems' in memory, then all on
disk, then compiled."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import hashlib
import json
import os
import pathlib
import shutil
import struct
import threading
from typing import Callable, Iterable

try:
    import fcntl
except ImportError:  # no such locks: two processes may compile the same kernel
    fcntl = None

from . import _artifact, _library
from ._artifact import Artifact
from ._device import Device
from ._library import Error
from ._problem import Problem

_memory: dict = {}
_lock = threading.Lock()
#: Of kernels that are being made: one thread compiles, others wait.
_making: dict = {}

#: Kernels of this version's cache; older ones are evicted like others.
_FORMAT = 1


def cache_dir() -> pathlib.Path | None:
    """Where kernels are kept: ``$KVBUF_CACHE_DIR``, else ``kvbuf`` in the user's
    cache folder. None if ``$KVBUF_CACHE_DIR`` is "none"."""
    named = os.environ.get("KVBUF_CACHE_DIR")
    if named == "none":
        return None
    if named:
        return pathlib.Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return pathlib.Path(base) / "kvbuf"
    try:
        return pathlib.Path.home() / ".cache" / "kvbuf"
    except RuntimeError:  # nobody's home
        return None


def cache_limit() -> int:
    """Bytes that the cache may hold: ``$KVBUF_CACHE_MB``, by default 1024,
    times 2^20. The kernels that were used longest ago go first."""
    text = os.environ.get("KVBUF_CACHE_MB", "1024")
    try:
        return int(text) << 20
    except ValueError:
        raise Error(f"KVBUF_CACHE_MB is '{text}'; expected a number of "
                    "mebibytes") from None


def _build_id(path) -> str:
    """What tells builds of a library apart: its GNU build id, else its size and
    time."""
    with open(path, "rb") as file:
        head = file.read(4096)
    at = head.find(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
    if at >= 0:
        return head[at + 16:at + 36].hex()
    status = os.stat(path)
    return hashlib.sha256(struct.pack(
        "qq", status.st_size, status.st_mtime_ns)).hexdigest()[:40]


def _compiler_id(options) -> str:
    """The builds of what compiles with these options; "" on a machine that has no
    compiler."""
    path = _library.compiler_path()
    if not path:
        return ""
    return _tools_id(path, options.get("ptxas"),
                     options.get("machine_code", True),
                     os.environ.get("KVBUF_PTXAS"), os.environ.get("PATH"),
                     os.environ.get("CUDA_HOME"))


@functools.lru_cache(maxsize=None)
def _tools_id(compiler, ptxas, code, named, path, home):
    if not ptxas and code:  # as the compiler looks for it
        ptxas = named or shutil.which("ptxas", path=path) or shutil.which(
            "ptxas", path=os.pathsep.join(
                ([home + "/bin"] if home else []) + ["/usr/local/cuda/bin"]))
    said = [_build_id(compiler)]
    if ptxas and ptxas != "none" and os.path.exists(ptxas):
        status = os.stat(ptxas)
        said += [ptxas, status.st_size, status.st_mtime_ns]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def _key(source, name, options) -> str:
    said = json.dumps([_FORMAT, _library.version(), source.decode(
        errors="surrogateescape"), name, options], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()[:40]


def options_for(chip, schedule, emulated):
    """kvbufCompile's."""
    options = {"target": chip}
    if schedule:
        options["schedule"] = schedule
    if emulated:
        # The emulator runs the target stage; code would be made for nothing.
        options["machine_code"] = False
    return options


def find(problem: Problem, chip: str, schedule: str | None = None,
         emulated: bool = False) -> Artifact:
    """The kernel of a problem for a chip, compiled if no cache has it.

    ``emulated``: for the emulator alone, so without machine code for a GPU.
    Raises Error if the problem does not compile, or there is no compiler."""
    key = (problem, chip, schedule, emulated)
    while True:
        kernel = _memory.get(key)
        if kernel is not None:
            return kernel
        with _lock:
            done = _making.get(key)
            mine = done is None
            if mine:
                done = _making[key] = threading.Event()
        if not mine:
            done.wait()
            continue
        try:
            kernel = _memory[key] = _load_or_compile(*key)
            return kernel
        finally:
            with _lock:
                del _making[key]
            done.set()


def known() -> list[Problem]:
    """The problems that this process has used, for `precompile`."""
    return list(dict.fromkeys(key[0] for key in _memory
                              if isinstance(key[0], Problem)))


def _load_or_compile(problem, chip, schedule, emulated):
    own = getattr(problem, "schedule", None)  # Not of appends.
    return compiled(problem.source().encode(), "<problem>",
                    options_for(chip, schedule or own, emulated))


def compiled(source, name, options) -> Artifact:
    """The artifact of MLIR in bytes, from the disk where it is there."""
    folder = cache_dir()
    if folder is None:
        return _artifact._compile(source, name, options)
    entry = _key(source, name, options)
    compiler = _compiler_id(options)
    kernel = _load(folder, entry, compiler)
    if kernel is not None:
        return kernel
    with _turn(folder, entry):
        kernel = _load(folder, entry, compiler)  # another process's
        if kernel is not None:
            return kernel
        kernel = _artifact._compile(source, name, options)
        try:
            kernel.save(folder / f"{entry}-{compiler}.kvbuf")
        except Error:  # a full or read-only disk costs no call
            return kernel
    _evict(folder, cache_limit())
    return kernel


def _load(folder, name, compiler):
    """The kernel on disk, None if there is none. A damaged one is removed."""
    if compiler:
        paths = [folder / f"{name}-{compiler}.kvbuf"]
    else:  # no compiler could make another: the newest one is right
        paths = sorted(folder.glob(f"{name}-*.kvbuf"), reverse=True,
                       key=lambda p: p.stat().st_mtime)
    for path in paths:
        if not path.exists():
            continue
        try:
            kernel = _artifact.load(path)
        except Error:
            with contextlib.suppress(OSError):
                path.unlink()
            continue
        with contextlib.suppress(OSError):
            os.utime(path)  # was used now
        return kernel
    return None


@contextlib.contextmanager
def _turn(folder, name):
    """One process at a time makes this kernel. Without a place for the lock, all
    of them do."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / f"lock-{name[:2]}", "ab") if fcntl else None
    except OSError:
        file = None
    if file is None:
        yield
        return
    with file:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _evict(folder, limit):
    """Removes what was used longest ago until the rest fits."""
    entries = []
    for path in folder.glob("*.kvbuf"):
        with contextlib.suppress(OSError):
            status = path.stat()
            entries.append((status.st_mtime_ns, status.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size


def clear_cache() -> None:
    """Removes every kernel from the disk; those in use stay in memory."""
    if folder := cache_dir():
        _evict(folder, -1)


def precompile(problems: Iterable[Problem | dict] | str | os.PathLike,
               target: str | None = None, schedule: str | None = None, *,
               emulated: bool | None = None, background: bool = False,
               progress: Callable[[int, int, Problem], None] | None = None):
    """Makes kernels ahead of their use: those of a list of problems, or of a
    file that `save_problems` has written.

    ``target`` is a chip; by default the GPU's. ``emulated`` is true by default
    where there is no GPU. ``progress`` is told (done, all, problem) after each.
    With ``background`` a thread of its own compiles, and the call returns a
    concurrent.futures.Future at once; its result, as else that of the call, is
    the list of artifacts. The first Error ends it."""
    if isinstance(problems, (str, os.PathLike)):
        with open(problems, encoding="utf-8") as file:
            problems = json.load(file)
    problems = [p if isinstance(p, Problem) else Problem(**p) for p in problems]
    chip, on_emulator = default_chip()
    if target is not None:
        chip = target
    if emulated is None:
        emulated = on_emulator and target is None

    def work():
        made = []
        for problem in problems:
            made.append(find(problem, chip, schedule, emulated))
            if progress:
                progress(len(made), len(problems), problem)
        return made

    if not background:
        return work()
    pool = concurrent.futures.ThreadPoolExecutor(1, "kvbuf-precompile")
    try:
        return pool.submit(work)
    finally:
        pool.shutdown(wait=False)


def save_problems(path: str | os.PathLike,
                  problems: Iterable[Problem] | None = None) -> None:
    """Writes a list for `precompile`, by default of all problems that this
    process has used, as JSON."""
    problems = known() if problems is None else problems
    with open(path, "w", encoding="utf-8") as file:
        json.dump([p.to_dict() for p in problems], file, indent=1)
        file.write("\n")


@functools.lru_cache(maxsize=1)
def _gpu_chip() -> str:
    for kind in ("cuda", "hip"):
        try:
            if chip := Device.shared(kind).chip:
                return chip
        except Error:
            pass
    return ""


def emulated_chip() -> str:
    """The chip that the emulator stands for: ``$KVBUF_EMULATE``, by default
    "sm_80"."""
    return os.environ.get("KVBUF_EMULATE") or _artifact.DEFAULT_TARGET


def chip_on(name: str) -> str:
    """What to compile for where tensors lie on the device ``name``."""
    if name == "emulator":
        return emulated_chip()
    device = Device.shared(name)
    if not device.chip:
        raise Error(f"no target fits {device.description}; "
                    "expected one of the chips that kvbuf makes code for")
    return device.chip


def default_chip() -> tuple[str, bool]:
    """(chip, whether it is emulated) of a machine."""
    chip = _gpu_chip()
    return (chip, False) if chip else (emulated_chip(), True)
