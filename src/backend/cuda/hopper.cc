// SPDX-License-Identifier: Apache-2.0
// Instructions of PTX from sm_90 on: copies of tensors, products of warpgroups, clusters, registers
// that warpgroups give each other.
#include "tvm/expr/hopper.h"

#include <cstdio>

#include "backend/cuda/ptx.h"
#include "tvm/expr/op.h"

namespace tvm::codegen::cuda {
namespace bi = tvm::tir::builtin;
namespace {
std::string CommaSeparated(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : ", ") + part;
  return all;
}
}  // namespace

void KernelText::AddHopper(CallTable<KernelText, Value>* rows) {
  using Self = KernelText*;
  using Call = const CallObj*;
  auto row = [&](const tvm::Op& o, auto h) { rows->Add(o, h); };
  row(bi::ptx_cp_async_bulk_tensor(), [](Self g, Call o) { return g->CopyTensor(o); });
  row(bi::ptx_cp_async_bulk_tensor_store(), [](Self g, Call o) { return g->StoreTensor(o); });
  row(bi::ptx_cp_async_bulk_commit_group(), [](Self g, Call) {
    return g->Statement("asm volatile(\"cp.async.bulk.commit_group;\" ::: \"memory\");");
  });
  row(bi::ptx_cp_async_bulk_wait_group(), [](Self g, Call o) {
    std::string read = IsZero(o->args[1]) ? " " : ".read ";
    return g->Statement("asm volatile(\"cp.async.bulk.wait_group" + read + g->Constant(o, 0) +
                        ";\" ::: \"memory\");");
  });
  row(bi::ptx_fence_proxy_async(), [](Self g, Call) {
    return g->Statement("asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");");
  });
  row(bi::ptx_fence_barrier_init(), [](Self g, Call) {
    return g->Statement("asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\");");
  });
  row(bi::ptx_arrive_barrier_cluster(), [](Self g, Call o) {
    return g->Statement(
        "asm volatile(\"{.reg .b32 r; mapa.shared::cluster.u32 r, %0, %1; "
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r];}\" :: \"r\"(" +
        g->BarrierAt(o->args[0], o) + "), \"r\"(" + g->Gen(o->args[1]).text + ") : \"memory\");");
  });
  row(bi::ptx_barrier_cluster(), [](Self g, Call) {
    return g->Statement(
        "asm volatile(\"barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\" ::: "
        "\"memory\");");
  });
  row(bi::ptx_bar_sync(), [](Self g, Call o) {
    std::vector<Value> v = g->GenAll({o->args[0], o->args[1]});
    return g->Statement("asm volatile(\"bar.sync %0, %1;\" :: \"r\"(" + v[0].text + "), \"r\"(" +
                        v[1].text + ") : \"memory\");");
  });
  row(bi::ptx_setmaxnreg(), [](Self g, Call o) {
    g->has_roles_ = true;
    std::string which = IsZero(o->args[0]) ? "dec" : "inc";
    return g->Statement("asm volatile(\"setmaxnreg." + which + ".sync.aligned.u32 " +
                        g->Constant(o, 1) + ";\");");
  });
  row(bi::ptx_stmatrix(), [](Self g, Call o) { return g->StoreMatrices(o); });
  row(bi::ptx_wgmma_descriptor(), [](Self g, Call o) { return g->MatrixDescriptor(o); });
  row(bi::ptx_wgmma_fence(), [](Self g, Call) {
    return g->Statement("asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");");
  });
  row(bi::ptx_wgmma_commit_group(), [](Self g, Call) {
    return g->Statement("asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");");
  });
  row(bi::ptx_wgmma_wait_group(), [](Self g, Call o) {
    return g->Statement("asm volatile(\"wgmma.wait_group.sync.aligned " + g->Constant(o, 0) +
                        ";\" ::: \"memory\");");
  });
  row(bi::ptx_wgmma_mma_async(), [](Self g, Call o) { return g->MultiplyAsync(o); });
  row(bi::ptx_wgmma_mma_async_rs(), [](Self g, Call o) { return g->MultiplyAsync(o); });
}
std::string KernelText::Constant(const CallObj* op, size_t i) const {
  auto value = AsConstInt(op->args[i]);
  if (!value) {
    Unsupported("expected a constant as argument " + std::to_string(i) + " of " +
                    std::string(op->op.as<OpObj>()->name),
                op->span);
  }
  return std::to_string(*value);
}
std::string KernelText::TensorMap(const PrimExpr& map, const CallObj* op) {
  auto* var = map.as<VarObj>();
  if (!var || !var->type_annotation.as<TensorMapTypeObj>())
    Unsupported("expected a variable of type T.handle(\"tensormap\")", op->span);
  return "&" + Gen(map).text;
}
/// (shared_ptr, shared_offset, tensormap, barrier_id, multicast, coordinates...), the innermost
/// coordinate first. multicast: 0, or a bit for each block of the cluster that gets a copy.
Value KernelText::CopyTensor(const CallObj* op) {
  constexpr size_t kFirst = 5;
  is_product_ = true;
  Registers registers;
  std::string to = registers.AddInput(SharedAddress(op->args[0], op->args[1]), "r");
  std::string map = registers.AddInput(TensorMap(op->args[2], op), "l");
  std::string barrier = registers.AddInput(BarrierAt(op->args[3], op), "r");
  bool is_for_many = !IsZero(op->args[4]);
  std::vector<std::string> at;
  for (size_t i = kFirst; i < op->args.size(); ++i)
    at.push_back(registers.AddInput(Gen(op->args[i]).text, "r"));
  std::string text = "cp.async.bulk.tensor." + std::to_string(at.size()) +
                     "d.shared::cluster.global.mbarrier::complete_tx::bytes" +
                     (is_for_many ? ".multicast::cluster" : "") + " [" + to + "], [" + map + ", {" +
                     CommaSeparated(at) + "}], [" + barrier + "]";
  if (is_for_many)
    text += ", " + registers.AddInput("(uint16_t)" + Gen(op->args[4]).At(source::kUnary), "h");
  return Statement(registers.Asm(text + ";"));
}
/// (tensormap, shared_ptr, shared_offset, coordinates...)
Value KernelText::StoreTensor(const CallObj* op) {
  constexpr size_t kFirst = 3;
  Registers registers;
  std::string map = registers.AddInput(TensorMap(op->args[0], op), "l");
  std::string from = registers.AddInput(SharedAddress(op->args[1], op->args[2]), "r");
  std::vector<std::string> at;
  for (size_t i = kFirst; i < op->args.size(); ++i)
    at.push_back(registers.AddInput(Gen(op->args[i]).text, "r"));
  return Statement(registers.Asm("cp.async.bulk.tensor." + std::to_string(at.size()) +
                                 "d.global.shared::cta.bulk_group [" + map + ", {" +
                                 CommaSeparated(at) + "}], [" + from + "];"));
}
/// (trans, num, local_ptr, local_offset, smem_ptr, smem_offset)
Value KernelText::StoreMatrices(const CallObj* op) {
  auto num = AsConstInt(op->args[1]);
  if (!num || (*num != 1 && *num != 2 && *num != 4))
    Unsupported("ptx_stmatrix of other than 1, 2 or 4 matrices", op->span);
  Registers registers;
  std::string to = registers.AddInput(SharedAddress(op->args[4], op->args[5]), "r");
  std::string from =
      registers.Add(Offset(op->args[2], op->args[3]), "uint32_t", "r", static_cast<int>(*num));
  return Statement(registers.Asm("stmatrix.sync.aligned.m8n8.x" + std::to_string(*num) +
                                 (IsZero(op->args[0]) ? "" : ".trans") + ".shared.b16 [" + to +
                                 "], " + from + ";"));
}
/// (shared_ptr, shared_offset, leading_bytes, stride_bytes, swizzle_bytes): addresses and distances
/// in units of 16 bytes.
Value KernelText::MatrixDescriptor(const CallObj* op) {
  auto leading = AsConstInt(op->args[2]), stride = AsConstInt(op->args[3]),
       swizzle = AsConstInt(op->args[4]);
  constexpr int64_t kMost = 1 << 18;
  bool is_known = swizzle && (*swizzle == 0 || *swizzle == 32 || *swizzle == 64 || *swizzle == 128);
  for (auto distance : {leading, stride})
    is_known &= distance && *distance >= 0 && *distance < kMost && *distance % 16 == 0;
  if (!is_known) {
    Unsupported(
        "expected constant multiples of 16 bytes below 2^18 and a swizzle of 0, 32, 64 or 128 "
        "bytes in ptx_wgmma_descriptor",
        op->span);
  }
  int64_t mode = *swizzle == 128 ? 1 : *swizzle == 64 ? 2 : *swizzle == 32 ? 3 : 0;
  int64_t high = mode << 30 | *stride / 16, low = *leading / 16 << 16;
  Value v;
  v.text = "((uint64_t)" + std::to_string(high) + "u << 32 | (uint64_t)(" + std::to_string(low) +
           "u | ((" + SharedAddress(op->args[0], op->args[1]) + ") >> 4 & 0x3fff)))";
  v.level = source::kPrimary;
  return v;
}
/// (shape, A_dtype, B_dtype, C_dtype, trans_a, trans_b, a_descriptor, b_descriptor, accumulator,
/// c_index, scale_d); of a matrix in registers (…, C_dtype, trans_b, multiplicand_a, a_index,
/// b_descriptor, …). Sums begin anew where scale_d is zero.
Value KernelText::MultiplyAsync(const CallObj* op) {
  bool in_registers = op->Is(bi::ptx_wgmma_mma_async_rs());
  std::string shape = TextOf(op->args[0]);
  int m = 0, n = 0, k = 0;
  const MatrixType *a = FindType(TextOf(op->args[1])), *b = FindType(TextOf(op->args[2])),
                   *c = FindType(TextOf(op->args[3]));
  bool is_known = std::sscanf(shape.c_str(), "m%dn%dk%d", &m, &n, &k) == 3 && a && b && c;
  if (!is_known || m != 64 || n % 8 != 0 || n < 8 || n > 256 || k * a->bits != 256)
    Unsupported("ptx_wgmma_mma_async of the shape '" + shape + "' and these types", op->span);
  is_product_ = true;
  std::string_view sum_type = c->ptx;
  const char* holder = sum_type == "f32" ? "float" : "uint32_t";
  Registers registers;
  std::string sum = registers.Add(Offset(op->args[8], op->args[9]), holder,
                                  sum_type == "f32" ? "+f" : "+r", n * c->bits / 64);
  std::string left = in_registers
                         ? registers.Add(Offset(op->args[5], op->args[6]), "uint32_t", "r", 4)
                         : registers.AddInput(Gen(op->args[6]).text, "l");
  std::string right = registers.AddInput(Gen(op->args[7]).text, "l");
  std::string scale = registers.AddInput("(uint32_t)" + Gen(op->args[10]).At(source::kUnary), "r");
  // Signs of the factors, and which of them lie across the depth: only 16-bit ones may.
  std::string modes = sum_type == "s32" ? "" : ", 1, 1";
  bool trans_a = !in_registers && !IsZero(op->args[4]),
       trans_b = !IsZero(op->args[in_registers ? 4 : 5]);
  if (a->bits == 16) {
    modes += (in_registers ? "" : trans_a ? ", 1" : ", 0") + std::string(trans_b ? ", 1" : ", 0");
  } else if (trans_a || trans_b) {
    Unsupported("ptx_wgmma_mma_async of matrices across the depth that do not have 16 bits",
                op->span);
  }
  return Statement(registers.Asm("{.reg .pred p; setp.ne.b32 p, " + scale +
                                     ", 0; wgmma.mma_async.sync.aligned." + shape + "." + c->ptx +
                                     "." + a->ptx + "." + b->ptx + " " + sum + ", " + left + ", " +
                                     right + ", p" + modes + ";}",
                                 /*on_memory=*/true));
}

}  // namespace tvm::codegen::cuda
