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
        self._emulates = self.kind == "emulator"
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
        tell, or if no target fits it."""
        return lib.kvbufDeviceChip(self.handle).decode()

    @property
    def description(self):
        """For people, as "NVIDIA H200 (sm_90)"."""
        return lib.kvbufDeviceDescription(self.handle).decode()

    def _run(self, body):
        """Calls ``body``, which launches on this device. On the emulator, where
        that takes as long as the kernel does, in a thread of its own: the main
        thread, to which Python delivers signals, waits and can end it."""
        if (not self._emulates
                or threading.current_thread() is not threading.main_thread()):
            return body()
        done, raised = threading.Event(), []

        def work():
            try:
                body()
            except BaseException as e:  # for the thread that waits
                raised.append(e)
            finally:
                done.set()

        threading.Thread(target=work, daemon=True).start()
        try:
            done.wait()
        except BaseException:  # KeyboardInterrupt, or what a handler raises
            while not done.is_set():
                try:
                    lib.kvbufDeviceInterrupt(self.handle)
                    done.wait(0.05)
                except BaseException:  # once more: the tensors are in use
                    pass
            raise
        if raised:
            raise raised[0]

    def synchronize(self):
        """Waits for all work; raises KernelFault if a kernel failed."""
        check(lib.kvbufDeviceSynchronize(self.handle))

    def __repr__(self):
        return f"<kvbuf.Device {self.description}>"
