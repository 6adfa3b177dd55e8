// SPDX-License-Identifier: Apache-2.0
// Postprocessors: what has to happen to a replayed schedule before it is built, and what must not
// be built.
#include "schedule/analysis.h"
#include "tune/postproc/tensorize.h"
#include "tune/rule/blocks.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/analysis.h"

namespace tvm::tune {
namespace {
using namespace tir;

struct DisallowDynamicLoopObj : PostprocObj {
  static void Fields(auto&&) {}
  bool Apply(const Schedule& sch) final {
    struct Finder : Visitor<Finder, ForObj> {
      bool found = false;
      void Visit(const ForObj* op) {
        found |= !op->extent.as<IntImmObj>();
        VisitChildren(op, *this);
      }
    } find;
    for (const auto& [var, func] : sch.mod()->functions) find(func);
    return !find.found;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.DisallowDynamicLoop", DisallowDynamicLoopObj,
                                    PostprocObj);
};

// ---- parallel, vectorised, unrolled loops ------------------------------------------------------
/// What ParallelizeVectorizeUnroll asked for.
struct Wishes {
  int64_t parallel = -1, vectorize = -1, unroll = -1;
  bool unroll_explicit = true;
};
constexpr const char *kParallel = "meta_schedule.parallel", *kVectorize = "meta_schedule.vectorize",
                     *kUnrollExplicit = "meta_schedule.unroll_explicit",
                     *kUnrollImplicit = "meta_schedule.unroll_implicit";
struct RewriteParallelVectorizeUnrollObj : PostprocObj {
  static void Fields(auto&&) {}
  bool Apply(const Schedule& sch) final {
    std::vector<BlockRV> roots = BlocksWhere(sch, [&](const BlockRV& block) {
      for (const char* key : {kParallel, kVectorize, kUnrollExplicit, kUnrollImplicit})
        if (AnnotationOf(sch, block, key) != nullptr) return true;
      return false;
    });
    for (const BlockRV& root : roots) {
      Wishes wishes = Take(sch, root);
      for (const BlockRV& child : sch.GetChildBlocks(root)) Rewrite(sch, child, wishes);
    }
    return true;
  }

 private:
  static int64_t Number(const Any& value) {
    if (auto n = value.as<int64_t>()) return *n;
    if (auto e = value.as<IntImm>()) return (*e)->value;
    return -1;
  }
  Wishes Take(const Schedule& sch, const BlockRV& block) {
    Wishes w;
    auto take = [&](const char* key, int64_t* out) {
      Any value = AnnotationOf(sch, block, key);
      if (value == nullptr) return false;
      *out = Number(value);
      sch.Unannotate(block, key);
      return true;
    };
    take(kParallel, &w.parallel);
    take(kVectorize, &w.vectorize);
    take(kUnrollExplicit, &w.unroll);
    if (take(kUnrollImplicit, &w.unroll)) w.unroll_explicit = false;
    return w;
  }
  /// Whether every block below the loop uses it for spatial iterators only.
  static bool IsSpatialForAll(const Schedule& sch, const ForObj* loop) {
    const State& state = sch.state();
    for (BlockId child : state.ChildBlocks(state.Find(loop))) {
      BlockView view(sch, sch.NewBlockRV(child));
      for (const Axis& axis : view.axes)
        if (axis.node == loop && axis.use != LoopUse::kSpatial) return false;
    }
    return true;
  }
  void Rewrite(const Schedule& sch, const BlockRV& block, const Wishes& wishes) {
    BlockView view(sch, block);
    if (view.axes.empty()) return;
    for (const Axis& axis : view.axes)
      if (axis.node->kind != ForKind::kSerial) return;  // somebody decided already
    size_t n = view.axes.size();
    // The outermost loops together become one parallel loop, as long as they are a plain nest.
    size_t parallel = 0;
    for (double product = 1; wishes.parallel > 0 && parallel < n; ++parallel) {
      const ForObj* loop = view.axes[parallel].node;
      product *= static_cast<double>(std::max<int64_t>(1, ConstantExtent(loop)));
      bool fits = product <= static_cast<double>(wishes.parallel) || parallel == 0;
      if (!fits || view.axes[parallel].use == LoopUse::kReduce || !IsSpatialForAll(sch, loop))
        break;
      bool nested = parallel == 0 ||
                    view.axes[parallel - 1].node->body.get() == static_cast<const Object*>(loop);
      if (!nested) break;
    }
    // The last loop as one vector; a longer one is split.
    bool vectorize = false;
    int64_t extent = view.axes[n - 1].size.value_or(-1);
    bool last_is_free = parallel < n && view.axes[n - 1].use == LoopUse::kSpatial;
    if (wishes.vectorize > 1 && last_is_free && extent > 1 &&
        sch.state().ChildBlocks(sch.state().Find(view.axes[n - 1].node)).size() == 1) {
      vectorize =
          view.StayInRow(view.block->reads, n - 1) && view.StayInRow(view.block->writes, n - 1);
    }
    Array<LoopRV> loops = sch.GetLoops(block);
    if (vectorize) {
      if (extent <= wishes.vectorize) {
        Try([&] { sch.Vectorize(loops[n - 1]); });
      } else {
        int64_t width = wishes.vectorize;
        while (width > 1 && extent % width != 0) --width;
        if (width > 1) {
          Try([&] {
            auto parts = sch.Split(loops[n - 1], {std::nullopt, PrimExpr(IntImm::Int32(width))});
            sch.Vectorize(parts[1]);
            loops.Set(n - 1, parts[0]);
          });
        }
      }
    }
    if (parallel > 0) {
      Array<LoopRV> outer(loops.begin(), loops.begin() + parallel);
      Try([&] {
        LoopRV fused = outer.size() > 1 ? sch.Fuse(outer) : outer[0];
        sch.Parallel(fused);
      });
    }
    // Without a reduction there is nothing to gain that the code generator does not find.
    bool reduces = std::any_of(view.axes.begin(), view.axes.end(),
                               [](const Axis& a) { return a.use != LoopUse::kSpatial; });
    if (wishes.unroll > 0 && reduces) {
      Array<LoopRV> now = sch.GetLoops(block);
      sch.Annotate(now[0], tir::attr::kPragmaUnroll, wishes.unroll);
      sch.Annotate(now[0], tir::attr::kPragmaUnrollExplicit, int64_t{wishes.unroll_explicit});
    }
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.RewriteParallelVectorizeUnroll",
                                    RewriteParallelVectorizeUnrollObj, PostprocObj);
};

// ---- reductions --------------------------------------------------------------------------------
/// Initialising a result outside of the loops of its reduction.
struct RewriteReductionBlockObj : PostprocObj {
  static void Fields(auto&&) {}
  bool Apply(const Schedule& sch) final {
    std::vector<BlockRV> blocks =
        BlocksWhere(sch, [&](const BlockRV& block) { return sch.Get(block)->init.has_value(); });
    for (const BlockRV& block : blocks) {
      BlockView view(sch, block);
      for (size_t i = 0; i < view.axes.size(); ++i) {
        if (view.axes[i].use != LoopUse::kReduce && view.axes[i].use != LoopUse::kMixed) continue;
        Try([&] { Decompose(sch, block, i); });
        break;
      }
    }
    return true;
  }

