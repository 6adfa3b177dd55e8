# SPDX-License-Identifier: Apache-2.0
"""CUDA compilers: the real ones where they are, recorded fakes everywhere; compute capabilities."""

import json
import shutil
import subprocess
import sys

import pytest
import tvm
from tvm.support import _cuda_toolkit, _nvrtc, nvcc, utils

KERNEL = """#include <cuda_fp16.h>
extern "C" __global__ void widen(float* x, const __half* y) {
  x[threadIdx.x] = __half2float(y[threadIdx.x]);
}
"""
BAD = """extern "C" __global__ void bad(int* x) {
  int a = 1;
  x[0] = missing + a;
  x[1] = a;
}
"""
MAGIC = {"ptx": b"//", "cubin": b"\x7fELF", "fatbin": b"P\xedU\xba"}
WRITE_OUTPUT = """
output = sys.argv[sys.argv.index("-o") + 1]
open(output, "wb").write(b"compiled")
"""


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in ("TVM_CUDA_COMPILE_MODE", "CUDA_HOME", "CUDA_PATH", "NVSHMEM_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def compilers():
    """Those that work here."""
    found = ["nvcc"] if shutil.which("nvcc") else []
    try:
        _nvrtc.version()
        found.append("nvrtc")
    except RuntimeError:
        pass
    return found


@pytest.fixture(params=["nvcc", "nvrtc"])
def compiler(request, compilers):
    if request.param not in compilers:
        pytest.skip(f"needs {request.param}")
    return request.param


@pytest.mark.parametrize("target_format", MAGIC)
def test_formats(compiler, target_format, tmp_path):
    if compiler == "nvrtc" and target_format == "fatbin":
        try:
            _nvrtc._nvfatbin()
        except RuntimeError as error:
            pytest.skip(str(error))
    arch = ["sm_80", "sm_90a"] if target_format == "fatbin" else "sm_90a"
    path = tmp_path / "out"
    data = nvcc.compile_cuda(KERNEL, target_format, arch, path_target=path, compiler=compiler)
    assert isinstance(data, bytearray) and data.startswith(MAGIC[target_format])
    assert b"widen" in data and path.read_bytes() == data
    if target_format == "ptx":
        assert b".target sm_90a" in data and not data.endswith(b"\0")


def test_options(compiler):
    code = 'extern "C" __global__ void f(int* x) { x[0] = VALUE; }'
    data = nvcc.compile_cuda(code, arch="9.0", options=["-DVALUE=1234"], compiler=compiler)
    assert b"1234" in data


def test_errors_show_the_numbered_source(compiler, tmp_path):
    with pytest.raises(RuntimeError, match='identifier "missing" is undefined') as caught:
        nvcc.compile_cuda(BAD, "cubin", "sm_90", path_target=tmp_path / "out", compiler=compiler)
    assert str(caught.value).endswith(
        "kernel.cu:3:\n"
        '     1 | extern "C" __global__ void bad(int* x) {\n'
        "     2 |   int a = 1;\n"
        ">    3 |   x[0] = missing + a;\n"
        "     4 |   x[1] = a;\n"
        "     5 | }"
    )
    assert list(tmp_path.iterdir()) == []


def test_architecture_that_does_not_exist(compiler):
    with pytest.raises(RuntimeError, match="cannot compile CUDA to cubin"):
        nvcc.compile_cuda(KERNEL, "cubin", "sm_999", compiler=compiler)


@pytest.mark.parametrize(
    "target_format, arch, flags",
    [
        ("ptx", "sm_90", ["--ptx", "-O3", "-arch=compute_90"]),
        ("cubin", "90a", ["--cubin", "-O3", "-arch=sm_90a"]),
        ("cubin", "12.0", ["--cubin", "-O3", "-arch=sm_120"]),
        (
            "fatbin",
            ["sm_80", "compute_90"],
            ["--fatbin", "-O3", "-gencode=arch=compute_80,code=sm_80"]
            + ["-gencode=arch=compute_90,code=sm_90"],
        ),
        (
            "fatbin",
            ["-gencode", "arch=compute_52,code=sm_52"],
            ["--fatbin", "-O3", "-gencode", "arch=compute_52,code=sm_52"],
        ),
    ],
)
def test_nvcc_word_for_word(fake_tool, target_format, arch, flags):
    fake = fake_tool("nvcc", WRITE_OUTPUT)
    assert nvcc.compile_cuda("code", target_format, arch, ["-lineinfo", "-I a b"]) == b"compiled"
    (call,) = fake.calls
    assert call[:-3] == [*flags, "-lineinfo", "-I a b"]
    assert call[-3] == "-o" and call[-2].endswith(f"kernel.{target_format}")
    assert call[-1].endswith("kernel.cu")


def test_architecture_of_the_target(fake_tool):
    fake = fake_tool("nvcc", WRITE_OUTPUT)
    with tvm.target.Target("cuda -arch=sm_87"):
        nvcc.compile_cuda("code", "cubin")
        assert nvcc.tvm_callback_cuda_compile("code") == b"compiled"
    assert [call[2] for call in fake.calls] == ["-arch=sm_87"] * 2


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (dict(target_format="cubim"), ValueError, "expected target_format as one of ptx, cubin, "
         "fatbin, got 'cubim', did you mean 'cubin'"),
        (dict(compiler="clang"), ValueError, "expected compiler as one of nvcc, nvrtc, got"),
        (dict(arch="gfx900"), ValueError, "expected an arch such as 'sm_90', got 'gfx900'"),
        (dict(arch=["sm_80", "sm_90"]), ValueError, "expected one arch for ptx, got"),
        (dict(arch=[]), ValueError, "expected one arch for ptx"),
        (dict(options=["-g", 3]), TypeError, "expected options as strings, got 3"),
        (dict(arch=["-arch=sm_90"], compiler="nvrtc"), ValueError, "NVRTC expects an arch such as"),
    ],
)  # fmt: skip
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=f"compile_cuda: {message}"):
        nvcc.compile_cuda("code", **{"arch": "sm_90", **arguments})


