// SPDX-License-Identifier: Apache-2.0
// Reads an ONNX model from its bytes.
#include "frontend/onnx/model.h"

#include <filesystem>

#include "frontend/onnx/wire.h"

namespace tvm::frontend::onnx {
namespace {
// Deeper than any model; nested types and graphs are destroyed by recursion.
constexpr int kMaxDepth = 200;

void CheckDepth(int depth) {
  if (depth > kMaxDepth)
    TVM_FFI_THROW(RecursionError) << "onnx: expected graphs and types nested at most " << kMaxDepth
                                  << " deep";
}
std::pair<Name, Name> ReadEntry(std::string_view bytes) {
  std::pair<Name, Name> entry;
  for (Wire w(bytes, "StringStringEntryProto"); w.Next();) {
    switch (w.field()) {
      case 1:
        entry.first = w.Text();
        break;
      case 2:
        entry.second = w.Text();
        break;
      default:
        w.Skip();
    }
  }
  return entry;
}
TensorProto ReadTensor(std::string_view bytes) {
  TensorProto tensor;
  for (Wire w(bytes, "TensorProto"); w.Next();) {
    switch (w.field()) {
      case 1:
        w.Ints(&tensor.dims);
        break;
      case 2:
        tensor.data_type = w.Int();
        break;
      case 3:
        w.Fail("a whole tensor", "a segment of one");
      case 4:
        w.FixedBytes<float>(&tensor.floats);
        break;
      case 5:
      case 7:
      case 11:
        w.Ints(&tensor.integers);
        break;
      case 6:
        tensor.strings.push_back(w.Text());
        break;
      case 8:
        tensor.name = w.Text();
        break;
      case 9:
        tensor.raw = w.Text();
        break;
      case 10:
        w.FixedBytes<double>(&tensor.floats);
        break;
      case 13:
        tensor.external.push_back(ReadEntry(w.Text()));
        break;
      case 14:
        tensor.is_external = w.Int() == 1;
        break;
      default:
        w.Skip();
    }
  }
  return tensor;
}
SparseTensorProto ReadSparse(std::string_view bytes) {
  SparseTensorProto sparse;
  for (Wire w(bytes, "SparseTensorProto"); w.Next();) {
    switch (w.field()) {
      case 1:
        sparse.values = ReadTensor(w.Text());
        break;
      case 2:
        sparse.indices = ReadTensor(w.Text());
        break;
      case 3:
        w.Ints(&sparse.dims);
        break;
      default:
        w.Skip();
    }
  }
  return sparse;
}
Dimension ReadDimension(std::string_view bytes) {
  Dimension dim;
  for (Wire w(bytes, "TensorShapeProto.Dimension"); w.Next();) {
    switch (w.field()) {
      case 1:
        dim.value = w.Int();
        break;
      case 2:
        dim.param = w.Text();
        break;
      default:
        w.Skip();
    }
  }
  return dim;
}
TypeProto ReadType(std::string_view bytes, int depth) {
  CheckDepth(depth);
  TypeProto type;
  auto read_shape = [&](std::string_view shape) {
    type.shape.emplace();
    for (Wire w(shape, "TensorShapeProto"); w.Next();) {
      if (w.field() == 1) {
        type.shape->push_back(ReadDimension(w.Text()));
      } else {
        w.Skip();
      }
    }
  };
  for (Wire w(bytes, "TypeProto"); w.Next();) {
    switch (w.field()) {
      case 1:
        type.kind = TypeProto::kTensor;
        for (Wire t(w.Text(), "TypeProto.Tensor"); t.Next();) {
          switch (t.field()) {
            case 1:
              type.data_type = t.Int();
              break;
            case 2:
              read_shape(t.Text());
              break;
            default:
              t.Skip();
          }
        }
        break;
      case 4:
      case 9:
        type.kind = w.field() == 4 ? TypeProto::kSequence : TypeProto::kOptional;
        for (Wire t(w.Text(), "TypeProto.Sequence"); t.Next();) {
          if (t.field() == 1) {
            type.element = std::make_shared<TypeProto>(ReadType(t.Text(), depth + 1));
          } else {
            t.Skip();
          }
        }
        break;
      case 5:
        type.kind = TypeProto::kMap;
        for (Wire t(w.Text(), "TypeProto.Map"); t.Next();) {
          switch (t.field()) {
            case 1:
              type.key_type = t.Int();
              break;
            case 2:
              type.element = std::make_shared<TypeProto>(ReadType(t.Text(), depth + 1));
              break;
            default:
              t.Skip();
          }
        }
        break;
      case 7:
      case 8:
        type.kind = TypeProto::kOther;
        [[fallthrough]];
      default:
        w.Skip();
    }
  }
  return type;
}
ValueInfo ReadValue(std::string_view bytes) {
  ValueInfo value;
  for (Wire w(bytes, "ValueInfoProto"); w.Next();) {
    switch (w.field()) {
      case 1:
        value.name = w.Text();
        break;
      case 2:
        value.type = ReadType(w.Text(), 0);
        break;
      default:
        w.Skip();
    }
  }
  return value;
}

int64_t TypeOfField(uint32_t field) {
  switch (field) {
    case 2:
      return Attribute::kFloat;
    case 3:
      return Attribute::kInt;
    case 4:
      return Attribute::kString;
    case 5:
      return Attribute::kTensor;
    case 6:
      return Attribute::kGraph;
    case 7:
      return Attribute::kFloats;
    case 8:
      return Attribute::kInts;
    case 9:
      return Attribute::kStrings;
    case 14:
      return Attribute::kTypeProto;
    case 22:
      return Attribute::kSparse;
    default:
      return Attribute::kNone;
  }
}
Graph ReadGraph(std::string_view bytes, int depth);
Attribute ReadAttribute(std::string_view bytes, int depth) {
  Attribute attr;
  std::string floats;
  int64_t implied = Attribute::kNone;  // old models have no `type`: the field says it
  for (Wire w(bytes, "AttributeProto"); w.Next();) {
    if (int64_t type = TypeOfField(w.field())) implied = type;
    switch (w.field()) {
      case 1:
        attr.name = w.Text();
        break;
      case 2:
        attr.f = w.Float();
        break;
      case 3:
        attr.i = w.Int();
        break;
      case 4:
        attr.s = w.Text();
        break;
      case 5:
        attr.tensor = std::make_shared<TensorProto>(ReadTensor(w.Text()));
        break;
      case 6:
        attr.graph = std::make_shared<Graph>(ReadGraph(w.Text(), depth + 1));
        break;
      case 7:
        w.FixedBytes<float>(&floats);
        break;
      case 8:
        w.Ints(&attr.ints);
        break;
      case 9:
        attr.strings.push_back(w.Text());
        break;
      case 14:
        attr.type_proto = std::make_shared<TypeProto>(ReadType(w.Text(), 0));
        break;
      case 20:
        attr.type = w.Int();
        break;
      case 21:
        attr.reference = w.Text();
        break;
      case 22:
        attr.sparse = std::make_shared<SparseTensorProto>(ReadSparse(w.Text()));
        break;
      default:
        w.Skip();
    }
  }
  attr.floats.resize(floats.size() / sizeof(float));
  if (!attr.floats.empty())
    std::memcpy(attr.floats.data(), floats.data(), attr.floats.size() * sizeof(float));
  if (attr.type == Attribute::kNone) attr.type = implied;
  return attr;
}
NodeProto ReadNode(std::string_view bytes, int depth) {
  NodeProto node;
  for (Wire w(bytes, "NodeProto"); w.Next();) {
    switch (w.field()) {
      case 1:
        node.inputs.push_back(w.Text());
        break;
      case 2:
        node.outputs.push_back(w.Text());
        break;
      case 3:
        node.name = w.Text();
        break;
      case 4:
        node.op_type = w.Text();
        break;
      case 5:
        node.attributes.push_back(ReadAttribute(w.Text(), depth));
        break;
      case 7:
        node.domain = w.Text();
        break;
      case 8:
        node.overload = w.Text();
        break;
      default:
        w.Skip();
    }
  }
  if (node.domain == "ai.onnx") node.domain = "";
  return node;
}
Graph ReadGraph(std::string_view bytes, int depth) {
  CheckDepth(depth);
  Graph graph;
  for (Wire w(bytes, "GraphProto"); w.Next();) {
    switch (w.field()) {
      case 1:
        graph.nodes.push_back(ReadNode(w.Text(), depth));
        break;
      case 2:
        graph.name = w.Text();
        break;
      case 5:
        graph.initializers.push_back(ReadTensor(w.Text()));
        break;
      case 11:
        graph.inputs.push_back(ReadValue(w.Text()));
        break;
      case 12:
        graph.outputs.push_back(ReadValue(w.Text()));
        break;
      case 13:
        graph.values.push_back(ReadValue(w.Text()));
        break;
      case 15:
        graph.sparse_initializers.push_back(ReadSparse(w.Text()));
        break;
      default:
        w.Skip();
    }
  }
  return graph;
}
void ReadOpset(std::string_view bytes, Opsets* opsets) {
  Name domain;
  int64_t version = 0;
  for (Wire w(bytes, "OperatorSetIdProto"); w.Next();) {
    switch (w.field()) {
      case 1:
        domain = w.Text();
        break;
      case 2:
        version = w.Int();
        break;
      default:
        w.Skip();
    }
  }
  (*opsets)[domain == "ai.onnx" ? Name() : domain] = version;
}
FunctionProto ReadFunction(std::string_view bytes) {
  FunctionProto function;
  for (Wire w(bytes, "FunctionProto"); w.Next();) {
    switch (w.field()) {
      case 1:
        function.name = w.Text();
        break;
      case 4:
        function.inputs.push_back(w.Text());
        break;
      case 5:
        function.outputs.push_back(w.Text());
        break;
      case 6:
        function.attributes.push_back(w.Text());
        break;
      case 7:
        function.nodes.push_back(ReadNode(w.Text(), 0));
        break;
      case 9:
        ReadOpset(w.Text(), &function.opsets);
        break;
      case 10:
        function.domain = w.Text();
        break;
      case 11:
        function.defaults.push_back(ReadAttribute(w.Text(), 0));
        break;
      case 13:
        function.overload = w.Text();
        break;
      default:
        w.Skip();
    }
  }
  if (function.domain == "ai.onnx") function.domain = "";
  return function;
}
}  // namespace

std::shared_ptr<const Model> ReadModel(Bytes bytes, std::string path) {
  auto model = std::make_shared<Model>();
  model->bytes = std::move(bytes);
  if (!path.empty()) {
    model->folder = std::filesystem::path(path).parent_path().string();
    if (model->folder.empty()) model->folder = ".";
  }
  model->path = std::move(path);
  bool has_graph = false;
  for (Wire w(model->bytes.view, "ModelProto"); w.Next();) {
    switch (w.field()) {
      case 1:
        model->ir_version = w.Int();
        break;
      case 2:
        model->producer = w.Text();
        break;
      case 7:
        model->graph = ReadGraph(w.Text(), 0);
        has_graph = true;
        break;
      case 8:
        ReadOpset(w.Text(), &model->opsets);
        break;
      case 25:
        model->functions.push_back(ReadFunction(w.Text()));
        break;
      default:
        w.Skip();
    }
  }
  if (!has_graph) TVM_FFI_THROW(ValueError) << "onnx: expected a model with a graph, got none";
  if (model->ir_version < 3) {
    TVM_FFI_THROW(ValueError) << "onnx: expected IR version 3 or newer, got " << model->ir_version;
  }
  return model;
}
std::shared_ptr<const Model> ReadModelFile(const std::string& path) {
  return ReadModel(MapFile(path), path);
}

}  // namespace tvm::frontend::onnx
