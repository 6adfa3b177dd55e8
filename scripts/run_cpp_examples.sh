#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the C++ examples against the package installed for the given Python, and runs them with an
# empty environment, so that neither Python nor a search path can help.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
out=build/examples-cpp
package=$("$python" -c 'import importlib.util as u; print(u.find_spec("tvm").submodule_search_locations[0])')
cmake -S examples/cpp -B "$out" -G Ninja -DCMAKE_PREFIX_PATH="$package" >/dev/null
cmake --build "$out"
env -i "$out/compile" "$out/sigmoid.so"
env -i "$out/run" "$out/sigmoid.so"
if readelf -d "$out/run" "$package/lib/libtvm_runtime.so" | grep -E 'NEEDED.*(python|LLVM|libtvm\.so)'; then
  echo "expected a runtime without Python, LLVM and compiler" >&2
  exit 1
fi