def test_no_architecture():
    if tvm.cuda(0).exist:
        pytest.skip("this machine has a GPU, which says it")
    with pytest.raises(ValueError, match="compile_cuda: expected arch, or a current target"):
        nvcc.compile_cuda("code")


def test_the_environment_chooses_the_compiler(monkeypatch, fake_tool):
    fake = fake_tool("nvcc", WRITE_OUTPUT)
    chosen = []
    monkeypatch.setattr(nvcc, "_with_nvrtc", lambda *_: chosen.append("nvrtc") or b"")
    monkeypatch.setenv("TVM_CUDA_COMPILE_MODE", "nvrtc")
    nvcc.compile_cuda("code", arch="sm_90")
    assert chosen == ["nvrtc"] and fake.calls == []
    monkeypatch.setenv("TVM_CUDA_COMPILE_MODE", "nvcc")
    nvcc.compile_cuda("code", arch="sm_90", compiler="nvrtc")
    nvcc.compile_cuda("code", arch="sm_90")
    assert chosen == ["nvrtc"] * 2 and len(fake.calls) == 1
    monkeypatch.setenv("TVM_CUDA_COMPILE_MODE", "hipcc")
    with pytest.raises(ValueError, match="expected compiler as one of nvcc, nvrtc, got 'hipcc'"):
        nvcc.compile_cuda("code", arch="sm_90")


