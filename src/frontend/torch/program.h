// SPDX-License-Identifier: Apache-2.0
// A PyTorch program as it is imported: what a live graph and an archive have in common.
//
// Values of arguments are expressions of the Python kind: None, bool, int, float, text (dtypes,
// devices and layouts are texts), lists of these, ValueRef for the result of another node and
// Program for the branch or body of control flow. Sizes are integers, or texts of symbolic
// expressions as sympy's srepr writes them: "Add(Symbol('s0'), Integer(1))".
#pragma once
#include <optional>

#include "tvm/ir/node.h"

namespace tvm::frontend::torch {

/// The result of the node, or the input, of that name.
struct ValueRefObj : NodeObj {
  String name;
  static void Fields(auto&& def) { def("name", &ValueRefObj::name); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.frontend.torch.ValueRef", ValueRefObj, NodeObj);
};
TVM_NODE_REF(ValueRef, ObjectRef, ValueRefObj);

/// A tensor's sizes and type.
struct TensorMetaObj : NodeObj {
  Array<Any> sizes;  // int, the text of a symbolic one, or an expression of our own
  String dtype;
  static void Fields(auto&& def) {
    def("sizes", &TensorMetaObj::sizes);
    def("dtype", &TensorMetaObj::dtype);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.frontend.torch.TensorMeta", TensorMetaObj, NodeObj);
};
TVM_NODE_REF(TensorMeta, ObjectRef, TensorMetaObj);

/// A symbolic scalar: its expression and "int", "float" or "bool".
struct ScalarMetaObj : NodeObj {
  String expr, kind;
  static void Fields(auto&& def) {
    def("expr", &ScalarMetaObj::expr);
    def("kind", &ScalarMetaObj::kind);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.frontend.torch.ScalarMeta", ScalarMetaObj, NodeObj);
};
TVM_NODE_REF(ScalarMeta, ObjectRef, ScalarMetaObj);

/// name = target(*args, **kwargs). `meta` says what is known of the result: TensorMeta, ScalarMeta,
/// a list of them, or None. `convert`, when given, is called in place of a converter.
struct GraphNodeObj : NodeObj {
  String name, target;
  Array<Any> args;
  Map<String, Any> kwargs;
  Any meta;
  String source;  // the line of the user's program
  Optional<Function> convert;
  static void Fields(auto&& def) {
    def("name", &GraphNodeObj::name);
    def("target", &GraphNodeObj::target);
    def("args", &GraphNodeObj::args);
    def("kwargs", &GraphNodeObj::kwargs, Default(Map<String, Any>()));
    def("meta", &GraphNodeObj::meta, Default(nullptr));
    def("source", &GraphNodeObj::source, Default(String()));
    def("convert", &GraphNodeObj::convert, Default(nullptr));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.frontend.torch.GraphNode", GraphNodeObj, NodeObj);
};
TVM_NODE_REF(GraphNode, ObjectRef, GraphNodeObj);

/// An input: "user" (a parameter of the function, or a constant when `value` is a number or None),
/// "parameter" or "constant" (buffers and lifted tensors), whose value is a tensor.
struct ProgramInputObj : NodeObj {
  String name, kind;
  Any meta, value;
  static void Fields(auto&& def) {
    def("name", &ProgramInputObj::name);
    def("kind", &ProgramInputObj::kind);
    def("meta", &ProgramInputObj::meta);
    def("value", &ProgramInputObj::value, Default(nullptr));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.frontend.torch.ProgramInput", ProgramInputObj, NodeObj);
};
TVM_NODE_REF(ProgramInput, ObjectRef, ProgramInputObj);

/// `ranges` has (lower, upper or None) by the name of a symbol, `mutations` the new values of
/// inputs of a functional program; changes in place are seen in its nodes.
struct ProgramObj : NodeObj {
  Array<ProgramInput> inputs;
  Array<GraphNode> nodes;
  Any outputs;  // a list, or what a traced graph returns
  Map<String, Array<Any>> ranges;
  String default_dtype = "float32";
  Map<String, Any> mutations;
  static void Fields(auto&& def) {
    def("inputs", &ProgramObj::inputs);
    def("nodes", &ProgramObj::nodes);
    def("outputs", &ProgramObj::outputs);
    def("ranges", &ProgramObj::ranges, Default(Map<String, Array<Any>>()));
    def("default_dtype", &ProgramObj::default_dtype, Default(String("float32")));
    def("mutations", &ProgramObj::mutations, Default(Map<String, Any>()));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.frontend.torch.Program", ProgramObj, NodeObj);
};
TVM_NODE_REF(Program, ObjectRef, ProgramObj);

/// The items of a list; nothing for other values. None would be a null list otherwise.
inline std::optional<Array<Any>> ListOf(const Any& value) {
  if (value == nullptr) return std::nullopt;
  return value.try_cast<Array<Any>>();
}

}  // namespace tvm::frontend::torch
