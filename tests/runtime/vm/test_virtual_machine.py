# SPDX-License-Identifier: Apache-2.0
"""Running programs: calls, branches, loops, closures, errors, threads, inputs and profiles."""

import gc
import threading

import numpy as np
import pytest
import torch
import tvm
import tvm_ffi
from tvm import runtime
from tvm.relax.exec_builder import ExecBuilder
from tvm.runtime.vm import VirtualMachine, VMInstrumentReturnKind, VMStateError

ONE = np.ones(4, "float32")


def arithmetic(ib):
    """(x + y) * x"""
    with ib.function("main", num_inputs=2, param_names=["x", "y"]):
        ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_call("test.vm.mul", args=[ib.r(2), ib.r(0)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))


def factorial(ib):
    """By recursion, on a tensor with one element."""
    with ib.function("main", num_inputs=1, param_names=["n"]):
        ib.emit_call("test.vm.equal_zero", args=[ib.r(0)], dst=ib.r(1))
        ib.emit_if(ib.r(1), 3)
        ib.emit_call("test.vm.move", args=[np.array([1], "int64")], dst=ib.r(4))
        ib.emit_goto(4)
        ib.emit_call("test.vm.subtract_one", args=[ib.r(0)], dst=ib.r(2))
        ib.emit_call("main", args=[ib.r(2)], dst=ib.r(3))
        ib.emit_call("test.vm.mul", args=[ib.r(0), ib.r(3)], dst=ib.r(4))
        ib.emit_ret(ib.r(4))


def countdown(ib):
    """A loop by a jump backwards."""
    with ib.function("main", num_inputs=1):
        ib.emit_call("test.vm.equal_zero", args=[ib.r(0)], dst=ib.r(1))
        ib.emit_if(ib.r(1), 2)
        ib.emit_ret(ib.r(0))
        ib.emit_call("test.vm.subtract_one", args=[ib.r(0)], dst=ib.r(0))
        ib.emit_goto(-4)


def test_arithmetic(machine):
    x, y = np.random.rand(4).astype("float32"), np.random.rand(4).astype("float32")
    vm = machine(arithmetic)
    np.testing.assert_allclose(vm["main"](x, y).numpy(), (x + y) * x, rtol=1e-6)
    result = vm["main"](torch.from_numpy(x), torch.from_numpy(y))
    np.testing.assert_allclose(np.from_dlpack(result), (x + y) * x, rtol=1e-6)
    result = vm["main"](runtime.tensor(x), y)
    np.testing.assert_allclose(result.numpy(), (x + y) * x, rtol=1e-6)


def test_arguments_are_taken_without_copies(machine):
    def build(ib):
        with ib.function("main", num_inputs=1):
            ib.emit_ret(ib.r(0))

    vm, x = machine(build), np.arange(5, dtype="float32")
    result = vm["main"](x)
    assert np.from_dlpack(result).ctypes.data == x.ctypes.data
    source = torch.arange(5)
    assert vm["main"](source).data_ptr() == source.data_ptr()


def test_values_of_all_kinds_pass(machine):
    def build(ib):
        with ib.function("main", num_inputs=1):
            ib.emit_ret(ib.r(0))

    main = machine(build)["main"]
    for value in (None, True, 3, 2.5, "text", "a longer text than fits"):
        assert main(value) == value
    assert tuple(main(tvm_ffi.Shape((2, 3)))) == (2, 3)
    nested = main([ONE, (1, "x")])
    assert nested[1][0] == 1 and nested[1][1] == "x"
    assert main(lambda x: x + 1)(3) == 4


def test_branches_loops_and_recursion(machine):
    fact = machine(factorial)["main"]
    assert fact(np.array([0])).item() == 1 and fact(np.array([10])).item() == 3628800
    assert machine(countdown)["main"](np.array([10_000])).item() == 0


def test_recursion_2_000_deep(machine):
    def build(ib):
        with ib.function("main", num_inputs=1):
            ib.emit_call("test.vm.equal_zero", args=[ib.r(0)], dst=ib.r(1))
            ib.emit_if(ib.r(1), 2)
            ib.emit_ret(ib.r(0))
            ib.emit_call("test.vm.subtract_one", args=[ib.r(0)], dst=ib.r(2))
            ib.emit_call("main", args=[ib.r(2)], dst=ib.r(3))
            ib.emit_ret(ib.r(3))

    assert machine(build)["main"](np.array([2_000])).item() == 0


