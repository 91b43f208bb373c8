# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What torch does on this thread with an operator besides running it. A launch is
no operator: what traces, transforms or differentiates operators does not see it.

The names without a parenthesis cost 30 ns each; what they tell is told apart by
the functions below."""

from __future__ import annotations

import torch
import torch._subclasses.functional_tensor
from torch.autograd import forward_ad

is_compiling = torch.compiler.is_compiling
#: Modes that see each operator: make_fx, fake tensors, counters of work.
dispatch_modes = torch._C._len_torch_dispatch_stack
#: Modes that see each function: torch.device is one, make_fx before dispatch
#: has one.
function_modes = torch._C._len_torch_function_stack
#: Whether torch.jit.trace is at work.
is_traced_by_jit = torch._C._is_tracing
#: The number of torch.func's transforms, or None.
level = torch._C._functorch.maybe_current_level

#: Classes whose tensors are what their memory holds.
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_memory(*tensors) -> bool:
    """Whether tensors are what their memory holds: torch's negative bit is of parts
    of complex tensors, and of others that code of torch's own made."""
    return not any(x.is_neg() or x._is_zerotensor() for x in tensors)


def is_before_dispatch() -> bool:
    """Whether make_fx records operators as they are called."""
    return torch._ops._len_torch_dispatch_stack_pre_dispatch() > 0


def is_recorded() -> bool:
    """Whether the operators of this thread are recorded, or replaced by
    others."""
    return (is_compiling() or dispatch_modes() > 0 or is_traced_by_jit()
            or (function_modes() > 0 and is_before_dispatch()))


def transforms() -> set:
    """torch.func's transforms that are at work: "Vmap", "Grad", "Jvp",
    "Functionalize"."""
    if level() is None:
        return set()
    return {t.key().name for t in torch._C._functorch.get_interpreter_stack()}


def refuse_transforms(name):
    """NotImplementedError under a transform that has to look into the kernel."""
    inner = sorted(transforms() - {"Functionalize"})
    if inner:
        raise NotImplementedError(
            f"{name} is called under torch.func's {inner[0].lower()}; kvbuf's "
            "kernels cannot be transformed")


def has_tangent(x) -> bool:
    """Whether a tensor, or None, carries a derivative in forward mode."""
    return (isinstance(x, torch.Tensor) and forward_ad._current_level >= 0
            and forward_ad.unpack_dual(x).tangent is not None)


def wants_derivatives(*tensors) -> str:
    """Why a call on these tensors, or Nones, loses derivatives, and what to do
    instead; or ""."""
    if torch.is_grad_enabled():
        for x in tensors:
            if isinstance(x, torch.Tensor) and x.requires_grad:
                return ("has no backward pass, and a tensor requires gradients; "
                        "call it under torch.no_grad()")
    if forward_ad._current_level >= 0 and any(map(has_tangent, tensors)):
        return ("has no derivatives in forward mode, and a tensor has a tangent; "
                "call it on forward_ad.unpack_dual(x).primal")
    return ""


def is_special(x) -> bool:
    """Whether a tensor's class may have a say in what operators do with it."""
    return type(x) not in _PLAIN and isinstance(x, torch.Tensor)


def speaker(*tensors) -> str:
    """Whose code torch's own function would call with these tensors, or Nones: the
    name of a class or of a mode; ""."""
    for x in tensors:
        if is_special(x) and not isinstance(x, _TRACED):
            own, dispatch = type(x).__torch_function__, type(x).__torch_dispatch__
            if (getattr(own, "__func__", own) not in _SILENT
                    or dispatch is not torch._C._disabled_torch_dispatch_impl):
                return f"the class {type(x).__name__}"
    if function_modes():
        for mode in torch.overrides._get_current_function_mode_stack():
            # torch.device, and what notes calls while torch traces.
            if type(mode).__name__ not in ("DeviceContext",
                                           "PreDispatchTorchFunctionMode",
                                           "TorchFunctionMetadataMode"):
                return f"the mode {type(mode).__name__}"
    return ""


#: Classes by which torch traces; what says nothing of functions.
_TRACED = (torch._subclasses.FakeTensor,
           torch._subclasses.functional_tensor.FunctionalTensor)
_SILENT = (torch.Tensor.__torch_function__.__func__,
           torch._C._disabled_torch_function_impl)


def is_operator(name, *tensors) -> bool:
    """Whether a call of the function `name` on these tensors (and Nones) is to be
    one operator of torch's, rather than a launch. Under a transform that takes
    neither: NotImplementedError."""
    if is_compiling():
        return True
    if any(is_special(x) and x.is_nested for x in tensors):
        raise NotImplementedError(f"{name} is given a nested tensor; expected "
                                  "strides")
    if level() is not None:
        refuse_transforms(name)
        return True
    return is_recorded() or any(map(is_special, tensors))
