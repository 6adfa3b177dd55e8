# SPDX-License-Identifier: Apache-2.0
"""Intrinsics of NVIDIA GPUs: those of mma.sync (see _mma.py), and matrix fragments that the threads
of a warp hold together (WMMA).

A fragment is a tile of a buffer in a scope of its own ("wmma.matrix_a", "wmma.matrix_b",
"wmma.accumulator"); intrinsics fill one, load it from shared memory, multiply and store it.
"""

import itertools

from tvm.script import tir as T

from ..function import TensorIntrin
from ._mma import *  # noqa: F403
from ._mma import CONSTANTS
from ._tiles import Tile, as_is, copy_desc, product_desc, transposed, zero_desc

_SHORT = {"float16": "f16", "float32": "f32", "int8": "s8", "int4": "s4", "int32": "s32"}
_FACTORS, _SUMS = ("wmma.matrix_a", "wmma.matrix_b"), "wmma.accumulator"


def get_wmma_fragment_index(buffer, stride, m_dim, n_dim):
    """The number of the fragment of m_dim x n_dim elements that a buffer begins with, in rows of
    `stride` elements."""
    row = buffer.elem_offset // stride // m_dim
    column = buffer.elem_offset % stride // n_dim
    return row * (stride // n_dim) + column


def get_wmma_load_intrin(m_dim, n_dim, k_dim, dtype, shared_scope, is_b, is_col_major):
    """(description, implementation) of loading a fragment of the first or second operand."""
    scope = _FACTORS[is_b]
    rows, columns = (k_dim, n_dim) if is_b else (m_dim, k_dim)
    shape = (columns, rows) if is_col_major else (rows, columns)
    n_rows, n_columns = shape
    layout = "col_major" if is_col_major else "row_major"
    source, result = Tile(shape, dtype, shared_scope, 16), Tile(shape, dtype, scope, 16)

    @T.prim_func
    def wmma_load_impl(a: T.handle, c: T.handle) -> None:
        s0, s1 = T.int32(), T.int32()
        d0, d1 = T.int32(), T.int32()
        A = source.match(a, [s1, s0])
        C = result.match(c, [d1, d0])
        with T.block("root"):
            T.reads(A[0:n_rows, 0:n_columns])
            T.writes(C[0:n_rows, 0:n_columns])
            T.evaluate(
                T.tvm_load_matrix_sync(
                    C.data,
                    m_dim,
                    n_dim,
                    k_dim,
                    get_wmma_fragment_index(C, d1, n_rows, n_columns),
                    A.access_ptr("r"),
                    s1,
                    layout,
                )
            )

    return copy_desc(shape, source, result), wmma_load_impl


def get_wmma_store_intrin(m_dim, n_dim, k_dim, dtype, scope):
    """(description, implementation) of storing an accumulator."""
    shape = (m_dim, n_dim)
    source, result = Tile(shape, dtype, _SUMS, 16), Tile(shape, dtype, scope, 16)

    @T.prim_func
    def wmma_store_impl(a: T.handle, c: T.handle) -> None:
        s0, s1 = T.int32(), T.int32()
        d0, d1 = T.int32(), T.int32()
        A = source.match(a, [d1, d0])
        C = result.match(c, [s1, s0])
        with T.block("root"):
            T.reads(A[0:m_dim, 0:n_dim])
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.tvm_store_matrix_sync(
                    A.data,
                    m_dim,
                    n_dim,
                    k_dim,
                    get_wmma_fragment_index(A, d1, m_dim, n_dim),
                    C.access_ptr("w"),
                    s1,
                    "row_major",
                )
            )

    return copy_desc(shape, source, result), wmma_store_impl


def get_wmma_fill_intrin(m_dim, n_dim, k_dim, dtype):
    """(description, implementation) of an accumulator of zeros."""

    sums = Tile((m_dim, n_dim), dtype, _SUMS, 16)

    @T.prim_func
    def wmma_fill_impl(c: T.handle) -> None:
        d0, d1 = T.int32(), T.int32()
        C = sums.match(c, [d1, d0])
        with T.block("root"):
            T.reads()
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.tvm_fill_fragment(
                    C.data,
                    m_dim,
                    n_dim,
                    k_dim,
                    get_wmma_fragment_index(C, d1, m_dim, n_dim),
                    T.float32(0),
                )
            )

    return zero_desc((m_dim, n_dim), sums), wmma_fill_impl


