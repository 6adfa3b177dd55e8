# SPDX-License-Identifier: Apache-2.0
"""Options of the TVMScript printer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm_ffi

from tvm._aliases import spelled
from tvm._derive import Node, construct, register_node
from tvm._scriptable import Scriptable

_print = tvm_ffi.get_global_func("script._print")


@register_node("script.PrinterConfig")
class PrinterConfig(Node):
    @spelled
    def __init__(
        self,
        *,
        name: str | None = None,
        show_meta: bool = False,
        ir_prefix: str = "I",
        tir_prefix: str = "T",
        relax_prefix: str = "R",
        module_alias: str = "cls",
        buffer_dtype: str = "float32",
        int_dtype: str = "int32",
        float_dtype: str = "void",
        verbose_expr: bool = False,
        indent_spaces: int = 4,
        print_line_numbers: bool = False,
        num_context_lines: int | None = None,
        syntax_sugar: bool = True,
        show_object_address: bool = False,
        show_all_struct_info: bool = True,
        path_to_underline: Sequence[Any] | None = None,
        path_to_annotate: Mapping[Any, str] | None = None,
        obj_to_underline: Sequence[Any] | None = None,
        obj_to_annotate: Mapping[Any, str] | None = None,
    ) -> None:
        construct(
            self,
            [] if name is None else [name],
            show_meta,
            ir_prefix,
            tir_prefix,
            relax_prefix,
            module_alias,
            buffer_dtype,
            int_dtype,
            "" if float_dtype == "void" else float_dtype,
            verbose_expr,
            indent_spaces,
            print_line_numbers,
            -1 if num_context_lines is None else num_context_lines,
            syntax_sugar,
            show_object_address,
            show_all_struct_info,
            path_to_underline or [],
            path_to_annotate or {},
            obj_to_underline or [],
            obj_to_annotate or {},
        )


__all__ = ["PrinterConfig", "Scriptable"]
