# SPDX-License-Identifier: Apache-2.0
"""Compiling CUDA with nvcc or NVRTC, and what a GPU's compute capability provides."""

import glob
import os
import re
import warnings

from . import _cuda_toolkit, _nvrtc, _tools, utils

_FORMATS = ("ptx", "cubin", "fatbin")
_COMPILERS = ("nvcc", "nvrtc")
_ARCH = re.compile(r"(?:(?:sm|compute)_)?(\d+)(?:\.(\d))?([af]?)")
_NAME = "kernel.cu"
_CONTEXT = 2  # lines of source shown before and after one that fails


def compile_cuda(
    code, target_format=None, arch=None, options=None, path_target=None, compiler="nvcc"
):
    """Compiles CUDA source and returns the result as a bytearray.

    `target_format` is "ptx" (the default), "cubin" or "fatbin". `arch` is an architecture such as
    "sm_90a", or a list of them for a fatbin, or of nvcc's own options; by default that of the
    current target, else of the GPU. `options` go to the compiler as they are. The result is also
    written to `path_target`. `compiler` is "nvcc" or "nvrtc"; the variable TVM_CUDA_COMPILE_MODE
    replaces the default.
    """
    if compiler == "nvcc":
        compiler = os.environ.get("TVM_CUDA_COMPILE_MODE") or compiler
    compiler = _one_of("compiler", compiler, _COMPILERS)
    target_format = _one_of("target_format", target_format or "ptx", _FORMATS)
    options = [options] if isinstance(options, str) else list(options or ())
    if wrong := [option for option in options if not isinstance(option, str)]:
        raise TypeError(f"compile_cuda: expected options as strings, got {wrong[0]!r}")
    archs = _architectures(arch, target_format)
    compile_it = _with_nvcc if compiler == "nvcc" else _with_nvrtc
    data = bytearray(compile_it(code, target_format, archs, options))
    if path_target is not None:
        with _tools.replacing(path_target) as partial, open(partial, "wb") as file:
            file.write(data)
    return data


def _one_of(what, value, names):
    from .._aliases import did_you_mean

    if value not in names:
        near = did_you_mean(value, names)
        raise ValueError(
            f"compile_cuda: expected {what} as one of {', '.join(names)}, got {value!r}{near}"
        )
    return value


def _architectures(arch, target_format):
    """Names such as sm_90a, or the options that were given instead."""
    if arch is None:
        try:
            arch = "sm_" + get_target_compute_version().replace(".", "")
        except ValueError as error:
            raise ValueError(f"compile_cuda: expected arch, or a current target: {error}") from None
    archs = [arch] if isinstance(arch, str) else list(arch)
    if any(str(word).startswith("-") for word in archs):
        return archs
    names = []
    for name in archs:
        match = _ARCH.fullmatch(str(name))
        if match is None:
            raise ValueError(f"compile_cuda: expected an arch such as 'sm_90', got {name!r}")
        names.append(f"sm_{match.group(1)}{match.group(2) or ''}{match.group(3)}")
    if not names or (len(names) > 1 and target_format != "fatbin"):
        raise ValueError(f"compile_cuda: expected one arch for {target_format}, got {names}")
    return names


def _virtual(arch):
    return arch.replace("sm_", "compute_")


def _nvcc_arch_options(archs, target_format):
    if archs[0].startswith("-"):
        return archs
    if target_format != "fatbin":
        return [f"-arch={archs[0] if target_format == 'cubin' else _virtual(archs[0])}"]
    return [f"-gencode=arch={_virtual(arch)},code={arch}" for arch in archs]


def _with_nvcc(code, target_format, archs, options):
    nvcc = str(_cuda_toolkit.nvcc())
    with utils.tempdir() as temp:
        source, output = temp.relpath(_NAME), temp.relpath(f"kernel.{target_format}")
        (temp / _NAME).write_text(code)
        flags = [f"--{target_format}", "-O3", *_nvcc_arch_options(archs, target_format)]
        command = [nvcc, *flags, *options, "-o", output, source]
        try:
            _tools.run(command, f"compile CUDA to {target_format}", install=_cuda_toolkit.INSTALL)
        except RuntimeError as error:
            text = str(error).replace(source, _NAME)
            raise RuntimeError(text + _excerpts(code, text)) from None
        return (temp / f"kernel.{target_format}").read_bytes()


def _include_options():
    """Headers that came with the library, else those of the toolkit."""
    folders = (folder / "include" for folder in [_nvrtc.folder(), *_cuda_toolkit.roots()])
    return [f"--include-path={folder}" for folder in folders if (folder / "cuda_fp16.h").exists()][
        :1
    ]


def _with_nvrtc(code, target_format, archs, options):
    if archs[0].startswith("-"):
        raise ValueError(f"compile_cuda: NVRTC expects an arch such as 'sm_90', got {archs}")
    options = [*_include_options(), *options]

    def one(arch, target_format):
        name = arch if target_format == "cubin" else _virtual(arch)
        try:
            return _nvrtc.compile(
                code, _NAME, target_format, [f"--gpu-architecture={name}", *options]
            )
        except _nvrtc.CompileError as error:
            text = f"cannot compile CUDA to {target_format} for {name} with NVRTC: {error}"
            raise RuntimeError(text + _excerpts(code, text)) from None

    if target_format == "fatbin":
        return _nvrtc.fatbin({arch: one(arch, "cubin") for arch in archs})
    return one(archs[0], target_format)


