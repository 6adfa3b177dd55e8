# SPDX-License-Identifier: Apache-2.0
"""Intrinsics of ARM's matrix extension SME: outer products that accumulate in its tiles.

SVL is the number of 32-bit words in a streaming vector, 4 * vscale, known only at run time. A block
has 2 SVL x 2 SVL results: the four tiles ZA0.S to ZA3.S, two by two. What a block has beyond the
end of a matrix is masked, so that loops are split by 2 SVL with `disable_predication=True`.

Outer products want the reduction outermost, so that the first operand is transposed before. Of
float16 two steps of the reduction are added at once; they lie side by side, as one word.
"""

from tvm.script import tir as T

from ..function import TensorIntrin

ARM_SME_INIT = "sme_init"
ARM_SME_2SVLx2SVL_FP32_TRANSPOSE_INTERLEAVE = "sme_2svlx2svl_fp32_transpose_interleave"
ARM_SME_BLOCK2_2SVLx1SVL_FP16_TRANSPOSE_INTERLEAVE = (
    "sme_block2_2svlx1svl_fp16_transpose_interleave"
)
ARM_SME_2SVLx2SVL_GEMM_INTERLEAVED_MOPA = "sme_2svlx2svl_gemm_interleaved_mopa"

# The function that has the instructions enters the streaming mode, with tiles of its own.
_MODE = {"pragma_llvm_attributes": "aarch64_pstate_sm_body aarch64_new_za"}
_SVL = T.vscale() * 4
_SIDE = _SVL * 2


