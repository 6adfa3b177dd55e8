// SPDX-License-Identifier: Apache-2.0
// TIR -> CUDA C++ that needs no header. A KernelFile makes one file of lowered kernels, a
// KernelText one kernel of it.
// - Floats below 32 bits are their bits, as everywhere in generated text; conversions are single
//   instructions where the architecture has them.
// - Vectors are moved between memory and registers in pieces of up to 16 bytes; what is computed on
//   them is computed lane by lane in unrolled loops.
#pragma once
#include "backend/calls.h"
#include "backend/source/function.h"

namespace tvm::codegen::cuda {
using source::Value;

class KernelFile : public source::FileWriter {
 public:
  explicit KernelFile(const FunctionList& kernels);
  std::string Source() const;
};

class KernelText : public source::FunctionWriter {
 public:
  using FunctionWriter::FunctionWriter;
  /// The definition of the kernel.
  std::string Define();

 private:
  using FunctionWriter::Emit;
  Value Emit(const CallObj*) final;
  void Emit(const LetStmtObj*) final;
  void Emit(const AssertStmtObj*) final;
  void Emit(const BufferStoreObj*) final;
  void Emit(const AllocateObj*) final;
  void Emit(const AttrStmtObj*) final;
  std::string ConstantArray(const std::string& type, const std::string& name,
                            const std::string& list) const final;
  void BeforeLoop(const ForObj* op) final;
  /// As everybody does; shared memory is used with one type after the other.
  bool StrictAliasing() const final { return false; }

  // ---- calls (codegen_call.cc) ----
  Value Shuffle(const CallObj* op, const char* function);
  Value AtomicAdd(const CallObj* op);
  Value CallExtern(const CallObj* op, bool pure);
  Value RaiseError(const CallObj* op);
  Value Sync(const CallObj* op);
  Value Statement(const std::string& text);

  // ---- barriers in shared memory (barrier.cc) ----
  Value CreateBarriers(const CallObj* op);
  /// An instruction about the barrier that an argument numbers, after other operands.
  Value OnBarrier(const CallObj* op, const std::string& instruction, const PrimExpr& number,
                  const PrimExpr& operand);
  Value WaitForBarrier(const CallObj* op);
  Value CopyBulk(const CallObj* op);
  /// The address of a barrier, in shared memory.
  std::string BarrierAt(const PrimExpr& number, const CallObj* op);

  // ---- instructions (ptx.cc) ----
  /// One of registers alone that a pure external call names: "ex2.approx.ftz.f32".
  Value Instruction(const CallObj* op, const std::string& name);
  Value Mma(const CallObj* op);
  Value LoadMatrix(const CallObj* op);
  Value CopyAsync(const CallObj* op);
  Value CachedLoad(const CallObj* op);
  Value FillMatrix(const CallObj* op);
  Value StoreMatrix(const CallObj* op);
  /// A matrix that the threads of a warp hold together, in an order that is theirs (WMMA).
  struct Fragment {
    char part = 0;  ///< 'a', 'b', or 'c' for what is added to.
    int64_t m = 0, n = 0, k = 0;
    DataType type;
    std::string layout;     ///< "row" or "col", as it was loaded.
    int64_t registers = 0;  ///< Of a thread, 32 bits each.
    bool IsFloat() const { return type == DataType::Float(32); }
    const char* Holder() const { return IsFloat() ? "float" : "uint32_t"; }
    const char* Constraint() const { return IsFloat() ? "f" : "r"; }
    std::string Shape() const;
  };
  void DeclareFragments(const AllocateObj* op, const std::string& scope);
  const Fragment& FragmentOf(const PrimExpr& pointer, const CallObj* op) const;
  /// Where the registers of a fragment begin.
  std::string FragmentAt(const PrimExpr& pointer, const PrimExpr& number, const CallObj* op);
  Value LoadFragment(const CallObj* op);
  Value StoreFragment(const CallObj* op);
  Value FillFragment(const CallObj* op);
  Value MultiplyFragments(const CallObj* op);

  // ---- instructions from sm_90 on (hopper.cc) ----
  static void AddHopper(CallTable<KernelText, Value>* rows);
  Value CopyTensor(const CallObj* op);
  Value StoreTensor(const CallObj* op);
  Value StoreMatrices(const CallObj* op);
  Value MatrixDescriptor(const CallObj* op);
  Value MultiplyAsync(const CallObj* op);
  /// An argument that has to be a constant.
  std::string Constant(const CallObj* op, size_t i) const;
  /// The address of a parameter that is a tensor map.
  std::string TensorMap(const PrimExpr& map, const CallObj* op);

  std::string Offset(const PrimExpr& pointer, const PrimExpr& offset);
  std::string SharedAddress(const PrimExpr& pointer, const PrimExpr& offset);

  /// The address of the first element of a vector.
  std::string AddressOfFirst(const Buffer& buffer, const PrimExpr& index);
  /// Whether a buffer is a parameter, of which `aligned_name_` says whether it is aligned for
  /// moves; other memory is.
  bool MayBeUnaligned(const Buffer& buffer);

  std::unordered_map<const Object*, Fragment> fragments_;  ///< By their memory.
  arith::Analyzer analyzer_;                               ///< Knows the bound variables.
  std::string barriers_;           ///< The array of barriers, where there are some.
  std::string phases_;             ///< Of each barrier, a bit: which phase the thread waits for.
  std::set<std::string> aligned_;  ///< Parameters that are moved in vectors.
  bool has_roles_ = false;         ///< Warpgroups give each other registers.
  bool is_product_ = false;        ///< Long, and moves vectors at its end.
  std::string aligned_name_;       ///< The variable that says whether all of them are aligned.
};

/// Rows for what CUDA has an instruction for.
const std::vector<source::HelperRow>& DeviceHelpers();

}  // namespace tvm::codegen::cuda
