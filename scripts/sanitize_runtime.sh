#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the runtime alone with a sanitizer (thread, or address,undefined), and runs C and C++ programs
# with an exported model on it: one call, and two threads that share a model.
#   scripts/sanitize_runtime.sh thread .venv/bin/python
set -euo pipefail
cd "$(dirname "$0")/.."
sanitizer=$1 python=$(realpath -s "$2")
out=build-sanitized-${sanitizer//,/-}
cmake -S . -B "$out" -G Ninja -DPython_EXECUTABLE="$python" -DTVM_USE_LLVM=OFF \
  -DTVM_SANITIZE="$sanitizer" -DCMAKE_CXX_FLAGS=-Wno-tsan >/dev/null
ninja -C "$out" tvm_runtime
PYTHONPATH=python "$python" - "$out/model.so" <<'PYTHON'
import sys
import numpy as np
import tvm
from tvm import relax

x = relax.Var("x", relax.TensorStructInfo((tvm.tir.Var("n", "int64"), 64), "float32"))
weights = [np.random.default_rng(i).standard_normal((64, 64), "float32") / 8 for i in range(4)]
bb = relax.BlockBuilder()
with bb.function("main", [x]):
    with bb.dataflow():
        y = x
        for weight in weights:
            y = bb.emit(relax.op.nn.softmax(relax.op.nn.relu(relax.op.matmul(y, relax.const(weight)))))
        out = bb.emit_output(y)
    bb.emit_func_output(out)
tvm.compile(bb.get(), "llvm -num-cores=2").export_library(sys.argv[1])
PYTHON
ffi=$("$python" -c 'import pathlib, tvm_ffi; print(pathlib.Path(tvm_ffi.libinfo.find_libtvm_ffi()).parents[1])')
flags=(-Wno-tsan -Iinclude -I"$ffi/include" -fsanitize="$sanitizer" -g1 -L"$out/lib" "-Wl,-rpath,$PWD/$out/lib"
  -L"$ffi/lib" "-Wl,-rpath,$ffi/lib" -ltvm_runtime -ltvm_ffi -pthread)
cc -std=gnu11 -o "$out/run_model_c" examples/c/run_model.c "${flags[@]}"
c++ -std=c++20 -Wno-invalid-offsetof -o "$out/run_model_cc" examples/cpp/run_model.cc "${flags[@]}"
cc -std=gnu11 -o "$out/model_threads" tests/driver/model_threads.c "${flags[@]}"
for program in run_model_c run_model_cc model_threads; do
  echo "== $program"
  TSAN_OPTIONS=halt_on_error=1 ASAN_OPTIONS=detect_leaks=0 "$out/$program" "$out/model.so"
done