def test_endless_recursion_is_an_error(machine):
    def build(ib):
        with ib.function("main", num_inputs=1):
            ib.emit_call("main", args=[ib.r(0)], dst=ib.r(1))
            ib.emit_ret(ib.r(1))
        with ib.function("through_closure", num_inputs=1):
            closure = [ib.vm_state(), ib.f("through_closure"), ib.r(0)]
            ib.emit_call("vm.builtin.invoke_closure", args=closure, dst=ib.r(1))
            ib.emit_ret(ib.r(1))
        with ib.function("fine", num_inputs=1):
            ib.emit_ret(ib.r(0))

    vm = machine(build)
    for name in ("main", "through_closure"):
        with pytest.raises(RecursionError, match="too deeply"):
            vm[name](1)
        assert vm["fine"](1) == 1
    errors = []

    def other_thread():
        try:
            vm["main"](1)
        except RecursionError as error:
            errors.append(error)

    thread = threading.Thread(target=other_thread)
    thread.start()
    thread.join()
    assert len(errors) == 1


def test_closures_capture_values(machine):
    def build(ib):
        with ib.function("lifted", num_inputs=2):
            ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
            ib.emit_ret(ib.r(2))
        with ib.function("make", num_inputs=1):
            ib.emit_call("vm.builtin.make_closure", args=[ib.f("lifted"), ib.r(0)], dst=ib.r(1))
            ib.emit_ret(ib.r(1))
        with ib.function("main", num_inputs=2):
            ib.emit_call("make", args=[ib.r(0)], dst=ib.r(2))
            args = [ib.vm_state(), ib.r(2), ib.r(1)]
            ib.emit_call("vm.builtin.invoke_closure", args=args, dst=ib.r(3))
            ib.emit_ret(ib.r(3))

    vm = machine(build)
    np.testing.assert_array_equal(vm["main"](ONE, 2 * ONE).numpy(), 3 * ONE)
    closure = vm["make"](ONE)
    np.testing.assert_array_equal(vm.invoke_closure(closure, 4 * ONE).numpy(), 5 * ONE)
    np.testing.assert_array_equal(
        vm.invoke_closure(tvm_ffi.get_global_func("test.vm.add"), ONE, ONE).numpy(), 2 * ONE
    )
    with pytest.raises(ValueError, match="a closure of this executable"):
        machine(arithmetic).invoke_closure(closure, ONE)
    for no_closure in (None, 3, "main"):
        with pytest.raises(TypeError, match="expected a closure or a function"):
            vm.invoke_closure(no_closure, ONE)


def test_errors_carry_the_call_stack(machine):
    def build(ib):
        with ib.function("inner", num_inputs=1):
            ib.emit_call("test.vm.add", args=[ib.r(0), ONE], dst=ib.r(1))
            ib.emit_ret(ib.r(1))
        with ib.function("main", num_inputs=1):
            ib.emit_call("test.vm.move", args=[ib.r(0)], dst=ib.r(1))
            ib.emit_call("inner", args=[ib.r(1)], dst=ib.r(2))
            ib.emit_ret(ib.r(2))

    vm = machine(build)
    with pytest.raises(ValueError, match="one shape and dtype") as caught:
        vm["main"](np.ones(3, "float32"))
    assert str(caught.value).endswith(
        "Relax call stack, innermost first:\n"
        "  inner, instruction 0: call test.vm.add\n"
        "  main, instruction 1: call inner"
    )
    with pytest.raises(TypeError, match="parameter 'a': expected Tensor, got None"):
        vm["main"](None)
    np.testing.assert_array_equal(vm["main"](ONE).numpy(), 2 * ONE)  # still usable


def test_python_exceptions_pass_through(machine):
    def build(ib):
        with ib.function("main", num_inputs=1):
            ib.emit_call("vm.builtin.call_py_func", args=["fail", ib.r(0)], dst=ib.r(1))
            ib.emit_ret(ib.r(1))

    def fail(x):
        raise KeyError(x) if x == 1 else ZeroDivisionError("no")

    tvm_ffi.get_global_func("vm.builtin.register_py_func")("fail", fail)
    vm = machine(build)
    with pytest.raises(KeyError):
        vm["main"]([1])
    with pytest.raises(ZeroDivisionError, match="no\nRelax call stack"):
        vm["main"]([2])
    tvm_ffi.get_global_func("vm.builtin.clear_py_func_registry")()
    with pytest.raises(ValueError, match="Python function 'fail' not found"):
        vm["main"]([1])


