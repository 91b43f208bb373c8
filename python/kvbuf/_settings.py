# Part of the kvbuf project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `kvbuf.torch.configure` sets."""


class _Settings:
    def __init__(self):
        self.gradients = "error"
        self.float32 = None


settings = _Settings()
