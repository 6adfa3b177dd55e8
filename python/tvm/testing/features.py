# SPDX-License-Identifier: Apache-2.0
"""What a test needs: `@tvm.testing.requires_cuda` skips it where that is missing."""

import functools
import importlib.util
import os
import platform

import tvm


def device_enabled(target):
    """Whether code can be generated for a target and run here."""
    kind = target.split()[0] if isinstance(target, str) else target.kind.name
    return tvm.runtime.enabled(kind) and tvm.device(kind).exist


def host_target(options=""):
    """What tests compile for where they do not say: TVM_TEST_TARGET, else this machine's default.

    `TVM_TEST_TARGET=c pytest tests` runs the numeric tests with the C backend. `options` are added
    to the target, such as "-num-cores=2"."""
    kind = os.environ.get("TVM_TEST_TARGET") or ("llvm" if tvm.runtime.enabled("llvm") else "c")
    return f"{kind} {options}".rstrip()


def _has_cpu(*features):
    target = tvm.target.Target("llvm")
    return all(target.has_feature(f) for f in features)


def _gpu_count():
    return sum(
        tvm.device(kind, i).exist
        for kind in ("cuda", "rocm", "opencl", "metal", "vulkan")
        for i in (0, 1)
    )


class Feature:
    """Something a test may need. As a decorator it skips the test, saying why, where it is missing.

    `check` returns True, or False, or a text that says why not."""

    _all = {}

    def __init__(self, name, long_name=None, check=None, parent_features=()):
        self.name, self.long_name = name, long_name or name
        self._check, self.parents = (
            check,
            [parent_features] if isinstance(parent_features, str) else parent_features,
        )
        self._missing = None
        Feature._all[name] = self

    def missing(self):
        """Why the feature is not there, or ""."""
        if self._missing is None:
            self._missing = self._find_missing()
        return self._missing

    def _find_missing(self):
        for parent in self.parents:
            if reason := Feature._all[parent].missing():
                return reason
        found = True if self._check is None else self._check()
        return "" if found is True else (found or f"{self.long_name} is not available")

    def marks(self, support_required="compile-and-run"):
        """The pytest marks of a test that needs the feature; "optional" marks do not skip."""
        import pytest

        marks = [pytest.mark.usefixtures()] if support_required == "optional" else []
        if support_required != "optional" and self.missing():
            marks.append(pytest.mark.skip(reason=self.missing()))
        return marks

    def __call__(self, func=None, *, support_required="compile-and-run"):
        def decorate(func):
            for mark in self.marks(support_required):
                func = mark(func)
            return func

        return decorate if func is None else decorate(func)

    @classmethod
    def require(cls, name, support_required="compile-and-run"):
        """The decorator of a feature by name."""
        if name not in cls._all:
            raise ValueError(f"Feature: expected one of {sorted(cls._all)}, got '{name}'")
        return functools.partial(cls._all[name], support_required=support_required)


def _kind(name, long_name, parents=("gpu",)):
    return Feature(name, long_name, lambda: device_enabled(name), parents)


