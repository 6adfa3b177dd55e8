// SPDX-License-Identifier: Apache-2.0
// The machine behind a target: what rules, tuner, math expansion, pipelines and backends ask.
#pragma once
#include <algorithm>
#include <string_view>
#include <vector>

#include "tvm/ir/target.h"

namespace tvm {

/// An instruction that functions of the expansion of mathematics may become.
struct MachineInstruction {
  enum class Kind {
    kDotBytes,     // sums of products of the four bytes of each word
    kDotShorts,    // … of its two halves
    kDotBfloat16,  // … of its two halves as bfloat16
    kScale,        // x 2^n
  };
  Kind kind;
  const char* operands;   // "us": elements of the first operand are unsigned, of the second signed;
                          // "f": floating-point numbers as wide as words
  const char* features;   // that it needs, separated by blanks
  int bits, lanes;        // of words, and how many
  const char* intrinsic;  // LLVM's name
  bool accumulates;       // to its first operand
};

/// What code is made for, computed once per target: what the target says, what was detected on this
/// machine, what the instruction set implies, and else what is common.
struct MachineObj : NodeObj {
  bool is_host = true;  // a processor that code runs on by being called; else a device
  bool is_gpu = false;  // blocks of threads
  // ---- processors
  int cores = 1;
  bool takes_vectors = true;  // else the backend's compiler makes vectors of loops
  bool has_masks = false;     // lanes can be left out of any instruction, and chosen in no time
  int vector_bits = 128;
  int vector_registers = 16;
  int64_t line_bytes = 64;
  int64_t l1_bytes = 32 << 10, l1_ways = 8;  // data, of a core
  int64_t l2_bytes = 512 << 10, l2_ways = 8;
  int64_t l3_bytes = 0;  // shared; 0: none or not known
  // ---- GPUs
  int64_t max_threads = 1024;                             // of a block
  int64_t warp = 32;                                      // threads that run in lockstep
  int64_t shared_bytes = 48 << 10, registers = 64 << 10;  // of a block
  bool has_tensor_cores = false;
  // ---- instruction set
  Array<String> features;  // all that are on, sorted
  std::vector<const MachineInstruction*>
      instructions;  // of those for the same operands wider ones first

  static void Fields(auto&& def) {
    def("is_host", &MachineObj::is_host);
    def("is_gpu", &MachineObj::is_gpu);
    def("cores", &MachineObj::cores);
    def("takes_vectors", &MachineObj::takes_vectors);
    def("has_masks", &MachineObj::has_masks);
    def("vector_bits", &MachineObj::vector_bits);
    def("vector_registers", &MachineObj::vector_registers);
    def("line_bytes", &MachineObj::line_bytes);
    def("l1_bytes", &MachineObj::l1_bytes);
    def("l1_ways", &MachineObj::l1_ways);
    def("l2_bytes", &MachineObj::l2_bytes);
    def("l2_ways", &MachineObj::l2_ways);
    def("l3_bytes", &MachineObj::l3_bytes);
    def("max_threads", &MachineObj::max_threads);
    def("warp", &MachineObj::warp);
    def("shared_bytes", &MachineObj::shared_bytes);
    def("registers", &MachineObj::registers);
    def("has_tensor_cores", &MachineObj::has_tensor_cores);
    def("features", &MachineObj::features);
  }
  /// Whether an instruction-set feature such as "avx512f" is on.
  bool Has(std::string_view feature) const;
  /// The widest instruction of a kind for words of some bits, or nullptr.
  const MachineInstruction* Find(MachineInstruction::Kind kind, int bits) const;
  /// Elements of `bits` bits in one vector that is written as such.
  int Lanes(int bits) const { return takes_vectors ? std::max(1, vector_bits / bits) : 1; }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("target.Machine", MachineObj, NodeObj);
};
struct Machine : ObjectRef {
  /// ValueError for a target that names a processor or feature that does not exist, or limits that
  /// exclude each other.
  static const Machine& Of(const Target& target);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Machine, ObjectRef, MachineObj);
};

}  // namespace tvm
