// SPDX-License-Identifier: Apache-2.0
// What an archive contains, as text.
#include <map>
#include <sstream>

#include "archive.h"
#include "converter.h"
#include "importer.h"
#include "runtime/host_tensor.h"
#include "tvm/frontend/torch.h"

namespace tvm::frontend::torch {
namespace {
struct Uses {
  int64_t count = 0;
  std::string nodes;  // the first few that have no converter
};
/// How often operators are applied, in the branches and bodies of control flow as well.
void CountOperators(const Program& program, std::map<std::string, Uses>* operators) {
  constexpr int64_t kNamed = 3;
  for (const GraphNode& node : program->nodes) {
    Uses& uses = (*operators)[std::string(node->target)];
    if (++uses.count <= kNamed) uses.nodes += (uses.nodes.empty() ? "" : ", ") + node->name;
    if (uses.count == kNamed + 1) uses.nodes += ", …";
    for (const Any& arg : node->args) {
      if (auto* inner = arg.as<ProgramObj>())
        CountOperators(ffi::GetRef<Program>(inner), operators);
    }
  }
}
std::string InspectProgram(const Program& program) {
  std::ostringstream out;
  uint64_t bytes = 0, weights = 0;
  std::unordered_map<std::string, Any> metas;
  for (const ProgramInput& input : program->inputs) {
    metas[input->name] = input->meta;
    if (input->value == nullptr) {
      out << "input  " << input->name << ": " << TextOfMeta(input->meta) << "\n";
    } else if (auto tensor = input->value.as<runtime::Tensor>()) {
      bytes += runtime::DataSize(tensor->shape(), tensor->dtype());
      ++weights;
    }
  }
  for (const GraphNode& node : program->nodes) metas[node->name] = node->meta;
  for (const Any& output : ListOf(program->outputs).value_or(Array<Any>())) {
    auto* ref = output.as<ValueRefObj>();
    if (ref) out << "output " << ref->name << ": " << TextOfMeta(metas[ref->name]) << "\n";
  }
  for (const auto& [name, value] : program->mutations) out << "changes " << name << "\n";
  for (const auto& [name, range] : program->ranges) {
    auto most = range[1].try_cast<int64_t>();
    out << "dimension " << name << ": from " << range[0].cast<int64_t>();
    out << (most ? " to " + std::to_string(*most) : " on") << "\n";
  }
  out << weights << " weights, " << bytes << " bytes";
  std::map<std::string, Uses> operators;
  CountOperators(program, &operators);
  for (const auto& [target, uses] : operators) {
    out << "\n" << uses.count << " x " << target;
    if (!FindConverter(target)) out << " (not supported: nodes " << uses.nodes << ")";
  }
  return out.str();
}

TVM_REGISTER() {
  Def(
      "relax.frontend.torch._inspect",
      [](Variant<Program, String> program) {
        if (auto path = program.as<String>()) return String(frontend::InspectTorchArchive(*path));
        return String(InspectProgram(program.get<Program>()));
      },
      "The text of inspect.", Arg("program"));
}
}  // namespace
}  // namespace tvm::frontend::torch

namespace tvm::frontend {

std::string InspectTorchArchive(const std::string& path) {
  return torch::InspectProgram(torch::ReadArchive(path));
}

}  // namespace tvm::frontend
