# SPDX-License-Identifier: Apache-2.0
"""Graphs through tvm.compile and relax.build: results against NumPy, options, errors."""

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape, "float32")


@I.ir_module
class Layer:
    @R.function
    def main(
        x: R.Tensor(("n", 16), "float32"),
        w: R.Tensor((16, 8), "float32"),
        b: R.Tensor((8,), "float32"),
    ):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.add(y, b)
            r = R.nn.relu(z)
            R.output(r)
        return r


def layer(x, w, b):
    return np.maximum(x @ w + b, 0)


ARGUMENTS = random(4, 16), random(16, 8), random(8)


@pytest.mark.parametrize("exec_mode", ["bytecode", "compiled"])
def test_a_graph_runs(exec_mode):
    executable = relax.build(Layer, "llvm", exec_mode=exec_mode)
    assert isinstance(executable, relax.VMExecutable)
    vm = relax.VirtualMachine(executable, tvm.cpu())
    for n in (1, 4, 9):
        x = random(n, 16)
        out = vm["main"](x, *ARGUMENTS[1:])
        np.testing.assert_allclose(out.numpy(), layer(x, *ARGUMENTS[1:]), rtol=1e-5, atol=1e-5)


def test_compile_is_the_one_door():
    executable = tvm.compile(Layer, "llvm")
    out = relax.VirtualMachine(executable, tvm.cpu())["main"](*ARGUMENTS)
    np.testing.assert_allclose(out.numpy(), layer(*ARGUMENTS), rtol=1e-5, atol=1e-5)


def test_the_current_target_is_used():
    with tvm.target.Target("llvm -mcpu=x86-64-v2"):
        executable = tvm.compile(Layer)
    assert "x86-64-v2" in str(executable.mod.imports[0]["__tvm_library_info"]()["target"])


def test_params_are_bound_by_name():
    executable = relax.build(Layer, "llvm", params={"w": ARGUMENTS[1], "b": ARGUMENTS[2]})
    vm = relax.VirtualMachine(executable, tvm.cpu())
    np.testing.assert_allclose(
        vm["main"](ARGUMENTS[0]).numpy(), layer(*ARGUMENTS), rtol=1e-5, atol=1e-5
    )
    with pytest.raises(ValueError, match="nobody"):
        relax.build(Layer, "llvm", params={"nobody": ARGUMENTS[1]})


@pytest.mark.parametrize("pipeline", ["default_build", "zero then default"])
def test_pipelines_by_name_pass_and_function(pipeline):
    if pipeline == "zero then default":
        zero, rest = relax.get_pipeline("zero"), relax.get_pipeline("default_build")

        def pipeline(mod):
            return rest(zero(mod))

    for given in (pipeline, relax.get_default_pipeline(tvm.target.Target("llvm"))):
        executable = tvm.compile(Layer, "llvm", relax_pipeline=given)
        out = relax.VirtualMachine(executable, tvm.cpu())["main"](*ARGUMENTS)
        np.testing.assert_allclose(out.numpy(), layer(*ARGUMENTS), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("how", ["zero", "default_build", "target"])
def test_what_went_through_a_pipeline_compiles_again(how):
    target = tvm.target.Target("llvm")
    run = relax.get_default_pipeline(target) if how == "target" else relax.get_pipeline(how)
    executable = tvm.compile(run(Layer), target)
    out = relax.VirtualMachine(executable, tvm.cpu())["main"](*ARGUMENTS)
    np.testing.assert_allclose(out.numpy(), layer(*ARGUMENTS), rtol=1e-5, atol=1e-5)


def test_kernels_beside_the_graph():
    @I.ir_module
    class Mod:
        @T.prim_func(private=True)
        def scale(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.block("b"):
                    v = T.axis.remap("S", [i])
                    b[v] = a[v] * 3.0

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Mod
            with R.dataflow():
                y = R.call_tir(cls.scale, (x,), out_sinfo=R.Tensor((4,), "float32"))
                R.output(y)
            return y

    x = random(4)
    vm = relax.VirtualMachine(tvm.compile(Mod, "llvm"), tvm.cpu())
    np.testing.assert_allclose(vm["main"](x).numpy(), 3 * x, rtol=1e-6)


def test_results_of_several_kinds():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            n = T.int64()
            with R.dataflow():
                y = R.sum(x, axis=1)
                s = R.shape([n * 2, 4])
                R.output(y, s)
            return (y, (s, R.prim_value(n + 1)))

    vm = relax.VirtualMachine(tvm.compile(Mod, "llvm"), tvm.cpu())
    x = random(3, 4)
    y, (s, p) = vm["main"](x)
    np.testing.assert_allclose(y.numpy(), x.sum(1), rtol=1e-5)
    assert tuple(s) == (6, 4) and p == 4


def test_the_other_spellings():
    from tvm.relax import vm as old
    from tvm.relax import vm_build

    assert relax.build is vm_build.build is old.build
    assert old.VirtualMachine is relax.VirtualMachine


# ---- errors --------------------------------------------------------------------------------------
def test_shapes_that_contradict_each_other():
    vm = relax.VirtualMachine(tvm.compile(Layer, "llvm"), tvm.cpu())
    with pytest.raises(RuntimeError, match=r"w.*expected 16.*got 15"):
        vm["main"](random(4, 16), random(15, 8), random(8))
    with pytest.raises(ValueError, match=r"x.*dtype float32.*float64"):
        vm["main"](ARGUMENTS[0].astype("float64"), *ARGUMENTS[1:])
    with pytest.raises(TypeError, match="expected 3 arguments"):
        vm["main"](ARGUMENTS[0])


def test_bad_options():
    with pytest.raises(ValueError, match="expected exec_mode 'bytecode' or 'compiled'"):
        relax.build(Layer, "llvm", exec_mode="fast")
    with pytest.raises(ValueError, match="Unknown pre-built pipeline"):
        relax.build(Layer, "llvm", relax_pipeline="no such")
    with pytest.raises(ValueError, match="expected a host that writes objects for a system lib"):
        relax.build(Layer, "c", system_lib=True)


def test_modules_of_other_compilers_are_linked():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            y = R.call_dps_packed("other_scale", (x,), out_sinfo=R.Tensor((4,), "float32"))
            return y

    @T.prim_func
    def other_scale(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        T.func_attr({"global_symbol": "other_scale"})
        for i in range(4):
            b[i] = a[i] * T.float32(5)

    other = tvm.compile(other_scale, "llvm").mod
    vm = relax.VirtualMachine(
        tvm.compile(Mod.with_attr("external_mods", [other]), "llvm"), tvm.cpu()
    )
    np.testing.assert_allclose(vm["main"](np.ones(4, "float32")).numpy(), 5)