FAKE_NVRTC = r"""
#include <stdio.h>
#include <string.h>
static char source[1000];
int nvrtcCreateProgram(void** p, const char* src, const char* name, int n, void* h, void* i) {
  strncpy(source, src, 999); *p = source; return strcmp(name, "kernel.cu") || n || h || i;
}
int nvrtcCompileProgram(void* p, int n, const char** options) {
  FILE* log = fopen(LOG, "a");
  for (int i = 0; i < n; ++i) fprintf(log, "%s\n", options[i]);
  fclose(log);
  return strstr(source, "bad") ? 6 : 0;
}
static const char kText[] = "kernel.cu(1): error: no";
int nvrtcGetProgramLogSize(void* p, size_t* n) { *n = sizeof kText; return 0; }
int nvrtcGetProgramLog(void* p, char* out) { memcpy(out, kText, sizeof kText); return 0; }
int nvrtcGetPTXSize(void* p, size_t* n) { *n = 4; return 0; }
int nvrtcGetPTX(void* p, char* out) { memcpy(out, "PTX", 4); return 0; }
int nvrtcGetCUBINSize(void* p, size_t* n) { *n = 6; return 0; }
int nvrtcGetCUBIN(void* p, char* out) { memcpy(out, "CUBIN\0", 6); return 0; }
int nvrtcDestroyProgram(void** p) { *p = 0; return 0; }
int nvrtcVersion(int* major, int* minor) { *major = 99; *minor = 1; return 0; }
const char* nvrtcGetErrorString(int code) { return "WRONG"; }

static char bin[1000];
int nvFatbinCreate(void** h, const char** o, size_t n) { *h = bin; bin[0] = 0; return n; }
int nvFatbinAddCubin(void* h, const void* c, size_t n, const char* arch, const char* id) {
  sprintf(bin + strlen(bin), "%s:%s;", arch, (const char*)c); return n != 6;
}
int nvFatbinSize(void* h, size_t* n) { *n = strlen(bin); return 0; }
int nvFatbinGet(void* h, void* out) { memcpy(out, bin, strlen(bin)); return 0; }
int nvFatbinDestroy(void** h) { *h = 0; return 0; }
"""


@pytest.fixture
def fake_nvrtc(tmp_path, monkeypatch, need):
    """NVRTC as a wheel in a site-packages folder; returns the file with the options it got."""
    need("cc")
    folder = tmp_path / "site-packages/nvidia/cu99"
    (folder / "lib").mkdir(parents=True)
    (folder / "include").mkdir()
    (folder / "include" / "cuda_fp16.h").touch()
    source, log = tmp_path / "fake.c", tmp_path / "options"
    source.write_text(FAKE_NVRTC)
    for name in ("nvrtc", "nvfatbin"):
        library = folder / "lib" / f"lib{name}.so.99"
        command = ["cc", "-shared", "-fPIC", f'-DLOG="{log}"', "-o", library, source]
        subprocess.run(command, check=True)
    monkeypatch.setattr(_cuda_toolkit, "root", lambda: (_ for _ in ()).throw(RuntimeError))
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    for function in (_nvrtc._nvrtc, _nvrtc._nvfatbin):
        function.cache_clear()
    yield log
    for function in (_nvrtc._nvrtc, _nvrtc._nvfatbin):
        function.cache_clear()


def test_nvrtc_of_a_wheel_word_for_word(fake_nvrtc, tmp_path):
    assert _nvrtc.version() == (99, 1)
    include = f"--include-path={tmp_path}/site-packages/nvidia/cu99/include"
    assert nvcc.compile_cuda("f", "ptx", "sm_90a", ["-DA=1"], compiler="nvrtc") == b"PTX"
    expected = ["--gpu-architecture=compute_90a", include, "-DA=1"]
    assert fake_nvrtc.read_text().splitlines() == expected
    fake_nvrtc.unlink()
    assert nvcc.compile_cuda("f", "cubin", "sm_90", compiler="nvrtc") == b"CUBIN\0"
    assert fake_nvrtc.read_text().splitlines() == ["--gpu-architecture=sm_90", include]
    assert (
        nvcc.compile_cuda("f", "fatbin", ["8.0", "9.0"], compiler="nvrtc") == b"80:CUBIN;90:CUBIN;"
    )


def test_errors_of_nvrtc(fake_nvrtc):
    with pytest.raises(
        RuntimeError, match=r"for compute_90 with NVRTC: nvrtcCompileProgram: WRONG"
    ) as e:
        nvcc.compile_cuda("bad\nnext", "ptx", "sm_90", compiler="nvrtc")
    assert str(e.value).endswith("kernel.cu:1:\n>    1 | bad\n     2 | next")