requires_gpu = Feature("gpu", "a GPU", lambda: _gpu_count() > 0)
requires_multi_gpu = Feature("multi_gpu", "more than one GPU", lambda: _gpu_count() > 1)
uses_gpu = requires_gpu(support_required="optional")
uses_multi_gpu = requires_multi_gpu(support_required="optional")
requires_llvm = Feature("llvm", "LLVM", lambda: tvm.runtime.enabled("llvm"))
requires_x86 = Feature("x86", "an x86-64 CPU", lambda: platform.machine() == "x86_64")
requires_aarch64 = Feature("AArch64", "an AArch64 CPU", lambda: platform.machine() == "aarch64")
requires_cuda = _kind("cuda", "CUDA")
requires_tensorcore = Feature(
    "tensorcore",
    "NVIDIA tensor cores",
    lambda: tvm.support.nvcc.have_tensorcore(tvm.cuda().compute_version),
    "cuda",
)
requires_cudagraph = Feature("cudagraph", "CUDA graphs", parent_features="cuda")
requires_opencl = _kind("opencl", "OpenCL")
requires_rocm = _kind("rocm", "ROCm")
requires_metal = _kind("metal", "Metal")
requires_vulkan = _kind("vulkan", "Vulkan")
requires_nvptx = _kind("nvptx", "NVPTX", ("llvm", "cuda"))
requires_matrixcore = Feature(
    "matrixcore",
    "AMD matrix cores",
    lambda: tvm.rocm().exist and tvm.support.rocm.have_matrixcore(tvm.rocm().compute_version),
    "rocm",
)
requires_hexagon = _kind("hexagon", "Hexagon", ())
requires_arm_dot = Feature("arm_dot", "ARM dot products", lambda: _has_cpu("dotprod"), "AArch64")
requires_arm_fp16 = Feature(
    "arm_fp16", "ARM float16 vectors", lambda: _has_cpu("fullfp16"), "AArch64"
)
requires_aarch64_sve = Feature("arm_sve", "SVE", lambda: _has_cpu("sve"), "AArch64")
requires_aarch64_sme = Feature("arm_sme", "SME", lambda: _has_cpu("sme"), "AArch64")
requires_x86_vnni = Feature(
    "x86_vnni", "VNNI", lambda: _has_cpu("avx512vnni") or _has_cpu("avxvnni"), "x86"
)
requires_x86_avx512 = Feature(
    "x86_avx512",
    "AVX-512",
    lambda: _has_cpu("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "x86",
)
requires_x86_amx = Feature("x86_amx", "AMX", lambda: _has_cpu("amx-int8"), "x86")


def _not_built(name, long_name):
    return Feature(name, long_name, lambda: f"{long_name} is not built")


requires_cudnn = _not_built("cudnn", "cuDNN")
requires_cublas = _not_built("cublas", "cuBLAS")
requires_cutlass = _not_built("cutlass", "CUTLASS")
requires_nccl = _not_built("nccl", "NCCL")
requires_hipblas = _not_built("hipblas", "hipBLAS")
requires_openclml = _not_built("OpenCLML", "CLML")
requires_nnapi = _not_built("NNAPI", "NNAPI")
requires_rpc = _not_built("rpc", "sessions with other machines")
requires_adreno_opencl = requires_opencl


def skip_if_wheel_test(func):
    """Skips a test where WHEEL_TEST says that the package is tested as users install it."""
    import pytest

    wheel = os.environ.get("WHEEL_TEST", "").lower() in ("true", "1", "yes")
    return pytest.mark.skipif(wheel, reason="Test not supported in wheel.")(func)


def requires_package(*packages):
    """Skips a test where Python packages are missing."""
    import pytest

    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"needs the Python packages {', '.join(missing)}"
    )


def requires_llvm_minimum_version(major_version):
    """Skips a test where LLVM is older or missing."""
    import pytest

    version = tvm.target.codegen.llvm_version_major(allow_none=True) or 0
    return pytest.mark.skipif(
        version < major_version, reason=f"needs LLVM {major_version}, has {version}"
    )


def requires_cuda_compute_version(major_version, minor_version=0):
    """Skips a test where the GPU is older or missing."""
    import pytest

    wanted = (major_version, minor_version)
    has = (0, 0)
    if not requires_cuda.missing():
        has = tuple(int(x) for x in tvm.cuda().compute_version.split("."))
    return pytest.mark.skipif(has < wanted, reason=f"needs compute capability {wanted}, has {has}")


def skip_if_32bit(reason="needs a 64-bit machine"):
    """Skips a test on 32-bit machines."""
    import sys

    import pytest

    return pytest.mark.skipif(sys.maxsize < 2**32, reason=reason)


__all__ = [name for name in globals() if name.startswith(("requires_", "uses_", "skip_if_"))]
__all__ += ["Feature", "device_enabled", "host_target"]
