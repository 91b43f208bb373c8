#!/usr/bin/env python3
"""Queries and keys whose scores have a sign that rows and keys decide.

    signs.py BATCHxROWSxKEYSxSIZE SEED SIGNS TURN Q.npy K.npy

SIGNS has a letter for each row, repeated: '-', whose scores are all negative,
'+', whose scores are all positive, or 't', whose scores are negative but for the
keys before number TURN. Random normal parts differ from row to row and key to
key. f16.
"""

import sys

import numpy

batch, rows, keys, size = map(int, sys.argv[1].split("x"))
random = numpy.random.default_rng(int(sys.argv[2]))
signs, turn = sys.argv[3], int(sys.argv[4])
q = random.standard_normal((batch, rows, 1, size))
k = random.standard_normal((batch, keys, 1, size))
# Two elements decide: 16 * 16 is far more than all other products together.
q[..., :2] = 0
k[..., 0] = 16
k[..., 1] = numpy.where(numpy.arange(keys) < turn, 16, -16)[:, None]
for row in range(rows):
    sign = signs[row % len(signs)]
    q[:, row, :, 0] = {"-": -16, "+": 16, "t": 0}[sign]
    q[:, row, :, 1] = 16 if sign == "t" else 0
numpy.save(sys.argv[5], q.astype(numpy.float16))
numpy.save(sys.argv[6], k.astype(numpy.float16))
