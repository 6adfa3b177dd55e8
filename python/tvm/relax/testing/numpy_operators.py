# SPDX-License-Identifier: Apache-2.0
"""What operators of the graph mean, in NumPy: {name: function(arguments, attributes)}.

Nothing here is shared with inference, lowering or the operator's tests: where two agree, both may
be right.
"""

import math

import numpy as np

OPERATORS = {}


def _add(name, function):
    OPERATORS["relax." + name] = function


def _number(value):
    return value.item() if isinstance(value, np.ndarray) else value


def _axes(axis, ndim):
    if axis is None:
        return None
    return tuple(int(a) % ndim for a in axis)


# ---- elementwise --------------------------------------------------------------------------------
def _wide(function):
    """Computed in float64, rounded once."""
    return lambda args, _: function(args[0].astype("float64")).astype(args[0].dtype)


_erf = np.vectorize(math.erf, otypes=["float64"])
for _name, _function in {
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sin": np.sin,
    "cos": np.cos,
    "exp": np.exp,
    "erf": _erf,
    "sqrt": np.sqrt,
    "nn.silu": lambda x: x / (1 + np.exp(-x)),
    "nn.gelu": lambda x: x * 0.5 * (1 + _erf(x / math.sqrt(2))),
}.items():
    _add(_name, _wide(_function))
for _name, _function in {
    "abs": np.abs,
    "negative": np.negative,
    "sign": np.sign,
    "square": np.square,
    "floor": np.floor,
    "logical_not": np.logical_not,
    "bitwise_not": np.bitwise_not,
    "nn.relu": lambda x: np.maximum(x, x.dtype.type(0)),
}.items():
    _add(_name, lambda args, _, f=_function: f(args[0]))


def _operands(args):
    """Both as arrays: a scalar has the dtype of the tensor it is with."""
    a, b = args
    if not isinstance(a, np.ndarray):
        a = np.asarray(a, b.dtype)
    if not isinstance(b, np.ndarray):
        b = np.asarray(b, a.dtype)
    return a, b


def _by_zero(function):
    def divide(a, b):
        return np.where(b == 0, 0, function(a, np.where(b == 0, 1, b))).astype(a.dtype)

    return divide


for _name, _function in {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "floor_divide": _by_zero(np.floor_divide),
    "floor_mod": _by_zero(np.mod),
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
}.items():
    _add(_name, lambda args, _, f=_function: np.asarray(f(*_operands(args))))
_add("where", lambda args, _: np.where(*args))
_add("clip", lambda args, _: np.clip(args[0], *(args[0].dtype.type(v) for v in args[1:])))
_add("astype", lambda args, attrs: args[0].astype(str(attrs.dtype)))
_add("ewise_fma", lambda args, _: args[0] * args[1] + args[2])

# ---- reductions ---------------------------------------------------------------------------------
for _name, _function in {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}.items():

    def _reduce(args, attrs, f=_function):
        (x,) = args
        result = f(
            x.astype("float64") if x.dtype.kind == "f" else x,
            axis=_axes(attrs.axis, x.ndim),
            keepdims=bool(attrs.keepdims),
        )
        return np.asarray(result).astype(x.dtype)

    _add(_name, _reduce)


def _argmax(args, attrs):
    (x,) = args
    axis = None if attrs.axis is None else int(attrs.axis)
    return np.asarray(np.argmax(x, axis=axis, keepdims=bool(attrs.keepdims))).astype("int64")


_add("argmax", _argmax)


def _cumsum(args, attrs):
    (x,) = args
    axis = None if attrs.axis is None else int(attrs.axis)
    return np.cumsum(x, axis=axis, dtype=x.dtype)


_add("cumsum", _cumsum)


def _softmax(args, attrs):
    x = args[0].astype("float64")
    e = np.exp(x - x.max(axis=int(attrs.axis), keepdims=True))
    return (e / e.sum(axis=int(attrs.axis), keepdims=True)).astype(args[0].dtype)


_add("nn.softmax", _softmax)


def _layer_norm(args, attrs):
    x, gamma, beta = (a.astype("float64") for a in args)
    axes = _axes(attrs.axes, x.ndim)
    centred = x - x.mean(axis=axes, keepdims=True)
    variance = np.square(centred).mean(axis=axes, keepdims=True)
    shape = [d if i in axes else 1 for i, d in enumerate(x.shape)]
    normal = centred / np.sqrt(variance + float(attrs.epsilon))
    return (normal * gamma.reshape(shape) + beta.reshape(shape)).astype(args[0].dtype)


_add("nn.layer_norm", _layer_norm)


