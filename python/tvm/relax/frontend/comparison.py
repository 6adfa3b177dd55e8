# SPDX-License-Identifier: Apache-2.0
"""What the comparison of a model with another framework found."""

import dataclasses

import numpy as np

from tvm import runtime


@dataclasses.dataclass
class Difference:
    """A value of the model and how far apart the two results are: max|a - b| / max|b|."""

    name: str
    node: str  # that gives it, "" for one of the outputs
    error: float
    what: str  # in words

    def __str__(self):
        node = f", of node {self.node}" if self.node else ""
        return f"'{self.name}'{node}: {self.what}"


@dataclasses.dataclass
class Verification:
    """What `verify` found: `outputs` in order, and the first value that differs, or None."""

    tolerance: float
    outputs: list[Difference]
    first: Difference | None = None
    peer: str = "ONNX Runtime"

    @property
    def agrees(self):
        return all(d.error <= self.tolerance for d in self.outputs)

    def __str__(self):
        lines = [f"output {d}" for d in self.outputs]
        lines.append(f"{'agrees with' if self.agrees else 'differs from'} {self.peer}")
        if self.first is not None:
            lines.append(f"the first value that differs: {self.first}")
        return "\n".join(lines)


def difference(name, node, got, expected):
    """How far apart two arrays are."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        what = f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
        return Difference(name, node, float("inf"), what)
    if got.dtype.kind == "O":
        same = bool((got == expected).all())
        return Difference(name, node, 0.0 if same else float("inf"), "equal" if same else "others")
    a, b = got.astype("float64"), expected.astype("float64")
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return Difference(name, node, float("inf"), "other infinities or NaN")
    largest = float(np.abs(b[finite]).max()) if finite.any() else 0.0
    apart = float(np.abs(a - b)[finite].max()) if finite.any() else 0.0
    error = apart / largest if largest else apart
    return Difference(name, node, error, f"{error:.1e} apart, relative to the largest element")


def arrays(result):
    """The arrays of a nested result, in order; numbers are arrays without dimensions."""
    if isinstance(result, (runtime.Tensor, runtime.StringTensor)):
        return [result.numpy()]
    if isinstance(result, (bool, int, float)):
        return [np.asarray(result)]
    return [array for item in result for array in arrays(item)]
