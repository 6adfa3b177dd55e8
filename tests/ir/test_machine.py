# SPDX-License-Identifier: Apache-2.0
"""The machine behind a target: what is given, what the instruction set implies, what is refused."""

import os
import pathlib
import subprocess
import sys

import pytest
import tvm
from tvm.target import Target

X86 = "llvm -mtriple=x86_64-linux-gnu"
needs_llvm = pytest.mark.skipif(not tvm.runtime.enabled("llvm"), reason="LLVM has the tables")


@needs_llvm
@pytest.mark.parametrize(
    ("target", "bits", "registers", "masks"),
    [
        (f"{X86} -mcpu=x86-64", 128, 16, False),
        (f"{X86} -mcpu=haswell", 256, 16, False),
        (f"{X86} -mcpu=sapphirerapids", 512, 32, True),
        (f"{X86} -mcpu=sapphirerapids -vector-width=256", 256, 32, True),
        (f"{X86} -mcpu=sapphirerapids -mattr=-avx512f", 256, 16, False),
        (f"{X86} -mcpu=sapphirerapids -mattr=-avx", 128, 16, False),
        ("llvm -mtriple=aarch64-linux-gnu", 128, 32, False),
        ("llvm -mtriple=armv7a-linux-gnueabihf", 128, 16, False),
        ("llvm -mtriple=riscv64-linux-gnu -mattr=+v,+zvl512b", 512, 32, False),
        ("llvm -mtriple=wasm32-unknown-unknown -mattr=+simd128", 128, 16, False),
    ],
)
def test_vectors(target, bits, registers, masks):
    machine = Target(target).machine()
    assert (machine.vector_bits, machine.vector_registers) == (bits, registers)
    assert machine.has_masks == masks and machine.takes_vectors and machine.is_host


@needs_llvm
def test_a_feature_takes_what_needs_it_along():
    whole = Target(f"{X86} -mcpu=sapphirerapids")
    without = Target(f"{X86} -mcpu=sapphirerapids -mattr=-avx512f")
    for feature in ("avx512f", "avx512bw", "avx512vl", "avx512vnni", "avx512bf16"):
        assert whole.has_feature(feature) and not without.has_feature(feature)
        assert feature not in list(without.machine().features)
    assert without.has_feature("avx2")
    added = Target(f"{X86} -mcpu=x86-64 -mattr=+avx512vnni")
    assert added.has_feature("avx512f") and added.has_feature("avx2")


def test_without_llvm_features_imply_the_same():
    target = Target("c -mcpu=x86-64 -mattr=+avx512vnni")
    assert all(target.has_feature(f) for f in ("avx512f", "avx2", "fma", "sse2"))
    target = Target("c -mcpu=x86-64 -mattr=+avx2,-fma")
    assert target.has_feature("avx") and not target.has_feature("fma")


def test_c_is_described_as_llvm_is():
    machine = Target("c -num-cores=3").machine()
    assert machine.is_host and machine.takes_vectors and machine.cores == 3
    # Only LLVM's intrinsics reach matrix units.
    assert not any(f.startswith("amx-") for f in machine.features)
    if tvm.runtime.enabled("llvm"):
        here = Target("llvm").machine()
        assert machine.vector_bits == here.vector_bits
        assert machine.vector_registers == here.vector_registers


def test_caches_are_given_detected_or_common():
    options = {"l1-cache-bytes": 49152, "l1-cache-ways": 12, "l2-cache-bytes": 2 << 20}
    machine = Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu", **options}).machine()
    assert (machine.l1_bytes, machine.l1_ways, machine.l2_bytes) == (49152, 12, 2 << 20)
    assert (machine.line_bytes, machine.l3_bytes, machine.cores) == (64, 0, 1)
    here = Target("llvm")
    for name in ("l1", "l2", "l3"):
        detected = here.attrs.get(f"{name}-cache-bytes")
        assert detected is None or getattr(here.machine(), f"{name}_bytes") == detected


def test_third_cache_is_that_of_a_core():
    """Not the sum of those that a processor has."""
    size = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    if not size.exists():
        pytest.skip("nobody tells the size here")
    kilobytes = int(size.read_text().strip().removesuffix("K"))
    assert Target("llvm").machine().l3_bytes == kilobytes << 10


def test_gpus():
    cuda = Target("nvidia/nvidia-h100").machine()
    assert cuda.is_gpu and not cuda.is_host
    assert (cuda.max_threads, cuda.warp, cuda.has_tensor_cores) == (1024, 32, True)
    assert not Target("cuda -arch=sm_60").machine().has_tensor_cores
    assert Target("opencl").machine().max_threads == 256
    assert Target("webgpu").machine().max_threads == 256


@needs_llvm
def test_the_same_target_has_the_same_machine():
    text = f"{X86} -mcpu=haswell"
    assert Target(text).machine().same_as(Target(text).machine())
    assert not Target(text).machine().same_as(Target(text + " -num-cores=7").machine())


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("cuda -max_threads_per_block=2048", "max_threads_per_block from 1 to 1024, got 2048"),
        ("cuda -max_num_threads=0", "max_num_threads from 1 to 1024, got 0"),
        ("llvm -num-cores=0", "num-cores of at least 1, got 0"),
        ("llvm -vector-width=32", "vector-width of at least 64, got 32"),
        ("llvm -mattr=+avx2,-avx2", r"go together, got \+avx2 and -avx2$"),
        (
            "llvm -mattr=+avx512vnni,-avx2",
            r"got \+avx512vnni and -avx2, without which it cannot be",
        ),
        ({"kind": "c", "mattr": ["-avx", "+fma"]}, r"got \+fma and -avx, without"),
    ],
)
def test_targets_that_contradict_themselves(target, message):
    with pytest.raises(ValueError, match=message):
        Target(target)


def test_a_warp_is_no_larger_than_a_block():
    target = Target("opencl -max_threads_per_block=16 -thread_warp_size=32")
    with pytest.raises(
        ValueError, match=r"at most as many threads as a block \(16\), got thread_w"
    ):
        target.machine()


@needs_llvm
def test_an_unknown_processor_is_named():
    with pytest.raises(ValueError, match="got 'haswel', did you mean 'haswell'"):
        Target(f"{X86} -mcpu=haswel").machine()


@needs_llvm
def test_what_was_detected_gives_way_to_what_is_said():
    target = Target("llvm -mattr=-avx")
    assert not target.has_feature("avx2") and not target.has_feature("avx512f")
    assert Target(str(target)) == target and Target(target.export_json()) == target


@needs_llvm
def test_another_processor_can_stand_for_this_machine():
    program = "import tvm; print(tvm.target.Target('llvm').mcpu, tvm.target.Target('llvm').mattr)"
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TVM_HOST_CPU": "haswell"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert result.stdout.strip() == "haswell []"
