// SPDX-License-Identifier: Apache-2.0
// The operators of a model, with what inspecting and errors say of them.
#pragma once
#include "frontend/onnx/importer.h"

namespace tvm::frontend::onnx {

struct Uses {
  int64_t count = 0;
  std::string nodes;             // the first few, by name
  std::optional<int64_t> opset;  // none where the model does not import the domain
};
using OperatorUses = std::map<std::pair<Name, Name>, Uses>;  // by domain and name
/// How often operators occur and where, in subgraphs and functions as well: of the nodes that
/// count.
OperatorUses CountOperators(
    const Model& model,
    const std::function<bool(const NodeProto&)>& counts = [](const NodeProto&) { return true; });

}  // namespace tvm::frontend::onnx
