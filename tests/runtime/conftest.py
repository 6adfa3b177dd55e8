# SPDX-License-Identifier: Apache-2.0
"""Kernels in C against the tvm-ffi ABI: what generated code looks like to the runtime."""

import shutil
import subprocess

import pytest
import tvm_ffi

KERNELS = r"""
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <dlpack/dlpack.h>

typedef struct { void* sync_handle; int32_t num_task; } Env;
int (*__TVMBackendParallelLaunch)(int (*)(int, Env*, void*), void*, int) = 0;

static DLTensor* Tensor(const TVMFFIAny* a) {
  return a->type_index == kTVMFFIDLTensorPtr ? (DLTensor*)a->v_ptr
                                             : (DLTensor*)((char*)a->v_obj + sizeof(TVMFFIObject));
}
int __tvm_ffi_double(void* self, const TVMFFIAny* args, int32_t n, TVMFFIAny* ret) {
  DLTensor *x = Tensor(&args[0]), *y = Tensor(&args[1]);
  for (int64_t i = 0; i < x->shape[0]; ++i) ((float*)y->data)[i] = 2 * ((float*)x->data)[i];
  return 0;
}
typedef struct { DLTensor* x; int64_t fail; } Arg;
static int Task(int id, Env* env, void* data) {
  Arg* a = (Arg*)data;
  int64_t n = a->x->shape[0];
  if (id == a->fail) {
    TVMFFIErrorSetRaisedFromCStr("IndexError", "task failed");
    return -1;
  }
  for (int64_t i = n * id / env->num_task; i < n * (id + 1) / env->num_task; ++i) {
    ((float*)a->x->data)[i] += 1;
  }
  return 0;
}
/* parallel_add_one(x, num_task, failing task): serial where no runtime filled the pointer */
int __tvm_ffi_parallel_add_one(void* self, const TVMFFIAny* args, int32_t n, TVMFFIAny* ret) {
  Arg a = {Tensor(&args[0]), args[2].v_int64};
  Env env = {0, 1};
  if (!__TVMBackendParallelLaunch) return Task(0, &env, &a);
  return __TVMBackendParallelLaunch(Task, &a, (int)args[1].v_int64);
}
"""
TRIPLE = KERNELS.replace("__tvm_ffi_double", "__tvm_ffi_triple").replace("= 2 *", "= 3 *")
ONLY = KERNELS[: KERNELS.index("typedef struct { DLTensor* x")]


class Compiler:
    def __init__(self, folder):
        self.folder, self.count = folder, 0

    def __call__(self, source, suffix=".so", name=None, extra=()):
        """Compiles C; returns the file's path."""
        self.count += 1
        path = self.folder / (name or f"k{self.count}{suffix}")
        c = self.folder / f"k{self.count}.c"
        c.write_text(source)
        flags = ["-shared"] if suffix == ".so" else ["-c"]
        include = [f"-I{tvm_ffi.libinfo.find_include_path()}"]
        include += [f"-I{tvm_ffi.libinfo.find_dlpack_include_path()}"]
        command = ["cc", "-O2", "-fPIC", *flags, *include, "-o", str(path), str(c), *extra]
        subprocess.run(command, check=True)
        return path


@pytest.fixture
def compile_c(tmp_path):
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    return Compiler(tmp_path)


@pytest.fixture
def kernels():
    return {"two": KERNELS, "only": ONLY, "triple": TRIPLE}
