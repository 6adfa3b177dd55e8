# SPDX-License-Identifier: Apache-2.0
"""A cache without pages, in NumPy: what the paged one has to compute, and how many pages it may
use. Shares no code with it."""

import numpy as np


def attend(q, keys, values, seen, scale):
    """q (h_q, d) over keys and values (n, h_kv, d), of which `seen` (n,) count: (output, lse)."""
    group = q.shape[0] // keys.shape[1]
    out = np.zeros((q.shape[0], values.shape[2]))
    sums = np.full(q.shape[0], -np.inf)
    for h in range(q.shape[0]):
        scores = np.where(seen, keys[:, h // group] @ q[h] * scale, -np.inf)
        if seen.any():
            p = np.exp(scores - scores.max())
            out[h] = p @ values[:, h // group] / p.sum()
            sums[h] = np.log2(p.sum()) + scores.max() * np.log2(np.e)
    return out, sums


def rotate(x, position, theta=10000.0):
    """x (heads, d), turned as llama's are."""
    half = x.shape[1] // 2
    angle = position / theta ** (np.arange(half) * 2 / x.shape[1])
    a, b = x[:, :half], x[:, half:]
    cos, sin = np.cos(angle), np.sin(angle)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], 1)


class Sequence:
    def __init__(self):
        self.keys, self.values = [], []  # of each token: an array (layers, h_kv, d), not turned
        self.positions = []
        self.next = 0
        self.window = self.sinks = 0
        self.slid = False
        self.tree = []  # parents of the last tokens

    def copy(self, count):
        other = Sequence()
        other.keys, other.values = self.keys[:count], self.values[:count]
        other.positions, other.next = self.positions[:count], count
        return other


class DenseCache:
    """Lists of tokens per sequence."""

    def __init__(self, rope, layers_with_windows=None):
        self.rope = rope  # "none", "normal" or "inline"
        self.layers_with_windows = layers_with_windows  # None: tokens outside are dropped
        self.sequences = {}

    def slide(self, sequence):
        """Before tokens follow, a window drops what is too old."""
        extra = len(sequence.keys) - sequence.window
        if sequence.window and extra > 0 and self.layers_with_windows is None:
            for items in (sequence.keys, sequence.values, sequence.positions):
                del items[sequence.sinks : sequence.sinks + extra]
            sequence.slid = True

    def append(self, sequence, k, v, parents):
        """k, v: (tokens, layers, h_kv, d); gives the positions of the new tokens."""
        first = sequence.next - len(sequence.tree)  # the position of the tree's roots
        if self.rope == "inline":
            first = len(sequence.keys) - len(sequence.tree)
        positions = []
        for i in range(len(k)):
            if parents is None:
                positions.append(first + i)
            else:
                sequence.tree.append(parents[i])
                positions.append(first + self.depth(sequence.tree, len(sequence.tree) - 1))
        sequence.keys += list(k)
        sequence.values += list(v)
        sequence.positions += positions
        sequence.next += len(k)
        return positions

    @staticmethod
    def depth(tree, node):
        return 0 if tree[node] < 0 else 1 + DenseCache.depth(tree, tree[node])

    def attention(self, sequence, layer, q, positions, scale):
        """Of the last tokens of a sequence: q (tokens, h_q, d)."""
        count = len(sequence.keys)
        keys = np.array([k[layer] for k in sequence.keys])
        values = np.array([v[layer] for v in sequence.values])
        gap = 0  # tokens between the sinks and the window of the layer
        if sequence.window and layer in (self.layers_with_windows or ()):
            gap = max(0, count - len(q) - sequence.window)
        if self.rope == "normal":
            keys = np.array([rotate(k, p) for k, p in zip(keys, sequence.positions, strict=True)])
        elif self.rope == "inline":
            places = [p if p < sequence.sinks else p - gap for p in range(count)]
            keys = np.array([rotate(k, p) for p, k in zip(places, keys, strict=True)])
            positions = [p - gap for p in positions]
        out = []
        for i in range(len(q)):
            query = q[i] if self.rope == "none" else rotate(q[i], positions[i])
            own = count - len(q) + i
            seen = np.arange(count) <= own
            seen[sequence.sinks : sequence.sinks + gap] = False
            if sequence.tree:
                base = count - len(sequence.tree)
                seen = np.arange(count) < base
                node = own - base
                while node >= 0:
                    seen[base + node] = True
                    node = sequence.tree[node]
            out.append(attend(query, keys, values, seen, scale)[0])
        return np.array(out)

    def pop(self, sequence, n):
        for items in (sequence.keys, sequence.values, sequence.positions):
            del items[len(items) - n :]
        del sequence.tree[max(0, len(sequence.tree) - n) :]
        sequence.next -= n

    def commit(self, sequence, leaf):
        base = len(sequence.keys) - len(sequence.tree)
        path = []
        while leaf >= 0:
            path.insert(0, leaf)
            leaf = sequence.tree[leaf]
        for items in (sequence.keys, sequence.values, sequence.positions):
            items[base:] = [items[base + node] for node in path]
        sequence.next -= len(sequence.tree) - len(path)
        sequence.tree = []
