// SPDX-License-Identifier: Apache-2.0
// Calls inside of kernels: barriers, shuffles, atomics, functions of CUDA.
#include "backend/calls.h"
#include "backend/cuda/codegen.h"
#include "tvm/expr/op.h"

namespace tvm::codegen::cuda {
namespace bi = tvm::tir::builtin;
using source::Apply, source::Made, source::Nothing;
using source::kEqual, source::kUnary;

/// The larger or smaller one of two numbers, or a NaN: from sm_80 on an instruction for float32.
#define EXTREME(name, better)                                    \
  {name, 'f',                                                    \
   "static inline $T $N($T a, $T b) {\n"                         \
   "#if __CUDA_ARCH__ >= 800\n"                                  \
   "  float x = (float)a, y = (float)b, z;\n"                    \
   "  if (sizeof($T) == sizeof(float)) {\n"                      \
   "    asm(\"" name                                             \
   ".NaN.f32 %0, %1, %2;\" : \"=f\"(z) : \"f\"(x), \"f\"(y));\n" \
   "    return ($T)z;\n"                                         \
   "  }\n"                                                       \
   "#endif\n"                                                    \
   "  return b " better                                          \
   " a || b != b ? b : a;\n"                                     \
   "}"}
/// Which block of its cluster a thread belongs to.
#define CLUSTER_INDEX(dim)                    \
  {"cluster_index_" dim, '*',                 \
   "static inline uint32_t $N() {\n"          \
   "  uint32_t i;\n"                          \
   "  asm(\"mov.u32 %0, %%cluster_ctaid." dim \
   ";\" : \"=r\"(i));\n"                      \
   "  return i;\n"                            \
   "}"}
const std::vector<source::HelperRow>& DeviceHelpers() {
  static const auto* rows = new std::vector<source::HelperRow>{
      {"popcount", '*', "static inline int32_t $N($U x) { return __popcll(x); }"},
      {"clz", '*',
       "static inline int32_t $N($U x) { return x == 0 ? $B : __clzll((long long)x) - (64 - $B); "
       "}"},
      {"f32_from_f16", '*', R"(static inline float $N(uint16_t h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
})"},
      {"f16_from_f32", '*', R"(static inline uint16_t $N(float x) {
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
})"},
      {"f16_from_f64", '*', R"(static inline uint16_t $N(double x) {
  uint16_t h;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(h) : "d"(x));
  return h;
})"},
      {"bf16_from_f32", '*', R"(static inline uint16_t $N(float x) {
  uint16_t h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
})"},
      EXTREME("max", ">"),
      EXTREME("min", "<"),
      // As our expansion computes it (src/expr/math/exp.cc), with instructions for the power of two
      // and the reciprocal; one step of Newton's method makes a quotient of it.
      {"sigmoid", '*', R"(static inline float $N(float x) {
  float high = x > 52.0f ? 52.0f : x, a = high < -104.0f ? -104.0f : high;
  float t = fmaf(a, 1.442695f, 12582912.0f);
  float n = t - 12582912.0f, r = fmaf(n, 1.9046542e-09f, fmaf(n, -0.6931472f, a)), p, power, i, q;
  p = fmaf(fmaf(0.0013836436f, r, -0.008369131f), r, 0.041668106f);
  p = fmaf(fmaf(fmaf(p, r, -0.16666517f), r, 0.49999994f), r, -1.0f);
  /* times 2^32: where the power is subnormal, only the last product rounds */
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(q) : "f"(n + 32.0f));
  power = q * 2.3283064e-10f;
  float d = fmaf(p, r, fminf(power, 1.0f)) + fmaxf(power, 1.0f), big = q;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(i) : "f"(d));
  q = big * i;
  return fmaf(fmaf(-d, q, big), i, q) * 2.3283064e-10f;
})"},
      {"wait_for_barrier", '*', R"(static inline void $N(uint32_t barrier, uint32_t parity) {
  uint32_t done = 0;
  while (!done) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; "
                 "selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
#else
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; "
                 "selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
#endif
  }
})"},
      {"tensor_map", '*', "struct alignas(64) $N {\n  uint64_t words[16];\n};"},
      CLUSTER_INDEX("x"),
      CLUSTER_INDEX("y"),
      CLUSTER_INDEX("z"),
      {"cached_load", '*', R"(static inline uint32_t $N(bool guard, const void* from) {
  uint32_t x;
  asm("{.reg .pred p; setp.ne.u32 p, %2, 0; mov.b32 %0, 0; @p ld.global.nc.b32 %0, [%1];}"
      : "=r"(x) : "l"(from), "r"((uint32_t)guard));
  return x;
})"},
      // What runtime/device/cuda/failure.cc reads: the first failure since it did.
      {"fail", '*', R"(struct tvm_Failure {
  int state, count;
  int64_t numbers[4];
  char kind[32], text[440];
};
extern "C" {
__device__ tvm_Failure* tvm_failure;
}
static __device__ __noinline__ void $N(const char* kind, const char* text, int count, int64_t a,
                                       int64_t b, int64_t c, int64_t d) {
  volatile tvm_Failure* f = tvm_failure;
  if (f == NULL || atomicCAS((int*)&f->state, 0, 1) != 0) return;
  int64_t numbers[4] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) f->numbers[i] = numbers[i];
  for (int i = 0; i < 31 && (f->kind[i] = kind[i]) != 0; ++i) f->kind[i + 1] = 0;
  for (int i = 0; i < 439 && (f->text[i] = text[i]) != 0; ++i) f->text[i + 1] = 0;
  f->count = count;
  __threadfence_system();
  f->state = 2;
})"},
  };
  return *rows;
}
#undef EXTREME
#undef CLUSTER_INDEX

