# SPDX-License-Identifier: Apache-2.0
"""The patterns of backends, by name."""

import tvm_ffi

from tvm.relax.transform import FusionPattern

_register, _remove, _with_prefix, _named = (
    tvm_ffi.get_global_func("relax.backend._" + name)
    for name in (
        "register_patterns",
        "remove_patterns",
        "get_patterns_with_prefix",
        "get_pattern",
    )
)


def register_patterns(patterns):
    """Registers FusionPatterns, or tuples (name, pattern, annotations, check): later ones are
    matched before earlier ones, and take the place of those of the same name."""
    _register([p if isinstance(p, FusionPattern) else FusionPattern(*p) for p in patterns])


def remove_patterns(names):
    """Forgets the patterns of these names."""
    _remove(names)


def get_patterns_with_prefix(prefix):
    """The patterns whose names begin so, those to be matched first first."""
    return list(_with_prefix(prefix))


def get_pattern(name):
    """The pattern of that name, or None."""
    return _named(name)
