// SPDX-License-Identifier: Apache-2.0
// The graphs of an archive: nodes, arguments, types and sizes.
#pragma once
#include "archive_json.h"
#include "program.h"

namespace tvm::frontend::torch {

/// The dtype that an archive has as a number.
const char* TypeName(int64_t code);
/// An integer, or the text of a symbolic expression.
Any SizeOf(const Any& value);

class GraphReader {
 public:
  explicit GraphReader(const json::Object& graph);
  /// What is known of the value of that name.
  Any MetaOf(const String& name) const;
  Any Argument(const Any& value) const;
  Array<GraphNode> Nodes() const;
  Array<Any> Outputs() const;

 private:
  void ReadNode(const json::Object& node, Array<GraphNode>* nodes) const;
  json::Object tensors_, graph_;
};

}  // namespace tvm::frontend::torch
