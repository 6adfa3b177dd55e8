# SPDX-License-Identifier: Apache-2.0
"""Maps between the indices of two layouts of a buffer."""

import inspect

from tvm._derive import Node, construct, register_node
from tvm.ir import Array

from .expr import Var, convert


def positional(mapping_function):
    """The function as one of positional arguments: `lambda i, *j, k: …` takes the first, those in
    the middle and the last."""
    code = getattr(mapping_function, "__code__", None)
    if code is None or not code.co_kwonlyargcount:
        return mapping_function
    last = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]

    def call(*args):
        if len(args) < len(last):
            raise ValueError(f"index_map: expected at least {len(last)} indices, got {len(args)}")
        first, named = args[: -len(last)], args[-len(last) :]
        return mapping_function(*first, **dict(zip(last, named, strict=True)))

    return call


def without_separators(mapping_function, separators):
    """The function without the AXIS_SEPARATORs it gives; their positions go into the list."""

    def call(*args, **named):
        given, final = mapping_function(*args, **named), []
        if not isinstance(given, (list, tuple, Array)):
            return [given]
        for value in given:
            if isinstance(value, str) and value == IndexMap.AXIS_SEPARATOR:
                separators.append(len(final))
            else:
                final.append(value)
        return final

    return call


@register_node("tir.IndexMap")
class IndexMap(Node):
    # Between two final indices: flattening starts a new physical dimension there.
    AXIS_SEPARATOR = "axis_separator"

    def __init__(self, initial_indices, final_indices, inverse_index_map=None):
        construct(self, initial_indices, [convert(e) for e in final_indices], inverse_index_map)

    @staticmethod
    def from_func(mapping_function, ndim=None, inverse_index_map=None, *, index_dtype="int64"):
        """The map that a function gives: `IndexMap.from_func(lambda i, j: [j, i])`. A function with
        `*args` needs `ndim`."""
        index_map, separators = IndexMap.from_func_with_separators(
            mapping_function, ndim, inverse_index_map, index_dtype=index_dtype
        )
        if separators:
            raise ValueError(
                "IndexMap.from_func: expected no AXIS_SEPARATOR, got one; "
                "write IndexMap.from_func_with_separators"
            )
        return index_map

    @staticmethod
    def from_func_with_separators(
        mapping_function, ndim=None, inverse_index_map=None, *, index_dtype="int64"
    ):
        """(map, positions of the axis separators) of a function that may give AXIS_SEPARATOR."""
        params = inspect.signature(mapping_function).parameters.values()
        kinds = inspect.Parameter
        before = (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        names = [p.name for p in params if p.kind in before]
        rest = [p.name for p in params if p.kind == kinds.VAR_POSITIONAL]
        last = [p.name for p in params if p.kind == kinds.KEYWORD_ONLY]  # `lambda i, *j, k: …`
        if rest and ndim is None:
            raise ValueError(
                "IndexMap.from_func: expected ndim for a function with *args, got none"
            )
        count = len(names) + len(last)
        if ndim is not None and (count > ndim if rest else count != ndim):
            raise ValueError(
                f"IndexMap.from_func: expected a function of {ndim} indices, got {count}"
            )
        if rest:
            names += [f"{rest[0]}_{i}" for i in range(ndim - count)]
        initial = [Var(name, index_dtype) for name in names + last]
        named = dict(zip(last, initial[len(names) :], strict=True))
        separators = []
        call = without_separators(mapping_function, separators)
        final = call(*initial[: len(names)], **named)
        if inverse_index_map is not None and not isinstance(inverse_index_map, IndexMap):
            inverse_index_map = IndexMap.from_func(
                inverse_index_map, ndim=len(final), index_dtype=index_dtype
            )
        return IndexMap(initial, final, inverse_index_map), separators