def _excerpts(code, log):
    """The source around each line that a compiler's log complains about, with line numbers."""
    lines, text = code.splitlines(), ""
    pattern = rf"^{re.escape(_NAME)}\((\d+)\): (?:catastrophic )?error"
    for number in sorted({int(n) for n in re.findall(pattern, log, re.MULTILINE)}):
        first, last = max(1, number - _CONTEXT), min(len(lines), number + _CONTEXT)
        text += f"\n\n{_NAME}:{number}:"
        for at in range(first, last + 1):
            text += f"\n{'>' if at == number else ' '}{at:5} | {lines[at - 1]}"
    return text


def find_cuda_path():
    """The folder of the CUDA toolkit: CUDA_HOME, CUDA_PATH, that of nvcc, the usual places."""
    return str(_cuda_toolkit.root())


def get_cuda_version(cuda_path=None):
    """(major, minor) of a CUDA toolkit."""
    from pathlib import Path

    return _cuda_toolkit.version(Path(cuda_path) if cuda_path else _cuda_toolkit.root())


def find_nvshmem_paths() -> tuple[str, str]:
    """The folders of NVSHMEM's headers and libraries; NVSHMEM_HOME names the one of both."""
    home = os.environ.get("NVSHMEM_HOME")
    usual = [*_cuda_toolkit.roots(), "/usr/local/nvshmem", "/opt/nvshmem", "/usr"]
    folders = [home] if home else usual
    for folder in folders:
        headers = _holding(folder, ("include", "include/nvshmem_*"), "nvshmem.h")
        libraries = _holding(folder, ("lib", "lib64", "lib/*/nvshmem/*"), "libnvshmem*")
        if headers and libraries:
            return headers, libraries
    looked = ", ".join(map(str, folders))
    raise RuntimeError(
        f"cannot find NVSHMEM in {looked}; install it (wheel nvidia-nvshmem), or set NVSHMEM_HOME"
    )


def _holding(folder, below, name):
    """The first folder that holds a file of that name."""
    found = (glob.glob(os.path.join(folder, b, name)) for b in below)
    return next((os.path.dirname(group[0]) for group in found if group), None)


def tvm_callback_cuda_compile(code):
    """CUDA source to what the runtime loads, for the current target."""
    return bytes(compile_cuda(code, target_format="cubin"))


@_tools.register("tvm_callback_libdevice_path")
def find_libdevice_path(arch):
    """The bitcode of CUDA's mathematical functions for an architecture (a number, or sm_90)."""
    folders = [folder / "nvvm" / "libdevice" for folder in _cuda_toolkit.roots()]
    folders += ["/usr/lib/nvidia-cuda-toolkit/libdevice"]
    for folder in folders:
        whole = os.path.join(folder, "libdevice.10.bc")
        if os.path.exists(whole):
            return whole
        # Before CUDA 9 there was one for each generation; the next older one fits.
        files = glob.glob(os.path.join(folder, "libdevice.compute_*.bc"))
        versions = {int(re.search(r"compute_(\d+)", f).group(1)): f for f in files}
        fitting = [v for v in versions if v <= int(re.search(r"\d+", str(arch)).group())]
        if fitting:
            return versions[max(fitting)]
    raise RuntimeError(f"cannot find CUDA's libdevice; {_cuda_toolkit.INSTALL}")


def callback_libdevice_path(arch):
    """As find_libdevice_path, but "" and a warning where there is none."""
    try:
        return find_libdevice_path(arch)
    except RuntimeError as error:
        warnings.warn(str(error), stacklevel=2)
        return ""


@_tools.register("tvm.support.nvcc.get_compute_version")
def get_target_compute_version(target=None):
    """The compute capability ("9.0", "9.0a") of a target, the current one, or the GPU."""
    import tvm

    target = target or tvm.target.Target.current(allow_none=True)
    arch = str(target.attrs.get("arch", "")) if target is not None else ""
    if match := re.fullmatch(r"sm_(\d+)(\d)([af]?)", arch):
        return "{}.{}{}".format(*match.groups())
    if tvm.cuda(0).exist:
        return str(tvm.cuda(0).compute_version)
    raise ValueError(
        "expected a target with an arch such as 'sm_90', or a CUDA device; got neither"
    )


def parse_compute_version(compute_version):
    """(major, minor) of a compute capability such as "9.0"."""
    match = re.fullmatch(r"(\d+)\.(\d+)\.?[af]?", str(compute_version))
    if match is None:
        raise ValueError(f"expected a compute capability such as '9.0', got {compute_version!r}")
    return int(match.group(1)), int(match.group(2))


def have_fp16(compute_version):
    """Whether there is arithmetic on float16."""
    return parse_compute_version(compute_version) >= (6, 0) or compute_version == "5.3"


def have_int8(compute_version):
    """Whether there are dot products of int8."""
    return parse_compute_version(compute_version) >= (6, 1)


def have_tensorcore(compute_version=None, target=None):
    """Whether there are tensor cores; asks the target, or the GPU, where no version is given."""
    if compute_version is None:
        try:
            compute_version = get_target_compute_version(target)
        except ValueError as error:
            warnings.warn(f"have_tensorcore: {error}", stacklevel=2)
            return False
    return parse_compute_version(compute_version) >= (7, 0)


def have_cudagraph():
    """Whether the CUDA toolkit has graphs."""
    try:
        return get_cuda_version() >= (10, 0)
    except RuntimeError:
        return False


@_tools.register("tvm.support.nvcc.supports_bf16")
def have_bf16(compute_version):
    """Whether there is arithmetic on bfloat16."""
    return parse_compute_version(compute_version) >= (8, 0)


@_tools.register("tvm.support.nvcc.supports_fp8")
def have_fp8(compute_version):
    """Whether there is matrix arithmetic on float8."""
    return parse_compute_version(compute_version) >= (8, 9)


@_tools.register("tvm.support.nvcc.supports_fp4")
def have_fp4(compute_version):
    """Whether there is matrix arithmetic on float4."""
    return parse_compute_version(compute_version) >= (10, 0)
