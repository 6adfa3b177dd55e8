# SPDX-License-Identifier: Apache-2.0
"""Runs of kernels on memory that stays where it is."""

import tvm
from tvm.relax.transform import RewriteCUDAGraph

from .passes import check, module

KERNEL = """
@T.prim_func(private=True)
def exp(A: T.Buffer((T.int64(8),)), B: T.Buffer((T.int64(8),))):
    T.evaluate(0)
"""
STORAGE = (
    '{} = R.memory.alloc_storage(R.shape([{}]), R.prim_value(0), R.str("global"), '
    'R.dtype("float32"))'
)
TENSOR = '{} = R.memory.alloc_tensor({}, R.prim_value(0), R.shape([8]), R.dtype("float32"))'
OWN = (
    '{} = R.builtin.alloc_tensor(R.shape([8]), R.dtype("float32"), R.prim_value(0), '
    'R.str("global"))'
)
T8 = 'R.Tensor((8,), "float32")'
BEFORE = f"""
@R.function
def main(x: {T8}) -> {T8}:
    R.func_attr({{"relax.force_pure": True}})
    cls = Module
    {STORAGE.format("s", 32)}
    {TENSOR.format("a", "s")}
    _ = cls.exp(x, a)
    {STORAGE.format("t", 64)}
    {TENSOR.format("b", "t")}
    _1 = cls.exp(a, b)
    {TENSOR.format("c", "s")}
    _2 = cls.exp(b, c)
    {OWN.format("y")}
    _3 = cls.exp(c, y)
    return y
"""
# x is another tensor in every call, and so is y: two kernels are recorded.
AFTER = f"""
@R.function(private=True)
def cuda_graph_alloc() -> R.Tuple(R.Object, R.Object):
    R.func_attr({{"relax.force_pure": True}})
    {STORAGE.format("s", 64)}
    {STORAGE.format("t", 32)}
    return (s, t)

@R.function(private=True)
def main_cuda_graph_capture(t: R.Object, a: {T8}, s: R.Object) -> R.Tuple({T8}):
    R.func_attr({{"relax.force_pure": True}})
    cls = Module
    {TENSOR.format("b", "t")}
    _ = cls.exp(a, b)
    {TENSOR.format("c", "s")}
    _1 = cls.exp(b, c)
    return (c,)

@R.function
def main(x: {T8}) -> {T8}:
    R.func_attr({{"relax.force_pure": True}})
    cls = Module
    m = R.call_builtin_with_ctx("vm.builtin.cuda_graph.get_cached_alloc", (cls.cuda_graph_alloc, R.prim_value(0)), sinfo_args=[R.Tuple(R.Object, R.Object)])
    s = m[1]
    {TENSOR.format("a", "s")}
    _ = cls.exp(x, a)
    t = m[0]
    g = R.call_builtin_with_ctx("vm.builtin.cuda_graph.run_or_capture", (cls.main_cuda_graph_capture, (t, a, s), R.prim_value(0)), sinfo_args=[R.Tuple({T8})])
    c = g[0]
    {OWN.format("y")}
    _3 = cls.exp(c, y)
    return y
"""  # noqa: E501


def test_regions():
    with tvm.transform.PassContext(config={"relax.backend.use_cuda_graph": True}):
        check(RewriteCUDAGraph(), BEFORE, AFTER, KERNEL)
    mod = module(KERNEL, BEFORE)
    assert RewriteCUDAGraph()(mod).same_as(mod), "off unless asked for"


def test_weights_are_fixed():
    """Of a function with num_input the parameters behind the inputs are weights."""
    text = f"""
    @R.function
    def main(x: {T8}, w: {T8}) -> {T8}:
        R.func_attr({{"relax.force_pure": True, "num_input": 1}})
        cls = Module
        {STORAGE.format("s", 32)}
        {TENSOR.format("a", "s")}
        _ = cls.exp(w, a)
        {OWN.format("y")}
        _3 = cls.exp(a, y)
        return y
    """
    with tvm.transform.PassContext(config={"relax.backend.use_cuda_graph": True}):
        after = RewriteCUDAGraph()(module(KERNEL, text))
    names = {var.name_hint for var in after.get_global_vars()}
    assert names == {"exp", "main", "cuda_graph_alloc", "main_cuda_graph_capture"}
    capture = after["main_cuda_graph_capture"]
    assert [param.name_hint for param in capture.params] == ["s", "w"]


def test_nothing_to_record():
    mod = module(
        KERNEL,
        f"""
    @R.function
    def main(x: {T8}) -> {T8}:
        R.func_attr({{"relax.force_pure": True}})
        cls = Module
        {OWN.format("y")}
        _ = cls.exp(x, y)
        return y
    """,
    )
    with tvm.transform.PassContext(config={"relax.backend.use_cuda_graph": True}):
        assert RewriteCUDAGraph()(mod).same_as(mod)
