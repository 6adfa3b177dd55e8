// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory (mbarrier), and the copies that arrive at them when they are done.
#include "backend/cuda/codegen.h"
#include "tvm/expr/op.h"

namespace tvm::codegen::cuda {

/// (barrier_count)
Value KernelText::CreateBarriers(const CallObj* op) {
  auto count = AsConstInt(op->args[0]);
  constexpr int64_t kMost = 64;  // bits of the phases that a thread keeps
  if (!barriers_.empty()) Unsupported("create_barriers twice in a kernel", op->span);
  if (!count || *count < 1 || *count > kMost)
    Unsupported("expected a constant number of 1 to 64 barriers in create_barriers", op->span);
  barriers_ = Name("barriers");
  phases_ = Name("phases");
  // A kernel has them for its whole life, wherever it says so.
  code_ = "  __shared__ __align__(8) uint64_t " + barriers_ + "[" + std::to_string(*count) +
          "];\n  uint64_t " + phases_ + " = 0;\n" + code_;
  ++effects_;
  return source::Nothing();
}
std::string KernelText::BarrierAt(const PrimExpr& number, const CallObj* op) {
  if (barriers_.empty()) Unsupported("expected create_barriers before the use of one", op->span);
  return "(uint32_t)__cvta_generic_to_shared(" + barriers_ + " + " +
         Gen(number).At(source::kProduct) + ")";
}
Value KernelText::OnBarrier(const CallObj* op, const std::string& instruction,
                            const PrimExpr& number, const PrimExpr& operand) {
  std::string inputs = operand.defined() ? "\"r\"(" + Gen(operand).text + "), " : "";
  std::string text = instruction;
  text.replace(text.find('$'), 1, operand.defined() ? "%1" : "%0");
  return Statement("asm volatile(\"" + text + "\" :: " + inputs + "\"r\"(" + BarrierAt(number, op) +
                   ") : \"memory\");");
}
/// (barrier_id): until the phase is complete that follows the one the thread waited for last.
Value KernelText::WaitForBarrier(const CallObj* op) {
  std::string address = BarrierAt(op->args[0], op), number = Gen(op->args[0]).At(source::kUnary);
  std::string wait = file_.Helper("wait_for_barrier");
  Statement(wait + "(" + address + ", (uint32_t)(" + phases_ + " >> " + number + ") & 1);");
  return Statement(phases_ + " ^= UINT64_C(1) << " + number + ";");
}
/// (shared_ptr, shared_offset, global_ptr, global_offset, bytes, barrier_id)
Value KernelText::CopyBulk(const CallObj* op) {
  std::string to = SharedAddress(op->args[0], op->args[1]);
  std::string from = Offset(op->args[2], op->args[3]), bytes = Gen(op->args[4]).text;
  return Statement(
      "asm volatile(\"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1], "
      "%2, [%3];\" :: \"r\"(" +
      to + "), \"l\"(" + from + "), \"r\"(" + bytes + "), \"r\"(" + BarrierAt(op->args[5], op) +
      ") : \"memory\");");
}

}  // namespace tvm::codegen::cuda
