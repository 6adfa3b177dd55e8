// SPDX-License-Identifier: Apache-2.0
// From tensor expressions to a PrimFunc: one block per operation, one buffer per tensor.
#include "te/lowering.h"
#include "tvm/expr/index_type.h"
#include "tvm/expr/substitute.h"

namespace tvm::te {
using namespace tir;

namespace {
/// All operations that `roots` need, producers before consumers. Chains may be long: no recursion.
std::vector<Operation> SortOperations(const std::vector<Tensor>& roots) {
  std::vector<Operation> order, stack;
  std::unordered_map<const Object*, bool> emitted;  // absent: not seen yet
  for (const Tensor& root : roots) {
    stack.push_back(root->op);
    while (!stack.empty()) {
      Operation op = stack.back();
      if (auto [it, is_new] = emitted.emplace(op.get(), false); !is_new) {
        stack.pop_back();
        if (!std::exchange(it->second, true)) order.push_back(op);
        continue;
      }
      Array<Tensor> inputs = InputTensors(op);
      for (auto it = inputs.rbegin(); it != inputs.rend(); ++it) {
        if (!emitted.count((*it)->op.get())) stack.push_back((*it)->op);
      }
    }
  }
  return order;
}
/// The widest type among shapes and iterators of the operations, int64 when a tensor has more
/// elements than int32 counts, int32 when there is nothing.
DataType WidestIndexType(const std::vector<Operation>& ops) {
  int bits = 32;
  auto add = [&](const PrimExpr& e) { bits = std::max(bits, e.dtype().bits()); };
  for (const Operation& op : ops) {
    for (int64_t i = 0; i < op->NumOutputs(); ++i) {
      int64_t size = 1;
      for (const PrimExpr& extent : op->OutputShape(i)) {
        add(extent);
        bool overflow = __builtin_mul_overflow(size, AsConstInt(extent).value_or(1), &size);
        if (overflow || size > INT32_MAX) bits = 64;
      }
    }
    if (const auto* compute = op.as<ComputeOpObj>()) {
      for (const IterVar& iv : compute->reduce_axis) add(iv->dom.value()->extent);
    }
  }
  return DataType::Int(bits);
}
}  // namespace

// ---- expressions ------------------------------------------------------------------------------
ObjectRef Lowering::Rewrite(const VarObj* var) {
  auto it = vars_.find(var);
  if (it == vars_.end()) {
    TVM_FFI_THROW(ValueError)
        << "create_prim_func: expected the variables of " << current_
        << " to be axes, dimensions of an argument or arguments, got " << var->name_hint
        << "; an axis of te.reduce_axis belongs into a reduction such as te.sum(..., axis="
        << var->name_hint << "), a scalar into the list of arguments";
  }
  return it->second;
}
ObjectRef Lowering::Rewrite(const ProducerLoadObj* load) {
  return Once(load, [&] {
    Tensor tensor = Any(load->producer).cast<Tensor>();
    return BufferLoad(BufferOf(tensor), Indices(load->indices));
  });
}
ObjectRef Lowering::Rewrite(const LetObj* let) {
  return Once(let, [&] {
    PrimExpr value = Mutate(let->value);
    vars_[let->var.get()] = let->var;
    PrimExpr body = Mutate(let->body);
    vars_.erase(let->var.get());
    return Let(let->var, value, body, let->span);
  });
}
ObjectRef Lowering::Rewrite(const PrimExprObj* e) {
  return Once(e, [&] { return CompareInIndexType(Below<PrimExpr>(e), index_type_); });
}
PrimExpr Lowering::Index(const PrimExpr& e) { return ToIndexType(Mutate(e), index_type_); }
Array<PrimExpr> Lowering::Indices(const Array<PrimExpr>& indices) {
  return indices.Map([&](const PrimExpr& e) { return Index(e); });
}

// ---- tensors ----------------------------------------------------------------------------------
Buffer Lowering::Declare(const Tensor& tensor) {
  return Buffer::Decl(Indices(tensor->shape), tensor->dtype, tensor->GetNameHint());
}
Buffer Lowering::Output(const Operation& op, int64_t i) {
  Tensor tensor = op.output(i);
  Buffer& buffer = BufferOf(tensor);
  if (!buffer.defined()) {
    buffer = Declare(tensor);
    allocated_.push_back(buffer);
  }
  return buffer;
}
void Lowering::DefineShapeVars(const Tensor& tensor) {
  for (const PrimExpr& extent : tensor->shape) {
    PostOrderVisit(extent, [&](const ObjectRef& node) {
      const auto* var = node.as<VarObj>();
      if (!var || vars_.count(var)) return;
      Var old = ffi::GetRef<Var>(var);
      vars_[var] =
          old.dtype() == index_type_ ? old : cast(old.dtype(), old.CopyWithDType(index_type_));
    });
  }
}
String Lowering::BlockName(const String& name) {
  // `C`, `C_1`, …; a name that the user chose with a number is not given to another block.
  std::string unique = name;
  for (int i = 1; !block_names_.insert(unique).second; ++i) {
    unique = std::string(name) + "_" + std::to_string(i);
  }
  return unique;
}

// ---- the function -----------------------------------------------------------------------------
Stmt Lowering::Lower(const Operation& op) {
  current_ = op->name;
  if (const auto* compute = op.as<ComputeOpObj>()) return LowerCompute(compute);
  if (const auto* external = op.as<ExternOpObj>()) return LowerExtern(external);
  if (const auto* scan = op.as<ScanOpObj>()) return LowerScan(scan);
  if (!BufferOf(op.output(0)).defined()) {
    TVM_FFI_THROW(ValueError) << "create_prim_func: expected the placeholder " << op->name
                              << " among the arguments: a tensor that is computed reads it";
  }
  return Evaluate::Nothing();
}

PrimFunc Lowering::Function(const Array<Variant<Tensor, Var>>& args) {
  for (const auto& arg : args) {
    if (auto tensor = arg.as<Tensor>()) DefineShapeVars(*tensor);
  }
  Array<Var> params;
  Map<Var, Buffer> buffer_map;
  for (const auto& arg : args) {
    if (auto scalar = arg.as<Var>()) {
      PrimExpr& known = vars_.emplace(scalar->get(), *scalar).first->second;
      const auto* retyped = known.as<CastObj>();
      params.push_back(Any(retyped ? retyped->value : known).cast<Var>());
      continue;
    }
    Tensor tensor = arg.get<Tensor>();
    current_ = tensor->GetNameHint();
    if (BufferOf(tensor).defined()) {
      TVM_FFI_THROW(ValueError) << "create_prim_func: expected every tensor once, got " << current_
                                << " twice";
    }
    Var param("var_" + std::string(current_), DataType::Handle());
    buffer_map.Set(param, BufferOf(tensor) = Declare(tensor));
    params.push_back(param);
  }
  PlanScans();
  Array<Stmt> body;
  for (const Operation& op : ops_) {
    if (!step_of_.count(op.get())) body.push_back(Lower(op));
  }
  Block root({}, {}, {}, "root", SeqStmt::Flatten(body), {}, allocated_);
  Map<String, Any> attrs = {{tvm::attr::kGlobalSymbol, String("main")},
                            {tir::attr::kNoAlias, true}};
  if (Array<int64_t> free = LayoutFreeBuffers(args); !free.empty()) {
    attrs.Set("layout_free_buffers", free);
  }
  return PrimFunc(params, BlockRealize({}, const_true(), root), TupleType::Void(), buffer_map,
                  DictAttrs(attrs));
}

/// The arguments that an operation lists under "layout_free_placeholders": weights whose layout the
/// compiler may change.
Array<int64_t> Lowering::LayoutFreeBuffers(const Array<Variant<Tensor, Var>>& args) const {
  Array<int64_t> positions;
  for (size_t i = 0; i < args.size(); ++i) {
    auto tensor = args[i].as<Tensor>();
    bool free = tensor && std::any_of(ops_.begin(), ops_.end(), [&](const Operation& op) {
                  auto it = op->attrs.find(kLayoutFree);
                  if (it == op->attrs.end()) return false;
                  for (const Tensor& t : (*it).second.cast<Array<Tensor>>()) {
                    if (t == *tensor) return true;
                  }
                  return false;
                });
    if (free) positions.push_back(static_cast<int64_t>(i));
  }
  return positions;
}

PrimFunc CreatePrimFunc(const Array<Variant<Tensor, Var>>& args, Optional<DataType> index_dtype) {
  std::vector<Tensor> tensors;
  for (const auto& arg : args) {
    if (auto tensor = arg.as<Tensor>()) tensors.push_back(*tensor);
  }
  std::vector<Operation> ops = SortOperations(tensors);
  DataType index_type = index_dtype.value_or(WidestIndexType(ops));
  if (!index_type.is_index() || index_type.bits() > 64) {
    TVM_FFI_THROW(TypeError) << "create_prim_func: expected index_dtype_override to be int32 or "
                             << "int64, got " << index_type;
  }
  return Lowering(ops, index_type).Function(args);
}

namespace {
TVM_REGISTER() {
  Def("te._op.create_prim_func", &CreatePrimFunc,
      "The function that computes the tensors among the arguments which are no placeholders.",
      Arg("ops"), Arg("index_dtype_override", nullptr));
}
}  // namespace
}  // namespace tvm::te
