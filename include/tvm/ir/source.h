// SPDX-License-Identifier: Apache-2.0
// Where nodes come from: source names, spans and the texts they refer to.
#pragma once
#include "tvm/ir/node.h"

namespace tvm {

/// The name of a source text: a file or "<te>".
struct SourceNameObj : NodeObj {
  String name;
  static void Fields(auto&& def) { def("name", &SourceNameObj::name); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.SourceName", SourceNameObj, NodeObj);
};
struct SourceName : ObjectRef {
  explicit SourceName(String name);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(SourceName, ObjectRef, SourceNameObj);
};

/// A part of a source text; lines and columns count from 1. Equality and printing ignore spans.
struct SpanObj : NodeObj {
  SourceName source_name;
  int64_t line = 0, end_line = 0, column = 0, end_column = 0;
  static constexpr uint32_t _type_child_slots = 1;
  static void Fields(auto&& def) {
    def("source_name", &SpanObj::source_name);
    def("line", &SpanObj::line);
    def("end_line", &SpanObj::end_line);
    def("column", &SpanObj::column);
    def("end_column", &SpanObj::end_column);
  }
  TVM_FFI_DECLARE_OBJECT_INFO("ir.Span", SpanObj, NodeObj);
};
TVM_NODE_REF(Span, ObjectRef, SpanObj);

/// Several spans one node comes from; its own fields are those of the first.
struct SequentialSpanObj : SpanObj {
  Array<Span> spans;
  static void Fields(auto&& def) {
    def("spans", &SequentialSpanObj::spans);
    def("source_name", &SpanObj::source_name, Computed());
    def("line", &SpanObj::line, Computed());
    def("end_line", &SpanObj::end_line, Computed());
    def("column", &SpanObj::column, Computed());
    def("end_column", &SpanObj::end_column, Computed());
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.SequentialSpan", SequentialSpanObj, SpanObj);
};
TVM_NODE_REF(SequentialSpan, Span, SequentialSpanObj);

/// A source text.
struct SourceObj : NodeObj {
  SourceName source_name;
  String source;
  static void Fields(auto&& def) {
    def("source_name", &SourceObj::source_name);
    def("source", &SourceObj::source);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.Source", SourceObj, NodeObj);
};
TVM_NODE_REF(Source, ObjectRef, SourceObj);

/// The texts that spans refer to, by name.
struct SourceMapObj : NodeObj {
  Map<SourceName, Source> source_map;
  static void Fields(auto&& def) {
    def("source_map", &SourceMapObj::source_map, Default(Map<SourceName, Source>()));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.SourceMap", SourceMapObj, NodeObj);
};
TVM_NODE_REF(SourceMap, ObjectRef, SourceMapObj);

/// "file.py:3: " and the underlined line when its text can be found, else "".
std::string ShowSpan(const Optional<Span>& span);

}  // namespace tvm
