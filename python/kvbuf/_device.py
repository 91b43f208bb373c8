# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices."""

import json
import threading
import weakref

from ._library import check, check_handle, lib


class Device:
    """A GPU, or the emulator.

    ``name`` is "auto", "cuda", "cuda:1", "hip" or "emulator"; keyword arguments
    are options of the emulator: ``Device("emulator", landing="random")``.
    """

    _shared = {}
    _opening = threading.Lock()

    def __init__(self, name="auto", **emulator_options):
        self.handle = check_handle(lib.kvbufDeviceOpen(
            name.encode(), json.dumps(emulator_options).encode()))
        self._finalizer = weakref.finalize(self, lib.kvbufDeviceClose,
                                           self.handle)

    @classmethod
    def shared(cls, name):
        """The device of this name, opened once."""
        device = cls._shared.get(name)
        if device is None:
            with cls._opening:
                device = cls._shared.get(name)
                if device is None:
                    device = cls._shared[name] = cls(name)
        return device

    @property
    def kind(self):
        """"cuda", "hip" or "emulator"."""
        return lib.kvbufDeviceKind(self.handle).decode()

    @property
    def chip(self):
        """What to compile for here, as "sm_90a"; "" if the device cannot
        tell."""
        return lib.kvbufDeviceChip(self.handle).decode()

    def synchronize(self):
        """Waits for all work; raises KernelFault if a kernel failed."""
        check(lib.kvbufDeviceSynchronize(self.handle))

    def __repr__(self):
        text = lib.kvbufDeviceDescription(self.handle).decode()
        return f"<kvbuf.Device {text}>"
