# SPDX-License-Identifier: Apache-2.0
"""Devices: names, targets, properties, and kinds this build has no runtime for."""

import pickle

import pytest
import tvm
from tvm import runtime


@pytest.mark.parametrize(
    "target, expected",
    [
        ("cpu", "cpu:0"),
        ("llvm", "cpu:0"),
        ("c", "cpu:0"),
        ("llvm -num-cores=2 -mcpu=skylake-avx512", "cpu:0"),
        ('{"kind": "llvm", "num-cores": 2}', "cpu:0"),
        ({"kind": "cuda", "arch": "sm_90"}, "cuda:0"),
        ("cuda:1", "cuda:1"),
        ("nvptx", "cuda:0"),
        ("rocm:3", "rocm:3"),
        ("metal", "metal:0"),
        ("vulkan", "vulkan:0"),
        ("opencl", "opencl:0"),
        ("webgpu", "webgpu:0"),
        ("hexagon", "hexagon:0"),
        ("ext_dev", "ext_dev:0"),
    ],
)
def test_device_of_name_or_target(target, expected):
    device = tvm.device(target)
    assert str(device) == expected
    assert isinstance(device, runtime.Device)


def test_device_index():
    assert tvm.device("cuda", 2) == tvm.cuda(2) == tvm.device("cuda:2")
    assert tvm.cuda(2) != tvm.cuda(1) and tvm.device(tvm.cpu()) == tvm.cpu()
    assert (tvm.cuda(2).device_type, tvm.cuda(2).device_id) == (2, 2)
    assert {tvm.cpu(): 1}[tvm.device("llvm")] == 1
    assert pickle.loads(pickle.dumps(tvm.cuda(3))) == tvm.cuda(3)


class _Kind:
    name = "cuda"


class _Target:
    kind = _Kind()


def test_device_of_a_target_object():
    assert tvm.device(_Target(), 1) == tvm.cuda(1)


@pytest.mark.parametrize(
    "target, error, message",
    [
        ("cpi", ValueError, "expected a device or a target, got 'cpi', did you mean 'cpu'"),
        ("lvm -mcpu=native", ValueError, "got 'lvm', did you mean 'llvm'"),
        ("cuda:one", ValueError, "expected a number after 'cuda:', got 'one'"),
        ("cpu:-1", ValueError, "expected an index of at least 0, got -1"),
        ("", ValueError, "expected a device or a target, got ''"),
        (1.5, TypeError, "expected a device name or a target, got float"),
        ("{broken", ValueError, "Expecting property name"),
    ],
)
def test_bad_devices(target, error, message):
    with pytest.raises(error, match=message):
        tvm.device(target)


def test_cpu_properties():
    cpu = tvm.cpu()
    assert cpu.exist and not tvm.cpu(1).exist
    assert cpu.multi_processor_count >= 1
    assert cpu.total_global_memory >= cpu.available_global_memory > 0
    assert cpu.device_name is None or isinstance(cpu.device_name, str)
    assert cpu.warp_size is None and cpu.max_thread_dimensions is None
    cpu.sync()
    stream = cpu.create_raw_stream()
    cpu.set_raw_stream(stream)
    cpu.sync(stream)
    cpu.free_raw_stream(stream)
    with pytest.raises(ValueError, match="expected the stream 0"):
        cpu.sync(16)


def test_kinds_without_runtime_say_so():
    device = tvm.device("vpi")
    assert device.exist is False and device.device_name is None
    for use in (device.sync, device.create_raw_stream, lambda: runtime.empty((2,), device=device)):
        with pytest.raises(RuntimeError, match="this build has no runtime for vpi"):
            use()


def test_number_of_threads():
    before = runtime.num_threads()
    assert before >= 1 and runtime.available_cpus() >= 1
    try:
        runtime.set_num_threads(3)
        assert runtime.num_threads() == tvm.get_global_func("runtime.NumThreads")() == 3
        runtime.config_threadpool(1, 2)
        assert runtime.num_threads() == 2
        with pytest.raises(ValueError, match="expected mode 0 or 1.*got -1"):
            runtime.config_threadpool(-1, 2)
        with pytest.raises(ValueError, match="got -3"):
            runtime.set_num_threads(-3)
    finally:
        runtime.set_num_threads(0)
    assert runtime.num_threads() == before
