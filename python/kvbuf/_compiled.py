# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Artifacts where torch traces or transforms operators: each is two of these, one
that allocates its outputs and one that is given them."""

import itertools
import sys
import weakref

from ._library import Error

_numbers = itertools.count()
_artifacts = weakref.WeakValueDictionary()


def is_watched(artifact, torch, arguments):
    """Whether more than a launch is wanted of a call, outside of torch.compile:
    what records operators has to see one. Refuses what cannot be given."""
    from . import _torch_state as state
    if not (state.dispatch_modes() or state.function_modes()
            or state.is_traced_by_jit() or state.level() is not None
            or state.forward_ad._current_level >= 0):
        return False
    tensors = [x for x in arguments.values() if isinstance(x, torch.Tensor)]
    name = f"the kernel {artifact.name}"
    if any(map(state.has_tangent, tensors)):
        raise Error(f"{name} has no derivatives in forward mode, and a tensor has "
                    "a tangent")
    return bool(tensors) and state.is_operator(name, *tensors)


def call(artifact, torch, device, stream, arguments):
    """What Artifact.__call__ is while torch traces it."""
    if device is not None or stream is not None:
        raise Error("device and stream cannot be given under torch.compile: "
                    "they are those of the tensors and the graph")
    for name, spec in artifact._specs.items():
        if spec["access"] == "read_write":
            raise Error(f"'{artifact.name}' changes '{name}' in place, which is not "
                        "an operator of a graph yet; call it outside of "
                        "torch.compile")
    given, sizes = artifact._sort(arguments)
    inputs, outputs, names = signature(artifact)
    for name in inputs:
        if name not in given:
            raise Error(artifact._missing(name, artifact._specs[name]))
    own = [given[name] for name in outputs if name in given]
    values = [given[name] for name in inputs]
    numbers = [sizes.get(name) for name in names]
    name = register(artifact._number)
    if not own:
        results = getattr(torch.ops.kvbuf, name).default(*values, *numbers)
        if len(outputs) == 1:
            return results
        return artifact._outputs_type(*results)
    if len(own) != len(outputs):
        raise Error("give all outputs or none under torch.compile: "
                    + ", ".join(outputs))
    getattr(torch.ops.kvbuf, name + "_out").default(*values, *own, *numbers)
    return own[0] if len(own) == 1 else artifact._outputs_type(*own)


def signature(artifact):
    """Names of inputs, outputs and sizes, in the operators' order."""
    inputs = [n for n in artifact._specs if n not in artifact._outputs]
    return inputs, artifact._outputs, sorted(artifact._sizes)


def register(number):
    """The name of an artifact's operators, which are made when they are first
    needed."""
    artifact = _artifacts[number]
    if artifact._operators is None:
        artifact._operators = _register(artifact)
    return f"artifact{number}"


# torch.compile calls this function as it traces, and keeps what it returns; it
# can do so for numbers and text.
register._dynamo_marked_constant = True


def enter(artifact):
    """The artifact's number."""
    number = next(_numbers)
    _artifacts[number] = artifact
    return number


def _register(artifact):
    torch = sys.modules["torch"]
    inputs, outputs, sizes = signature(artifact)
    plain = [n.replace(".", "_") for n in inputs]
    tail = "".join(f", SymInt? {n}=None" for n in sizes)
    head = ", ".join(f"Tensor {n}" for n in plain)
    name = f"kvbuf::artifact{artifact._number}"
    # Operators outlive the artifact.
    me = weakref.ref(artifact)

    def keywords(values):
        return dict(zip([*plain, *sizes], values))

    def run(*values):
        results = me()(**keywords(values))
        return results if len(outputs) == 1 else tuple(results)

    def write(*values):
        given = len(inputs) + len(outputs)
        me()(**keywords(values[:len(inputs)] + values[given:]),
             **{n.replace(".", "_"): value for n, value in
                zip(outputs, values[len(inputs):given])})

    def shapes(*values):
        specs = me()._specs
        known = {n: v for n, v in zip(sizes, values[len(inputs):])
                 if v is not None}
        for n, tensor in zip(inputs, values):
            for extent, expression in zip(tensor.shape, specs[n]["shape"]):
                if isinstance(expression, str):
                    known.setdefault(expression, extent)
        results = tuple(
            values[0].new_empty([_evaluate(e, known)
                                 for e in specs[n]["shape"]],
                                dtype=_dtype(torch, specs[n]["dtype"]))
            for n in outputs)
        return results[0] if len(outputs) == 1 else results

    result = ", ".join(["Tensor"] * len(outputs))
    result = result if len(outputs) == 1 else f"({result})"
    allocating = torch.library.custom_op(
        name, mutates_args=(), schema=f"({head}{tail}) -> {result}")(run)
    allocating.register_fake(shapes)
    mutated = [n.replace(".", "_") for n in outputs]
    schema = head + "".join(f", Tensor(a{i}!) {n}"
                            for i, n in enumerate(mutated))
    writing = torch.library.custom_op(
        name + "_out", mutates_args=mutated, schema=f"({schema}{tail}) -> ()"
    )(write)
    writing.register_fake(lambda *values: None)
    return allocating, writing


def _dtype(torch, name):
    return {"f16": torch.float16, "bf16": torch.bfloat16,
            "f32": torch.float32}[name]


def _evaluate(expression, known):
    """The value of a size expression of the manifest."""
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        if expression not in known:
            raise Error(f"give {expression}=N under torch.compile: it follows "
                        "from no tensor's shape")
        return known[expression]
    (kind, operands), = expression.items()
    values = [_evaluate(e, known) for e in operands]
    if kind == "sum":
        return sum(values)
    if kind == "product":
        product = 1
        for value in values:
            product = product * value
        return product
    if kind in ("min", "max"):
        return {"min": min, "max": max}[kind](values)
    if kind == "floordiv":
        return values[0] // values[1]
    return -(-values[0] // values[1])  # ceildiv
