# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts: compile, load, call."""

import array
import collections
import ctypes
import json
import operator
import os
import sys
import threading
import weakref
from ctypes import c_int32, c_int64

from . import _compiled, _tensors
from ._device import Device
from ._library import Error, Size, Tensor, check, check_handle, lib

#: What is compiled for when there is no GPU to ask.
DEFAULT_TARGET = "sm_80"


def compile(source, target=None, schedule=None, machine_code=True):
    """Compiles MLIR with ``kvbuffer.attention`` problems to an Artifact.

    ``source`` is a path, or the text itself (bytes, or a string of more than
    one line). ``target`` is a chip, as "sm_90", and overrules the one that the
    module names (``kvbuffer.target``); by default that one, else that of the
    GPU, if there is one, else "sm_80". ``schedule`` overrides the compiler's
    choice, as "BM=128,BN=64". ``machine_code=False`` leaves out the code for a GPU:
    compiled several times as fast, for the emulator alone. What has been compiled
    before, by this or another process, comes from the disk (`cache_dir`).
    """
    from . import _kernels  # which needs this module
    name = "<string>"
    if isinstance(source, os.PathLike) or (isinstance(source, str)
                                           and "\n" not in source):
        name = os.fspath(source)
        try:
            with open(name, "rb") as file:
                source = file.read()
        except OSError as e:
            raise Error(f"cannot open '{name}': {e.strerror}") from e
    elif isinstance(source, str):
        source = source.encode()
    elif not isinstance(source, bytes):
        raise TypeError(f"source has type {type(source).__name__}; expected a path, or "
                        "MLIR as text or bytes")
    options = ({"target": target} if target
               else {"default_target": _default_target()})
    if schedule:
        options["schedule"] = schedule
    if not machine_code:
        options["machine_code"] = False
    return _kernels.compiled(source, name, options)


def _compile(source, name, options):
    """The artifact of MLIR in bytes; ``options`` are kvbufCompile's."""
    return Artifact(check_handle(lib.kvbufArtifactCompile(
        source, len(source), name.encode(), json.dumps(options).encode())))


def load(path):
    """Reads a ``.kvbuf`` file; no compiler is needed. Of one with several
    functions, ``load(path)[name]`` is one."""
    return Artifact(check_handle(
        lib.kvbufArtifactOpenFile(os.fsencode(os.fspath(path)))))


def _names_in(expression):
    """The size names in an expression of the manifest, or a list of them."""
    if isinstance(expression, str):
        return {expression}
    if isinstance(expression, dict):
        expression = expression.values()
    elif not isinstance(expression, list):
        return set()
    return set().union(*map(_names_in, expression))


def _size_text(expression):
    """A size of a shape in the manifest, as messages show it."""
    if not isinstance(expression, dict):
        return str(expression)
    (op, operands), = expression.items()
    operands = [_size_text(x) for x in operands]
    joint = {"sum": "+", "product": "*"}.get(op)
    return joint.join(operands) if joint else f"{op}({', '.join(operands)})"


def _default_target():
    for kind in ("cuda", "hip"):
        try:
            if chip := Device.shared(kind).chip:
                return chip
        except Error:
            pass
    return DEFAULT_TARGET


