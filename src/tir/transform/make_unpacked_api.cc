// SPDX-License-Identifier: Apache-2.0
// Gives functions a C signature: pointers and scalars in the order of their parameters.
#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {

PrimFunc MakeUnpackedAPI(PrimFunc func) {
  auto symbol = func->GetAttr<String>(::tvm::attr::kGlobalSymbol);
  if (!symbol.has_value() || func->GetAttr<int64_t>(::tvm::attr::kCallingConv, 0) != 0) return func;
  Array<Var> params;
  Stmt body = func->body;
  for (size_t i = func->params.size(); i > 0; --i) {
    const Var& param = func->params[i - 1];
    Buffer buffer = func.BufferOf(param);
    if (!buffer.defined()) {
      params.insert(params.begin(), param);
      continue;
    }
    auto require_known = [&](const Array<PrimExpr>& numbers, const char* what) {
      for (const PrimExpr& e : numbers) {
        bool is_known = e.as<IntImmObj>();
        for (const Var& p : func->params) is_known |= p.same_as(e);
        if (!is_known) {
          TVM_FFI_THROW(ValueError)
              << "MakeUnpackedAPI: expected constants or scalar parameters as the " << what
              << " of " << buffer->name << " in " << symbol.value()
              << ", which has no tensor to take others from";
        }
      }
    };
    require_known(buffer->shape, "shape");
    require_known(buffer->strides, "strides");
    require_known({buffer->elem_offset}, "offset");
    params.insert(params.begin(), buffer->data);
    body = DeclBuffer(buffer, body);
  }
  auto* n = Edit(&func);
  n->params = params;
  n->buffer_map = {};
  if (IsVoidType(n->ret_type)) {
    // The status, as packed functions return it.
    n->ret_type = PrimType(DataType::Int(32));
    body =
        SeqStmt::Flatten({body, Evaluate(Call(DataType::Int(32), builtin::ret(), {PrimExpr(0)}))});
  }
  n->body = body;
  // The function runs on the host, from where it launches others.
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  if (!target.has_value() || !target.value().Host().has_value()) return func;
  return WithAttr(std::move(func), ::tvm::attr::kTarget, target.value().Host().value());
}
TVM_PASS(
    tir, MakeUnpackedAPI,
    R"(Replaces buffers among the parameters by their data pointers; the function returns 0, or -1 after an error.

before:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32"), n: T.int32):
        A[n] = 1.0
after:
    @T.prim_func
    def main(A: T.handle("float32"), n: T.int32) -> T.int32:
        with T.decl_buffer((16,), "float32", data=A) as A_1:
            A_1[n] = T.float32(1)
        return 0)")
}  // namespace tvm::tir
