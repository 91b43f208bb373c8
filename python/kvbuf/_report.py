# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which calls kvbuf took, and why torch had the others."""

from __future__ import annotations

import collections


class Record:
    """What was taken and what was not."""

    def __init__(self):
        #: Calls that kvbuf computed.
        self.taken = 0
        #: Calls that torch computed, by the reason.
        self.refused = collections.Counter()

    def report(self) -> str:
        """What was taken and what was not, one line each."""
        lines = [f"{self.taken} calls by kvbuf, {sum(self.refused.values())} by "
                 "torch"]
        return "\n".join(lines + [f"{n} times: {why}" for why, n in
                                  self.refused.most_common()])
