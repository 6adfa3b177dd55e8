// SPDX-License-Identifier: Apache-2.0
// What is loaded into a fragment, filled or stored says how large it is and how it lies.
#include "../any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct FragmentInfo {
  std::string shape, layout;  // "16, 16, 16"; "row_major"
};
struct FragmentFinder : Visitor<FragmentFinder, CallObj> {
  std::unordered_map<const VarObj*, FragmentInfo> found;

  static void Set(const VarObj* data, const char* what, const std::string& value,
                  std::string* known) {
    if (!known->empty() && *known != value) {
      TVM_FFI_THROW(ValueError) << "InferFragment: expected one " << what << " for fragment "
                                << data->name_hint << ", got " << *known << " and " << value;
    }
    *known = value;
  }
  void Visit(const CallObj* op) {
    VisitChildren(op, *this);
    bool loads = op->Is(builtin::tvm_load_matrix_sync());
    bool is_whole =
        loads || op->Is(builtin::tvm_store_matrix_sync()) || op->Is(builtin::tvm_fill_fragment());
    auto* data = is_whole ? op->args[0].as<VarObj>() : nullptr;
    if (data) {
      std::string shape;
      for (int i = 1; i <= 3; ++i) {
        auto size = AsConstInt(op->args[i]);
        if (!size) {
          TVM_FFI_THROW(ValueError)
              << "InferFragment: expected a constant size of fragment " << data->name_hint;
        }
        shape += (i > 1 ? ", " : "") + std::to_string(*size);
      }
      FragmentInfo& info = found[data];
      Set(data, "shape", shape, &info.shape);
      auto* layout = loads ? op->args[7].as<StringImmObj>() : nullptr;
      if (layout) Set(data, "layout", std::string(layout->value), &info.layout);
    }
  }
};
/// All fragments of a product have the same shape.
struct ProductChecker : Visitor<ProductChecker, CallObj> {
  const std::unordered_map<const VarObj*, FragmentInfo>& found;
  explicit ProductChecker(const std::unordered_map<const VarObj*, FragmentInfo>& found)
      : found(found) {}
  void Visit(const CallObj* op) {
    VisitChildren(op, *this);
    if (!op->Is(builtin::tvm_mma_sync()) && !op->Is(builtin::tvm_bmma_sync())) return;
    std::string shape;
    for (size_t i : {0, 2, 4, 6}) {
      auto* data = op->args[i].as<VarObj>();
      auto it = data ? found.find(data) : found.end();
      if (it == found.end()) {
        TVM_FFI_THROW(ValueError) << "InferFragment: expected operand " << i / 2
                                  << " of a product to be a fragment that is loaded, filled or "
                                     "stored";
      }
      FragmentFinder::Set(data, "shape in a product", it->second.shape, &shape);
    }
  }
};
struct FragmentMarker : Mutator<FragmentMarker, AllocateObj> {
  const std::unordered_map<const VarObj*, FragmentInfo>& found;
  explicit FragmentMarker(const std::unordered_map<const VarObj*, FragmentInfo>& found)
      : found(found) {}
  ObjectRef Rewrite(const AllocateObj* op) {
    Allocate allocate = Below<Allocate>(op);
    auto it = found.find(op->buffer_var.get());
    if (it == found.end()) return allocate;
    Stmt body = allocate->body;
    if (!it->second.layout.empty())
      body = AttrStmt(op->buffer_var, "fragment_layout", StringImm(it->second.layout), body);
    Edit(&allocate)->body =
        AttrStmt(op->buffer_var, "fragment_shape", StringImm(it->second.shape), body);
    return allocate;
  }
};
}  // namespace

PrimFunc InferFragment(PrimFunc func) {
  auto is_fragment = [](const AllocateObj* op) {
    return View(ScopeOf(op->buffer_var.get())).substr(0, 5) == "wmma.";
  };
  if (!AnyStmt<AllocateObj>(func->body, is_fragment)) return func;
  FragmentFinder find;
  find(func->body);
  ProductChecker{find.found}(func->body);
  return RewriteBody(std::move(func), FragmentMarker(find.found));
}
TVM_PASS(
    tir, InferFragment,
    R"(Says of fragments of WMMA, from what fills, loads and stores them, their shape (m, n, k) and, where they are loaded, their layout.

before(A: T.Buffer((256,), "float16")):
    i = T.launch_thread("threadIdx.x", 32)
    F = T.allocate([256], "float16", "wmma.matrix_a")
    T.tvm_load_matrix_sync(F, 16, 16, 16, 0, A.data, 16, "row_major")
after:
    i = T.launch_thread("threadIdx.x", 32)
    F = T.allocate([256], "float16", "wmma.matrix_a")
    T.attr(F, "fragment_shape", "16, 16, 16")
    T.attr(F, "fragment_layout", "row_major")
    T.tvm_load_matrix_sync(F, 16, 16, 16, 0, A.data, 16, "row_major"))")
}  // namespace tvm::tir
