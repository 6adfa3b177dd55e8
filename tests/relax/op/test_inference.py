# SPDX-License-Identifier: Apache-2.0
"""Inference of every operator, by the database: what it says is what the reference gives, and less
is known of the result where less is known of the arguments, but nothing else."""

import pytest
import tvm
from tvm import relax

from .database import ENTRIES, expected, infer
from .database.__main__ import missing

_CASES = [(entry, case) for entry in ENTRIES.values() for case in entry.cases]
_IDS = [f"{entry.name}({case})" for entry, case in _CASES]
# Their results' sizes are in the data.
_DATA_DEPENDENT = {"unique", "nonzero", "dynamic_strided_slice"}


def operators():
    names = map(str, tvm.ir.Op.list_op_names())
    return sorted(name for name in names if name.startswith("relax."))


def test_every_operator_has_an_entry():
    assert sorted(f"relax.{name}" for name in ENTRIES) == operators()
    assert len(ENTRIES) == 219


def test_every_operator_has_rows_of_each_kind():
    assert missing() == {"zero size": [], "symbolic shape": [], "edge value": []}


def values(info, variables):
    """The struct info with the sizes that the variables stand for."""
    known = variables.values()
    if isinstance(info, relax.TupleStructInfo):
        return tuple(values(field, variables) for field in info.fields)
    analyzer = tvm.arith.Analyzer()
    dims = None
    if info.shape is not None:
        dims = [tvm.tir.stmt_functor.substitute(d, known) for d in info.shape.values]
        dims = tuple(int(analyzer.simplify(d)) for d in dims)
    return dims, info.ndim, str(info.dtype)


def matches(info, array, exact):
    """Whether the array is what the struct info says; `exact`: and the shape is known."""
    if isinstance(array, tuple):
        return len(info) == len(array) and all(map(matches, info, array, [exact] * len(array)))
    dims, ndim, dtype = info
    if dtype != str(array.dtype) or ndim != array.ndim:
        return False
    return dims == array.shape if dims is not None else not exact


@pytest.mark.parametrize("entry, case", _CASES, ids=_IDS)
def test_static_dims_are_those_of_the_reference(entry, case):
    info, variables = infer(entry, case, "static")
    got, want = values(info, variables), expected(entry, case)
    assert matches(got, want, entry.name not in _DATA_DEPENDENT), (got, want)


@pytest.mark.parametrize(
    "entry, case",
    [c for c in _CASES if c[1].symbolic],
    ids=[i for i, c in zip(_IDS, _CASES, strict=True) if c[1].symbolic],
)
def test_symbolic_dims_are_those_of_the_reference(entry, case):
    info, variables = infer(entry, case, "symbolic")
    if entry.name == "squeeze" and info.ndim < 0:
        return  # which dims are 1 is not known
    got, want = values(info, variables), expected(entry, case)
    assert matches(got, want, entry.name not in _DATA_DEPENDENT), (got, want)


@pytest.mark.parametrize("variant", ["ndim", "rank", "dtype"])
@pytest.mark.parametrize("entry, case", _CASES, ids=_IDS)
def test_unknown_facts_leave_the_result_open(entry, case, variant):
    if entry.name == "reshape" and variant != "dtype" and min(case.params[1], default=1) <= 0:
        pytest.skip("-1 and 0 stand for what is known")
    known, _ = infer(entry, case, "static")
    less, _ = infer(entry, case, variant)
    assert less.is_base_of(known), (less, known)


_CALLS = [
    pytest.param(make, info, id=f"{entry.name}-{i}")
    for entry in ENTRIES.values()
    for i, (make, info) in enumerate(entry.calls)
]


@pytest.mark.parametrize("make, info", _CALLS)
def test_calls_have_the_struct_info(make, info):
    builder = relax.BlockBuilder()
    with builder.testing_scope(def_vars=[]):
        got = builder.normalize(make()).struct_info
    assert tvm.ir.structural_equal(got, info), f"{got} is not {info}"


def test_devices_are_kept():
    device = tvm.ir.VDevice("llvm", 0, "global")
    x = relax.Var("x", relax.TensorStructInfo((2, 3), "float32", device))
    y = relax.Var("y", relax.TensorStructInfo((2, 3), "float32"))
    z = relax.Var("z", relax.TensorStructInfo((3, 4), "float32"))
    for call in (
        relax.op.exp(x),
        relax.op.add(x, y),
        relax.op.add(y, x),
        relax.op.equal(y, x),
        relax.op.matmul(x, z),
        relax.op.concat([x, y]),
        relax.op.sum(x),
        relax.op.reshape(x, (6,)),
    ):
        assert relax.BlockBuilder().normalize(call).struct_info.vdevice.same_as(device)


def test_shape_variables_stay():
    shape = relax.Var("s", relax.ShapeStructInfo(ndim=2))
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    builder = relax.BlockBuilder()
    for call in (relax.op.exp(x), relax.op.add(x, x), relax.op.astype(x, "int32")):
        assert builder.normalize(call).struct_info.shape.same_as(shape)


def test_scalars_give_scalars():
    a = relax.Var("a", relax.PrimStructInfo("int64"))
    x = relax.Var("x", relax.TensorStructInfo((2, 3), "int64"))
    builder = relax.BlockBuilder()
    assert isinstance(builder.normalize(relax.op.add(a, a)).struct_info, relax.PrimStructInfo)
    info = builder.normalize(relax.op.less(x, a)).struct_info
    assert tvm.ir.structural_equal(info, relax.TensorStructInfo((2, 3), "bool"))


def test_arange_of_variables():
    n = tvm.tir.Var("n", "int64")
    builder = relax.BlockBuilder()
    info = builder.normalize(relax.op.arange(n)).struct_info
    assert tvm.ir.structural_equal(info, relax.TensorStructInfo((n,), "int64"))
    info = builder.normalize(relax.op.arange(0, n, 2)).struct_info
    assert tvm.arith.Analyzer().can_prove_equal(info.shape.values[0], (n + 1) // 2)
