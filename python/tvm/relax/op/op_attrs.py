# SPDX-License-Identifier: Apache-2.0
"""The classes of operators' attributes, derived from their definitions."""

import tvm_ffi
from tvm._aliases import no_attribute
from tvm._derive import node_class

_PREFIX = "relax.attrs."


def __getattr__(name):
    cls = node_class(_PREFIX + name, __name__) if name[:1].isupper() else None
    if cls is None:
        raise no_attribute(__name__, name, __dir__)
    globals()[name] = cls
    return cls


def __dir__():
    keys = map(str, tvm_ffi.registry.get_registered_type_keys())
    return sorted({*globals(), *(k[len(_PREFIX) :] for k in keys if k.startswith(_PREFIX))})
