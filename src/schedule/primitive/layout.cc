// SPDX-License-Identifier: Apache-2.0
// Changing what a buffer looks like wherever it is used.
#include "schedule/primitive/layout.h"

#include "tvm/expr/op.h"

namespace tvm::tir {

Buffer ResolveBuffer(const State& state, BlockId id, BufferRef& ref) {
  const BlockObj* block = state.block(id);
  std::string name(block->name_hint), given;
  auto pick = [&](const char* kind, const Array<BufferRegion>& regions, int64_t i) {
    ref = Array<Any>{String(kind), i};
    return regions[i]->buffer;
  };
  auto matches = [&](const Buffer& b) {
    auto wanted = ref.as<String>();
    auto buffer = ref.as<Buffer>();
    return (wanted && *wanted == b->name) || (buffer && buffer->same_as(b));
  };
  if (auto pair = ref.as<Array<Any>>()) {
    auto kind = pair->size() == 2 ? (*pair)[0].try_cast<String>() : std::nullopt;
    auto index = pair->size() == 2 ? (*pair)[1].try_cast<int64_t>() : std::nullopt;
    bool read = kind && *kind == "read", write = kind && *kind == "write";
    const Array<BufferRegion>& regions = read ? block->reads : block->writes;
    if ((read || write) && index && *index >= 0 && *index < static_cast<int64_t>(regions.size()))
      return regions[*index]->buffer;
    given = Text(*pair);
  } else {
    // A buffer that is read and written is one: the kind makes no difference.
    for (size_t i = 0; i < block->writes.size(); ++i) {
      if (matches(block->writes[i]->buffer)) return pick("write", block->writes, i);
    }
    for (size_t i = 0; i < block->reads.size(); ++i) {
      if (matches(block->reads[i]->buffer)) return pick("read", block->reads, i);
    }
    auto text = ref.as<String>();
    given =
        text ? "'" + std::string(*text) + "'" : "buffer " + std::string(ref.get<Buffer>()->name);
  }
  std::string known;
  for (const auto& [kind, regions] :
       {std::pair("read", block->reads), std::pair("write", block->writes)}) {
    for (const BufferRegion& r : regions) known += ", " + std::string(r->buffer->name);
  }
  Refuse("expected the name of a buffer that block " + name + " reads or writes (" +
             (known.empty() ? "none" : known.substr(2)) +
             "), or (\"read\" or \"write\", its "
             "position), got " +
             given,
         {state.inner_stmt(id)});
}

IndexMap ResolveIndexMap(IndexMapLike& map, size_t rank, DataType t) {
  if (auto fn = map.as<Function>()) {
    Array<Var> vars;
    std::vector<AnyView> args;
    for (size_t i = 0; i < rank; ++i) vars.push_back(Var("i" + std::to_string(i), t));
    for (size_t i = 0; i < rank; ++i) args.push_back(vars[i]);
    Any result;
    fn->CallPacked(args.data(), static_cast<int32_t>(rank), &result);
    auto list = result.try_cast<Array<Any>>();
    Array<Any> items = list ? *list : Array<Any>{result};
    Array<PrimExpr> final_indices;
    for (const Any& item : items) {
      auto e = item.try_cast<PrimExpr>();
      if (!e || !e->defined() || !e->dtype().is_scalar() ||
          !(e->dtype().is_int() || e->dtype().is_uint())) {
        Refuse("expected index_map to give integer expressions, got " +
               (e && e->defined() ? Text(*e) : std::string(item.GetTypeKey())));
      }
      final_indices.push_back(cast(t, *e));
    }
    map = IndexMap(vars, final_indices);
  }
  IndexMap resolved = map.get<IndexMap>();
  if (resolved->initial_indices.size() != rank) {
    Refuse(Text("expected index_map to take ", rank, " indices, got ",
                resolved->initial_indices.size()));
  }
  return resolved;
}

std::string Spelled(const IndexMap& map) {
  std::string names, values;
  for (const Var& v : map->initial_indices) names += " " + std::string(v->name_hint) + ",";
  for (const PrimExpr& e : map->final_indices) values += Text(e) + ", ";
  if (!names.empty()) names.pop_back();
  if (!values.empty()) values.resize(values.size() - 2);
  return "lambda" + names + ": (" + values + ")";
}

Definition FindDefinition(const State& state, BlockId id, const Buffer& buffer) {
  BlockId at = id;
  for (; at != kNoNode; at = state.ScopeOf(at)) {
    for (const Buffer& b : state.block(at)->alloc_buffers) {
      if (b.same_as(buffer)) return {at, {}};
    }
  }
  const PrimFunc& func = state.FuncOf(id);
  for (const auto& [param, b] : func->buffer_map) {
    if (b.same_as(buffer)) return {state.RootOf(id), param};
  }
  Refuse("expected a buffer that is a parameter or allocated by a block, got " +
             std::string(buffer->name) + ", a view of another one",
         {state.inner_stmt(id)});
}

void ChangeBuffer(State& state, const Definition& at, const Buffer& from, const Buffer& to,
                  const std::function<Array<PrimExpr>(const Array<PrimExpr>&)>& indices,
                  const std::function<Stmt(Stmt, BlockMap*)>& finish) {
  Block block = ffi::GetRef<Block>(state.block(at.block));
  Stmt body = block->body;
  if (IsUsedOtherwise(body, from)) {
    Refuse(
        "expected buffer " + std::string(from->name) +
            " to be used by loads and stores alone, but it is used through its pointer or a view",
        {block});
  }
  BlockMap same;
  AccessRewrite rewrite{from,
                        [&](const BufferLoad& load) -> PrimExpr {
                          return BufferLoad(to, indices(load->indices), load->predicate);
                        },
                        [&](const BufferStore& store) -> Stmt {
                          return BufferStore(to, store->value, indices(store->indices),
                                             store->predicate);
                        }};
  body = RewriteAccesses(body, rewrite, &same);
  if (finish) body = finish(body, &same);
  Block with = WithBody(block, body);
  Array<Buffer> allocated =
      block->alloc_buffers.Map([&](const Buffer& b) { return b.same_as(from) ? to : b; });
  Edit(&with)->alloc_buffers = allocated;
  Redefine(state, at, to, with, same);
}

void Redefine(State& state, const Definition& at, const Buffer& to, const Block& with,
              BlockMap same) {
  if (!at.param.defined()) return Commit(state, at.block, with, same);
  Block block = ffi::GetRef<Block>(state.block(at.block));
  PrimFunc func = state.FuncOf(at.block);
  same.emplace(with.get(), block);
  BlockRealize realize = ffi::GetRef<BlockRealize>(state.realize(at.block));
  Edit(&realize)->block = with;
  auto* n = Edit(&func);
  n->body = realize;
  n->buffer_map.Set(at.param, to);
  state.ReplaceFunc(at.block, func, same);
}

}  // namespace tvm::tir
