# SPDX-License-Identifier: Apache-2.0
"""Code of lowered functions, in both modes: what every expression becomes, and that it runs."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


def build(mod, exec_mode="bytecode"):
    """Only code generation: the program is lowered already."""
    return relax.build(mod, "llvm", relax_pipeline=None, exec_mode=exec_mode)


@pytest.fixture(params=["bytecode", "compiled"])
def machine(request):
    def make(mod):
        return relax.VirtualMachine(build(mod, request.param), tvm.cpu())

    return make


def array(*values, dtype="float32"):
    return np.array(values, dtype)


def test_a_packed_call(machine):
    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
            z = R.call_packed("test.vm.add", x, y, sinfo_args=R.Tensor((2,), "float32"))
            return z

    vm = machine(Mod)
    out = vm["main"](array(1, 2), array(3, 4))
    np.testing.assert_array_equal(out.numpy(), [4, 6])
    assert vm["get_function_param_name"]("main", 1) == "y"


def test_a_kernel_writes_into_memory_that_is_allocated():
    @I.ir_module
    class Mod:
        @T.prim_func
        def twice(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
            T.func_attr({"global_symbol": "twice"})
            for i in range(4):
                with T.block("b"):
                    v = T.axis.remap("S", [i])
                    b[v] = a[v] * 2.0

        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Mod
            storage: R.Object = R.vm.alloc_storage(
                R.shape([16]), R.prim_value(0), R.dtype("uint8"), R.str("global")
            )
            out: R.Tensor((4,), "float32") = R.vm.alloc_tensor(
                storage, R.prim_value(0), R.shape([4]), R.dtype("float32")
            )
            _ = cls.twice(x, out)
            _1: R.Tuple = R.vm.kill_object(storage)
            return out

    executable = build(Mod)
    vm = relax.VirtualMachine(executable, tvm.cpu())
    np.testing.assert_array_equal(vm["main"](array(1, 2, 3, 4)).numpy(), [2, 4, 6, 8])
    text = executable.as_text()
    assert text.count("vm.builtin.null_value") == 1  # the storage is killed, the tensor lives on


def test_a_tensor_of_one_place_is_made_once(machine):
    @I.ir_module
    class Mod:
        @T.prim_func
        def twice(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
            T.func_attr({"global_symbol": "twice"})
            for i in range(4):
                with T.block("b"):
                    v = T.axis.remap("S", [i])
                    b[v] = a[v] * 2.0

        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Mod
            s: R.Object = R.vm.alloc_storage(
                R.shape([128]), R.prim_value(0), R.dtype("uint8"), R.str("global")
            )
            a: R.Tensor((4,), "float32") = R.vm.alloc_tensor(
                s, R.prim_value(0), R.shape([4]), R.dtype("float32")
            )
            _ = cls.twice(x, a)
            b: R.Tensor((4,), "float32") = R.vm.alloc_tensor(
                s, R.prim_value(64), R.shape([4]), R.dtype("float32")
            )
            _1 = cls.twice(a, b)
            _2: R.Tuple = R.vm.kill_object(a)
            c: R.Tensor((4,), "float32") = R.vm.alloc_tensor(
                s, R.prim_value(0), R.shape([4]), R.dtype("float32")
            )
            _3: R.Tuple = R.vm.kill_object(s)  # c keeps the memory
            _4 = cls.twice(b, c)
            _5: R.Tuple = R.vm.kill_object(b)
            return c

    np.testing.assert_array_equal(machine(Mod)["main"](array(1, 2, 3, 4)).numpy(), [8, 16, 24, 32])
    text = build(Mod).as_text()
    assert text.count("vm.builtin.alloc_tensor") == 2  # c lies where a was
    assert text.count("vm.builtin.null_value") == 2  # s, and b behind it


def test_choices_and_their_merge(machine):
    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def main(c: R.Tensor((), "bool"), x: R.Tensor((1,), "float32")):
            if c:
                a = R.call_packed("test.vm.add", x, x, sinfo_args=R.Tensor((1,), "float32"))
                r = R.call_packed("test.vm.mul", a, x, sinfo_args=R.Tensor((1,), "float32"))
            else:
                r = R.call_packed("test.vm.mul", x, x, sinfo_args=R.Tensor((1,), "float32"))
            y = R.call_packed("test.vm.add", r, x, sinfo_args=R.Tensor((1,), "float32"))
            return y

    vm = machine(Mod)
    assert vm["main"](np.array(True), array(3)).numpy() == 2 * 9 + 3
    assert vm["main"](np.array(False), array(3)).numpy() == 9 + 3


def test_nested_choices(machine):
    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def main(c: R.Tensor((), "bool"), d: R.Tensor((), "bool")):
            if c:
                if d:
                    r = R.prim_value(3)
                else:
                    r = R.prim_value(2)
            else:
                r = R.prim_value(1)
            return r

    vm = machine(Mod)
    for c, d, expected in ((True, True, 3), (True, False, 2), (False, True, 1)):
        assert vm["main"](np.array(c), np.array(d)) == expected


def test_recursion_and_calls_between_functions(machine):
    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def down(n: R.Tensor((), "int32"), x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
            cls = Mod
            stop: R.Tensor((), "bool") = R.call_packed(
                "test.vm.equal_zero", n, sinfo_args=R.Tensor((), "bool")
            )
            if stop:
                r = x
            else:
                m = R.call_packed("test.vm.subtract_one", n, sinfo_args=R.Tensor((), "int32"))
                y = R.call_packed("test.vm.add", x, x, sinfo_args=R.Tensor((), "float32"))
                r = cls.down(m, y)
            return r

        @R.function(pure=False)
        def main(n: R.Tensor((), "int32"), x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
            cls = Mod
            r = cls.down(n, x)
            return r

    vm = machine(Mod)
    assert vm["main"](np.array(5, "int32"), np.array(1.5, "float32")).numpy() == 48


def test_a_call_of_itself_at_the_end_takes_no_stack(machine):
    """Parameters change places, values end behind the call, and it begins again 100,000 times."""

    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def main(
            n: R.Tensor((), "int32"), x: R.Tensor((), "float32"), y: R.Tensor((), "float32")
        ) -> R.Tuple(R.Tensor((), "float32"), R.Tensor((), "float32")):
            cls = Mod
            stop: R.Tensor((), "bool") = R.call_packed(
                "test.vm.equal_zero", n, sinfo_args=R.Tensor((), "bool")
            )
            if stop:
                r: R.Tuple(R.Tensor((), "float32"), R.Tensor((), "float32")) = (x, y)
            else:
                m = R.call_packed("test.vm.subtract_one", n, sinfo_args=R.Tensor((), "int32"))
                result = cls.main(m, y, x)
                _ = R.vm.kill_object(m)
                r: R.Tuple(R.Tensor((), "float32"), R.Tensor((), "float32")) = result
            return r

    vm = machine(Mod)
    x, y = (np.array(number, "float32") for number in (3, 5))
    for turns in (0, 1, 2, 100_001):
        got = [float(t.numpy()) for t in vm["main"](np.array(turns, "int32"), x, y)]
        assert got == ([5, 3] if turns % 2 else [3, 5])


def test_tuples_constants_and_scalars(machine):
    tensor = relax.const(np.arange(3, dtype="float32"))
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1,), "float32"))
    with bb.function("main", [x], pure=False):
        values = (tensor, relax.ShapeExpr([4, 5]), relax.PrimValue(7), relax.StringImm("s"))
        inner = relax.Tuple([relax.PrimValue(tvm.tir.FloatImm("float64", 0.5)), x])
        both = bb.emit(relax.Tuple([*values, relax.DataTypeImm("int8"), inner]))
        item = bb.emit(relax.TupleGetItem(both, 5))
        bb.emit_func_output(relax.Tuple([both, item]))
    both, item = machine(bb.get())["main"](array(9))
    np.testing.assert_array_equal(both[0].numpy(), [0, 1, 2])
    assert tuple(both[1]) == (4, 5) and both[2] == 7 and both[3] == "s" and both[4] == "int8"
    assert item[0] == 0.5 and item[1].numpy() == 9


@pytest.mark.parametrize("value", [2**40, -(2**60), 2**62, True, 1.25])
def test_scalars_of_any_size(value, machine):
    bb = relax.BlockBuilder()
    with bb.function("main", []):
        bb.emit_func_output(relax.PrimValue(value))
    got = machine(bb.get())["main"]()
    assert got == value and type(got) is type(value)


def test_nothing_as_a_value(machine):
    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def nothing(x: R.Tensor((1,), "float32")) -> R.Tuple():
            _ = R.call_packed("test.vm.add", x, x, sinfo_args=R.Tensor((1,), "float32"))
            return R.tuple()

        @R.function(pure=False)
        def main(x: R.Tensor((1,), "float32")):
            cls = Mod
            r = cls.nothing(x)
            return (r, x)

        @R.function
        def none():
            r: R.Object = R.null_value()
            return r

    vm = machine(Mod)
    assert len(vm["nothing"](array(1))) == 0
    assert len(vm["main"](array(1))[0]) == 0
    assert vm["none"]() is None


def test_a_choice_keeps_nothing_alive_but_its_result():
    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def main(c: R.Tensor((), "bool"), x: R.Tensor((1,), "float32")):
            if c:
                r = R.call_packed("test.vm.add", x, x, sinfo_args=R.Tensor((1,), "float32"))
            else:
                r = x
            return r

    text = build(Mod).as_text()
    assert text.count("vm.builtin.null_value") == 1  # what the first branch computed, not x


def test_functions_as_values(machine):
    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def plus(x: R.Tensor((1,), "float32"), y: R.Tensor((1,), "float32")) -> R.Tensor(
            (1,), "float32"
        ):
            z = R.call_packed("test.vm.add", x, y, sinfo_args=R.Tensor((1,), "float32"))
            return z

        @R.function(pure=False)
        def main(x: R.Tensor((1,), "float32"), y: R.Tensor((1,), "float32")):
            cls = Mod
            f: R.Callable = R.call_packed(
                "vm.builtin.make_closure", cls.plus, y, sinfo_args=(R.Callable,)
            )
            z: R.Object = f(x)
            return z

    assert machine(Mod)["main"](array(1), array(2)).numpy() == 3


def test_a_builtin_gets_the_machine(machine):
    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def main():
            heap = R.call_builtin_with_ctx(
                "vm.builtin.alloc_shape_heap", (R.prim_value(3),), sinfo_args=R.Object()
            )
            return heap

    assert machine(Mod)["main"]().shape == (3,)


def test_a_kernel_gets_the_values_of_variables(machine):
    @I.ir_module
    class Mod:
        @T.prim_func
        def fill(var_a: T.handle, n: T.int64):
            T.func_attr({"global_symbol": "fill"})
            a = T.match_buffer(var_a, (2,), "int64")
            for i in range(2):
                a[i] = n

        @R.function(pure=False)
        def main(x: R.Tensor((2,), "int64"), s: R.Shape(ndim=1)):
            cls = Mod
            _: R.Tuple = R.vm.call_tir_dyn(cls.fill, (x, s))
            return x

    x = tvm.runtime.tensor(np.zeros(2, "int64"))
    machine(Mod)["main"](x, tvm_ffi.Shape((6,)))
    np.testing.assert_array_equal(x.numpy(), [6, 6])


def test_a_packed_function_of_the_module(machine):
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1,), "float32"))
    with bb.function("main", [x], pure=False):
        call = relax.Call(relax.ExternFunc("test.vm.add"), [x, x], sinfo_args=[x.struct_info])
        bb.emit_func_output(bb.emit(call))
    mod = bb.get()
    mod["add"] = relax.ExternFunc("test.vm.add")
    assert machine(mod)["main"](array(2)).numpy() == 4


@pytest.mark.parametrize(("exec_mode", "length"), [("bytecode", 10000), ("compiled", 300)])
def test_a_long_chain(exec_mode, length):
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1,), "float32"))
    add = relax.ExternFunc("test.vm.add")
    with bb.function("main", [x], pure=False):
        value = x
        for _ in range(length):
            value = bb.emit(relax.Call(add, [value, x], sinfo_args=[x.struct_info]))
        bb.emit_func_output(value)
    vm = relax.VirtualMachine(build(bb.get(), exec_mode), tvm.cpu())
    assert vm["main"](array(1)).numpy() == length + 1


# ---- errors --------------------------------------------------------------------------------------
def test_an_operator_that_was_not_lowered():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((1,), "float32")):
            y = R.add(x, x)
            return y

    with pytest.raises(ValueError, match=r"(?s)expected operators to be lowered.*R\.add\(x, x\)"):
        build(Mod)


def test_a_shape_that_was_not_computed():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            n = T.int64()
            s = R.shape([n])
            return s

    with pytest.raises(ValueError, match="expected shapes to be computed"):
        build(Mod)


def test_a_cast_that_was_not_lowered():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor(ndim=1, dtype="float32")):
            y = R.match_cast(x, R.Tensor((4,), "float32"))
            return y

    with pytest.raises(ValueError, match="expected casts to be lowered"):
        build(Mod)


def test_a_local_function():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((1,), "float32")):
            @R.function
            def inner(y: R.Tensor((1,), "float32")) -> R.Tensor((1,), "float32"):
                return y

            z = inner(x)
            return z

    with pytest.raises(ValueError, match="expected local functions to be lifted"):
        build(Mod)


def test_a_packed_function_that_does_not_exist(machine):
    @I.ir_module
    class Mod:
        @R.function(pure=False)
        def main():
            r = R.call_packed("no.such.function", sinfo_args=(R.Object,))
            return r

    with pytest.raises(ValueError, match="cannot find the function 'no.such.function'"):
        machine(Mod)