def test_wrong_number_of_arguments(machine):
    with pytest.raises(TypeError, match=r"main: expected 2 arguments \(x, y\), got 1"):
        machine(arithmetic)["main"](ONE)


def test_unknown_function(machine):
    vm = machine(arithmetic)
    with pytest.raises(AttributeError, match="no function 'mian', did you mean 'main'"):
        vm["mian"]
    with pytest.raises(ValueError, match="no function 'mian', did you mean 'main'"):
        vm.set_input("mian", ONE)


def test_many_threads_use_one_machine(machine):
    vm, failures = machine(factorial), []

    def work(n):
        expected = int(np.prod(np.arange(1, n + 1)))
        for _ in range(200):
            if vm["main"](np.array([n])).item() != expected:
                failures.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4, 12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_results_outlive_the_machine(machine):
    vm = machine(arithmetic)
    result, main = vm["main"](ONE, ONE), vm["main"]
    del vm
    gc.collect()
    np.testing.assert_array_equal(result.numpy(), 2 * ONE)
    np.testing.assert_array_equal(main(ONE, ONE).numpy(), 2 * ONE)


def test_planned_storage_is_freed(machine):
    def build(ib):
        with ib.function("main", num_inputs=1):
            args = [ib.vm_state(), (1 << 20,), ib.imm(0), tvm_ffi.dtype("uint8"), "global"]
            ib.emit_call("vm.builtin.alloc_storage", args=args, dst=ib.r(1))
            args = [ib.r(1), ib.imm(64), (4,), tvm_ffi.dtype("float32")]
            ib.emit_call("vm.builtin.alloc_tensor", args=args, dst=ib.r(2))
            ib.emit_call("vm.builtin.null_value", dst=ib.r(1))
            ib.emit_call("test.vm.identity", args=[ib.r(0), ib.r(2)])
            ib.emit_ret(ib.r(2))

    def used():
        return runtime.AllocatorStats(runtime.cpu(), 2)["used"]

    vm, before = machine(build), used()
    result = vm["main"](ONE)
    np.testing.assert_array_equal(result.numpy(), ONE)
    assert used() == before + (1 << 20)
    del result
    gc.collect()
    assert used() == before


def test_saved_function(machine):
    vm = machine(arithmetic)
    vm.save_function("main", "saved", ONE, 2 * ONE)
    np.testing.assert_array_equal(vm["saved"]().numpy(), 3 * ONE)
    vm.save_function("main", "saved", y=3 * ONE, x=ONE)
    np.testing.assert_array_equal(vm["saved"]().numpy(), 4 * ONE)
    vm.save_function("main", "silent", ONE, ONE, include_return=False)
    assert vm["silent"]() is None
    with pytest.raises(ValueError, match="there is a function 'main' already"):
        vm.save_function("main", "main", ONE, ONE)
    with pytest.raises(ValueError, match=r"no argument for parameters \['y'\]"):
        vm.save_function("main", "saved", x=ONE)
    assert vm.time_evaluator("saved", runtime.cpu(), number=3, repeat=2)().mean > 0


def test_inputs_are_kept(machine):
    vm = machine(arithmetic)
    for before in (vm.invoke_stateful, vm.get_outputs):
        with pytest.raises(ValueError):
            before("main")
        with pytest.raises(RuntimeError):
            before("main")
    with pytest.raises(ValueError, match="expected 2 arguments for 'main', got 1"):
        vm.set_input("main", ONE)
    with pytest.raises(ValueError, match=r"expected parameters \['x', 'y'\] by name, got \['z'\]"):
        vm.set_input("main", z=ONE)
    x = ONE.copy()
    vm.set_input("main", y=2 * ONE, x=x)
    x[:] = 100  # what was set is not what changes later
    vm.invoke_stateful("main")
    np.testing.assert_array_equal(vm.get_outputs("main").numpy(), 3 * ONE)
    with pytest.raises(VMStateError, match="call invoke_stateful instead"):
        vm["main"](ONE, ONE)


