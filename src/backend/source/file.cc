// SPDX-License-Identifier: Apache-2.0
// The names at the top level of a file, and declarations of functions from elsewhere.
#include "backend/source/file.h"

#include "tvm/expr/substitute.h"
#include "tvm/ir/source.h"

namespace tvm::codegen::source {

FileWriter::FileWriter(std::string language, const std::vector<HelperRow>& helpers,
                       std::string inline_function)
    : language_(std::move(language)),
      inline_function_(std::move(inline_function)),
      own_helpers_(helpers),
      reserved_(ReservedNames().begin(), ReservedNames().end()) {}

void FileWriter::Unsupported(const std::string& what, const Optional<Span>& span) const {
  TVM_FFI_THROW(NotImplementedError) << ShowSpan(span) << language_ << " code generation: " << what;
  TVM_FFI_UNREACHABLE();
}
void FileWriter::ReserveExterns(const Stmt& body) {
  PostOrderVisit(body, [&](const ObjectRef& node) {
    auto* call = node.as<CallObj>();
    if (!call || !call->op.as<OpObj>() || call->args.empty()) return;
    if (!call->Is(builtin::call_extern()) && !call->Is(builtin::call_pure_extern())) return;
    if (auto* name = call->args[0].as<StringImmObj>()) Reserve(std::string(name->value));
  });
}
std::string FileWriter::UniqueGlobal(const std::string& name) {
  std::string unique = name;
  for (int i = 1; !globals_.insert(unique).second || reserved_.count(unique); ++i)
    unique = name + std::to_string(i);
  return unique;
}
void FileWriter::DeclareExtern(const std::string& name, const std::string& result,
                               const std::vector<std::string>& params) {
  std::string type = result + " " + name + "(" + (params.empty() ? "void" : Joined(params)) + ")";
  auto [it, is_new] = extern_types_.emplace(name, type);
  if (!is_new && it->second != type) {
    Unsupported("expected all uses of the external function " + name +
                " to have the same types of arguments and result");
  }
  if (is_new) extern_text_ += "extern " + type + ";\n";
}

}  // namespace tvm::codegen::source