def test_missing_tools_say_what_to_install(no_tools, monkeypatch, tmp_path):
    monkeypatch.setattr(_cuda_toolkit, "wheel_folders", list)
    monkeypatch.setattr(_cuda_toolkit, "_is_root", lambda folder: False)
    for action in (
        lambda: nvcc.compile_cuda("code", arch="sm_90"),
        nvcc.find_cuda_path,
        nvcc.get_cuda_version,
        lambda: nvcc.find_libdevice_path(90),
    ):
        with pytest.raises(RuntimeError, match="install a CUDA toolkit, or set CUDA_HOME"):
            action()

    def cannot_load(name):
        raise OSError(f"{name}: cannot open shared object file")

    _nvrtc._nvrtc.cache_clear()
    monkeypatch.setattr("ctypes.CDLL", cannot_load)
    with pytest.raises(RuntimeError, match="cannot load libnvrtc: .*the wheel nvidia-cuda-nvrtc"):
        nvcc.compile_cuda("code", arch="sm_90", compiler="nvrtc")
    with pytest.warns(UserWarning, match="cannot find CUDA's libdevice"):
        assert nvcc.callback_libdevice_path("sm_90") == ""
    assert nvcc.have_cudagraph() is False
    monkeypatch.setenv("NVSHMEM_HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match=f"cannot find NVSHMEM in {tmp_path}; .*NVSHMEM_HOME"):
        nvcc.find_nvshmem_paths()


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    """A toolkit that CUDA_HOME names."""
    root = tmp_path / "cuda"
    for folder in ("bin", "include", "nvvm/libdevice"):
        (root / folder).mkdir(parents=True)
    (root / "include" / "cuda.h").write_text("#define CUDA_VERSION 12080\n")
    monkeypatch.setenv("CUDA_HOME", str(root))
    return root


def test_toolkit_of_the_environment(toolkit, monkeypatch):
    assert nvcc.find_cuda_path() == str(toolkit)
    assert nvcc.get_cuda_version() == (12, 8)
    (toolkit / "version.json").write_text(json.dumps({"cuda": {"version": "12.6.77"}}))
    assert nvcc.get_cuda_version(str(toolkit)) == (12, 6) and nvcc.have_cudagraph()
    monkeypatch.setenv("CUDA_HOME", str(toolkit / "bin"))
    with pytest.raises(RuntimeError, match="CUDA_HOME: expected the folder of a CUDA toolkit, got"):
        nvcc.find_cuda_path()


def test_the_toolkit_of_the_environment_compiles(toolkit, fake_tool):
    on_path = fake_tool("nvcc", WRITE_OUTPUT)
    shutil.copy(on_path.path, toolkit / "bin" / "nvcc")
    on_path.path.write_text("#!/bin/sh\nexit 1\n")
    assert nvcc.compile_cuda("code", arch="sm_90") == b"compiled"
    (toolkit / "bin" / "nvcc").unlink()
    with pytest.raises(RuntimeError, match="cuda/bin/nvcc; install a CUDA toolkit"):
        nvcc.compile_cuda("code", arch="sm_90")


def test_toolkit_of_a_script_that_starts_nvcc(tmp_path, fake_tool):
    fake = fake_tool("nvcc", f"print('#$ TOP={tmp_path}/real/bin/..', file=sys.stderr)")
    assert nvcc.find_cuda_path() == f"{tmp_path}/real"
    assert fake.calls == [["--dryrun", "-x", "cu", "/dev/null"]]


def test_version_of_nvcc(toolkit):
    script = toolkit / "bin/nvcc"
    script.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 11.8, V11.8.89'\n")
    script.chmod(0o755)
    assert nvcc.get_cuda_version() == (11, 8)


def test_libdevice(toolkit):
    for number in (30, 35, 50):
        (toolkit / f"nvvm/libdevice/libdevice.compute_{number}.10.bc").touch()
    assert nvcc.find_libdevice_path(37).endswith("compute_35.10.bc")
    assert nvcc.find_libdevice_path("sm_90").endswith("compute_50.10.bc")
    (toolkit / "nvvm/libdevice/libdevice.10.bc").touch()
    assert nvcc.callback_libdevice_path(37) == str(toolkit / "nvvm/libdevice/libdevice.10.bc")
    callback = tvm.get_global_func("tvm_callback_libdevice_path")
    assert callback("sm_90") == str(toolkit / "nvvm/libdevice/libdevice.10.bc")


def test_nvshmem(tmp_path, monkeypatch):
    for folder, name in (("include", "nvshmem.h"), ("lib", "libnvshmem_host.so.3")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).touch()
    monkeypatch.setenv("NVSHMEM_HOME", str(tmp_path))
    assert nvcc.find_nvshmem_paths() == (str(tmp_path / "include"), str(tmp_path / "lib"))


@pytest.mark.parametrize(
    "text, expected", [("6.0", (6, 0)), ("10.3", (10, 3)), ("9.0a", (9, 0)), ("9.0.a", (9, 0))]
)
def test_parse_compute_version(text, expected):
    assert nvcc.parse_compute_version(text) == expected


@pytest.mark.parametrize("text", ["", "9", "sm_90", None, "9.x"])
def test_bad_compute_version(text):
    with pytest.raises(ValueError, match="expected a compute capability such as '9.0', got"):
        nvcc.parse_compute_version(text)


# From the CUDA C++ Programming Guide, "Feature support per compute capability".
CAPABILITIES = {
    nvcc.have_fp16: ["5.3", "6.0", "7.5", "9.0"],
    nvcc.have_int8: ["6.1", "7.0", "8.9", "12.0"],
    nvcc.have_tensorcore: ["7.0", "7.5", "8.0", "10.0"],
    nvcc.have_bf16: ["8.0", "8.6", "9.0a"],
    nvcc.have_fp8: ["8.9", "9.0", "10.0"],
    nvcc.have_fp4: ["10.0", "12.0"],
}
LACKING = {
    nvcc.have_fp16: ["5.0", "5.2"],
    nvcc.have_int8: ["5.3", "6.0"],
    nvcc.have_tensorcore: ["6.0", "6.2"],
    nvcc.have_bf16: ["7.0", "7.5"],
    nvcc.have_fp8: ["8.0", "8.7"],
    nvcc.have_fp4: ["8.9", "9.0"],
}


@pytest.mark.parametrize("function", CAPABILITIES, ids=lambda f: f.__name__)
def test_capabilities(function):
    assert [function(v) for v in CAPABILITIES[function]] == [True] * len(CAPABILITIES[function])
    assert [function(v) for v in LACKING[function]] == [False] * len(LACKING[function])


def test_capabilities_of_a_target():
    target = tvm.target.Target("cuda -arch=sm_103a")
    assert nvcc.get_target_compute_version(target) == "10.3a"
    assert nvcc.have_tensorcore(target=target)
    with tvm.target.Target("cuda -arch=sm_61"):
        assert nvcc.get_target_compute_version() == "6.1" and not nvcc.have_tensorcore()
    ask = tvm.get_global_func
    assert ask("tvm.support.nvcc.get_compute_version")(target) == "10.3a"
    assert [ask(f"tvm.support.nvcc.supports_{t}")("9.0") for t in ("bf16", "fp8", "fp4")] == [
        1,
        1,
        0,
    ]
    if not tvm.cuda(0).exist:
        with pytest.raises(ValueError, match="expected a target with an arch such as 'sm_90'"):
            nvcc.get_target_compute_version()
        with pytest.warns(UserWarning, match="have_tensorcore: expected a target"):
            assert nvcc.have_tensorcore() is False


def test_a_function_of_the_user_stays():
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import tvm\n"
        "tvm.register_global_func('tvm_callback_cuda_compile', lambda code: 'mine')\n"
        "from tvm.support import nvcc\n"
        "assert tvm.get_global_func('tvm_callback_cuda_compile')('') == 'mine'\n"
    )
    with utils.tempdir():
        subprocess.run([sys.executable, "-c", script], check=True)
