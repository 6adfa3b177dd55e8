# SPDX-License-Identifier: Apache-2.0
"""Boxes: suppression of those that overlap a better one."""

import numpy as np
import pytest
from tvm import te, topi

from .checking import check, values


def overlap(a, b):
    low, high = np.minimum(a[:2], a[2:]), np.maximum(a[:2], a[2:])
    lo, hi = np.minimum(b[:2], b[2:]), np.maximum(b[:2], b[2:])
    both = np.prod(np.maximum(np.minimum(high, hi) - np.maximum(low, lo), 0))
    return both / (np.prod(high - low) + np.prod(hi - lo) - both)


def suppressed(boxes, scores, most, iou, least):
    """[(image, class, box)] of the boxes that stay, best first."""
    chosen = []
    for b, c in np.ndindex(*scores.shape[:2]):
        kept = []
        for i in np.argsort(-scores[b, c], kind="stable"):
            if len(kept) == most or scores[b, c, i] <= least:
                break
            if all(overlap(boxes[b, i], boxes[b, j]) <= iou for j in kept):
                kept.append(i)
        chosen += [(b, c, i) for i in kept]
    return chosen


def data():
    corners = values(2, 9, 2, low=0, high=1)
    boxes = np.concatenate([corners, corners + values(2, 9, 2, seed=1, low=-0.5, high=0.5)], -1)
    return boxes.astype("float32"), values(2, 3, 9, seed=2, low=0, high=1)


@pytest.mark.parametrize(
    "most, iou, least", [(9, 0.3, 0.2), (2, 0.1, 0.0), (0, 0.5, 0.5), (9, 0.9, 0.95)]
)
def test_all_class_non_max_suppression(most, iou, least):
    boxes, scores = data()
    chosen = suppressed(boxes, scores, most, iou, least)
    rows = np.zeros((54, 3), "int64")
    rows[: len(chosen)] = np.array(chosen, "int64").reshape(-1, 3)
    build = lambda b, s: topi.vision.all_class_non_max_suppression(b, s, most, iou, least)
    check(build, [boxes, scores], [rows, np.array([len(chosen)])])
    limits = [np.array(most, "int64"), np.array([iou], "float32"), np.array([least], "float32")]
    check(
        topi.vision.all_class_non_max_suppression,
        [boxes, scores, *limits],
        [rows, np.array([len(chosen)])],
    )


def test_best_of_all_classes():
    boxes, scores = data()
    chosen = suppressed(boxes, scores, 3, 0.3, 0.1)
    pairs, best = np.zeros((2, 27, 2), "int64"), np.zeros((2, 27), "float32")
    counts = np.zeros(2, "int64")
    for image in range(2):
        mine = sorted(
            ((c, i) for b, c, i in chosen if b == image), key=lambda p: -scores[(image, *p)]
        )
        counts[image] = len(mine)
        for k, pair in enumerate(mine):
            pairs[image, k], best[image, k] = pair, scores[(image, *pair)]
    build = lambda b, s: topi.vision.all_class_non_max_suppression(b, s, 3, 0.3, 0.1, "tensorflow")
    check(build, [boxes, scores], [pairs, best, counts])


def test_valid_counts():
    x = np.array([[[0, 0.9, 1], [-1, 0.8, 2], [1, 0.1, 3], [2, 0.6, 4]]], "float32")
    out = np.full_like(x, -1)
    out[0, 0], out[0, 1] = x[0, 0], x[0, 3]
    index = np.array([[0, 3, -1, -1]], "int32")
    build = lambda t: topi.vision.get_valid_counts(t, 0.5)
    check(build, [x], [np.array([2], "int32"), out, index])


def test_wrong_arguments():
    B, S = te.placeholder((1, 4, 4)), te.placeholder((1, 2, 4))
    with pytest.raises(ValueError, match="expected output_format"):
        topi.vision.all_class_non_max_suppression(B, S, 1, 0.5, 0.5, "coco")
