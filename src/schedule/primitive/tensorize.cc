// SPDX-License-Identifier: Apache-2.0
// tensorize: a block that computes what an intrinsic describes calls the intrinsic instead.
#include "schedule/analysis/intrin_match.h"
#include "schedule/primitive/blockize.h"
#include "tvm/schedule/primitive.h"
#include "tvm/tir/tensor_intrin.h"

namespace tvm::tir {
namespace {

TensorIntrin Lookup(const String& name) {
  auto found = GetTensorIntrin(name, true);
  if (!found.has_value()) Refuse(MissingTensorIntrin(name));
  return found.value();
}

/// The block that is the body of an intrinsic's function.
Block RootOf(const PrimFunc& func, const char* what) {
  auto* realize = func->body.as<BlockRealizeObj>();
  if (!realize) Refuse(std::string("expected the intrinsic's ") + what + " to be one block");
  return realize->block;
}

/// Refuses a part of a buffer that is not contiguous where the implementation takes it to be: its
/// view has no strides, and is accessed through its pointer or by vectors longer than a row.
void CheckContiguous(const BufferMatch& m, const Buffer& view, const Stmt& impl,
                     const Block& block) {
  if (!view->strides.empty()) return;
  bool needed = IsUsedOtherwise(impl, view);
  auto note = [&](const Buffer& b, const Array<PrimExpr>& indices) {
    if (!b.same_as(view) || indices.empty() || indices.back().dtype().is_scalar()) return;
    auto row = AsConstInt(view->shape.back());
    needed |= !row || indices.back().dtype().lanes() > *row;
  };
  PostOrderVisit(impl, [&](const ObjectRef& node) {
    if (auto* load = node.as<BufferLoadObj>()) note(load->buffer, load->indices);
    if (auto* store = node.as<BufferStoreObj>()) note(store->buffer, store->indices);
  });
  if (!needed) return;
  arith::Analyzer analyzer;
  Array<Range> region = m.Region();
  bool contiguous = m.buffer->strides.empty(), inside = false;
  for (size_t i = 0; i < region.size(); ++i) {
    if (inside) contiguous &= analyzer.CanProveEqual(region[i]->extent, m.buffer->shape[i]);
    inside |= !IsOne(region[i]->extent);
  }
  if (!contiguous) {
    Refuse("expected buffer " + std::string(m.buffer->name) +
               " to be contiguous where the intrinsic uses it, got " +
               Text(BufferRegion(m.buffer, region)),
           {block});
  }
}

void Tensorize(State& state, BlockOrLoopId target, String tensor_intrin, bool preserve_unit_iters) {
  TensorIntrin intrin = Lookup(tensor_intrin);
  BlockId id{target};
  if (!state.IsBlock(target)) id = BlockizeLoop(state, LoopId{target}, preserve_unit_iters);
  Block block = ffi::GetRef<Block>(state.block(id));
  Block desc = RootOf(intrin->desc, "description");
  std::vector<BufferMatch> matches;
  if (std::string why = WhyNotIntrin(block->body, desc->body, &matches); !why.empty()) {
    Refuse("block " + std::string(block->name_hint) + " does not compute what intrinsic '" +
               std::string(tensor_intrin) + "' describes: " + why,
           {block});
  }
  // New variables and buffers: the intrinsic may be used several times.
  PrimFunc impl = RenewDefs(intrin->impl);
  Block root = RootOf(impl, "implementation");
  auto find = [&](size_t i) -> const BufferMatch& {
    const Buffer& described = intrin->desc.BufferOf(intrin->desc->params[i]);
    for (const BufferMatch& m : matches) {
      if (m.described.same_as(described)) return m;
    }
    Refuse("expected the description of the intrinsic to use its parameter " +
           std::string(intrin->desc->params[i]->name_hint));
  };
  Array<MatchBufferRegion> views = block->match_buffers;
  for (size_t i = 0; i < impl->params.size(); ++i) {
    const BufferMatch& m = find(i);
    CheckContiguous(m, impl.BufferOf(impl->params[i]), root->body, block);
    views.push_back(
        MatchBufferRegion(impl.BufferOf(impl->params[i]), BufferRegion(m.buffer, m.Region())));
  }
  for (const MatchBufferRegion& m : root->match_buffers) views.push_back(m);
  Block with = block;
  auto* n = Edit(&with);
  n->body = root->body;
  n->match_buffers = views;
  for (const Buffer& b : root->alloc_buffers) n->alloc_buffers.push_back(b);
  for (const auto& [key, value] : root->annotations) n->annotations.Set(key, value);
  // What the intrinsic reads without the block doing so (the accumulator) is part of the signature.
  auto add = [&](Array<BufferRegion>* to, const Array<BufferRegion>& regions) {
    for (const BufferRegion& r : regions) {
      for (size_t i = 0; i < intrin->desc->params.size(); ++i) {
        const BufferMatch& m = find(i);
        bool known = std::any_of(to->begin(), to->end(), [&](const BufferRegion& k) {
          return k->buffer.same_as(m.buffer);
        });
        if (m.described.same_as(r->buffer) && !known)
          to->push_back(BufferRegion(m.buffer, m.Region()));
      }
    }
  };
  if (!block->init.has_value()) add(&n->reads, desc->reads);
  add(&n->writes, desc->writes);
  state.ReplaceBlock(id, with);
}

TVM_REGISTER() {
  DefPrimitive(
      "Tensorize", "tensorize", &Tensorize, &Schedule::Tensorize,
      "Replaces the body of a block (or of what is below a loop, blockized first) by an intrinsic, "
      "given by the name it is registered with. The body must compute what the intrinsic's "
      "description does.",
      {R"(
def before(A: T.Buffer((4, 4), "uint8"), B: T.Buffer((16, 4), "int8"), C: T.Buffer((4, 16), "int32")):
    for i, j, k in T.grid(4, 16, 4):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vj, vk], "int32"))",
       R"(from tvm.tir.tensor_intrin import x86
i, j, k = sch.get_loops("C")
sch.decompose_reduction("C", j)
sch.tensorize(j, x86.VNNI_DOT_16x4_INTRIN))"},
      Arg("block_or_loop"), Arg("tensor_intrin"), Arg("preserve_unit_iters", true));
}
}  // namespace
}  // namespace tvm::tir
