# SPDX-License-Identifier: Apache-2.0
"""Which kinds of nodes random programs are made of, and which of them are too rare."""

import tvm_ffi
from tvm import tir  # noqa: F401  its registration

SHARE = 0.01  # of the programs have every kind
# Statements and expressions that are no part of a function's body.
_ELSEWHERE = {"tir.Stmt", "tir.ProducerLoad"}
_OTHERS = {
    "tir.Buffer", "tir.IterVar", "tir.BufferRegion", "tir.MatchBufferRegion", "tir.CommReducer",
    "tir.PrimFunc",
}  # fmt: skip


def _kinds():
    found = set(_OTHERS)
    for key in map(str, tvm_ffi.registry.get_registered_type_keys()):
        kind = tvm_ffi.core._lookup_or_register_type_info_from_type_key(key)
        if key.startswith("tir.") and key.count(".") == 1 and _is_code(kind.parent_type_info):
            found.add(key)
    return found - _ELSEWHERE


def _is_code(kind):
    """Whether a type is, or derives from, a statement or an expression."""
    return kind is not None and (
        kind.type_key in ("tir.Stmt", "ir.PrimExpr") or _is_code(kind.parent_type_info)
    )


KINDS = _kinds()


def rare(shares):
    """The kinds that fewer programs have than should; `shares` maps a kind to its share."""
    return sorted(k for k in KINDS if shares.get(k, 0) < SHARE)