Value KernelText::Emit(const CallObj* op) {
  if (op->op.as<GlobalVarObj>()) Unsupported("a call of another function in a kernel", op->span);
  using Self = KernelText*;
  using Call = const CallObj*;
  static const auto* table = [] {
    auto* rows = new CallTable<KernelText, Value>();
    auto row = [&](const tvm::Op& o, auto h) { rows->Add(o, h); };
    row(bi::tvm_storage_sync(), [](Self g, Call o) { return g->Sync(o); });
    row(bi::tvm_warp_shuffle(), [](Self g, Call o) { return g->Shuffle(o, "__shfl_sync"); });
    row(bi::tvm_warp_shuffle_up(), [](Self g, Call o) { return g->Shuffle(o, "__shfl_up_sync"); });
    row(bi::tvm_warp_shuffle_down(),
        [](Self g, Call o) { return g->Shuffle(o, "__shfl_down_sync"); });
    row(bi::tvm_warp_activemask(), [](Self g, Call o) {
      Value mask = g->Convert(Apply("__activemask", {}), DataType::UInt(32), o->dtype);
      return g->Keep(mask, o->dtype, "mask", /*fresh=*/true);
    });
    row(bi::atomic_add(), [](Self g, Call o) { return g->AtomicAdd(o); });
    row(bi::dp4a(), [](Self g, Call o) {
      return Apply("__dp4a", g->GenAll({o->args.begin(), o->args.end()}));
    });
    row(bi::prefetch(), [](Self g, Call o) {
      auto* load = o->args[0].as<BufferLoadObj>();
      Value address = load ? g->AddressOf(load) : g->Gen(o->args[0]);
      return g->Statement("asm volatile(\"prefetch.global.L2 [%0];\" :: \"l\"(" + address.text +
                          "));");
    });
    row(bi::ret(), [](Self g, Call o) {
      if (!o->args.empty() && !IsConstInt(o->args[0], 0))
        g->Unsupported("a value that a kernel returns", o->span);
      g->Statement("return;");
      g->ended_ = true;
      return Nothing();
    });
    row(bi::thread_return(), [](Self g, Call) {
      g->Statement("return;");
      g->ended_ = true;
      return Nothing();
    });
    row(bi::tvm_raise_error(), [](Self g, Call o) { return g->RaiseError(o); });
    row(bi::call_extern(), [](Self g, Call o) { return g->CallExtern(o, false); });
    row(bi::call_pure_extern(), [](Self g, Call o) { return g->CallExtern(o, true); });
#define FUNCTION(name) row(bi::name(), [](Self g, Call o) { return g->UnaryMath(o, #name); })
    FUNCTION(exp);
    FUNCTION(log);
    FUNCTION(log2);
    FUNCTION(tanh);
    FUNCTION(erf);
#undef FUNCTION
    row(bi::sigmoid(),
        [](Self g, Call o) { return Apply(g->file_.Helper("sigmoid"), g->GenAll({o->args[0]})); });
    row(bi::ptx_mma(), [](Self g, Call o) { return g->Mma(o); });
    row(bi::ptx_mma_sp(), [](Self g, Call o) { return g->Mma(o); });
    row(bi::ptx_ldg32(), [](Self g, Call o) { return g->CachedLoad(o); });
    row(bi::create_barriers(), [](Self g, Call o) { return g->CreateBarriers(o); });
    row(bi::ptx_init_barrier_thread_count(), [](Self g, Call o) {
      return g->OnBarrier(o, "mbarrier.init.shared.b64 [$], %0;", o->args[0], o->args[1]);
    });
    row(bi::ptx_arrive_barrier(), [](Self g, Call o) {
      return g->OnBarrier(o, "{.reg .b64 s; mbarrier.arrive.shared.b64 s, [$];}", o->args[0], {});
    });
    row(bi::ptx_arrive_barrier_expect_tx(), [](Self g, Call o) {
      return g->OnBarrier(o, "{.reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [$], %0;}",
                          o->args[0], o->args[1]);
    });
    row(bi::ptx_cp_async_barrier(), [](Self g, Call o) {
      return g->OnBarrier(o, "cp.async.mbarrier.arrive.shared.b64 [$];", o->args[0], {});
    });
    row(bi::ptx_wait_barrier(), [](Self g, Call o) { return g->WaitForBarrier(o); });
    row(bi::ptx_cp_async_bulk(), [](Self g, Call o) { return g->CopyBulk(o); });
    row(bi::tvm_load_matrix_sync(), [](Self g, Call o) { return g->LoadFragment(o); });
    row(bi::tvm_store_matrix_sync(), [](Self g, Call o) { return g->StoreFragment(o); });
    row(bi::tvm_fill_fragment(), [](Self g, Call o) { return g->FillFragment(o); });
    row(bi::tvm_mma_sync(), [](Self g, Call o) { return g->MultiplyFragments(o); });
    row(bi::ptx_ldmatrix(), [](Self g, Call o) { return g->LoadMatrix(o); });
    row(bi::ptx_cp_async(), [](Self g, Call o) { return g->CopyAsync(o); });
    row(bi::mma_fill(), [](Self g, Call o) { return g->FillMatrix(o); });
    row(bi::mma_store(), [](Self g, Call o) { return g->StoreMatrix(o); });
    row(bi::ptx_commit_group(), [](Self g, Call) {
      return g->Statement("asm volatile(\"cp.async.commit_group;\" ::: \"memory\");");
    });
    row(bi::ptx_wait_group(), [](Self g, Call o) {
      auto count = AsConstInt(o->args[0]);
      if (!count) g->Unsupported("expected a constant in ptx_wait_group", o->span);
      return g->Statement("asm volatile(\"cp.async.wait_group " + std::to_string(*count) +
                          ";\" ::: \"memory\");");
    });
    AddHopper(rows);
    return rows;
  }();
  if (auto handler = table->Find(op)) return handler(this, op);
  return FunctionWriter::Emit(op);
}

