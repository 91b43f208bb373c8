# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counts the cycles of what runs between two points of a CUDA stream.

nvidia-smi's clock was 9 to 12 % too high under load on an H200, so clocks are
measured: a stamp is a tiny kernel whose blocks read, on each multiprocessor,
its cycle counter (%clock64) and the time in nanoseconds (%globaltimer). Cycles
over time, averaged over the multiprocessors that both stamps reached, is the
clock.
"""

import ctypes

import torch

#: Two 64-bit words for each multiprocessor: cycles, nanoseconds. A block that
#: comes second to a multiprocessor overwrites what the first one wrote.
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry stamp(.param .u64 table)
{
  .reg .b32 %sm;
  .reg .b64 %address, %offset, %cycles, %time;
  ld.param.u64 %address, [table];
  cvta.to.global.u64 %address, %address;
  mov.u32 %sm, %smid;
  mul.wide.u32 %offset, %sm, 16;
  add.u64 %address, %address, %offset;
  mov.u64 %cycles, %clock64;
  mov.u64 %time, %globaltimer;
  st.global.u64 [%address], %cycles;
  st.global.u64 [%address+8], %time;
  ret;
}
"""
#: Ids of multiprocessors lie below this.
IDS = 1024


class Stamps:
    """Stamps on torch's current stream.

    Raises OSError where there is no CUDA driver, RuntimeError where it refuses.
    """

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        torch.zeros(1, device="cuda")  # makes torch's context the current one
        module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module),
                  ctypes.create_string_buffer(PTX))
        self.call("cuModuleGetFunction", ctypes.byref(self.kernel), module,
                  b"stamp")
        # Several for each multiprocessor, so that each gets one.
        self.blocks = 8 * torch.cuda.get_device_properties(
            0).multi_processor_count

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} failed with status {status}")

    def mark(self):
        """A stamp after what the stream holds now; for `megahertz`."""
        table = torch.zeros(IDS, 2, dtype=torch.int64, device="cuda")
        argument = ctypes.c_uint64(table.data_ptr())
        arguments = (ctypes.c_void_p * 1)(
            ctypes.addressof(argument))
        self.call("cuLaunchKernel", self.kernel, self.blocks, 1, 1, 32, 1, 1, 0,
                  ctypes.c_void_p(torch.cuda.current_stream().cuda_stream),
                  arguments, None)
        return table

    @staticmethod
    def megahertz(begin, end):
        """Of the time between two stamps; the stream has to have finished."""
        begin, end = begin.cpu(), end.cpu()
        both = (begin[:, 1] != 0) & (end[:, 1] != 0)
        cycles, nanoseconds = (end - begin)[both].double().mean(0).tolist()
        return 1e3 * cycles / nanoseconds


def available():
    """Stamps, or None where they cannot be had."""
    try:
        return Stamps()
    except (OSError, RuntimeError):
        return None
