# SPDX-License-Identifier: Apache-2.0
"""What all importers share."""

import tvm_ffi

_detach_params = tvm_ffi.get_global_func("relax.frontend._detach_params")


def detach_params(mod):
    """The module without the parameters that an importer kept at its functions, and these: a list
    of tensors for each function that had some, in the order of its arguments."""
    detached, params = _detach_params(mod)
    return detached, {str(name): list(tensors) for name, tensors in params.items()}
