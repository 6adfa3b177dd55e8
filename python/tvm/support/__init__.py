# SPDX-License-Identifier: Apache-2.0
"""What this build is and where it runs: `tvm.support.describe()`, or `python -m tvm.support`."""

import tvm_ffi

from .._derive import fill
from .libinfo import libinfo

__getattr__, __dir__ = fill(__name__)

_PACKAGES = (
    *("apache-tvm-ffi", "numpy", "ml_dtypes", "cloudpickle"),
    *("torch", "onnx", "onnxruntime", "xgboost", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"),
)


def _facts():
    import os
    import platform
    import sys
    from importlib import metadata

    from . import host

    def version(package):
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return None

    return {
        "build": dict(sorted(libinfo().items())),
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
            "package": os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
        },
        "packages": {p: v for p in _PACKAGES if (v := version(p))},
        "host": host.facts(),
        "cache": dict(tvm_ffi.get_global_func("runtime.cache_info")()),
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith("TVM_")},
    }


def describe(*, as_json=False):
    """Prints what a bug report should say about this build, its Python and the machine.

    `as_json=True` prints everything (all CPU features too) as one JSON object.
    """
    facts = _facts()
    if as_json:
        import json

        print(json.dumps(facts, indent=2))
        return
    from . import host

    facts["host"]["cpu_features"] = host.vector_features(facts["host"]["cpu_features"])
    for section, entries in filter(lambda item: item[1], facts.items()):
        print(section)
        for name, value in entries.items():
            value = " ".join(value) if isinstance(value, list) else value
            print(f"  {name.lower().replace('_', ' ')}: {'-' if value in ('', None) else value}")
