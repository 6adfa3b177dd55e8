# SPDX-License-Identifier: Apache-2.0
"""Options of the TVMScript printer."""

import tvm_ffi

from tvm._derive import Node, construct, register_node
from tvm._scriptable import Scriptable

_print = tvm_ffi.get_global_func("script._print")


@register_node("script.PrinterConfig")
class PrinterConfig(Node):
    def __init__(
        self,
        *,
        name=None,
        show_meta=False,
        ir_prefix="I",
        tir_prefix="T",
        relax_prefix="R",
        module_alias="cls",
        buffer_dtype="float32",
        int_dtype="int32",
        float_dtype="void",
        verbose_expr=False,
        indent_spaces=4,
        print_line_numbers=False,
        num_context_lines=None,
        syntax_sugar=True,
        show_object_address=False,
        show_all_struct_info=True,
        path_to_underline=None,
        path_to_annotate=None,
        obj_to_underline=None,
        obj_to_annotate=None,
    ):
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
