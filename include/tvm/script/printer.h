// SPDX-License-Identifier: Apache-2.0
// Programs as TVMScript text.
#pragma once
#include <tvm/ffi/reflection/access_path.h>

#include "tvm/ir/node.h"

namespace tvm::script {

/// How a program is printed.
struct PrinterConfigObj : NodeObj {
  Array<String> binding_names;  // the name of the function or module, if given
  bool show_meta = false;
  String ir_prefix = "I", tir_prefix = "T", relax_prefix = "R", module_alias = "cls";
  DataType buffer_dtype = DataType::Float(32);  // left out where a buffer has it
  DataType int_dtype = DataType::Int(32);       // integers of this type print bare
  DataType float_dtype;                         // floats of this type print bare; void: none
  bool verbose_expr = false;                    // define the free variables of fragments, too
  int64_t indent_spaces = 4;
  bool print_line_numbers = false;
  int64_t num_context_lines = -1;  // round what is underlined; negative: all
  bool syntax_sugar = true;
  bool show_object_address = false, show_all_struct_info = true;
  Array<ffi::reflection::AccessPath> path_to_underline;
  Map<ffi::reflection::AccessPath, String> path_to_annotate;
  Array<ObjectRef> obj_to_underline;
  Map<ObjectRef, String> obj_to_annotate;
  static void Fields(auto&& def);
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("script.PrinterConfig", PrinterConfigObj, NodeObj);
};
TVM_NODE_REF(PrinterConfig, ObjectRef, PrinterConfigObj);

/// A function, a module, a statement, an expression or any other node as TVMScript. What has no
/// syntax refers to a metadata section.
String Print(const Any& node, const PrinterConfig& config = PrinterConfig());
/// The form for messages and Python's repr: script for what has a syntax, else class and fields.
String Repr(const Any& node);

}  // namespace tvm::script
