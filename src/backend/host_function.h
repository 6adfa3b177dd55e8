// SPDX-License-Identifier: Apache-2.0
// What the code generators for the host share: how a lowered function is called, and facts about
// its variables.
#pragma once
#include <algorithm>
#include <cctype>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tvm/expr/builtin.h"
#include "tvm/ir/target.h"
#include "tvm/tir/function.h"

namespace tvm::codegen {
using namespace tvm::tir;  // NOLINT(*)

/// One function of the module being compiled.
struct FunctionInfo {
  PrimFunc func;
  std::string symbol;     ///< Without prefix.
  bool packed = false;    ///< Has the packed interface of tvm-ffi.
  bool internal = false;  ///< Not visible outside the library.
  bool cold = false;      ///< Runs when something went wrong: not worth optimising.
  DataType result;        ///< void: the function returns a status only.

  FunctionInfo(const GlobalVar& var, const PrimFunc& func)
      : func(func),
        symbol(func->GetAttr<String>(tvm::attr::kGlobalSymbol, var->name_hint)),
        packed(func->GetAttr<int64_t>(tvm::attr::kCallingConv, 0) ==
               static_cast<int64_t>(CallingConv::kCPackedFunc)),
        internal(func->HasNonzeroAttr("tir.private")),
        cold(func->HasNonzeroAttr("tir.cold")),
        result(DataTypeOf(func->ret_type)) {}
};
using FunctionList = std::vector<std::pair<GlobalVar, FunctionInfo>>;

/// The functions of a module, sorted by name; TypeError for what is not TIR.
inline FunctionList FunctionsOf(const IRModule& mod, const char* what) {
  FunctionList functions;
  for (const auto& [var, func] : mod->Sorted()) {
    auto* prim = func.as<PrimFuncObj>();
    if (!prim) {
      TVM_FFI_THROW(TypeError) << what << ": expected functions of TIR, got " << func->GetTypeKey()
                               << " as " << View(var->name_hint);
    }
    functions.emplace_back(var, FunctionInfo(var, ffi::GetRef<PrimFunc>(prim)));
  }
  return functions;
}

/// What the body says about variables: which ones are sizes, and how data pointers are aligned.
struct VariableFacts : Visitor<VariableFacts, ForObj, BufferObj, AllocateObj, SizeVarObj> {
  std::unordered_set<const Object*> shape_vars, nonnegative;
  std::unordered_map<const Object*, int64_t> align, bytes;  // of data pointers; bytes: at least
  struct Vars : Visitor<Vars, VarObj> {
    std::unordered_set<const Object*>* out;
    void Visit(const VarObj* v) { out->insert(v); }
  };
  void Sizes(const PrimExpr& e) {
    Vars vars;
    vars.out = &shape_vars;
    vars(e);
  }
  void Visit(const SizeVarObj* v) { shape_vars.insert(v), nonnegative.insert(v); }
  void Visit(const ForObj* op) {
    Sizes(op->min);
    Sizes(op->extent);
    VisitChildren(op, *this);
  }
  void Visit(const AllocateObj* op) {
    for (const PrimExpr& e : op->extents) Sizes(e);
    VisitChildren(op, *this);
  }
  void Visit(const BufferObj* b) {
    if (!buffers.insert(b).second) return;
    for (const PrimExpr& e : b->shape) Sizes(e);
    for (const PrimExpr& e : b->strides) Sizes(e);
    auto& a = align[b->data.get()];
    a = std::max(a, b->data_alignment);
    int64_t size = b->dtype.bits() * b->dtype.lanes();
    for (const PrimExpr& e : b->shape) {
      auto* c = e.as<IntImmObj>();
      if (!c || c->value <= 0 || __builtin_mul_overflow(size, c->value, &size)) return;
    }
    auto [it, is_new] = bytes.emplace(b->data.get(), size / 8);
    if (!is_new) it->second = std::min(it->second, size / 8);
  }
  std::unordered_set<const Object*> buffers;
};

/// Variables that a statement uses and that are in `outside`, in order of first use.
template <class Map>
struct Captures : Visitor<Captures<Map>, VarObj> {
  const Map* outside;
  std::vector<Var> vars;
  std::unordered_set<const Object*> seen;
  void Visit(const VarObj* v) {
    if (outside->count(v) && seen.insert(v).second) vars.push_back(ffi::GetRef<Var>(v));
  }
};
/// The variables that the body of a parallel loop takes from around it.
template <class Map>
std::vector<Var> CapturesOf(const ForObj* loop, const Map& outside) {
  Captures<Map> captures;
  captures.outside = &outside;
  captures.seen.insert(loop->loop_var.get());
  captures(loop->body);
  return std::move(captures.vars);
}

/// Whether two iterations of a parallel loop may write to one byte: then they cannot run at the
/// same time.
inline bool WritesPartsOfBytes(const Stmt& body) {
  struct Finder : Visitor<Finder, BufferStoreObj> {
    bool found = false;
    void Visit(const BufferStoreObj* op) { found |= op->buffer->dtype.bits() < 8; }
  } finder;
  finder(body);
  return finder.found;
}

/// The message of an assertion as (class of the error, text): "ValueError: n" raises ValueError.
inline std::pair<std::string, std::string> SplitErrorClass(const std::string& message) {
  size_t colon = message.find(": ");
  bool is_class = colon != std::string::npos && colon > 5 &&
                  std::all_of(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(colon),
                              [](unsigned char c) { return std::isalpha(c); }) &&
                  message.compare(colon - 5, 5, "Error") == 0;
  if (!is_class) return {"RuntimeError", message};
  return {message.substr(0, colon), message.substr(colon + 2)};
}

/// Larger temporaries come from the runtime: threads of a pool may have small stacks.
constexpr uint64_t kMaxStackBuffer = 16 << 10, kMaxStackBytes = 128 << 10;
constexpr uint64_t kBufferAlign = 64;

}  // namespace tvm::codegen
