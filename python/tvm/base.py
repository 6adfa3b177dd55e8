# SPDX-License-Identifier: Apache-2.0
"""Names that scripts import from `tvm.base`."""

# What scripts catch: errors of every type, as most are built-in ones. tvm.error.TVMError is a class
# of its own.
TVMError = Exception
PY3STATEMENT = "The minimal Python requirement is Python 3.9"


def py_str(x):
    """Bytes as text."""
    return x.decode("utf-8")


__all__ = ["PY3STATEMENT", "TVMError", "py_str"]