 private:
  static void Decompose(const Schedule& sch, const BlockRV& block, size_t loop) {
    Array<LoopRV> loops = sch.GetLoops(block);
    bool vectorised = sch.Get(loops.back())->kind == ForKind::kVectorized;
    BlockRV init = sch.DecomposeReduction(block, loops[loop]);
    Array<LoopRV> of_init = sch.GetLoops(init);
    if (vectorised && !of_init.empty() && sch.Get(of_init.back())->kind == ForKind::kSerial &&
        of_init.size() > loop)
      Try([&] { sch.Vectorize(of_init.back()); });
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.RewriteReductionBlock", RewriteReductionBlockObj,
                                    PostprocObj);
};

// ---- tensor intrinsics -------------------------------------------------------------------------
/// The block that begins the reduction, by itself outside of all of it.
BlockRV Initialized(const Schedule& sch, const BlockRV& block) {
  BlockView view(sch, block);
  Array<LoopRV> loops = sch.GetLoops(block);
  for (size_t i = 0; i < view.axes.size(); ++i) {
    if (view.axes[i].use == LoopUse::kReduce)
      return sch.DecomposeReduction(block, loops[static_cast<int64_t>(i)]);
  }
  TVM_FFI_THROW(ValueError) << "RewriteTensorize: expected a reduction";
  TVM_FFI_UNREACHABLE();
}
}  // namespace

bool TensorizeAnnotated(const Schedule& sch) {
  std::vector<BlockRV> blocks = BlocksWhere(sch, [&](const BlockRV& block) {
    return AnnotationOf(sch, block, kAutoTensorize).as<String>().has_value();
  });
  for (const BlockRV& block : blocks) {
    auto name = AnnotationOf(sch, block, kAutoTensorize).cast<String>();
    auto init = AnnotationOf(sch, block, kAutoTensorizeInit).as<String>();
    sch.Unannotate(block, kAutoTensorize);
    if (init.has_value()) sch.Unannotate(block, kAutoTensorizeInit);
    bool done = Try([&] {
      if (init.has_value()) sch.Tensorize(Initialized(sch, block), init.value());
      sch.Tensorize(block, name);
    });
    if (!done) return false;
  }
  return true;
}

namespace {
struct RewriteTensorizeObj : PostprocObj {
  bool vectorize_init_loop = false;
  static void Fields(auto&& def) {
    def("vectorize_init_loop", &RewriteTensorizeObj::vectorize_init_loop, Default(false));
  }
  bool Apply(const Schedule& sch) final { return TensorizeAnnotated(sch); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.RewriteTensorize", RewriteTensorizeObj,
                                    PostprocObj);
};

struct PyPostprocObj : PostprocObj {
  TVM_USER_DEFINED_PART(PyPostprocObj, Postproc)
  bool Apply(const Schedule& sch) final { return CallUser<bool>("apply", sch); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.PyPostproc", PyPostprocObj, PostprocObj);
};

TVM_REGISTER() {
  RegisterBase<PostprocObj>("Makes a replayed schedule ready to be built, or refuses it.");
  RegisterNode<DisallowDynamicLoopObj>("Refuses programs with loops of unknown length.");
  RegisterNode<RewriteParallelVectorizeUnrollObj>(
      "Does what ParallelizeVectorizeUnroll annotated the root with.");
  RegisterNode<RewriteReductionBlockObj>(
      "Moves the initialisation of results out of the loops of their reductions.");
  RegisterNode<RewriteTensorizeObj>("Replaces blocks annotated for it by tensor intrinsics.");
  RegisterNode<PyPostprocObj>("A postprocessor defined by a user.");
  Def(
      "meta_schedule.Postproc.apply", [](Postproc self, Schedule sch) { return self->Apply(sch); },
      "Changes the schedule; False refuses it.", Arg("self"), Arg("sch"));
  DefPart<Postproc>("meta_schedule.Postproc.clone",
                    "meta_schedule.Postproc._initialize_with_tune_context");
}
}  // namespace
}  // namespace tvm::tune
