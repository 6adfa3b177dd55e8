# SPDX-License-Identifier: Apache-2.0
"""Rotary position embeddings: how fast each pair of elements turns, and kernels that turn them."""

import functools
import math

from tvm import tir
from tvm.tir import ir_builder

# A frequency function gives (cos, sin, {variable: value}) for the position s and the element d of
# d_range that are turned; the variables stand for values that both use.


def _angle(freq, dtype):
    var = tir.Var("freq", "float32")
    return tir.cos(var).astype(dtype), tir.sin(var).astype(dtype), {var: freq}


def _f32(value):
    return (
        tir.const(value, "float32") if isinstance(value, (int, float)) else value.astype("float32")
    )


def _inverse(theta, d, d_range, pairs=False):
    """theta ** (-2 i / d_range) of the pair i that d belongs to: halves, or neighbours."""
    index = d // 2 * 2 if pairs else d * 2 % d_range
    return tir.power(_f32(theta), -_f32(index) / float(d_range))


def rope_freq_default(s, d, d_range, theta, dtype):
    """Element i turns with i + d_range / 2."""
    return _angle(_f32(s) * _inverse(theta, d, d_range), dtype)


def rope_freq_gptj(s, d, d_range, theta, dtype):
    """Neighbours turn with each other."""
    return _angle(_f32(s) * _inverse(theta, d, d_range, pairs=True), dtype)


def _llama3_frequency(inverse, factor, low_freq_factor, high_freq_factor, original):
    """Slow ones are divided by the factor, fast ones stay, in between it is blended."""
    span = float(high_freq_factor) - float(low_freq_factor)
    turns = inverse * float(original / (2 * math.pi))  # in the original context
    smooth = tir.max(tir.min((turns - float(low_freq_factor)) / span, _f32(1.0)), _f32(0.0))
    return inverse * ((_f32(1.0) - smooth) / float(factor) + smooth)


def rope_freq_llama3(
    s, d, d_range, theta, dtype,
    factor, low_freq_factor, high_freq_factor, original_max_position_embeddings,
):  # fmt: skip
    inverse = _llama3_frequency(
        _inverse(theta, d, d_range), factor, low_freq_factor, high_freq_factor,
        original_max_position_embeddings,
    )  # fmt: skip
    return _angle(_f32(s) * inverse, dtype)


def rope_freq_llama4(
    s, d, d_range, theta, dtype,
    factor, low_freq_factor, high_freq_factor, original_max_position_embeddings,
):  # fmt: skip
    """As llama3, of neighbours."""
    inverse = _llama3_frequency(
        _inverse(theta, d, d_range, pairs=True), factor, low_freq_factor, high_freq_factor,
        original_max_position_embeddings,
    )  # fmt: skip
    return _angle(_f32(s) * inverse, dtype)


