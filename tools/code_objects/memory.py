# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that lanes reach: ranges of a launch, and a block's LDS."""

import numpy as np

from .image import Fault


class Range:
    def __init__(self, name, address, data, writable):
        self.name, self.address, self.data, self.writable = name, address, data, writable


class Memory:
    def __init__(self):
        self.ranges = []

    def add(self, name, address, data, writable):
        self.ranges.append(Range(name, address, data, writable))

    def _range(self, first, end, what):
        for part in self.ranges:
            if part.address <= first and end <= part.address + len(part.data):
                return part
        raise Fault(f"{what} 0x{first:x}, which is in no tensor")

    def gather(self, addresses, mask, size):
        """`size` bytes for each lane of `mask`: (lanes, size)."""
        result = np.zeros((len(addresses), size), np.uint8)
        for lanes, part in self._by_range(addresses, mask, size, "reads"):
            places = (addresses[lanes] - np.uint64(part.address)).astype(np.int64)
            result[lanes] = part.data[places[:, None] + np.arange(size)]
        return result

    def scatter(self, addresses, mask, values):
        size = values.shape[1]
        for lanes, part in self._by_range(addresses, mask, size, "writes"):
            if not part.writable:
                raise Fault(f"writes '{part.name}', which is only read")
            places = (addresses[lanes] - np.uint64(part.address)).astype(np.int64)
            part.data[places[:, None] + np.arange(size)] = values[lanes]

    def _by_range(self, addresses, mask, size, what):
        left = np.flatnonzero(mask)
        while len(left):
            first = int(addresses[left[0]])
            part = self._range(first, first + size, what)
            inside = ((addresses[left] >= np.uint64(part.address))
                      & (addresses[left] + np.uint64(size)
                         <= np.uint64(part.address + len(part.data))))
            yield left[inside], part
            left = left[~inside]

    def scalar(self, address, size):
        part = self._range(address, address + size, "reads")
        at = address - part.address
        return bytes(part.data[at:at + size])


class Lds:
    """A block's, of bytes that nothing has written at first."""

    def __init__(self, size):
        self.data = np.zeros(size, np.uint8)
        self.written = np.zeros(size, bool)

    def _places(self, offsets, mask, size):
        places = offsets[mask].astype(np.int64)
        if len(places) and (places.min() < 0 or places.max() + size > len(self.data)):
            raise Fault(f"byte {int(places.max())} of LDS, of which there are {len(self.data)}")
        return places[:, None] + np.arange(size)

    def read(self, offsets, mask, size):
        result = np.zeros((len(offsets), size), np.uint8)
        places = self._places(offsets, mask, size)
        if not self.written[places].all():
            raise Fault("reads bytes of LDS that nothing has written")
        result[mask] = self.data[places]
        return result

    def write(self, offsets, mask, values):
        places = self._places(offsets, mask, values.shape[1])
        self.data[places] = values[mask]
        self.written[places] = True
