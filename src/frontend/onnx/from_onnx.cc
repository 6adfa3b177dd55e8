// SPDX-License-Identifier: Apache-2.0
// The doors of the ONNX importer.
#include "frontend/onnx/importer.h"
#include "tvm/ir/stack.h"

namespace tvm::frontend {
namespace {
template <class Texts>
Array<String> AsStrings(const Texts& texts) {
  Array<String> strings;
  for (const auto& text : texts) strings.push_back(String(std::string(text)));
  return strings;
}
using ModelPtr = std::shared_ptr<const onnx::Model>;
std::string Inspect(const ModelPtr& model) { return onnx::InspectModel(*model); }
/// What f makes of a file; its errors name it.
template <class F>
auto OfFile(const std::string& path, const F& f) {
  ModelPtr model;
  try {
    model = onnx::ReadModelFile(path);
    return f(model);
  } catch (const ffi::Error& error) {
    std::string message = error.message();
    if (message.find(path) != std::string::npos) throw;
    const char* advice =
        model ? "" : ": is it a whole ONNX model? (PyTorch's archives end in .pt2)";
    throw ffi::Error(error.kind(), message + "\n  in " + path + advice, error.backtrace());
  }
}
OnnxModule ImportModel(const ModelPtr& model, const OnnxOptions& options) {
  return OnDeepStack([&] {
    onnx::Importer importer(model, options);
    IRModule mod = importer.Run();
    return OnnxModule{mod, importer.warnings};
  });
}
/// A model is a path, or bytes.
using Source = Variant<ffi::Bytes, String>;
template <class F>
auto OfSource(const Source& source, const F& f) {
  if (auto path = source.as<String>()) return OfFile(*path, f);
  auto bytes = source.get<ffi::Bytes>();
  return f(onnx::ReadModel(OwnBytes(std::string(bytes.data(), bytes.size()))));
}
Array<Any> FromOnnx(const Source& model, Map<String, Array<Any>> shape_dict,
                    Map<String, DataType> dtype_dict, Optional<int64_t> opset,
                    bool keep_params_in_input, bool sanitize_input_names,
                    Optional<int64_t> memory_limit) {
  OnnxOptions options{shape_dict, dtype_dict, opset ? std::optional(*opset) : std::nullopt,
                      keep_params_in_input, sanitize_input_names};
  if (memory_limit) options.memory_limit = *memory_limit;
  OnnxModule imported =
      OfSource(model, [&](const ModelPtr& read) { return ImportModel(read, options); });
  return {imported.mod, AsStrings(imported.warnings)};
}
}  // namespace

OnnxModule ImportOnnx(const std::string& path, const OnnxOptions& options) {
  return OfFile(path, [&](const ModelPtr& model) { return ImportModel(model, options); });
}
std::string InspectOnnx(const std::string& path) { return OfFile(path, Inspect); }
OnnxModule ImportOnnxBytes(std::string bytes, const OnnxOptions& options) {
  return ImportModel(onnx::ReadModel(OwnBytes(std::move(bytes))), options);
}

TVM_REGISTER() {
  Def("relax.frontend.onnx._from_onnx", &FromOnnx,
      "[module, warnings] of a model: a path, or the bytes of one.", Arg("model"),
      Arg("shape_dict"), Arg("dtype_dict"), Arg("opset"), Arg("keep_params_in_input"),
      Arg("sanitize_input_names"), Arg("memory_limit", nullptr));
  Def(
      "relax.frontend.onnx._inspect", [](Source model) { return String(OfSource(model, Inspect)); },
      "What a model contains.", Arg("model"));
  Def(
      "relax.frontend.onnx.supported_operators",
      [](String domain) { return AsStrings(onnx::ListConverters(View(domain))); },
      "The names of the operators of a domain that can be imported.", Arg("domain", String("")));
}

}  // namespace tvm::frontend
