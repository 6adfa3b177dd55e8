// SPDX-License-Identifier: Apache-2.0
// An ONNX model as it stands in its file. Names and raw data are views of the bytes it was read
// from, which the model keeps.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "frontend/mapped_file.h"
#include "tvm/runtime/data_type.h"

namespace tvm::frontend::onnx {
using Name = std::string_view;

/// TensorProto.DataType, as in the file.
enum ElementType : int { kUndefined = 0, kFloat32 = 1, kInt32 = 6, kInt64 = 7, kString = 8 };

struct TensorProto {
  Name name;
  int64_t data_type = 0;
  std::vector<int64_t> dims;
  std::optional<std::string_view> raw;  // the elements, little-endian
  std::vector<int64_t> integers;        // int32_data, int64_data, uint64_data
  std::string floats;                   // float_data, double_data: their bytes
  std::vector<std::string_view> strings;
  std::vector<std::pair<Name, Name>> external;
  bool is_external = false;
};
struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

struct Dimension {
  std::optional<int64_t> value;
  Name param;
};
struct TypeProto {
  enum Kind { kUnknown, kTensor, kSequence, kOptional, kMap, kOther } kind = kUnknown;
  int64_t data_type = 0;
  std::optional<std::vector<Dimension>> shape;
  std::shared_ptr<TypeProto> element;  // of sequences and optionals; values of maps
  int64_t key_type = 0;                // of maps
};
struct ValueInfo {
  Name name;
  TypeProto type;
};

struct Graph;
struct Attribute {
  enum Type : int64_t {
    kNone = 0,
    kFloat = 1,
    kInt = 2,
    kString = 3,
    kTensor = 4,
    kGraph = 5,
    kFloats = 6,
    kInts = 7,
    kStrings = 8,
    kTensors = 9,
    kGraphs = 10,
    kSparse = 11,
    kSparses = 12,
    kTypeProto = 13,
    kTypeProtos = 14,
  };
  Name name, reference;  // reference: the attribute of the function around it that is meant
  int64_t type = kNone;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::shared_ptr<TensorProto> tensor;
  std::shared_ptr<SparseTensorProto> sparse;
  std::shared_ptr<Graph> graph;
  std::shared_ptr<TypeProto> type_proto;
};
struct NodeProto {
  Name name, op_type, domain, overload;
  std::vector<Name> inputs, outputs;
  std::vector<Attribute> attributes;
};
struct Graph {
  Name name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<ValueInfo> inputs, outputs, values;
};
/// Domains and the versions of their operators; "ai.onnx" is "".
using Opsets = std::map<Name, int64_t>;
struct FunctionProto {
  Name name, domain, overload;
  std::vector<Name> inputs, outputs, attributes;
  std::vector<Attribute> defaults;
  std::vector<NodeProto> nodes;
  Opsets opsets;
};
struct Model {
  int64_t ir_version = 0;
  Name producer;
  Opsets opsets;
  Graph graph;
  std::vector<FunctionProto> functions;

  Bytes bytes;
  std::string path, folder;  // folder: where external data may lie; empty when it is no file
};

/// ValueError for bytes that are no model.
std::shared_ptr<const Model> ReadModel(Bytes bytes, std::string path = "");
std::shared_ptr<const Model> ReadModelFile(const std::string& path);

/// The type of elements; nothing for what is no number (strings, undefined).
std::optional<DataType> DataTypeOf(int64_t data_type);
/// The tensor: a view of the model's bytes or of external data where possible. ValueError when the
/// data does not fit the shape.
runtime::Tensor MakeTensor(const Model& model, const TensorProto& proto);
runtime::Tensor MakeDense(const Model& model, const SparseTensorProto& proto);

}  // namespace tvm::frontend::onnx
