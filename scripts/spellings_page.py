# SPDX-License-Identifier: Apache-2.0
"""Writes the table of spellings of other versions in docs/compatibility.md.

A row: what a script says, the first and the last version of Apache TVM known to have it (by the
names of 0.23 and 0.27; nothing: older than 0.23, or still in 0.27), what it is here, and an
expression that shows it. `--check` says whether the page is current.
"""

import argparse
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/compatibility.md"
BEGIN, END = "<!-- spellings -->\n", "<!-- end of spellings -->\n"
OLD, LAST, NEW = ("", "0.22"), ("", "0.23"), ("0.27", "")  # gone before 0.23, with it, since 0.27
ALWAYS = ("", "")
# (spelling, (since, until), what it is here or "error", an expression that is true)
ROWS = [
    ("tvm.nd.array", OLD, "tvm.runtime.tensor", "tvm.nd.array is tvm.runtime.tensor"),
    ("tvm.nd.empty", OLD, "tvm.runtime.empty", "tvm.nd.empty is tvm.runtime.empty"),
    ("tvm.runtime.NDArray", OLD, "tvm.runtime.Tensor",
     "tvm.runtime.NDArray is tvm.runtime.Tensor"),
    ("tvm.runtime.PackedFunc", LAST, "tvm_ffi.Function",
     "tvm.runtime.PackedFunc is tvm_ffi.Function"),
    ("tvm._ffi.register_func, tvm._ffi.get_global_func …", ("", "0.20"), "names of tvm",
     "tvm._ffi.register_func is tvm.register_global_func"),
    ("tvm.contrib.tvmjs.dump_tensor_cache, dump_ndarray_cache", ALWAYS, "tvm.runtime.tensor_cache",
     "importlib.import_module('tvm.contrib.tvmjs') is tvm.runtime.tensor_cache"),
    ("tvm.register_func", OLD, "tvm.register_global_func",
     "tvm.register_func is tvm.register_global_func"),
    ("tvm.convert", OLD, "tvm.runtime.convert", "tvm.convert is tvm.runtime.convert"),
    ("tvm.TVMError", LAST, "Exception", "issubclass(tvm.TVMError, Exception)"),
    ("tvm.build", ALWAYS, "itself", "callable(tvm.build)"),
    ("tvm.tir.build", LAST, "itself", "callable(tvm.tir.build)"),
    ("tvm.tirx", NEW, "tvm.tir", "importlib.import_module('tvm.tirx') is tvm.tir"),
    ("tvm.sym", NEW, "tvm.arith", "importlib.import_module('tvm.sym') is tvm.arith"),
    ("tvm.s_tir.Schedule", NEW, "tvm.tir.Schedule",
     "importlib.import_module('tvm.s_tir').Schedule is tvm.tir.Schedule"),
    ("tvm.s_tir.meta_schedule", NEW, "tvm.meta_schedule",
     "importlib.import_module('tvm.s_tir.meta_schedule') is tvm.meta_schedule"),
    ("tvm.s_tir.dlight", NEW, "tvm.dlight",
     "importlib.import_module('tvm.s_tir.dlight') is tvm.dlight"),
    ("tvm.s_tir.SBlock", NEW, "tvm.tir.Block",
     "importlib.import_module('tvm.s_tir').SBlock is tvm.tir.Block"),
    ("from tvm.script import tirx as T", NEW, "tvm.script.tir",
     "importlib.import_module('tvm.script.tirx') is tvm.script.tir"),
    ("T.block, sch.get_block", LAST, "itself", "callable(T.block)"),
    ("T.sblock, T.sblock_alloc_buffer", NEW, "T.block, T.alloc_buffer",
     "T.sblock is T.block and T.sblock_alloc_buffer is T.alloc_buffer"),
    ("T.func_attr({\"tirx.noalias\": True}), Op.get(\"tirx.exp\")", NEW, "names of tir",
     "tvm.ir.Op.get('tirx.exp') is tvm.ir.Op.get('tir.exp') or "
     "tvm.ir.Op.get('tirx.exp').name == 'tir.exp'"),
    ('PassContext(config={"s_tir.LoopPartition": {}})', NEW, "names of tir",
     "'tir.LoopPartition' in "
     "tvm.transform.PassContext(config={'s_tir.LoopPartition': {}}).config"),
    ("tirx.transform.StmtSimplify", NEW, "tvm.tir.transform.Simplify",
     "tvm.tir.transform.StmtSimplify is tvm.tir.transform.Simplify"),
    ('n = TypeVar("n"), T.Buffer(("n", 4))', NEW, "a variable in the signature",
     "callable(T.prim_func)"),
    ("R.call_tir(f, args, out_ty=…), ty_args=", NEW, "out_sinfo, sinfo_args",
     "callable(tvm.relax.op.call_tir.__wrapped__)"),
    ("relax.Var(name, ty), x.ty, func.ret_ty", NEW, "struct_info, ret_struct_info",
     "tvm.relax.Var(name='x', ty=tvm.relax.TensorType((2,), 'int8')).ty.ndim == 1"),
    ("relax.TensorType((2, 3)), ShapeType, TupleType, FuncType", NEW, "…StructInfo",
     "isinstance(tvm.relax.TensorType((2, 3)), tvm.relax.TensorStructInfo)"),
    ("relax.AnyType", NEW, "tvm.relax.ObjectStructInfo",
     "tvm.relax.AnyType is tvm.relax.ObjectStructInfo"),
    ("sch.get_sblock", NEW, "sch.get_block", "callable(tvm.tir.Schedule.get_sblock)"),
    ("@T.prim_func(s_tir=True)", NEW, "@T.prim_func", "callable(T.prim_func(s_tir=True))"),
    ('T.Buffer[(16, 16), "float32"]', OLD, 'T.Buffer((16, 16), "float32")',
     "T.Buffer[(16, 16), 'float32'].shape[1] == 16"),
    ('with T.block([16, T.reduce_axis(0, 8)], "C") as [vi, vk]', ("", "0.8"),
     'with T.block("C"), T.axis', "callable(T.reduce_axis) and callable(T.bind)"),
    ('tvm.ir.make_node("IntImm", ...)', ("", "0.20"), "the key ir.IntImm",
     "tvm.ir.make_node('IntImm', dtype='int32', value=3).value == 3"),
    ("tvm.device_from_target", NEW, "tvm.device", "tvm.device_from_target('llvm').index == 0"),
    ("tensor.to_dlpack()", OLD, "itself", "callable(tvm.nd.NDArray.to_dlpack)"),
    ("module.entry_func", OLD, "itself", "tvm.runtime.Module.entry_func"),
    ("tensor.asnumpy()", OLD, "tensor.numpy()", "callable(tvm.nd.NDArray.asnumpy)"),
    ("tvm.tir.ir_builder", LAST, "itself", "callable(tvm.tir.ir_builder.create)"),
    ("tvm.contrib.cc, .utils, .tar, .nvcc …", LAST, "tvm.support.cc, …",
     "importlib.import_module('tvm.contrib.cc') is tvm.support.cc"),
    ("tvm.transform.PassContext", ALWAYS, "tvm.ir.transform.PassContext",
     "tvm.transform.PassContext is tvm.ir.transform.PassContext"),
    ("tvm.ffi", LAST, "tvm_ffi", "importlib.import_module('tvm.ffi') is tvm_ffi"),
    ('Target("llvm -mcpu=skylake")', LAST, 'Target({"kind": "llvm", "mcpu": "skylake"})',
     "str(tvm.target.Target('llvm -mcpu=skylake').mcpu) == 'skylake'"),
    ('Target("llvm -target=aarch64-linux-gnu")', ("", "0.6"),
     'Target("llvm -mtriple=aarch64-linux-gnu")',
     "'mtriple=aarch64' in str(tvm.target.Target('llvm -target=aarch64-linux-gnu'))"),
    ("tvm.relay.build, tvm.contrib.graph_executor", OLD, "models of Relax behind the old calls",
     "importlib.import_module('tvm.contrib.graph_executor')"),
    ("tvm.te.create_schedule", OLD, "error", "tvm.te.create_schedule"),
    ("tvm.lower", OLD, "error", "tvm.lower"),
    ("tvm.context", OLD, "error", "tvm.context"),
    ("tvm.autotvm", OLD, "error", "tvm.autotvm"),
    ("tvm.auto_scheduler", OLD, "error", "tvm.auto_scheduler"),
]  # fmt: skip


def table():
    """The rows as text."""
    from tvm import _aliases

    lines = ["| spelling | since | until | here |", "| --- | --- | --- | --- |"]
    for spelling, (since, until), here, _ in ROWS:
        if here == "error":
            here = "an error: " + _aliases.GONE[spelling]
        elif " " not in here or here.startswith(("T.", "Target(")):
            here = here if here == "itself" else f"`{here}`"
        lines.append(f"| `{spelling}` | {since} | {until} | {here} |")
    return "\n".join(lines) + "\n"


def page():
    """The page with the table as it should be."""
    text = PAGE.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:begin] + table() + text[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    expected = page()
    if parser.parse_args().check:
        sys.exit(PAGE.read_text() != expected)
    PAGE.write_text(expected)


if __name__ == "__main__":
    main()