Value KernelText::Statement(const std::string& text) {
  Line(text);
  ++effects_;
  return Nothing();
}
Value KernelText::Sync(const CallObj* op) {
  auto* scope = op->args[0].as<StringImmObj>();
  std::string name = scope ? std::string(scope->value) : "";
  if (name == "shared" || name == "shared.dyn") return Statement("__syncthreads();");
  if (name == "warp") return Statement("__syncwarp();");
  Unsupported("a barrier for memory of the scope '" + name + "'", op->span);
}
/// (mask, value, lane or distance, width, warp size)
Value KernelText::Shuffle(const CallObj* op, const char* function) {
  std::vector<Value> v = GenAll({op->args[0], op->args[1], op->args[2], op->args[3]});
  DataType t = op->dtype, word = DataType::UInt(32);
  if (t.is_handle()) Unsupported("a shuffle of handles", op->span);
  // float16 is its bits; what is below 32 bits travels in a word.
  DataType held = t.is_float16() ? DataType::UInt(16) : t;
  bool widen = held.is_integer() && held.bits() < 32;
  if (widen) v[1] = Convert(v[1], held, word);
  Value moved = Apply(function, v);
  if (widen) moved = Convert(moved, word, held);
  ++effects_;
  return Keep(moved, t, "lane_value", /*fresh=*/true);
}
Value KernelText::AtomicAdd(const CallObj* op) {
  DataType t = op->args[1].dtype();
  bool known = t.is_scalar() && ((t.is_float() && (t.bits() == 32 || t.bits() == 64)) ||
                                 (t.is_integer() && (t.bits() == 32 || t.bits() == 64)));
  if (!known) Unsupported("atomic_add of " + t.str(), op->span);
  std::vector<Value> v = GenAll({op->args[0], op->args[1]});
  // There is one for uint64 only: sums of both are the same bits.
  bool is_long = t.is_int() && t.bits() == 64;
  std::string type = is_long ? "uint64_t" : source::MemoryName(t);
  Value sum = Apply("atomicAdd", {source::CastTo(type + "*", v[0]),
                                  is_long ? source::CastTo("uint64_t", v[1]) : v[1]});
  if (is_long) sum = source::CastTo("int64_t", sum);
  ++effects_;
  return Keep(sum, t, "old", /*fresh=*/true);
}
/// (kind, text, numbers...): the kernel goes on; the next synchronisation raises the error.
Value KernelText::RaiseError(const CallObj* op) {
  constexpr size_t kNumbers = 4;
  auto *kind = op->args[0].as<StringImmObj>(), *text = op->args[1].as<StringImmObj>();
  if (!kind || !text || op->args.size() > 2 + kNumbers)
    Unsupported("an error with more than four numbers in a kernel", op->span);
  std::vector<Value> numbers = GenAll({op->args.begin() + 2, op->args.end()});
  std::string list;
  for (size_t i = 0; i < kNumbers; ++i)
    list += ", " + (i < numbers.size() ? "(int64_t)" + numbers[i].At(kUnary) : "0");
  return Statement(file_.Helper("fail") + "(" + source::Quoted(View(kind->value)) + ", " +
                   source::Quoted(info_.symbol + ": " + std::string(text->value)) + ", " +
                   std::to_string(numbers.size()) + list + ");");
}
Value KernelText::CallExtern(const CallObj* op, bool pure) {
  auto* name = op->args[0].as<StringImmObj>();
  if (!name) Unsupported("expected the name of the external function first", op->span);
  if (pure && View(name->value).find('.') != std::string_view::npos)
    return Instruction(op, std::string(name->value));
  Value call = Apply(std::string(name->value), GenAll({op->args.begin() + 1, op->args.end()}));
  call.reads = true;
  if (op->dtype.is_bool()) {
    call.text += " != 0";
    call.level = kEqual;
  }
  if (pure && !op->dtype.is_void()) return call;
  ++effects_;
  if (!op->dtype.is_void()) return Keep(call, op->dtype, "result", /*fresh=*/true);
  Line(call.text + ";");
  return Nothing();
}

}  // namespace tvm::codegen::cuda
