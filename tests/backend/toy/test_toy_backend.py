# SPDX-License-Identifier: Apache-2.0
"""A backend in one file of under 150 lines: a row, text through backend/source, the results of the
interpreter, and no change to any other part."""

import pathlib
import subprocess

import numpy as np
import pytest
import tvm
import tvm.libinfo
import tvm_ffi
from tvm import te, tir
from tvm.tir.interpreter import interpret

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def backend(tmp_path_factory):
    """The row; its library is loaded when a first module is built for it."""
    library = tmp_path_factory.mktemp("toy") / "libtoy.so"
    folders = [ROOT / "src", ROOT / "include", *tvm_ffi.libinfo.include_paths()]
    command = ["c++", "-std=c++20", "-O0", "-w", "-shared", "-fPIC", "-fvisibility-inlines-hidden"]
    command += [f"-I{folder}" for folder in folders]
    ours = tvm.libinfo.find_lib_path("libtvm.so")[0]
    subprocess.run([*command, HERE / "toy_backend.cc", ours, "-o", library], check=True)
    tvm.target.register_backend("ext_dev", library=str(library), takes_vectors=False)


def both(func, *arrays):
    """What the toy device and the interpreter leave in the last array."""
    target = tvm.target.Target("ext_dev", host="llvm")
    mod = tvm.compile(func, target)
    results = []
    for run, device in ((mod, tvm.ext_dev()), (interpret(func), tvm.cpu())):
        copies = [tvm.runtime.tensor(a, device) for a in arrays]
        run(*copies)
        results.append(copies[-1].numpy())
    return mod, *results


def bound(func, block, *threads):
    """The schedule of a script: the outer loops of a block are the threads of the launch."""
    sch = tir.Schedule(func)
    for loop, thread in zip(sch.get_loops(block), threads or ["blockIdx.x"], strict=False):
        sch.bind(loop, thread)
    return sch.mod["main"]


def random(*shape, dtype="float32"):
    return np.random.default_rng(0).uniform(-3, 3, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_elementwise(dtype):
    A = te.placeholder((37, 19), dtype, "A")
    B = te.compute(A.shape, lambda i, j: tir.max(A[i, j] * A[i, j], A[36 - i, j]) + 1, "B")
    x = np.abs(random(37, 19)).astype(dtype)
    mod, ours, expected = both(bound(te.create_prim_func([A, B]), "B"), x, np.zeros_like(x))
    np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(ours, np.maximum(x * x, x[::-1]) + np.ones((), dtype))
    assert "void main_kernel(toy_value* args)" in mod.mod.imports[0].inspect_source()


def test_reduction():
    A = te.placeholder((50, 33), "float32", "A")
    k = te.reduce_axis((0, 33), "k")
    B = te.compute((50,), lambda i: te.max(tir.exp(A[i, k]), axis=k), "B")
    x = random(50, 33)
    _, ours, expected = both(bound(te.create_prim_func([A, B]), "B"), x, np.zeros(50, "float32"))
    np.testing.assert_allclose(ours, expected, rtol=1e-6)
    np.testing.assert_allclose(ours, np.exp(x).max(1), rtol=1e-6)


def test_matmul_of_unknown_size():
    n = te.var("n")
    A, B = te.placeholder((n, 24), "float32", "A"), te.placeholder((24, n), "float32", "B")
    k = te.reduce_axis((0, 24), "k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), "C")
    x, y = random(17, 24), random(24, 17)
    func = bound(te.create_prim_func([A, B, C]), "C", "blockIdx.x", "threadIdx.x")
    _, ours, expected = both(func, x, y, np.zeros((17, 17), "float32"))
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours, x @ y, rtol=1e-5, atol=1e-5)


def test_what_the_language_lacks_is_named():
    A = te.placeholder((8,), "float32", "A")
    B = te.compute((8,), lambda i: tir.call_extern("float32", "nowhere", A[i]), "B")
    with pytest.raises(NotImplementedError, match="toy code generation: .*call_extern"):
        tvm.compile(
            bound(te.create_prim_func([A, B]), "B"), tvm.target.Target("ext_dev", host="llvm")
        )


def test_it_is_small():
    assert len((HERE / "toy_backend.cc").read_text().splitlines()) < 150