def _matmul(args, attrs):
    a, b = args
    out = str(attrs.out_dtype)
    out = a.dtype if out in ("", "void") else np.dtype(out)
    wide = "float64" if out.kind == "f" else out
    return np.asarray(a.astype(wide) @ b.astype(wide)).astype(out)


_add("matmul", _matmul)

# ---- shapes -------------------------------------------------------------------------------------
_add("reshape", lambda args, _: args[0].reshape(args[1]))
_add("flatten", lambda args, _: args[0].reshape(-1))
_add("broadcast_to", lambda args, _: np.broadcast_to(args[0], args[1]).copy())
_add("concat", lambda args, attrs: np.concatenate(args[0], axis=int(attrs.axis)))
_add("stack", lambda args, attrs: np.stack(args[0], axis=int(attrs.axis)))
_add("flip", lambda args, attrs: np.flip(args[0], int(attrs.axis)).copy())
_add("expand_dims", lambda args, attrs: np.expand_dims(args[0], tuple(map(int, attrs.axis))))
_add("repeat", lambda args, attrs: np.repeat(args[0], int(attrs.repeats), int(attrs.axis)))
_add("tile", lambda args, attrs: np.tile(args[0], list(map(int, attrs.repeats))))
_add("triu", lambda args, _: np.triu(args[0], int(_number(args[1]))))
_add("tril", lambda args, _: np.tril(args[0], int(_number(args[1]))))


def _permute_dims(args, attrs):
    axes = None if attrs.axes is None else list(map(int, attrs.axes))
    return np.transpose(args[0], axes).copy()


def _squeeze(args, attrs):
    return np.squeeze(args[0], None if attrs.axis is None else tuple(map(int, attrs.axis)))


def _split(args, attrs):
    parts, axis = attrs.indices_or_sections, int(attrs.axis)
    if hasattr(parts, "value") or isinstance(parts, int):
        count = int(parts)
        size = -(-args[0].shape[axis] // count)
        parts = [size * i for i in range(1, count)]
    return tuple(part.copy() for part in np.split(args[0], list(map(int, parts)), axis))


def _strided_slice(args, _):
    index = [slice(None)] * args[0].ndim
    strides = args[4] if len(args) > 4 else [1] * len(args[1])
    for axis, begin, end, stride in zip(args[1], args[2], args[3], strides, strict=True):
        index[axis] = slice(begin, end, stride)
    return args[0][tuple(index)].copy()


def _take(args, attrs):
    axis = None if attrs.axis is None else int(attrs.axis)
    return np.take(args[0], np.asarray(args[1]), axis)


_add("permute_dims", _permute_dims)
_add("squeeze", _squeeze)
_add("split", _split)
_add("strided_slice", _strided_slice)
_add("take", _take)

# ---- creation, shapes as values -----------------------------------------------------------------
_add("zeros", lambda args, attrs: np.zeros(args[0], str(attrs.dtype)))
_add("ones", lambda args, attrs: np.ones(args[0], str(attrs.dtype)))


def _full(args, attrs):
    fill = np.asarray(args[1])
    dtype = str(attrs.dtype)
    return np.full(args[0], fill, dtype if dtype not in ("", "void") else fill.dtype)


_add("full", _full)
_add("full_like", lambda args, _: np.full(args[0].shape, args[1], args[0].dtype))
_add("arange", lambda args, attrs: np.arange(*args).astype(str(attrs.dtype)))
_add("shape_of", lambda args, _: tuple(args[0].shape))
_add("shape_to_tensor", lambda args, _: np.array(args[0], "int64"))
_add("tensor_to_shape", lambda args, _: tuple(map(int, args[0])))
_add("size", lambda args, _: np.asarray(args[0].size, "int64"))
_add("unique", lambda args, _: np.unique(args[0]))
_add("assert_op", lambda args, _: ())
_add("null_value", lambda args, _: None)
_add("builtin.stop_lift_params", lambda args, _: args[0])


def _view(args, _):
    data, shape, dtype, offset = args
    raw = data.reshape(-1).copy().view("uint8")
    dtype = np.dtype(str(dtype) if dtype is not None else data.dtype)
    shape = data.shape if shape is None else shape
    begin = 0 if offset is None else int(offset)
    size = int(np.prod(shape, dtype="int64")) * dtype.itemsize
    return raw[begin : begin + size].view(dtype).reshape(shape).copy()


_add("memory.view", _view)
_add("memory.ensure_zero_offset", lambda args, _: args[0])
_add("wrap_param", lambda args, attrs: args[0].astype(str(attrs.dtype)))
for _name in ("no_grad", "start_checkpoint", "end_checkpoint"):
    _add("grad." + _name, lambda args, _: args[0])