def _size(name, value):
    """A size as an integer that the kernel can take."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < 2**31:
        raise Error(f"size '{name}' is {value!r}; expected an integer from 0 to "
                    f"{2**31 - 1}")
    return number


class Artifact:
    """A compiled kernel. Call it with its tensors by name::

        o = artifact(q=q, k=k, v=v)
        artifact(q=q, k=k, v=v, out=o)

    A module with several functions makes one Artifact, which holds them by name.
    Each is an Artifact, too, and is called like any other::

        artifact.names
        o = artifact["decode"](q=q, k=k, v=v)

    Names with a dot take an underscore (``k.table`` is ``k_table``), and
    ``out`` is ``o``. Outputs that are not given are allocated like ``q`` and
    returned: one as itself, several as a named tuple. Sizes are keywords too;
    shapes tell them, but for ``seq_q``, the longest query of a ragged batch. It
    need not be given; it chooses between kernels of few and of many rows and
    orders the work; rows of a sequence past it are computed, but slowly.

    ``device`` overrides where to run (a Device or a name), ``stream`` the
    stream (the driver's handle as an integer).

    Threads may call one Artifact at once; on the emulator they take turns.

    Repeated calls on torch tensors of the same shapes, strides and types only
    pass their addresses on. Under ``torch.compile`` a call is one operator of
    the graph.
    """

    #: Combinations of shapes, strides and types that are remembered.
    MOST_PLANS = 1024

    def __init__(self, handle):
        self.handle = handle
        self._finalizer = weakref.finalize(self, lib.kvbufArtifactClose, handle)
        #: The manifest, as a dictionary.
        self.manifest = json.loads(lib.kvbufArtifactManifest(handle))
        #: The names of its functions.
        self.names = tuple(
            lib.kvbufArtifactFunctionName(handle, number).decode()
            for number in range(lib.kvbufArtifactFunctionCount(handle)))
        self._functions = {}
        # Of several functions none can be called before it is chosen.
        kernels = self.manifest.get("kernels", [])
        self._specs = {t["name"]: t for t in self.manifest.get("tensors", [])}
        self._names = {n.replace(".", "_"): n for n in self._specs}
        problem = self.manifest.get("problem", {})
        #: Names of tensors by their parts in the problem, where they differ.
        self._parts = problem.get("tensors", {})
        if self._part("o") in self._specs:
            self._names["out"] = self._part("o")
        #: Arguments that a call writes.
        self._written = [key for key, n in self._names.items()
                         if self._specs[n]["access"] != "read"]
        self._outputs = [n for n, t in self._specs.items()
                         if t["access"] == "write"]
        self._sizes = set().union(
            *(_names_in(arg.get("name", arg.get("value")))
              for kernel in kernels
              for arg in kernel["args"] if arg["kind"] == "size"))
        for kernel in kernels:
            self._sizes |= _names_in(kernel["grid"])
        for tensor in [*self._specs.values(),
                       *self.manifest.get("scratch", [])]:
            self._sizes |= _names_in(tensor["shape"])
        self._sizes.discard("sms")  # the device's to tell
        self._outputs_type = collections.namedtuple(
            "Outputs", [n.replace(".", "_") for n in self._outputs])
        self._plans = {}
        self._number = _compiled.enter(self)
        self._operators = None
        self._ragged = (problem.get("query") == "ragged" and problem.get("op") in
                        ("attention", "attention_of_own_scores"))
        # Not all kernels ask for those; callers may say them to all.
        if self._ragged:
            self._sizes |= {"seq_q", "shortest_q"}
        for kernel in kernels:
            self._sizes |= set(kernel.get("defaults", ()))
        self._modules = {}
        self._loading = threading.Lock()
        self._last = None

    @staticmethod
    def _missing(name, spec):
        """That a tensor is missing, by the name that callers give it."""
        shape = ", ".join(map(_size_text, spec["shape"]))
        return (f"missing tensor '{name.replace('.', '_')}': {spec['dtype']} of "
                f"shape [{shape}]")

    def _part(self, role):
        """The name of the tensor with this part in the problem."""
        return self._parts.get(role, role)

    @property
    def name(self):
        """The kernel's name."""
        return self.manifest["name"]

    def __getitem__(self, name):
        """The function of this name, as an Artifact."""
        if not isinstance(name, str):
            raise TypeError(f"functions have names; {name!r} is none")
        if self.names == (name,):
            return self
        function = self._functions.get(name)
        if function is not None:
            return function
        with self._loading:
            function = self._functions.get(name)
            if function is None:
                function = self._functions[name] = Artifact(check_handle(
                    lib.kvbufArtifactFunction(self.handle, name.encode())))
        return function

    def __iter__(self):
        """The names of its functions."""
        return iter(self.names)

    def __repr__(self):
        first = self.manifest.get("functions", [{"manifest": self.manifest}])[0]
        chip = first["manifest"]["target"]["chip"]
        holds = ", ".join(self._names if len(self.names) == 1 else self.names)
        return f"<kvbuf.Artifact {self.name} for {chip}: {holds}>"

    def save(self, path):
        """Writes a ``.kvbuf`` file, whole or not at all."""
        check(lib.kvbufArtifactSave(self.handle, os.fsencode(os.fspath(path))))

    def report(self):
        """What the emulator counted in the last call, as a dictionary; empty
        on a GPU."""
        text = lib.kvbufModuleReport(self._last.handle) if self._last else b""
        return json.loads(text) if text else {}

    def remarks(self):
        """What was decided in the last call, as a list of lines: which kernel
        ran in place of another, and why."""
        text = lib.kvbufModuleRemarks(self._last.handle) if self._last else b""
        return text.decode(errors="replace").splitlines()

    def __call__(self, *, device=None, stream=None, **arguments):
        torch = sys.modules.get("torch")
        if torch is None:
            return self._launch(None, device, stream, arguments)
        if torch.compiler.is_compiling() or _compiled.is_watched(
                self, torch, arguments):
            return _compiled.call(self, torch, device, stream, arguments)
        # What a plan follows from. Subclasses may lie about their memory.
        key, data = [device], []
        tensor = torch.Tensor
        try:
            for name, value in arguments.items():
                if type(value) is tensor:
                    key += (name, value.shape, value.stride(), value.dtype,
                            value.device, value.requires_grad)
                    data.append(value.data_ptr())
                elif value is None or type(value) is int:
                    key += (name, value)
                else:
                    return self._launch(None, device, stream, arguments)
        except RuntimeError:  # a tensor without strides, or without memory
            return self._launch(None, device, stream, arguments)
        key = tuple(key)
        plan = self._plans.get(key)
        if plan is None:
            return self._launch(key, device, stream, arguments)
        results = plan.made
        if results:
            like = arguments.get(self._part("q"))
            results = [
                torch.empty_like(like) if shape is None
                else torch.empty_strided(shape, strides, dtype=dtype,
                                         device=where)
                for shape, strides, dtype, where in results]
            data += [result.data_ptr() for result in results]
        if len(results) != len(self._outputs):
            results = plan.results(arguments, results)
        if stream is None:
            stream = plan.stream()
        addresses = array.array("Q", data)
        status = plan.launch(plan.handle, addresses.buffer_info()[0], stream)
        if status:
            check(status)
        for name in self._written:
            if arguments.get(name) is not None:
                _tensors.changed(arguments[name])
        self._last = plan.module
        if len(results) == 1:
            return results[0]
        return self._outputs_type(*results)

    def plan(self, tensors, sizes):
        """A launch on tensors of these shapes, strides and types, by the names
        of `__call__`; outputs are among them. Addresses come in this order."""
        given, sizes = self._sort({**tensors, **sizes})
        return self.plan_of({name: _tensors.view(name, t)
                             for name, t in given.items()}, sizes)

    def plan_of(self, views, sizes, device=None):
        """`plan` of TensorViews, by the manifest's names, on a device."""
        size_array = (Size * max(len(sizes), 1))(
            *[Size(name.encode(), _size(name, value))
              for name, value in sizes.items()])
        packed, _keep = self._pack(views)
        return _Plan(self._module(device or self._place(views, None)), packed,
                     len(views), size_array, len(sizes))

    def _launch(self, key, device, stream, arguments):
        """Any call; remembers a plan under `key` if that is not None."""
        given, sizes = self._sort(arguments)
        if not given:
            raise Error(f"no tensor is given; the kernel takes "
                        f"{', '.join(self._names)}")
        for name, spec in self._specs.items():
            if name not in given and name not in self._outputs:
                raise Error(self._missing(name, spec))
        views = {name: _tensors.view(name, t) for name, t in given.items()}
        like = given.get(self._part("q"), next(iter(given.values())))
        where = self._place(views, device)
        if self._ragged and "seq_q" not in sizes:
            longest = self._longest_query(views)
            if longest is not None:
                sizes["seq_q"] = longest
                key = None  # what the offsets hold may change
        size_array = (Size * max(len(sizes), 1))(
            *[Size(name.encode(), _size(name, value))
              for name, value in sizes.items()])
        missing = [n for n in self._outputs if n not in given]
        for name in missing:
            tensors, _keep = self._pack(views)
            shape = (c_int64 * 16)()
            rank = c_int32()
            check(lib.kvbufArtifactInferShape(
                self.handle, name.encode(), tensors, len(views), size_array,
                len(sizes), shape, ctypes.byref(rank)))
            given[name] = _tensors.allocate(
                name, like, self._specs[name]["dtype"],
                tuple(shape[:rank.value]))
            views[name] = _tensors.view(name, given[name])
        for name, view in views.items():
            if (not view.writable and name in self._specs
                    and self._specs[name]["access"] != "read"):
                raise Error(f"output '{name}' is read-only")
        place = next(iter(views.values())).device
        if stream is None:
            stream = _tensors.current_stream(like, place)
        tensors, _keep = self._pack(views)
        module = self._module(where)
        plan = _Plan(module, tensors, len(views), size_array, len(sizes))
        data = array.array("Q", [view.address for view in views.values()])
        check(plan.launch(plan.handle, data.buffer_info()[0], stream))
        made = getattr(new_plans, "seen", None)
        if made is not None and key is not None:
            made.append(plan)
        for name in self._written:
            if arguments.get(name) is not None:
                _tensors.changed(arguments[name])
        self._last = module
        if key is not None:
            plan.remember(self, like, given, missing, place)
            if len(self._plans) >= self.MOST_PLANS:
                self._plans = {}
            self._plans[key] = plan
        results = [given[name] for name in self._outputs]
        if len(results) == 1:
            return results[0]
        return self._outputs_type(*results)

    def _sort(self, arguments):
        """Keyword arguments as (tensors, sizes) under the manifest's names."""
        if len(self.names) > 1:
            raise Error(f"the artifact has {len(self.names)} functions; call "
                        "one of them: " + ", ".join(
                            f'artifact["{name}"]' for name in self.names))
        given, sizes = {}, {}
        for key, value in arguments.items():
            if value is None:
                continue
            if key in self._names:
                if self._names[key] in given:
                    raise Error("'out' and 'o' are the same tensor")
                given[self._names[key]] = value
            elif key in self._sizes:
                sizes[key] = value
            else:
                known = ", ".join([*self._names, *sorted(self._sizes)])
                raise TypeError(f"{self.name} takes no argument '{key}'; it "
                                f"takes {known}")
        return given, sizes

    def _place(self, views, device):
        """The device that the tensors, or the caller, ask for."""
        places = {view.device: name for name, view in views.items()}
        if len(places) > 1:
            text = ", ".join(f"'{n}' on {p}" for p, n in places.items())
            raise Error(f"tensors lie on several devices: {text}")
        place = next(iter(places))
        if isinstance(device, str):
            device = Device.shared(device)
        if device is None:
            return Device.shared("emulator" if place == "host" else place)
        if (device.kind == "emulator") != (place == "host"):
            raise Error(f"tensors on {place} cannot be used on {device!r}")
        return device

    def _longest_query(self, views):
        """From the offsets, where that costs no synchronization, else None."""
        offsets = views.get(self._part("q_offsets"))
        kinds = {"i32": c_int32, "i64": c_int64}
        if (offsets is None or offsets.dtype not in kinds
                or len(offsets.shape) != 1):
            return None  # the launch reports the missing or wrong tensor
        if offsets.device != "host":
            return None
        count = offsets.shape[0]
        step = offsets.strides[0] if offsets.strides else 1
        kind = kinds[offsets.dtype]
        size = ctypes.sizeof(kind)
        at = [kind.from_address(offsets.address + size * step * i).value
              for i in range(count)]
        queries = views.get(self._part("q"))
        rows = queries.shape[0] if queries and queries.shape else 0
        for a, b in zip(at, at[1:]):
            if not 0 <= a <= b <= rows:
                raise Error(f"tensor '{self._part('q_offsets')}' has {a}, {b} "
                            "in turn; expected offsets that never fall, from 0 "
                            f"to {rows}, the rows of '{self._part('q')}'")
        return max((b - a for a, b in zip(at, at[1:])), default=0)

    def _module(self, device):
        module = self._modules.get(id(device))
        if module is None:
            with self._loading:
                module = self._modules.get(id(device))
                if module is None:
                    module = self._modules[id(device)] = _Module(device, self)
        return module

    def _pack(self, views):
        """(array of kvbufTensor, what must stay alive while it is used)."""
        array, keep = (Tensor * len(views))(), []
        for slot, (name, view) in zip(array, views.items()):
            rank = len(view.shape)
            shape = (c_int64 * max(rank, 1))(*view.shape)
            strides = (None if view.strides is None else
                       (c_int64 * max(rank, 1))(*view.strides))
            keep += [shape, strides]
            dtype = view.dtype
            if dtype == "u16":  # raw words stand for bfloat16
                dtype = "bf16"
            slot.name, slot.data = name.encode(), view.address
            slot.dtype, slot.rank = dtype.encode(), rank
            slot.shape = shape
            slot.strides = strides
        return array, keep


#: `seen`: a list that gets each plan that this thread's launches make and could keep;
#: addresses are in the order of the call's tensors, outputs last. None: nowhere.
new_plans = threading.local()


class _Plan:
    """A launch whose addresses alone are open. Keeps its module alive."""

    def __init__(self, module, tensors, count, sizes, size_count):
        self.module = module
        self.launch = (self._emulate if module.device._emulates
                       else lib.kvbufPlanLaunch)
        self.handle = check_handle(lib.kvbufPlanCreate(
            module.handle, tensors, count, sizes, size_count))
        self._finalizer = weakref.finalize(self, lib.kvbufPlanDestroy,
                                           self.handle)

    def _emulate(self, *arguments):
        """kvbufPlanLaunch, which Ctrl-C ends."""
        self.module.device._run(
            lambda: check(lib.kvbufPlanLaunch(*arguments)))

    def remember(self, artifact, like, given, missing, place):
        """What else a call on torch tensors needs."""
        #: (shape, strides, type, device) of each output that the call
        #: allocates; a shape of None stands for a tensor like q.
        self.made = []
        for name in missing:
            tensor = given[name]
            same = (like is given.get(artifact._part("q"))
                    and like.is_contiguous()
                    and like.dtype == tensor.dtype
                    and like.shape == tensor.shape)
            self.made.append((None if same else tuple(tensor.shape),
                              tensor.stride(), tensor.dtype, tensor.device))
        keys = {n: key for key, n in artifact._names.items()}
        result = artifact._part("o")
        aliases = {result: (result.replace(".", "_"), "out")}
        self.slots = [None if name in missing
                      else aliases.get(name, (keys[name],))
                      for name in artifact._outputs]
        #: The current stream of the tensors' device.
        self.stream = _tensors.stream_getter(like, place)

    def results(self, arguments, made):
        """All outputs, those of the caller among them."""
        made = iter(made)
        return [next(made) if names is None else
                next(arguments[n] for n in names
                     if arguments.get(n) is not None)
                for names in self.slots]


class _Module:
    """An artifact loaded on a device, which it keeps alive."""

    def __init__(self, device, artifact):
        self.device = device
        self.handle = check_handle(
            lib.kvbufModuleLoad(device.handle, artifact.handle))
        self._finalizer = weakref.finalize(self, lib.kvbufModuleUnload,
                                           self.handle)