def test_outputs_of_tuples(machine):
    def build(ib):
        with ib.function("main", num_inputs=1):
            ib.emit_call("vm.builtin.make_tuple", args=[ib.r(0), ib.imm(3)], dst=ib.r(1))
            ib.emit_call("vm.builtin.make_tuple", args=[ib.r(1), ib.imm(4)], dst=ib.r(2))
            ib.emit_ret(ib.r(2))

    vm = machine(build)
    vm.set_input("main", ONE)
    vm.invoke_stateful("main")
    (first, three), four = vm.get_outputs("main")
    np.testing.assert_array_equal(first.numpy(), ONE)
    assert (three, four) == (3, 4)
    assert vm["get_output_arity"]("main", 1) == -1 and vm["get_output_arity"]("main", 0) == 2
    with pytest.raises(IndexError):
        vm["get_output"]("main", 2)


def test_parameters_have_names(machine):
    vm = machine(arithmetic)
    assert vm["get_function_arity"]("main") == 2
    assert [vm["get_function_param_name"]("main", i) for i in (0, 1)] == ["x", "y"]
    with pytest.raises(IndexError, match="below 2, got 2"):
        vm["get_function_param_name"]("main", 2)


def test_instrument_sees_and_skips_calls(machine):
    vm, seen = machine(arithmetic), []

    def watch(func, name, before_run, ret_value, *args):
        seen.append((name, before_run, ret_value is None, len(args)))
        return VMInstrumentReturnKind.NO_OP

    vm.set_instrument(watch)
    np.testing.assert_array_equal(vm["main"](ONE, ONE).numpy(), 2 * ONE)
    assert seen == [
        ("test.vm.add", True, True, 2),
        ("test.vm.add", False, False, 2),
        ("test.vm.mul", True, True, 2),
        ("test.vm.mul", False, False, 2),
    ]
    vm.set_instrument(
        lambda func, name, before_run, ret_value, *args: (
            VMInstrumentReturnKind.SKIP_RUN if name == "test.vm.mul" else None
        )
    )
    assert vm["main"](ONE, ONE) is None
    vm.set_instrument(None)
    np.testing.assert_array_equal(vm["main"](ONE, ONE).numpy(), 2 * ONE)


def test_profile(machine):
    vm = machine(arithmetic, profile=True)
    report = vm.profile("main", ONE, ONE)
    assert [call["Name"] for call in report.calls] == ["test.vm.add", "test.vm.mul"]
    assert report.calls[0]["Argument Shapes"] == "float32[4], float32[4]"
    assert report.device_metrics["cpu0"]["Duration (us)"].microseconds > 0
    assert "test.vm.mul" in str(report)
    with pytest.raises(ValueError, match="no function 'x'"):
        vm.profile("x")
    with pytest.raises(RuntimeError, match="profile=True"):
        machine(arithmetic).profile("main", ONE, ONE)


def test_devices_and_allocators(machine):
    ib = ExecBuilder()
    arithmetic(ib)
    executable, cpu = ib.get(), runtime.cpu()
    for config in (None, "naive", "pooled", {cpu: "pooled"}, {"cpu": "naive"}):
        vm = VirtualMachine(executable, [cpu], memory_cfg=config)
        np.testing.assert_array_equal(vm["main"](ONE, ONE).numpy(), 2 * ONE)
    with pytest.raises(ValueError, match="'naive' or 'pooled', got 'huge'"):
        VirtualMachine(executable, cpu, memory_cfg="huge")
    with pytest.raises(TypeError, match="got int"):
        VirtualMachine(executable, cpu, memory_cfg=3)
    with pytest.raises(RuntimeError, match="no runtime for hexagon"):
        VirtualMachine(executable, runtime.hexagon())
    for no_machine in ("model.so", tvm.IRModule({})):
        with pytest.raises(TypeError, match="expected what tvm.compile makes of a graph"):
            VirtualMachine(no_machine, cpu)
    bare = executable.mod["vm_load_executable"]()
    with pytest.raises(RuntimeError, match="vm_initialization"):
        bare["main"](ONE, ONE)
    with pytest.raises(TypeError, match="for each device, got 2 arguments"):
        bare["vm_initialization"](1, 0)


def test_endless_loop_can_be_interrupted(machine):
    import signal

    def build(ib):
        with ib.function("main", num_inputs=1):
            ib.emit_goto(0)

    def stop(*_):
        raise TimeoutError("stop")

    old = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(TimeoutError, match="stop"):
            machine(build)["main"](1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_names():
    assert tvm.relax.ExecBuilder is ExecBuilder and tvm.relax.VirtualMachine is VirtualMachine
    assert tvm.runtime.vm.VirtualMachine is VirtualMachine
    assert VirtualMachine.NAIVE_ALLOCATOR == 1 and VirtualMachine.POOLED_ALLOCATOR == 2
