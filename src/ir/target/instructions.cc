// SPDX-License-Identifier: Apache-2.0
// MachineInstruction sets: which features need which, and the instructions that mathematics
// becomes.
#include "ir/target/instructions.h"

#include <algorithm>
#include <iterator>

namespace tvm {
namespace {
// clang-format off
/// Features of x86 and those they need: without one of these the feature is off. LLVM knows more;
/// this is what is known where it is not installed, and what users turn on and off.
constexpr std::pair<std::string_view, std::string_view> kNeeds[] = {
    {"sse3", "sse2"}, {"ssse3", "sse3"}, {"sse4.1", "ssse3"}, {"sse4.2", "sse4.1"},
    {"avx", "sse4.2"}, {"avx2", "avx"}, {"fma", "avx"}, {"f16c", "avx"}, {"avxvnni", "avx2"},
    {"avxvnniint8", "avx2"}, {"avx512f", "avx2"}, {"avx512f", "fma"}, {"avx512f", "f16c"},
    {"avx512cd", "avx512f"}, {"avx512dq", "avx512f"}, {"avx512bw", "avx512f"},
    {"avx512vl", "avx512f"}, {"avx512ifma", "avx512f"}, {"avx512vnni", "avx512f"},
    {"avx512vpopcntdq", "avx512f"}, {"avx512vbmi", "avx512bw"}, {"avx512vbmi2", "avx512bw"},
    {"avx512bitalg", "avx512bw"}, {"avx512bf16", "avx512bw"}, {"avx512fp16", "avx512bw"},
    {"amx-int8", "amx-tile"}, {"amx-bf16", "amx-tile"},
};
constexpr auto kBytes = MachineInstruction::Kind::kDotBytes;
constexpr auto kShorts = MachineInstruction::Kind::kDotShorts;
constexpr auto kBfloat16 = MachineInstruction::Kind::kDotBfloat16;
constexpr auto kScale = MachineInstruction::Kind::kScale;
/// Of those for the same operands the wider ones first.
constexpr MachineInstruction kInstructions[] = {
    {kBytes, "us", "avx512vnni", 32, 16, "llvm.x86.avx512.vpdpbusd.512", true},
    {kBytes, "us", "avx512vnni avx512vl", 32, 8, "llvm.x86.avx512.vpdpbusd.256", true},
    {kBytes, "us", "avx512vnni avx512vl", 32, 4, "llvm.x86.avx512.vpdpbusd.128", true},
    {kBytes, "us", "avxvnni", 32, 8, "llvm.x86.avx512.vpdpbusd.256", true},
    {kBytes, "us", "avxvnni", 32, 4, "llvm.x86.avx512.vpdpbusd.128", true},
    {kBytes, "ss", "avxvnniint8", 32, 8, "llvm.x86.avx2.vpdpbssd.256", true},
    {kBytes, "ss", "avxvnniint8", 32, 4, "llvm.x86.avx2.vpdpbssd.128", true},
    {kBytes, "uu", "avxvnniint8", 32, 8, "llvm.x86.avx2.vpdpbuud.256", true},
    {kBytes, "uu", "avxvnniint8", 32, 4, "llvm.x86.avx2.vpdpbuud.128", true},
    {kBytes, "ss", "dotprod", 32, 4, "llvm.aarch64.neon.sdot", true},
    {kBytes, "uu", "dotprod", 32, 4, "llvm.aarch64.neon.udot", true},
    {kBytes, "us", "i8mm", 32, 4, "llvm.aarch64.neon.usdot", true},
    {kShorts, "ss", "avx512bw", 32, 16, "llvm.x86.avx512.pmaddw.d.512", false},
    {kShorts, "ss", "avx2", 32, 8, "llvm.x86.avx2.pmadd.wd", false},
    {kShorts, "ss", "sse2", 32, 4, "llvm.x86.sse2.pmadd.wd", false},
    {kBfloat16, "uu", "avx512bf16", 32, 16, "llvm.x86.avx512bf16.dpbf16ps.512", true},
    {kBfloat16, "uu", "avx512bf16 avx512vl", 32, 8, "llvm.x86.avx512bf16.dpbf16ps.256", true},
    {kBfloat16, "uu", "avx512bf16 avx512vl", 32, 4, "llvm.x86.avx512bf16.dpbf16ps.128", true},
    {kScale, "f", "avx512f", 32, 16, "llvm.x86.avx512.mask.scalef.ps.512", false},
    {kScale, "f", "avx512f", 64, 8, "llvm.x86.avx512.mask.scalef.pd.512", false},
};
// clang-format on
bool HasAll(const MachineObj& machine, std::string_view features) {
  while (!features.empty()) {
    size_t end = std::min(features.find(' '), features.size());
    if (!machine.Has(features.substr(0, end))) return false;
    features.remove_prefix(std::min(end + 1, features.size()));
  }
  return true;
}
}  // namespace

bool Needs(std::string_view feature, std::string_view other) {
  return std::any_of(std::begin(kNeeds), std::end(kNeeds), [&](const auto& row) {
    return row.first == feature && (row.second == other || Needs(row.second, other));
  });
}
void Switch(std::set<std::string, std::less<>>* on, std::string_view feature, bool is_on) {
  if (is_on) {
    on->emplace(feature);
    for (const auto& [one, needed] : kNeeds) {
      if (Needs(feature, needed)) on->emplace(needed);
    }
  } else {
    std::erase_if(*on, [&](const std::string& f) { return f == feature || Needs(f, feature); });
  }
}
std::vector<const MachineInstruction*> InstructionsOf(const MachineObj& machine) {
  std::vector<const MachineInstruction*> found;
  for (const MachineInstruction& row : kInstructions) {
    if (HasAll(machine, row.features)) found.push_back(&row);
  }
  return found;
}
}  // namespace tvm