class _Interleaved:
    """How a matrix [m, k] lies transposed: [k, m], or [k // 2, m, k % 2] for float16."""

    def __init__(self, dtype, what):
        if dtype not in ("float32", "float16"):
            raise ValueError(f"{what}: expected float32 or float16, got {dtype}")
        self.dtype, self.what = dtype, what
        self.pairs = 1 if dtype == "float32" else 2  # numbers in a word
        self.lanes = T.vscale() * (4 * self.pairs)

    def words(self, number):
        """How many words so many numbers are; None where the number is not known."""
        if number is not None and number % self.pairs:
            raise ValueError(
                f"{self.what}: expected an even extent of the reduction over float16, got {number}"
            )
        return None if number is None else number // self.pairs

    def index(self, k, m):
        return (k, m) if self.pairs == 1 else (k // 2, m, k % 2)

    def word(self, k, m):
        return (k, m) if self.pairs == 1 else (k, m, 0)

    def shape(self, k):
        """Of a part with so many words of the reduction."""
        return (k, _SIDE) if self.pairs == 1 else (k, _SIDE, 2)

    def strides(self, pitch):
        return [pitch, 1] if self.pairs == 1 else [pitch, 2, 1]

    def whole(self, k):
        return tuple(slice(0, n) for n in self.shape(k))


def _llvm(name, *args):
    return T.call_intrin("void", "tir.call_llvm_intrin", f"llvm.aarch64.sme.{name}", *args)


def _mask(base, limit, pairs=1):
    """The lanes with base + lane < limit, for words or for the numbers in them; all of them where
    there is no limit."""
    if limit is None:
        return T.broadcast(T.bool(True), T.vscale() * (4 * pairs))
    return T.get_active_lane_mask(f"boolxvscalex{4 * pairs}", base * pairs, limit * pairs)


def _limit(row, rows, columns):
    """Where a row ends: before it begins if it is beyond the last one."""
    return columns if rows is None else T.Select(row < rows, columns, T.int32(0))


def _begin(buffer, rows, pairs=1):
    """(row, word) of the matrix at which the buffer begins; `rows`: those of one of a batch."""
    pitch = buffer.strides[0]
    row = T.floordiv(buffer.elem_offset, pitch)
    word = T.floordiv(T.floormod(buffer.elem_offset, pitch), pairs)
    return (row if rows is None else T.floormod(row, rows)), word


def _transpose_interleave(dtype, cols, rows):
    """(description, implementation) of A_t[k, m] = A[m, k]. `cols` and `rows` are those of all
    of A; without them there are whole blocks only."""
    t = _Interleaved(dtype, "transpose_interleave")
    words = t.words(cols)
    across = 2 // t.pairs  # tiles: the block of float16 is as wide as that of float32
    depth = _SVL * across

    def load(A, r, c, tile, i):
        row, word = _begin(A, rows, t.pairs)
        mask = _mask(word + c * _SVL, _limit(row + r * _SVL + i, rows, words))
        return _llvm("ld1w.horiz", mask, T.address_of(A[r * _SVL + i, c * t.lanes]), tile, i)

    def store(A_t, r, c, tile, i):
        k, m = _begin(A_t, words, t.pairs)
        mask = _mask(m + r * _SVL, _limit(k + c * _SVL + i, words, rows))
        at = T.address_of(A_t[t.word(c * _SVL + i, r * _SVL)])
        return _llvm("st1w.vert", mask, at, tile, i)

    @T.prim_func
    def desc(a: T.handle, a_t: T.handle) -> None:
        A = T.match_buffer(a, (_SIDE, _SIDE), dtype, offset_factor=1)
        A_t = T.match_buffer(a_t, t.shape(depth), dtype, offset_factor=1)
        with T.block("root"):
            T.reads(A[0:_SIDE, 0:_SIDE])
            T.writes(A_t[t.whole(depth)])
            for i, k in T.grid(_SIDE, _SIDE):
                with T.block("transpose"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    A_t[t.index(vk, vi)] = A[vi, vk]

    @T.prim_func
    def impl(a: T.handle, a_t: T.handle) -> None:
        pitch = T.int32()
        pitch_t = T.int32()
        A = T.match_buffer(a, (_SIDE, _SIDE), dtype, strides=[pitch, 1], offset_factor=1)
        A_t = T.match_buffer(
            a_t, t.shape(depth), dtype, strides=t.strides(pitch_t), offset_factor=1
        )
        with T.block("root"):
            T.reads(A[0:_SIDE, 0:_SIDE])
            T.writes(A_t[t.whole(depth)])
            T.block_attr(_MODE)
            for r in T.unroll(2):
                for c in T.unroll(across):
                    for i in T.serial(_SVL):
                        T.evaluate(load(A, r, c, r * across + c, i))
            for r in T.unroll(2):
                for c in T.unroll(across):
                    for i in T.serial(_SVL):
                        T.evaluate(store(A_t, r, c, r * across + c, i))

    return desc, impl


def get_sme_transpose_interleave_2svlx2svl_fp32_intrin(cols, rows):
    """(description, implementation) of A_t[k, m] = A[m, k] for a block of a float32 matrix of so
    many columns and rows."""
    return _transpose_interleave("float32", cols, rows)


def get_sme_transpose_interleave_block2_2svl_fp16_intrin():
    """(description, implementation) of A_t[k // 2, m, k % 2] = A[m, k] for whole blocks of
    float16. For a matrix that ends inside a block: get_transpose_interleave_intrin_name."""
    return _transpose_interleave("float16", None, None)


def get_transpose_interleave_intrin_name(in_dtype, out_dtype, extent_cols, extent_rows):
    """The name of the intrinsic that brings a matrix of these extents into the order that
    get_sme_gemm_interleaved_mopa_2svlx2svl_intrin takes; it is registered now."""
    if out_dtype != "float32":
        raise ValueError(
            f"get_transpose_interleave_intrin_name: expected the out_dtype float32, got {out_dtype}"
        )
    pair = _transpose_interleave(in_dtype, extent_cols, extent_rows)
    base = {
        "float32": ARM_SME_2SVLx2SVL_FP32_TRANSPOSE_INTERLEAVE,
        "float16": ARM_SME_BLOCK2_2SVLx1SVL_FP16_TRANSPOSE_INTERLEAVE,
    }[in_dtype]
    name = f"{base}_{extent_cols}_{extent_rows}"
    TensorIntrin.register(name, *pair, override=True)
    return name


def _result(name, C, M, r, c, i):
    """Moves a row of C into a tile or out of it."""
    row, column = _begin(C, M)
    mask = _mask(column + c * _SVL, _limit(row + r * _SVL + i, M, C.strides[0]))
    return _llvm(f"{name}.horiz", mask, T.address_of(C[r * _SVL + i, c * _SVL]), r * 2 + c, i)


def get_sme_gemm_interleaved_mopa_2svlx2svl_intrin(M, K, in_dtype):
    """(description, implementation) of C[m, n] += A[m, k] * B[k, n] for a block of C and all K.
    Both operands come as A_t[k, m] and B[k, n], or [k // 2, m, k % 2] and [k // 2, n, k % 2] of
    float16; C has M rows of float32."""
    t = _Interleaved(in_dtype, "get_sme_gemm_interleaved_mopa_2svlx2svl_intrin")
    words = t.words(K)
    mopa = "mopa" if t.pairs == 1 else "mopa.wide"

    def operand(buffer, k, half, limit):
        """(mask, vector) of one half of a row."""
        _, begin = _begin(buffer, None, t.pairs)
        mask = _mask(begin + half * _SVL, limit, t.pairs)
        index = (k, half * _SVL, 0)[: 1 + t.pairs]
        index = (*index[:-1], T.ramp(index[-1], 1, t.lanes))
        return mask, T.BufferLoad(buffer, index, mask)

    def multiply(A_t, B, C, k, r, c):
        mask_a, a = operand(A_t, k, r, M)
        mask_b, b = operand(B, k, c, C.strides[0])
        return _llvm(mopa, r * 2 + c, mask_a, mask_b, a, b)

    @T.prim_func
    def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
        A_t = T.match_buffer(a, t.shape(words), in_dtype, offset_factor=1)
        B = T.match_buffer(b, t.shape(words), in_dtype, offset_factor=1)
        C = T.match_buffer(c, (_SIDE, _SIDE), "float32", offset_factor=1)
        with T.block("root"):
            T.reads(C[0:_SIDE, 0:_SIDE], A_t[t.whole(words)], B[t.whole(words)])
            T.writes(C[0:_SIDE, 0:_SIDE])
            for i, j, k in T.grid(_SIDE, _SIDE, K):
                with T.block("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + T.cast(A_t[t.index(vk, vi)], "float32") * T.cast(
                        B[t.index(vk, vj)], "float32"
                    )

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        pitch_a = T.int32()
        pitch_b = T.int32()
        pitch_c = T.int32()
        A_t = T.match_buffer(
            a, t.shape(words), in_dtype, strides=t.strides(pitch_a), offset_factor=1
        )
        B = T.match_buffer(b, t.shape(words), in_dtype, strides=t.strides(pitch_b), offset_factor=1)
        C = T.match_buffer(c, (_SIDE, _SIDE), "float32", strides=[pitch_c, 1], offset_factor=1)
        with T.block("root"):
            T.reads(C[0:_SIDE, 0:_SIDE], A_t[t.whole(words)], B[t.whole(words)])
            T.writes(C[0:_SIDE, 0:_SIDE])
            T.block_attr(_MODE)
            for r in T.unroll(2):
                for c in T.unroll(2):
                    for i in T.serial(_SVL):
                        T.evaluate(_result("ld1w", C, M, r, c, i))
            for k in T.serial(words):
                for r in T.unroll(2):
                    for c in T.unroll(2):
                        T.evaluate(multiply(A_t, B, C, k, r, c))
            for r in T.unroll(2):
                for c in T.unroll(2):
                    for i in T.serial(_SVL):
                        T.evaluate(_result("st1w", C, M, r, c, i))

    return desc, impl


def get_sme_init_intrin(*, M=None):
    """(description, implementation) of C[m, n] = 0 for a block of C, which has M rows; without it
    there are whole blocks only."""

    @T.prim_func
    def desc(c: T.handle) -> None:
        C = T.match_buffer(c, (_SIDE, _SIDE), "float32", offset_factor=1)
        with T.block("root"):
            T.reads()
            T.writes(C[0:_SIDE, 0:_SIDE])
            for i, j in T.grid(_SIDE, _SIDE):
                with T.block("init"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = T.float32(0)

    @T.prim_func
    def impl(c: T.handle) -> None:
        pitch = T.int32()
        C = T.match_buffer(c, (_SIDE, _SIDE), "float32", strides=[pitch, 1], offset_factor=1)
        with T.block("root"):
            T.reads()
            T.writes(C[0:_SIDE, 0:_SIDE])
            T.block_attr(_MODE)
            T.evaluate(_llvm("zero", T.int32(0b11111111)))  # all of the eight tiles of 64 bits
            for r in T.unroll(2):
                for c in T.unroll(2):
                    for i in T.serial(_SVL):
                        T.evaluate(_result("st1w", C, M, r, c, i))

    return desc, impl


TensorIntrin.register(ARM_SME_INIT, *get_sme_init_intrin(), override=True)
TensorIntrin.register(
    ARM_SME_BLOCK2_2SVLx1SVL_FP16_TRANSPOSE_INTERLEAVE,
    *get_sme_transpose_interleave_block2_2svl_fp16_intrin(),
    override=True,
)
