# SPDX-License-Identifier: Apache-2.0
"""The patterns of vendors' libraries: names, what they take, what they refuse."""

import pytest
import tvm
from tvm import relax
from tvm.relax.backend import get_pattern, get_patterns_with_prefix
from tvm.relax.backend.cuda import cublas, cudnn, cutlass
from tvm.relax.backend.rocm import hipblas
from tvm.script import relax as R

FORMS = ["matmul", "matmul_bias", "matmul_bias_gelu", "matmul_bias_relu"]
FORMS += [form.replace("matmul", "matmul_transposed") for form in FORMS]
CUTLASS = "conv2d conv2d_bias conv2d_bias_relu conv2d_bias_silu layer_norm rms_norm attention "
CUTLASS += "attention_bias attention_var_len stacked_attention"


def composites(mod):
    found = []

    class Finder(relax.PyExprVisitor):
        def visit_function_(self, f):
            if f.attrs is not None and "Composite" in f.attrs:
                found.append(str(f.attrs["Composite"]))
            relax.PyExprVisitor.visit_function_(self, f)

    finder = relax.expr_functor.visitor(Finder)()
    for func in mod.functions.values():
        finder.visit_expr(func)
    return found


def product(dtype="float16", bias=True, activation=None, transposed=True, rhs=(64, 32)):
    x = relax.Var("x", R.Tensor((16, 32), dtype))
    w = relax.Var("w", R.Tensor(rhs if transposed else rhs[::-1], dtype))
    b = relax.Var("b", R.Tensor((64,), dtype))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, w, b]):
        with bb.dataflow():
            out = relax.op.matmul(x, relax.op.permute_dims(w) if transposed else w)
            out = relax.op.add(out, b) if bias else out
            out = getattr(relax.op.nn, activation)(out) if activation else out
            out = bb.emit_output(bb.normalize(out))
        bb.emit_func_output(out)
    return bb.get()


def test_names():
    scaled = ["matmul_transposed_dequantize", "matmul_transposed_multiply"]
    for prefix, names in (
        ("cublas", FORMS + scaled),
        ("hipblas", FORMS),
        ("cutlass", FORMS + CUTLASS.split()),
        ("cudnn", ["conv2d.nhwc_ohwi", "conv2d.nhwc_ohwi_bias", "conv2d.nhwc_ohwi_bias_relu"]),
        ("cudnn.attention", ["BS3NH", "SBN3H"]),
    ):
        for name in names:
            assert get_pattern(f"{prefix}.{name}") is not None, name
    assert len(get_patterns_with_prefix("cublas")) == 10
    assert len(get_patterns_with_prefix("hipblas")) == 8
    assert len(get_patterns_with_prefix("cudnn")) == 5
    with pytest.raises(NotImplementedError, match="decode_matmul_patterns"):
        cutlass.decode_matmul_patterns()


@pytest.mark.parametrize("activation", [None, "relu", "gelu"])
@pytest.mark.parametrize("transposed", [True, False])
def test_products(activation, transposed):
    name = "matmul_transposed_bias" if transposed else "matmul_bias"
    name += f"_{activation}" if activation else ""
    mod = product(activation=activation, transposed=transposed)
    assert composites(cublas.partition_for_cublas(mod)) == ["cublas." + name]
    assert composites(hipblas.partition_for_hipblas(mod)) == ["hipblas." + name]
    assert composites(cutlass.partition_for_cutlass(mod)) == ["cutlass." + name]


def test_products_that_are_refused():
    assert composites(cublas.partition_for_cublas(product(dtype="float64"))) == []


def test_convolutions():
    x = relax.Var("x", R.Tensor((1, 8, 8, 16), "float16"))
    w = relax.Var("w", R.Tensor((32, 3, 3, 16), "float16"))
    b = relax.Var("b", R.Tensor((1, 1, 1, 32), "float16"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, w, b]):
        with bb.dataflow():
            conv = relax.op.nn.conv2d(x, w, padding=1, data_layout="NHWC", kernel_layout="OHWI")
            out = bb.emit_output(bb.normalize(relax.op.nn.relu(relax.op.add(conv, b))))
        bb.emit_func_output(out)
    assert composites(cudnn.partition_for_cudnn(bb.get())) == ["cudnn.conv2d.nhwc_ohwi_bias_relu"]
    assert composites(cutlass.partition_for_cutlass(bb.get())) == ["cutlass.conv2d_bias_relu"]


def test_attention():
    q = relax.Var("q", R.Tensor((2, 8, 4, 16), "float16"))
    bb = relax.BlockBuilder()
    with bb.function("main", [q]):
        with bb.dataflow():
            out = bb.emit_output(bb.normalize(relax.op.nn.attention(q, q, q)))
        bb.emit_func_output(out)
    assert composites(cutlass.partition_for_cutlass(bb.get())) == ["cutlass.attention"]


def test_no_code_generator_is_an_error():
    with pytest.raises(ValueError, match="expected a code generator 'relax.ext.cublas'"):
        relax.transform.RunCodegen()(cublas.partition_for_cublas(product()))
    assert isinstance(product(), tvm.IRModule)
