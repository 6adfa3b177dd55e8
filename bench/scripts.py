# SPDX-License-Identifier: Apache-2.0
"""TVMScript in the spelling that we share with Apache TVM, printed and parsed by either."""

from programs import Timed  # this file runs in workers

_KERNEL = """
for i, j in T.grid(128, 128):
    with T.sblock("{name}_pad"):
        vi, vj = T.axis.remap("SS", [i, j])
        T.reads(A[vi, vj])
        T.writes({name}_pad[vi, vj])
        {name}_pad[vi, vj] = T.if_then_else(vi < 120 and vj % 8 < 7, A[vi, vj], T.float32(0))
for i, j, k in T.grid(128, 128, 128):
    with T.sblock("{name}"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        T.reads({name}_pad[vi, vk], B[vk, vj])
        T.writes({name}[vi, vj])
        with T.init():
            {name}[vi, vj] = T.float32(0)
        {name}[vi, vj] = {name}[vi, vj] + {name}_pad[vi, vk] * B[vk, vj]
for i, j in T.grid(128, 128):
    with T.sblock("{name}_act"):
        vi, vj = T.axis.remap("SS", [i, j])
        T.reads({name}[vi, vj], A[vj, vi])
        T.writes(C[vi, vj])
        C[vi, vj] = T.max({name}[vi, vj], T.float32(0)) * T.exp(A[vj, vi]) + T.tanh(A[vj, vi])
"""
_HEAD = """
@T.prim_func(s_tir=True)
def {func}(
    A: T.Buffer((128, 128), "float32"),
    B: T.Buffer((128, 128), "float32"),
    C: T.Buffer((128, 128), "float32"),
):
    T.func_attr({{"tir.noalias": True}})
"""


def _indented(text, spaces):
    return "".join(" " * spaces + line + "\n" if line else "" for line in text.splitlines())


def function_text(func="main", kernels=2):
    """A function of about 22 lines per kernel."""
    names = [f"D{i}" for i in range(kernels)]
    text = _HEAD.format(func=func).lstrip()
    for name in names:
        for temp in (f"{name}_pad", name):
            text += f"    {temp} = T.sblock_alloc_buffer((128, 128))\n"
    return text + _indented("".join(_KERNEL.format(name=n).lstrip() for n in names), 4)


def module_text(functions=2000):
    body = "\n".join(_indented(function_text(f"func{i}", 1), 4) for i in range(functions))
    return "@I.ir_module\nclass Module:\n" + body


def from_source(text):
    import tvm.script
    from tvm.script import ir as I

    try:
        from tvm.script import tirx as T  # what newer versions call it
    except ImportError:
        from tvm.script import tir as T
    return tvm.script.from_source(text, {"T": T, "I": I})


def text_of(what):
    return {"function": function_text, "module": module_text}[what]()


_parsed = {}  # a module takes some a minute: what is printed was parsed for the other measurement


def seconds(action, what, number=1):
    """How long it takes to "print" or to "parse" a "function" or a "module"."""
    text = text_of(what)

    def parse():
        _parsed[what] = from_source(text)

    if action == "print" and what not in _parsed:
        parse()
    return Timed(parse if action == "parse" else _parsed[what].script).time(number) / number