def rope_freq_longrope(
    s, d, d_range, theta, dtype,
    max_position_embeddings, original_max_position_embeddings, ext_factors=None,
):  # fmt: skip
    """Each frequency divided by a factor of its own; cosines and sines grow with the context."""
    inverse = _inverse(theta, d, d_range)
    if ext_factors is not None:
        inverse = inverse / ext_factors[d % (d_range // 2)]
    scale = max_position_embeddings / original_max_position_embeddings
    grow = 1.0
    if scale > 1.0:
        grow = math.sqrt(1 + math.log(scale) / math.log(original_max_position_embeddings))
    var = tir.Var("freq", "float32")
    cos, sin = tir.cos(var) * float(grow), tir.sin(var) * float(grow)
    return cos.astype(dtype), sin.astype(dtype), {var: _f32(s) * inverse}


def _turning_dim(rotations, d_range, theta, original):
    """The pair that turns so often in the original context."""
    return d_range * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(theta))


def rope_freq_yarn(
    s, d, d_range, theta, dtype,
    original_max_position_embeddings, scaling_factor, beta_fast, beta_slow,
):  # fmt: skip
    """Slow pairs are divided by the factor, fast ones stay, a ramp over pairs in between."""
    if not isinstance(theta, (int, float)):
        raise ValueError("rope_freq_yarn: expected theta to be a number, got an expression")
    ends = (beta_fast, beta_slow)
    low, high = (
        _turning_dim(beta, d_range, theta, original_max_position_embeddings) for beta in ends
    )
    low, high = max(math.floor(low), 0), min(math.ceil(high), d_range - 1)
    span = float(max(high - low, 0.001))
    pair = _f32(d % (d_range // 2))
    ramp = tir.max(tir.min((pair - float(low)) / span, _f32(1.0)), _f32(0.0))
    inverse = _inverse(theta, d, d_range)
    inverse = inverse * (ramp / float(scaling_factor) + (_f32(1.0) - ramp))
    return _angle(_f32(s) * inverse, dtype)


def switch_rope_freq_func(rope_scaling):
    """The frequency function of a model's configuration, by its "rope_type"."""
    kind = rope_scaling.get("rope_type")
    if kind is None:
        return rope_freq_default
    functions = {
        "gptj": (rope_freq_gptj, ()),
        "default": (rope_freq_default, ()),
        "llama3": (rope_freq_llama3, _SMOOTH),
        "llama4": (rope_freq_llama4, _SMOOTH),
        "longrope": (
            rope_freq_longrope, ("max_position_embeddings", "original_max_position_embeddings")
        ),
        "yarn": (
            rope_freq_yarn,
            (
                "original_max_position_embeddings", ("scaling_factor", "factor"),
                "beta_fast", "beta_slow",
            ),
        ),
    }  # fmt: skip
    if kind not in functions:
        raise ValueError(f"rope_scaling: expected rope_type of {list(functions)}, got {kind!r}")
    function, keys = functions[kind]
    values = {}
    for key in keys:
        names = (key,) if isinstance(key, str) else key
        found = [rope_scaling[name] for name in names if name in rope_scaling]
        if not found:
            raise ValueError(f"rope_scaling: expected {names[0]!r} for {kind}, got {rope_scaling}")
        values[names[0]] = found[0]
    return functools.partial(function, **values) if values else function


_SMOOTH = (
    "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
)  # fmt: skip


def turns_neighbours(rope_scaling):
    """Whether element 2 i turns with 2 i + 1."""
    return rope_scaling.get("rope_type") in ("gptj", "llama4")


def emit_angles(ib, cos, sin, position, rotary_dim, theta, rope_scaling, ext_factors=None):
    """Fills two arrays of rotary_dim elements for a position."""
    freq = switch_rope_freq_func(rope_scaling)
    if ext_factors is not None:
        freq = functools.partial(freq, ext_factors=ext_factors)
    # Both elements of a pair turn by one angle: each is computed once.
    half = rotary_dim // 2
    neighbours = turns_neighbours(rope_scaling)
    with ib.for_range(0, half, "e", kind="vectorized") as e:
        first = e * 2 if neighbours else e
        c, s, values = freq(position, first, rotary_dim, theta, "float32")
        ((var, value),) = values.items()
        angle = {var: value}
        cos[e] = tir.stmt_functor.substitute(c, angle)
        sin[e] = tir.stmt_functor.substitute(s, angle)


def emit_turned(ib, put, row, cos, sin, rotary_dim, neighbours):
    """put(e, value) for all elements e of a row, turned; cos and sin are of pairs."""
    half = rotary_dim // 2
    with ib.for_range(0, half, "p", dtype="int64", kind="vectorized") as p:
        first, second = (p * 2, p * 2 + 1) if neighbours else (p, p + half)
        put(first, cos[p] * row(first) - sin[p] * row(second))
    with ib.for_range(0, half, "p", dtype="int64", kind="vectorized") as p:
        first, second = (p * 2, p * 2 + 1) if neighbours else (p, p + half)
        put(second, cos[p] * row(second) + sin[p] * row(first))


def llama_rope_with_position_map(
    theta, scale, head_dim, num_q_heads, num_kv_heads, dtype, rope_scaling, rotary_dim=None,
):  # fmt: skip
    """split_rotary: (n, heads of q, k and v, d) into q, k and v, of which q and k are turned by
    their positions where `apply_rope` is not 0. longrope takes its factors as a last argument."""
    rotary_dim = rotary_dim or head_dim
    fused_heads = num_q_heads + 2 * num_kv_heads
    n = tir.Var("n", "int64")
    is_long = rope_scaling.get("rope_type") == "longrope"
    qkv = tir.decl_buffer((n, fused_heads, head_dim), dtype, "qkv")
    positions = tir.decl_buffer((n,), "int32", "position_map", offset_factor=1)
    outputs = [
        tir.decl_buffer((n, heads, head_dim), dtype, name)
        for name, heads in (("q", num_q_heads), ("k", num_kv_heads), ("v", num_kv_heads))
    ]
    apply_rope = tir.Var("apply_rope", "int64")
    factors = tir.decl_buffer((rotary_dim // 2,), "float32", "ext_factors") if is_long else None

    ib = ir_builder.create()
    source, where = ib.buffer_ptr(qkv), ib.buffer_ptr(positions)
    extended = ib.buffer_ptr(factors) if is_long else None
    neighbours = turns_neighbours(rope_scaling)
    with ib.for_range(0, n, "i", dtype="int64", kind="parallel") as i:
        cos = ib.allocate("float32", rotary_dim // 2, "cos")
        sin = ib.allocate("float32", rotary_dim // 2, "sin")
        with ib.if_scope(apply_rope != 0):
            position = _f32(where[i]) * float(scale)
            emit_angles(ib, cos, sin, position, rotary_dim, theta, rope_scaling, extended)
        first = 0
        for output in outputs:
            to = ib.buffer_ptr(output)
            is_turned = output.name != "v"
            with ib.for_range(0, output.shape[1], "h", dtype="int64") as h:
                at = first + h

                def row(e, i=i, at=at):
                    return source[i, at, e].astype("float32")

                def copy(begin, i=i, h=h, to=to, at=at):
                    with ib.for_range(begin, head_dim, "e", dtype="int64", kind="vectorized") as e:
                        to[i, h, e] = source[i, at, e]

                if not is_turned:
                    copy(0)
                else:
                    with ib.if_scope(apply_rope != 0):

                        def put(e, value, i=i, h=h, to=to):
                            to[i, h, e] = value.astype(dtype)

                        emit_turned(ib, put, row, cos, sin, rotary_dim, neighbours)
                        if rotary_dim < head_dim:
                            copy(rotary_dim)
                    with ib.else_scope():
                        copy(0)
            first += int(output.shape[1])
    params, buffers = [], {}
    for buffer in (qkv, positions, *outputs):
        params.append(tir.Var(buffer.name, "handle"))
        buffers[params[-1]] = buffer
    params.append(apply_rope)
    if is_long:
        params.append(tir.Var("ext_factors", "handle"))
        buffers[params[-1]] = factors
    func = tir.PrimFunc(params, ib.get(), None, buffers)
    return func.with_attr({"tir.noalias": True, "tir.is_scheduled": True})


def llama4_rope_with_position_map(
    theta, scale, head_dim, num_q_heads, num_kv_heads, dtype, rope_scaling, rotary_dim=None,
):  # fmt: skip
    """The same for models whose neighbours turn with each other."""
    rope_scaling = {**rope_scaling, "rope_type": "llama4"}
    return llama_rope_with_position_map(
        theta, scale, head_dim, num_q_heads, num_kv_heads, dtype, rope_scaling, rotary_dim
    )


def llama_rope(
    qkv, total_seq_len, theta, scale, num_q_heads, num_kv_heads, rope_scaling, rotary_dim=None
):  # fmt: skip
    """q, k and v of (batch, length, heads of q, k and v, d), of which q and k are turned; the last
    token is at the position total_seq_len - 1."""
    from .. import op

    batch, length, fused_heads, head_dim = qkv.shape
    rotary_dim = rotary_dim or head_dim
    freq = switch_rope_freq_func(rope_scaling)
    neighbours = turns_neighbours(rope_scaling)
    if fused_heads != num_q_heads + 2 * num_kv_heads:
        raise ValueError(
            f"llama_rope: expected {num_q_heads} + 2 * {num_kv_heads} heads, got {fused_heads}"
        )

    def part(first, heads, is_turned):
        from tvm import te

        def build(x, total):
            def element(b, s, h, e):
                if not is_turned:
                    return x[b, s, first + h, e]
                position = _f32(s + (total - x.shape[1])) * float(scale)
                cos, sin, values = freq(position, e, rotary_dim, theta, "float32")
                half = rotary_dim // 2

                def row(d):
                    return x[b, s, first + h, d].astype("float32")

                if neighbours:
                    other = tir.if_then_else(e % 2 == 0, -row(e + 1), row(e - 1))
                else:
                    other = tir.if_then_else(e < half, -row(e + half), row(e - half))
                value = tir.stmt_functor.substitute(cos * row(e) + sin * other, values)
                value = value.astype(x.dtype)
                if rotary_dim == head_dim:
                    return value
                return tir.if_then_else(e < rotary_dim, value, x[b, s, first + h, e])

            return te.compute((x.shape[0], x.shape[1], heads, head_dim), element, "rope")

        return op.tensor_expr_op(build, "llama_rope", [qkv, total_seq_len])

    return (
        part(0, num_q_heads, True),
        part(num_q_heads, num_kv_heads, True),
        part(num_q_heads + num_kv_heads, num_kv_heads, False),
    )
