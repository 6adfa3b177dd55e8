# SPDX-License-Identifier: Apache-2.0
"""A graph that was compiled before is found on the disk as a whole, unless something takes part in
compiling it that nobody can look up."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tvm
from tvm import relax

if tvm.runtime.cache_dir() is None or not tvm.runtime.enabled("llvm"):
    pytest.skip("the cache is turned off, or kernels are source text", allow_module_level=True)

# What each program below begins with. The weights are large enough to be mapped.
PRELUDE = """
import os, pathlib, sys
import numpy as np, tvm
from tvm import relax
folder = pathlib.Path(os.environ["TVM_CACHE_DIR"])
def entries():
    return [p for p in folder.glob("*") if b"__tvm_kept_kernels" in p.read_bytes()]
def module(seed=0, name="x", add=1.0):
    weight = np.random.default_rng(seed).standard_normal((64, 48), "float32")
    bb, x = relax.BlockBuilder(), relax.Var(name, relax.TensorStructInfo((4, 64), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(relax.op.matmul(x, relax.const(weight)))
            y = bb.emit(relax.op.add(relax.op.exp(y), relax.const(np.float32(add))))
            out = bb.emit_output(y)
        bb.emit_func_output(out)
    return bb.get()
data = np.linspace(-1, 1, 256, dtype="float32").reshape(4, 64)
def run(executable):
    return relax.VirtualMachine(executable, tvm.cpu())["main"](data).numpy()
expected = np.exp(data @ np.random.default_rng(0).standard_normal((64, 48), "float32")) + 1
def check(executable):
    np.testing.assert_allclose(run(executable), expected, rtol=1e-5, atol=1e-5)
"""


def _run(folder, program, limit="100"):
    env = {**os.environ, "TVM_CACHE_DIR": str(folder), "TVM_CACHE_LIMIT_MB": limit}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + program], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _entry(folder):
    """The executable; whatever else was kept goes, so that compiling would show."""
    for path in list(folder.iterdir()):
        if b"__tvm_kept_kernels" not in path.read_bytes():
            path.unlink()
    (path,) = folder.iterdir()
    return path


def test_another_process_finds_it_with_the_same_results(tmp_path):
    program = 'exe = tvm.compile(module(), "llvm"); check(exe); print(run(exe).tobytes().hex())'
    first = _run(tmp_path, program)
    entry = _entry(tmp_path)
    written = entry.read_bytes()
    assert _run(tmp_path, program) == first
    assert list(tmp_path.iterdir()) == [entry] and entry.read_bytes() == written


def test_weights_are_pages_of_the_file(tmp_path):
    _run(tmp_path, 'check(tvm.compile(module(), "llvm"))')
    entry = _entry(tmp_path)
    _run(
        tmp_path,
        f"""
exe = tvm.compile(module(), "llvm")
assert {entry.name!r} in pathlib.Path("/proc/self/maps").read_text()
vm = relax.VirtualMachine(exe, tvm.cpu())
for path in folder.iterdir():
    path.unlink()  # who uses it keeps it
del exe
np.testing.assert_allclose(vm["main"](data).numpy(), expected, rtol=1e-5, atol=1e-5)
""",
    )


def test_all_that_the_result_depends_on_tells_entries_apart(tmp_path):
    _run(
        tmp_path,
        """
def made(mod, target="llvm", count=1, config=None, **options):
    before = len(entries())
    with tvm.transform.PassContext(config=config or {}):
        relax.build(mod, target, **options)
    assert len(entries()) - before == count, (len(entries()) - before, count)
made(module())
made(module(), count=0)
made(module(seed=1))
made(module(name="y"))
made(module(add=2.0))
made(module(), target="llvm -num-cores=1")
made(module(), config={"tir.disable_vectorize": True})
made(module(), exec_mode="compiled")
made(module(), exec_mode="compiled", count=0)
with tvm.transform.PassContext(disabled_pass=["relax.FuseOps"]):
    before = len(entries())
    tvm.compile(module(), "llvm")
    assert len(entries()) == before + 1
""",
    )


def test_values_of_parameters_are_part_of_the_program(tmp_path):
    _run(
        tmp_path,
        """
bb = relax.BlockBuilder()
x = relax.Var("x", relax.TensorStructInfo((4, 64), "float32"))
w = relax.Var("w", relax.TensorStructInfo((64, 48), "float32"))
with bb.function("main", [x, w]):
    bb.emit_func_output(bb.emit(relax.op.matmul(x, w)))
for count, seed in ((1, 0), (2, 1), (2, 0)):
    weight = np.random.default_rng(seed).standard_normal((64, 48), "float32")
    result = run(relax.build(bb.get(), "llvm", params={"w": weight}))
    np.testing.assert_allclose(result, data @ weight, rtol=1e-4, atol=1e-4)
    assert len(entries()) == count
""",
    )


@pytest.mark.parametrize(
    "program",
    [
        'with tvm.transform.PassContext(config={"relax.cache_executables": False}): COMPILE',
        "with tvm.transform.PassContext(instruments=[tvm.ir.instrument.PassTimingInstrument()]): "
        "COMPILE",
        'COMPILE_WITH(relax_pipeline=relax.get_pipeline("default_build"))',
        "COMPILE_WITH(relax_pipeline=lambda mod: relax.get_pipeline('default_build')(mod))",
        "COMPILE_WITH(tir_pipeline=tvm.tir.get_default_tir_pipeline(tvm.target.Target('llvm')))",
        "extra = tvm.tir.transform.prim_func_pass(lambda f, m, c: f, opt_level=0)\n"
        'with tvm.transform.PassContext(config={"tir.add_lower_pass": [(0, extra)]}): COMPILE',
        "tvm.ir.register_op_attr('relax.exp', 'FLegalize', "
        "lambda bb, call: bb.call_te(tvm.topi.exp, call.args[0]), level=11)\nCOMPILE",
        "import tvm_ffi\nexp = tvm_ffi.get_global_func('topi.exp')\n"
        "tvm_ffi.register_global_func('topi.exp', lambda x: exp(x), override=True)\nCOMPILE",
        "COMPILE_WITH(explain=True)",
        "tvm.runtime.set_cache_limit(0); COMPILE",
        "tvm.runtime.set_cache_limit(0.001); COMPILE",
        'tvm.compile(module(), "c")',
    ],
)
def test_what_nobody_can_look_up_turns_it_off(tmp_path, program):
    program = program.replace("COMPILE_WITH(", 'tvm.compile(module(), "llvm", ')
    program = program.replace("COMPILE", 'tvm.compile(module(), "llvm")')
    _run(tmp_path, f"tvm.target.Target('llvm')\n{program}\nassert not entries()")


def test_what_was_folded_in_part_is_not_kept(tmp_path):
    """On a faster machine, or a less busy one, more of it would be."""
    _run(
        tmp_path,
        """
bb, x = relax.BlockBuilder(), relax.Var("x", relax.TensorStructInfo((4, 64), "float32"))
weight = np.random.default_rng(0).standard_normal((48, 64), "float32")
with bb.function("main", [x]):
    with bb.dataflow():
        moved = bb.emit(relax.op.permute_dims(relax.const(weight)))
        out = bb.emit_output(relax.op.matmul(x, moved))
    bb.emit_func_output(out)
for seconds, count in ((1e-9, 0), (20.0, 1)):
    with tvm.transform.PassContext(config={"relax.FoldConstant.max_seconds": seconds}):
        executable = tvm.compile(bb.get(), "llvm")
    np.testing.assert_allclose(run(executable), data @ weight.T, rtol=1e-4, atol=1e-4)
    assert len(entries()) == count
""",
    )


def test_a_damaged_entry_is_made_anew(tmp_path):
    program = 'check(tvm.compile(module(), "llvm"))'
    _run(tmp_path, program)
    entry = _entry(tmp_path)
    whole = entry.read_bytes()
    at = whole.index(b"__tvm_kept_kernels")
    for damaged in (
        whole[: len(whole) // 2],
        whole[:-1],
        whole + b"\0",
        b"",
        b"\x7fELF",
        whole[:20] + bytes([whole[20] ^ 1]) + whole[21:],
        whole[:at] + b"X" + whole[at + 1 :],
        whole[:-90] + bytes([whole[-90] ^ 1]) + whole[-89:],
        whole[:-8] + bytes(8),
    ):
        entry.write_bytes(damaged)
        _run(tmp_path, program)
        assert _entry(tmp_path).read_bytes() == whole


def test_what_was_found_is_exported_and_shown(tmp_path):
    program = """
made = tvm.compile(module(), "llvm")
check(made)
texts = [made.mod.imports[0].get_source(kind) for kind in ("ll", "s")]
out = pathlib.Path(os.environ["TVM_CACHE_DIR"] + "-out")
out.mkdir(exist_ok=True)
for name in ("m.so", "m.tar", "m.o", "m.a"):
    made.export_library(out / name)
check(tvm.runtime.load_module(out / "m.so"))
check(tvm.runtime.load_module(out / "m.tar"))
print(made.mod.imports[0].kind, made.mod.imports[0].function_names(), made.as_text(), made.stats())
print(*texts)
"""
    first = _run(tmp_path, program)
    entry = _entry(tmp_path)
    assert _run(tmp_path, program) == first
    assert entry.exists()


def test_only_entries_are_removed_when_it_is_full(tmp_path):
    other = tmp_path / "mine.entry"
    other.write_bytes(bytes(300_000))
    program = """
for seed in range(8):
    tvm.compile(module(seed), "llvm")
assert 1 <= len(entries()) < 8, len(entries())
info = tvm.runtime.cache_info()
assert 0 < info["megabytes"] <= info["limit"] and info["folder"] == str(folder)
before = len(entries())
tvm.compile(module(7), "llvm")  # the newest one stays
assert len(entries()) == before
"""
    _run(tmp_path, program, limit="0.15")
    assert other.exists()


def test_many_processes_at_once(tmp_path):
    code = PRELUDE + 'check(tvm.compile(module(), "llvm"))'
    env = {**os.environ, "TVM_CACHE_DIR": str(tmp_path), "TVM_CACHE_LIMIT_MB": "100"}
    runs = [subprocess.Popen([sys.executable, "-c", code], env=env) for _ in range(3)]
    assert [run.wait() for run in runs] == [0, 0, 0]
    _entry(tmp_path)


def test_a_model_of_a_file(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import helper, numpy_helper

    weight = np.random.default_rng(0).standard_normal((64, 48), "float32")
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["y"]),
            helper.make_node("Exp", ["y"], ["e"]),
            helper.make_node("Add", ["e", "one"], ["z"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, ["n", 48])],
        [
            numpy_helper.from_array(weight, "w"),
            numpy_helper.from_array(np.float32([1]), "one"),
        ],
    )
    path = tmp_path / "m.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]),
        path,
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=1024,
    )
    folder = tmp_path / "cache"
    folder.mkdir()
    program = f"exe = tvm.compile({str(path)!r}); check(exe); print(run(exe).tobytes().hex())"
    first = _run(folder, program)
    entry = _entry(folder)
    assert _run(folder, program) == first
    assert list(folder.iterdir()) == [entry]
    # Other contents of the file beside the model are another model.
    numbers = np.fromfile(tmp_path / "weights.bin", "float32")
    (2 * numbers).astype("float32").tofile(tmp_path / "weights.bin")
    changed = _run(folder, f"print(run(tvm.compile({str(path)!r})).tobytes().hex())")
    assert changed != first


def test_digests_see_what_equality_does_not():
    def function(name, value):
        x = relax.Var(name, relax.TensorStructInfo((2,), "float32"))
        bb = relax.BlockBuilder()
        with bb.function("main", [x]):
            bb.emit_func_output(bb.emit(relax.op.add(x, relax.const(np.float32([value, 2])))))
        return bb.get()

    first = tvm.ir.digest(function("x", 1))
    assert first == tvm.ir.digest(function("x", 1))
    tvm.ir.assert_structural_equal(function("x", 1), function("y", 1))
    assert len({first, tvm.ir.digest(function("y", 1)), tvm.ir.digest(function("x", 3))}) == 3
    n, m = (tvm.tir.Var(name, "int64") for name in "nm")
    assert tvm.ir.digest(n + n) != tvm.ir.digest(n + m)
    # The same variable twice is another program than two of one name.
    assert tvm.ir.digest(n + n) != tvm.ir.digest(n + tvm.tir.Var("n", "int64"))
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    assert tvm.ir.digest(x) != tvm.ir.digest(
        relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    )
    assert tvm.ir.digest([lambda x: x]) is None
    assert tvm.ir.digest(tvm.IRModule({})) == tvm.ir.digest(tvm.IRModule({}))


def test_a_limit_that_is_none():
    with pytest.raises(ValueError, match="expected a number of megabytes, got -1"):
        tvm.runtime.set_cache_limit(-1)


@pytest.mark.parametrize("target", ["llvm", "", "llvm -num-cores=2"])
def test_a_file_needs_no_classes_of_programs(tmp_path, target):
    """Importing them takes longer than a small model takes that is found."""
    from tests.frontend.onnx.models import linear

    model = tmp_path / "linear.onnx"
    model.write_bytes(linear().SerializeToString())
    program = f"""
import sys, tvm
made = tvm.compile({str(model)!r}, target={target!r} or None)
assert not {{"tvm.ir", "tvm.relax", "tvm.target", "tvm.tir"}} & set(sys.modules)
import numpy as np
from tvm import relax
run = relax.VirtualMachine(made, tvm.cpu())["main"]
assert run(np.ones((2, 4), "float32")).shape == (2, 3)
assert isinstance(made, relax.VMExecutable) and made.mod.imports
for wrong in ("lvm", 3):
    try:
        tvm.compile({str(model)!r}, target=wrong)
    except (ValueError, TypeError) as error:
        assert "arget" in str(error), error
    else:
        raise AssertionError(wrong)
"""
    env = {**os.environ, "TVM_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
