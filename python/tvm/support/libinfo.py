# SPDX-License-Identifier: Apache-2.0
"""What this build is."""

import tvm_ffi


def libinfo():
    """Facts about this build, by name: version, commit, compiler, features (ON or OFF), LLVM."""
    facts = tvm_ffi.get_global_func("support.libinfo")()
    return {str(name): str(value) for name, value in facts.items()}