def get_wmma_sync_intrin(m_dim, n_dim, k_dim, in_dtype, out_dtype, b_transposed):
    """(description, implementation) of C += A B for fragments, or of C += A B^T."""
    b_shape = b_rows, b_columns = (n_dim, k_dim) if b_transposed else (k_dim, n_dim)

    left = Tile((m_dim, k_dim), in_dtype, _FACTORS[0], 16)
    right = Tile(b_shape, in_dtype, _FACTORS[1], 16, transposed if b_transposed else as_is)
    sums = Tile((m_dim, n_dim), out_dtype, _SUMS, 16)

    @T.prim_func
    def wmma_sync_impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        a0, a1 = T.int32(), T.int32()
        b0, b1 = T.int32(), T.int32()
        c0, c1 = T.int32(), T.int32()
        A = left.match(a, [a1, a0])
        B = right.match(b, [b1, b0])
        C = sums.match(c, [c1, c0])
        with T.block("root"):
            T.reads(C[0:m_dim, 0:n_dim], A[0:m_dim, 0:k_dim], B[0:b_rows, 0:b_columns])
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.tvm_mma_sync(
                    C.data,
                    get_wmma_fragment_index(C, c1, m_dim, n_dim),
                    A.data,
                    get_wmma_fragment_index(A, a1, m_dim, k_dim),
                    B.data,
                    get_wmma_fragment_index(B, b1, b_rows, b_columns),
                    C.data,
                    get_wmma_fragment_index(C, c1, m_dim, n_dim),
                )
            )

    return product_desc((m_dim, n_dim, k_dim), left, right, sums), wmma_sync_impl


def get_wmma_intrin_group(load_scope, store_scope, in_dtype, out_dtype, trans_b):
    """The names of the intrinsics of a product, by what each does: "init", "load_a", "load_b",
    "compute" and "store"."""
    shape = (8, 8, 32) if in_dtype == "int4" else (16, 16, 16)
    key = (shape, in_dtype, out_dtype, trans_b)
    if key not in _PRODUCTS or load_scope not in _LOAD or store_scope not in _STORE:
        known = ", ".join(sorted({f"{i} to {o}" for _, i, o, _ in _PRODUCTS}))
        raise ValueError(
            f"get_wmma_intrin_group: expected one of the products {known}, loaded from "
            f"{' or '.join(_LOAD)} and stored to {' or '.join(_STORE)}, got {in_dtype} to "
            f"{out_dtype}, {load_scope} and {store_scope}"
        )
    size, of_in, of_out = "x".join(map(str, shape)), _SHORT[in_dtype], _SHORT[out_dtype]
    load, store = (scope.replace(".", "_") for scope in (load_scope, store_scope))
    trans = "_trans" if trans_b else ""
    return {
        "init": f"wmma_fill_{size}_{of_out}",
        "load_a": f"wmma_load_{size}_{of_in}_a_{load}",
        "load_b": f"wmma_load_{size}_{of_in}_b{trans}_{load}",
        "compute": f"wmma_sync_{size}_{of_in}{of_in}{of_out}{trans}",
        "store": f"wmma_store_{size}_{of_out}_{store}",
    }


_LOAD, _STORE = ("shared", "shared.dyn"), ("shared", "shared.dyn", "global")
_SQUARE = (16, 16, 16)
_PRODUCTS = [
    (_SQUARE, "float16", "float32", False),
    (_SQUARE, "float16", "float32", True),
    (_SQUARE, "float16", "float16", False),
    (_SQUARE, "float16", "float16", True),
    (_SQUARE, "int8", "int32", False),
    (_SQUARE, "int8", "int32", True),
    ((8, 8, 32), "int4", "int32", True),
]


def _register():
    """Registers the intrinsics of all products. Returns {constant: name}."""
    made = {}

    def register(constant, name, make, *options):
        if constant not in made:
            made[constant] = name
            TensorIntrin.register(name, *make(*options), override=True)

    for shape, in_dtype, out_dtype, trans in _PRODUCTS:
        size, of_in, of_out = "x".join(map(str, shape)), _SHORT[in_dtype], _SHORT[out_dtype]
        for scope, is_b in itertools.product(_LOAD, (False, True)):
            col_major = trans and (is_b or shape == _SQUARE)
            operand = ("b" if is_b else "a") + ("_trans" if col_major else "")
            dyn = "_DYN" if scope == "shared.dyn" else ""
            register(
                f"WMMA_LOAD_{size}_{of_in.upper()}_{operand.upper()}{dyn}_INTRIN",
                f"wmma_load_{size}_{of_in}_{operand}_{scope.replace('.', '_')}",
                get_wmma_load_intrin,
                *shape,
                in_dtype,
                scope,
                is_b,
                col_major,
            )
        for scope in _STORE:
            place = scope.replace(".", "_")
            register(
                f"WMMA_STORE_{size}_{of_out.upper()}_{place.upper()}_INTRIN",
                f"wmma_store_{size}_{of_out}_{place}",
                get_wmma_store_intrin,
                *shape,
                out_dtype,
                scope,
            )
        register(
            f"WMMA_SYNC_{size}_{of_in}{of_in}{of_out}{'_TRANS' if trans else ''}_INTRIN",
            f"wmma_sync_{size}_{of_in}{of_in}{of_out}{'_trans' if trans else ''}",
            get_wmma_sync_intrin,
            *shape,
            in_dtype,
            out_dtype,
            trans,
        )
        register(
            f"WMMA_FILL_{size}_{of_out.upper()}_INTRIN",
            f"wmma_fill_{size}_{of_out}",
            get_wmma_fill_intrin,
            *shape,
            out_dtype,
        )
    return made


globals().update(CONSTANTS | _register())
