# SPDX-License-Identifier: Apache-2.0
"""Choosing tokens by probability, as tensor expressions. Rows are sorted, the likeliest first;
`sums` are their running sums."""

from tvm import te, tir


def _count(condition, axis):
    one, zero = tir.const(1, "int64"), tir.const(0, "int64")
    return te.sum(tir.Select(condition, one, zero), axis=axis)


def _kept(sums, top_p, top_k):
    """How many of the likeliest tokens stay: those before whose end neither limit is reached, and
    one more."""
    batch, vocabulary = sums.shape
    j = te.reduce_axis((0, vocabulary), "j")

    def below(i):
        return _count(tir.all(sums[i, j] < top_p[i, 0], j + 1 < top_k[i, 0]), j)

    counts = te.compute((batch,), below, "below")
    largest = tir.Cast("int64", vocabulary)
    return te.compute((batch,), lambda i: tir.min(counts[i] + 1, largest), "kept")


def sample(sums, index, top_p, top_k, uniform, rows):
    """Of each row, the token at which the running sum passes a share of what is kept."""
    kept = _kept(sums, top_p, top_k)
    j = te.reduce_axis((0, sums.shape[1]), "j")

    def passed(i):
        row = rows[i, 0]
        inside = tir.Cast("int64", j) < kept[row] - 1
        limit = uniform[i, 0] * sums[row, kept[row] - 1]
        return _count(tir.all(inside, sums[row, j] <= limit), j)

    count = te.compute((uniform.shape[0],), passed, "passed")
    return te.compute((uniform.shape[0], 1), lambda i, _: index[rows[i, 0], count[i]], "sampled")


def renormalize(prob, ordered, sums, top_p, top_k):
    """Probabilities of what is kept, scaled to a sum of 1."""
    kept = _kept(sums, top_p, top_k)

    def choose(i, j):
        is_kept = prob[i, j] >= ordered[i, kept[i] - 1]
        return tir.Select(is_kept, prob[i, j], tir.const(0, prob.dtype))

    chosen = te.compute(prob.shape, choose, "chosen")
    k = te.reduce_axis((0, prob.shape[1]), "k")
    total = te.compute((prob.shape[0],), lambda i: te.sum(chosen[i, k], axis=k), "total")
    return te.compute(prob.shape, lambda i, j: chosen[i, j] / total[i], "renormalized")
