"""What tests of kvbuf.torch share: seeds, tensors, comparisons."""

import random
import unittest

import torch

SEED = random.SystemRandom().randrange(1 << 32)
RANDOM = random.Random(SEED)
torch.manual_seed(SEED)
print(f"seed {SEED}")


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(shape).to(dtype)


def exact(x):
    return x.detach().double().numpy()


class Case(unittest.TestCase):
    def close(self, a, b, atol=3e-2):
        self.assertEqual(tuple(a.shape), tuple(b.shape))
        torch.testing.assert_close(a.double(), torch.as_tensor(b).double(),
                                   rtol=0, atol=atol)
