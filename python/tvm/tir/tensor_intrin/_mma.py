# SPDX-License-Identifier: Apache-2.0
"""Intrinsics of NVIDIA GPUs: matrices that the threads of a warp hold together, for mma.sync.

A tile of 16 x 16 elements is memory of scope "warp" of 32 x 8 elements: thread, register. The
layout says which element of the tile that is. Second factors, and those that are transposed, are
held as mma.sync wants them; their descriptions give the layout of the first factor all the same,
so that loading and multiplying them go together.
"""

import itertools

from tvm_ffi import register_global_func

from tvm import tir
from tvm.script import tir as T

from ..expr import convert
from ..function import TensorIntrin
from ._tiles import Tile, as_is, copy_desc, product_desc, transposed, zero_desc

M_DIM = N_DIM = 16
WARP_SIZE = 32
HALF_WARP = WARP_SIZE // 2
lift = convert
HALF_WARP_expr = lift(HALF_WARP)

_SHORT = {"float16": "f16", "float32": "f32", "int8": "i8", "int32": "i32",
          "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}  # fmt: skip
_PTX = {"float16": "fp16", "float32": "fp32", "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}


# ---- layouts ------------------------------------------------------------------------------------
def shared_16x16_to_ldmatrix_32x8_layout(i, j):
    """(thread, register) of an element of a tile of 16 x 16."""
    return 4 * (i % 8) + j % 8 // 2, 4 * (j // 8) + i // 8 * 2 + j % 2


def shared_16x32_to_ldmatrix_32x16_layout(i, j):
    """The same for a tile of bytes, of 16 x 32."""
    return 4 * (i % 8) + j % 16 // 4, 8 * (j // 16) + i // 8 * 4 + j % 4


def shared_32x16_to_ldmatrix_32x16_layout(i, j):
    """The same for a second factor of bytes, of 32 x 16."""
    return i % 16 // 4 + 4 * (j % 8), 8 * (j // 8) + i // 16 * 4 + i % 4


def ldmatrix_32x8_to_shared_16x16_layout(thread_id, local_id):
    """The element of a tile of 16 x 16 that a register of a thread holds."""
    row = 8 * (local_id % 4 // 2) + thread_id // 4
    return row, 8 * (local_id // 4) + thread_id % 4 * 2 + local_id % 2


@register_global_func("tir.index_map.shared_16x16_to_ldmatrix_32x8_layout", override=True)
def index_map_shared_16x16_to_ldmatrix_32x8_layout(ind):
    return list(shared_16x16_to_ldmatrix_32x8_layout(*ind))


@register_global_func("tir.index_map_m16n8k8.matrixC", override=True)
def index_map_m16n8k8_matrixC(ind):
    i, j = ind
    return [i // 8 // 2, j // 8, i // 8 % 2, j % 8 % 2]


def _layout_of(rows, columns):
    if (rows, columns) == (16, 16):
        return shared_16x16_to_ldmatrix_32x8_layout
    return shared_16x32_to_ldmatrix_32x16_layout if rows == 16 else _bytes_along_n


_bytes_along_n = shared_32x16_to_ldmatrix_32x16_layout


# ---- tiles of 16 x 16 ---------------------------------------------------------------------------
def get_ldmatrix_intrin(k_dim, dtype, matrix_name, transposed, shared_scope="shared"):
    """(description, implementation) of loading a factor from shared memory."""
    is_a = matrix_name == "A"
    if (
        matrix_name not in ("A", "B")
        or k_dim not in (16, 32)
        or (is_a and transposed and k_dim == 32)
    ):
        raise ValueError(
            "get_ldmatrix_intrin: expected the factor A or B, of 16 columns or 32, got "
            f"{'transposed ' if transposed else ''}{matrix_name} of {k_dim}"
        )
    rows, columns = (16, k_dim) if is_a != transposed else (k_dim, 16)
    layout, local, half = _layout_of(rows, columns), k_dim // 2, k_dim // 2
    is_read = k_dim == 32 and not is_a and not transposed  # bytes are not transposed by ldmatrix
    trans = is_a == transposed

    in_shared = Tile((rows, columns), dtype, shared_scope, columns)
    in_warp = Tile((WARP_SIZE, local), dtype, "warp", columns, layout)
    desc = copy_desc((rows, columns), in_shared, in_warp)
    desc = tir.PrimFunc(reversed(desc.params), desc.body, buffer_map=desc.buffer_map)

    # Threads give the lines of four matrices: after the first comes the one below it or beside it.
    def line_of(tx):
        return tx % 8 + tx // 16 * 8 if transposed else tx % 16

    def column_of(tx):
        return tx // 8 % 2 * half if transposed else tx // 16 * half

    @T.prim_func
    def ldmatrix_impl(warp_handle: T.handle, shared_handle: T.handle) -> None:
        s0, s1 = T.int32(), T.int32()
        shared = in_shared.match(shared_handle, [s1, s0])
        warp = in_warp.match(warp_handle)
        with T.block("root"):
            T.reads(shared[0:rows, 0:columns])
            T.writes(warp[0:WARP_SIZE, 0:local])
            for tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                T.evaluate(
                    T.ptx_ldmatrix(
                        dtype, trans, 4, ".b16", warp.data, warp.elem_offset + tx * local,
                        shared.access_ptr("r"), line_of(tx) * s1 + column_of(tx),
                    )
                )  # fmt: skip

    @T.prim_func
    def read_impl(warp_handle: T.handle, shared_handle: T.handle) -> None:
        s0, s1 = T.int32(), T.int32()
        shared = in_shared.match(shared_handle, [s1, s0])
        warp = in_warp.match(warp_handle)
        with T.block("root"):
            T.reads(shared[0:rows, 0:columns])
            T.writes(warp[0:WARP_SIZE, 0:local])
            for tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                for i in range(local):
                    warp[tx, i] = shared[tx % 4 * 4 + i % 8 // 4 * 16 + i % 4, i // 8 * 8 + tx // 4]

    return desc, read_impl if is_read else ldmatrix_impl


def get_mma_intrin(
    k_dim,
    a_dtype="float16",
    b_dtype="float16",
    out_dtype="float16",
    a_transposed=False,
    b_transposed=False,
):
    """(description, implementation) of C += A B for tiles of 16 x 16: two instructions."""
    local, size = k_dim // 2, 8
    a_shape = (k_dim, 16) if a_transposed else (16, k_dim)
    b_shape = (16, k_dim) if b_transposed else (k_dim, 16)
    a_layout, b_layout = _layout_of(*a_shape), _layout_of(*b_shape)
    a_at = (lambda i, k: a_layout(k, i)) if a_transposed else a_layout
    b_at = (lambda k, j: b_layout(j, k)) if b_transposed else b_layout
    left = Tile((WARP_SIZE, local), a_dtype, "warp", a_shape[1], a_at)
    right = Tile((WARP_SIZE, local), b_dtype, "warp", b_shape[1], b_at)
    sums = Tile((WARP_SIZE, size), out_dtype, "warp", 16, shared_16x16_to_ldmatrix_32x8_layout)
    shape = f"m16n8k{k_dim}"
    kinds = [_PTX.get(t, t) for t in (a_dtype, b_dtype, out_dtype)]

    @T.prim_func
    def mma_sync_impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = left.match(a)
        B = right.match(b)
        C = sums.match(c)
        with T.block("root"):
            T.reads(C[0:WARP_SIZE, 0:size], A[0:WARP_SIZE, 0:local], B[0:WARP_SIZE, 0:local])
            T.writes(C[0:WARP_SIZE, 0:size])
            for tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                for half in T.unroll(2):
                    T.evaluate(
                        T.ptx_mma(
                            out_dtype, shape, "row", "col", kinds[0], kinds[1], kinds[2],
                            A.data, A.elem_offset + tx * local,
                            B.data, B.elem_offset + tx * local + half * (local // 2),
                            C.data, C.elem_offset + tx * size + half * (size // 2), False,
                        )
                    )  # fmt: skip

    return product_desc((16, 16, k_dim), left, right, sums), mma_sync_impl


def get_mma_fill_intrin(dtype, local_size):
    """(description, implementation) of a tile of zeros."""
    in_warp = Tile((WARP_SIZE, local_size), dtype, "warp", 1, shared_16x16_to_ldmatrix_32x8_layout)

    @T.prim_func
    def mma_fill_impl(a: T.handle) -> None:
        C_warp = in_warp.match(a)
        with T.block("root"):
            T.reads()
            T.writes(C_warp[0:WARP_SIZE, 0:local_size])
            for tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                T.evaluate(
                    T.mma_fill(dtype, local_size, C_warp.data, C_warp.elem_offset + tx * local_size)
                )

    return zero_desc((M_DIM, N_DIM), in_warp), mma_fill_impl


def get_mma_store_intrin(dtype, local_size, scope="global", use_mma_store_intrinic=True):
    """(description, implementation) of storing a tile, by one operator or by its elements."""
    place = ldmatrix_32x8_to_shared_16x16_layout
    in_warp = Tile((WARP_SIZE, local_size), dtype, "warp", 1, shared_16x16_to_ldmatrix_32x8_layout)
    result = Tile((M_DIM, N_DIM), dtype, scope, 1)

    @T.prim_func
    def mma_store_impl(a: T.handle, c: T.handle) -> None:
        s0, s1 = T.int32(), T.int32()
        C_warp = in_warp.match(a)
        C = result.match(c, [s1, s0])
        with T.block("root"):
            T.reads(C_warp[0:WARP_SIZE, 0:local_size])
            T.writes(C[0:M_DIM, 0:N_DIM])
            for tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                T.evaluate(
                    T.mma_store(
                        dtype, M_DIM, N_DIM, C.access_ptr("w"), C_warp.data,
                        C_warp.elem_offset + tx * local_size, s1,
                    )
                )  # fmt: skip

    @T.prim_func
    def simple_impl(a: T.handle, c: T.handle) -> None:
        s0, s1 = T.int32(), T.int32()
        C_warp = in_warp.match(a)
        C = result.match(c, [s1, s0])
        with T.block("root"):
            T.reads(C_warp[0:WARP_SIZE, 0:local_size])
            T.writes(C[0:M_DIM, 0:N_DIM])
            for tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                for i in range(local_size):
                    C[place(tx, i)] = C_warp[tx, i]

    desc = copy_desc((M_DIM, N_DIM), in_warp, result)
    return desc, mma_store_impl if use_mma_store_intrinic else simple_impl


def get_mma_intrin_group(
    load_scope,
    store_scope,
    in_dtype,
    out_dtype,
    trans_a,
    trans_b,
    not_use_mma_store_intrinic=True,
    store_to_smem_dtype=None,
):
    """The names of the intrinsics of a product, by what each does: "init", "load_a", "load_b",
    "compute" and "store"."""
    given = f"{in_dtype} to {out_dtype}, {load_scope} and {store_scope}"
    stored = store_to_smem_dtype or out_dtype
    known = (in_dtype, out_dtype) in _PRODUCTS and stored in ("float16", "float32", "int32")
    if not known or load_scope not in _LOAD or store_scope not in _STORE:
        pairs = ", ".join(f"{a} to {b}" for a, b in _PRODUCTS)
        raise ValueError(
            f"get_mma_intrin_group: expected one of the products {pairs}, loaded from "
            f"{' or '.join(_LOAD)} and stored to {' or '.join(_STORE)}, got {given}"
        )
    if trans_a and in_dtype != "float16":
        raise ValueError(f"get_mma_intrin_group: expected trans_a for float16 only, got {given}")
    a, c = _SHORT[in_dtype], _SHORT[out_dtype]
    dyn = "_dyn" if load_scope == "shared.dyn" else ""
    of_a, of_b = "_trans" if trans_a else "", "_trans" if trans_b else ""
    simple = "simple_" if not_use_mma_store_intrinic else ""
    compute = f"mma_{a}{a}{c}" + ("_trans_a" if trans_a else "") + ("_trans_b" if trans_b else "")
    return {
        "init": f"mma_fill_16x16_{c}",
        "load_a": f"mma_ldmatrix_{a}_a{of_a}{dyn}",
        "load_b": f"mma_ldmatrix_{a}_b{of_b}{dyn}",
        "compute": compute,
        "store": f"mma_store_16x16_{_SHORT[stored]}_{store_scope.replace('.', '_')}_{simple}",
    }


_LOAD, _STORE = ("shared", "shared.dyn"), ("global", "shared", "shared.dyn")
_PRODUCTS = [
    ("float16", "float32"),
    ("float16", "float16"),
    ("int8", "int32"),
    ("float8_e5m2", "float32"),
    ("float8_e4m3fn", "float32"),
]


# ---- tiles of 16 x 8, multiplied 8 deep ---------------------------------------------------------
_FACTORS, _SUMS = ("m16n8k8.matrixA", "m16n8k8.matrixB"), "m16n8k8.matrixC"


def get_index_A(elem_offset, stride):
    """The first register of a tile of the first factor, which has `stride` columns."""
    i, j = elem_offset // stride, elem_offset % stride
    return (i // 32 * (stride // 8) + j // 8) * 8 + i % 32 // 16 * 4


def get_index_B(elem_offset, stride):
    """The same for the second factor."""
    i, j = elem_offset // stride, elem_offset % stride
    return (i // 8 * (stride // 32) + j // 32) * 8 + j % 32 // 8 * 2


def get_index_C(elem_offset, stride):
    """The same for sums."""
    i, j = elem_offset // stride, elem_offset % stride
    return (i // 8 // 2 * 2 * (stride // 8) + i // 8 % 2 + j // 8 * 2) * 2


def get_mma_init_intrin(m_dim, n_dim, k_dim, dtype):
    """(description, implementation) of sums of zeros."""
    del k_dim
    sums = Tile((m_dim, n_dim), dtype, _SUMS, 1)

    @T.prim_func
    def mma_init_impl(c: T.handle) -> None:
        d0, d1 = T.int32(), T.int32()
        dst = sums.match(c, [d1, d0])
        with T.block("root"):
            T.reads()
            T.writes(dst[0:m_dim, 0:n_dim])
            T.evaluate(T.mma_fill(dtype, 4, dst.data, get_index_C(dst.elem_offset, d1)))

    return zero_desc((m_dim, n_dim), sums), mma_init_impl


def get_mma_load_intrin(m_dim, n_dim, k_dim, dtype, shared_scope, is_b, is_col_major):
    """(description, implementation) of loading 32 x 8 elements of a factor, or 8 x 32."""
    rows, columns = (k_dim, n_dim) if is_b else (m_dim, k_dim)
    scope, index = _FACTORS[is_b], get_index_B if is_b else get_index_A
    shape = (columns, rows) if is_col_major else (rows, columns)
    n_rows, n_columns = shape
    # Of the second factor columns are wanted; the four matrices lie along the longer side.
    trans = is_b != is_col_major
    below = n_rows > n_columns

    def line_of(tx, stride):
        return tx * stride if below else tx % 8 * stride + tx // 8 * 8

    source, result = Tile(shape, dtype, shared_scope, 1), Tile(shape, dtype, scope, 1)

    @T.prim_func
    def mma_load_impl(a: T.handle, c: T.handle) -> None:
        s0, s1, d0, d1 = T.int32(), T.int32(), T.int32(), T.int32()
        src = source.match(a, [s1, s0])
        dst = result.match(c, [d1, d0])
        with T.block("root"):
            T.reads(src[0:n_rows, 0:n_columns])
            T.writes(dst[0:n_rows, 0:n_columns])
            for tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                T.evaluate(
                    T.ptx_ldmatrix(
                        dtype, trans, 4, ".b16", dst.data, index(dst.elem_offset, d1),
                        src.access_ptr("r"), line_of(tx, s1),
                    )
                )  # fmt: skip

    return copy_desc(shape, source, result), mma_load_impl


def get_mma_sync_intrin(m_dim, n_dim, k_dim, in_dtype, out_dtype, b_transposed):
    """(description, implementation) of C += A B: one instruction."""
    b_shape = b_rows, b_columns = (n_dim, k_dim) if b_transposed else (k_dim, n_dim)
    shape, of_in, of_out = f"m{m_dim}n{n_dim}k{k_dim}", _PTX[in_dtype], _PTX[out_dtype]

    left = Tile((m_dim, k_dim), in_dtype, _FACTORS[0], 1)
    right = Tile(b_shape, in_dtype, _FACTORS[1], 1, transposed if b_transposed else as_is)
    sums = Tile((m_dim, n_dim), out_dtype, _SUMS, 1)

    @T.prim_func
    def mma_sync_impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        a0, a1, b0, b1, c0, c1 = (
            T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
        )  # fmt: skip
        A = left.match(a, [a1, a0])
        B = right.match(b, [b1, b0])
        C = sums.match(c, [c1, c0])
        with T.block("root"):
            T.reads(C[0:m_dim, 0:n_dim], A[0:m_dim, 0:k_dim], B[0:b_rows, 0:b_columns])
            T.writes(C[0:m_dim, 0:n_dim])
            T.evaluate(
                T.ptx_mma(
                    out_dtype, shape, "row", "col", of_in, of_in, of_out,
                    A.data, get_index_A(A.elem_offset, a1),
                    B.data, get_index_B(B.elem_offset, b1),
                    C.data, get_index_C(C.elem_offset, c1), False,
                )
            )  # fmt: skip

    return product_desc((m_dim, n_dim, k_dim), left, right, sums), mma_sync_impl


def get_mma_store_dummy_intrin(m_dim, n_dim, k_dim, dtype):
    """(description, implementation) of storing sums: each thread stores those that it has."""
    del k_dim
    shape = (m_dim, n_dim)
    source, result = Tile(shape, dtype, _SUMS, 1), Tile(shape, dtype, "shared.dyn", 1)

    @T.prim_func
    def mma_store_impl(a: T.handle, c: T.handle) -> None:
        s0, s1, d0, d1 = T.int32(), T.int32(), T.int32(), T.int32()
        src = source.match(a, [s1, s0])
        dst = result.match(c, [d1, d0])
        with T.block("root"):
            T.reads(src[0:m_dim, 0:n_dim])
            T.writes(dst[0:m_dim, 0:n_dim])
            for tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                for i, j in T.grid(m_dim // 8, 2):
                    dst[i * 8 + tx // 4, tx % 4 * 2 + j] = src[i * 8 + tx // 4, tx % 4 * 2 + j]

    return copy_desc(shape, source, result), mma_store_impl


# ---- names --------------------------------------------------------------------------------------
def _register():
    """Registers all of them. Returns {constant: name}."""
    made = {}

    def register(constant, name, made_of):
        if constant:
            made[constant] = name
        TensorIntrin.register(name, *made_of, override=True)

    factors = {"float16": 16, "int8": 32, "float8_e4m3fn": 32, "float8_e5m2": 32}
    for dtype, scope in itertools.product(factors, _LOAD):
        short, dyn = _SHORT[dtype], "_dyn" if scope == "shared.dyn" else ""
        for matrix, trans in itertools.product("AB", (False, True)):
            if matrix == "A" and trans and dtype != "float16":
                continue
            part = matrix.lower() + ("_trans" if trans else "") + dyn
            register(
                f"LDMATRIX_{short}_{part.upper()}_INTRIN",
                f"mma_ldmatrix_{short}_{part}",
                get_ldmatrix_intrin(factors[dtype], dtype, matrix, trans, scope),
            )
    for (dtype, out), trans_a, trans_b in itertools.product(
        _PRODUCTS, (False, True), (False, True)
    ):
        if trans_a and dtype != "float16":
            continue
        name = f"{_SHORT[dtype]}{_SHORT[dtype]}{_SHORT[out]}"
        trans = ("_trans_a" if trans_a else "") + ("_trans_b" if trans_b else "")
        register(
            f"MMA_{name}{trans.upper()}_INTRIN",
            f"mma_{name}{trans}",
            get_mma_intrin(factors[dtype], dtype, dtype, out, trans_a, trans_b),
        )
    for dtype in ("float32", "float16", "int32"):
        short = _SHORT[dtype]
        register(
            f"MMA_fill_16x16_{short}_INTRIN", f"mma_fill_16x16_{short}",
            get_mma_fill_intrin(dtype, 8),
        )  # fmt: skip
        for scope, simple in itertools.product(_STORE, (False, True)):
            place = scope.replace(".", "_")
            register(
                f"MMA_store_16x16_{short}_{place}_INTRIN" + ("_SIMPLE" if simple else ""),
                f"mma_store_16x16_{short}_{place}_" + ("simple_" if simple else ""),
                get_mma_store_intrin(dtype, 8, scope, not simple),
            )
    for matrix, is_b in (("A", False), ("B", True)):
        register(
            None, f"mma_load_m16n8k8_f16_{matrix}_shared_dyn",
            get_mma_load_intrin(32, 32, 8, "float16", "shared.dyn", is_b, False),
        )  # fmt: skip
    for dtype in ("float16", "float32"):
        short = _SHORT[dtype]
        register(None, f"mma_init_m16n8k8_{short}", get_mma_init_intrin(16, 8, 8, dtype))
        register(
            None, f"mma_sync_m16n8k8_f16f16{short}",
            get_mma_sync_intrin(16, 8, 8, "float16", dtype, False),
        )  # fmt: skip
        register(
            None, f"mma_store_m16n8k8_{short}_global", get_mma_store_dummy_intrin(16, 8, 8, dtype)
        )
    return made


CONSTANTS = _register()
globals().update(CONSTANTS)
