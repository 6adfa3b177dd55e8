#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the runtime for AArch64, compiles a model for it on this machine, and runs the C example with it under
# QEMU. Needs g++-aarch64-linux-gnu and qemu-user; libtvm_ffi comes from the package for that machine.
#   scripts/emulate_aarch64.sh .venv/bin/python
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "$1")
out=build-aarch64
mkdir -p "$out/lib"
version=$("$python" -c 'from importlib import metadata; print(metadata.version("apache-tvm-ffi"))')
if [ ! -d "$out/wheel" ]; then
  "$python" -m pip download -q "apache-tvm-ffi==$version" --no-deps --only-binary=:all: \
    --platform manylinux_2_28_aarch64 -d "$out"
  (cd "$out" && "$python" -m zipfile -e apache_tvm_ffi-*.whl wheel)
fi
ffi=$out/wheel/tvm_ffi
compiler=${CROSS_PREFIX:-aarch64-linux-gnu-}
flags=(-std=c++20 -O1 -fPIC -Wno-invalid-offsetof -Iinclude -Isrc -I"$ffi/include")
# Configured for this machine: what it gives are the files that put sources together.
cmake -S . -B "$out" -G Ninja -DPython_EXECUTABLE="$python" -DTVM_USE_LLVM=OFF >/dev/null
for batch in "$out"/batch/tvm_runtime/*.cc; do
  object=$out/$(basename "$batch" .cc).o
  if [ ! -e "$object" ] || [ -n "$(find src/runtime include/tvm/runtime -newer "$object" -print -quit)" ]; then
    "${compiler}g++" "${flags[@]}" -c "$batch" -o "$object"
  fi
done
"${compiler}g++" -shared -Wl,--wrap=TVMFFIBacktrace -o "$out/lib/libtvm_runtime.so" "$out"/*.o \
  -L"$ffi/lib" -ltvm_ffi -ldl -pthread
"${compiler}gcc" -std=gnu11 -o "$out/run_model" examples/c/run_model.c -Iinclude -I"$ffi/include" \
  -L"$out/lib" -L"$ffi/lib" -ltvm_runtime -ltvm_ffi -lstdc++
PYTHONPATH=python "$python" - "$out/model.so" <<'PYTHON' >"$out/expected"
import sys
import numpy as np
import tvm
from tvm import relax

x = relax.Var("x", relax.TensorStructInfo((tvm.tir.Var("n", "int64"), 3, 16, 16), "float32"))
rng = np.random.default_rng(0)
kernel = rng.standard_normal((8, 3, 3, 3), "float32")
weight = rng.standard_normal((8, 10), "float32")
bb = relax.BlockBuilder()
with bb.function("main", [x]):
    with bb.dataflow():
        y = bb.emit(relax.op.nn.relu(relax.op.nn.conv2d(x, relax.const(kernel), padding=1)))
        y = bb.emit(relax.op.matmul(relax.op.mean(y, (2, 3)), relax.const(weight)))
        out = bb.emit_output(relax.op.nn.softmax(y))
    bb.emit_func_output(out)
target = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -num-cores=2"
tvm.compile(bb.get(), target).export_library(sys.argv[1])
here = relax.VirtualMachine(tvm.compile(bb.get(), "llvm"), tvm.cpu())
print(here["main"](np.ones((1, 3, 16, 16), "float32")).numpy()[0, 0])
PYTHON
qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=$out/lib:$ffi/lib" "$out/run_model" "$out/model.so" |
  tee "$out/got"
"$python" - "$out" <<'PYTHON'
import sys
got = float(open(sys.argv[1] + "/got").read().split("first element ")[1])
expected = float(open(sys.argv[1] + "/expected").read())
assert abs(got - expected) <= 1e-4 * abs(expected) + 1e-6, (got, expected)
print(f"as on this machine: {expected}")
PYTHON
