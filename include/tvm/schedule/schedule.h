// SPDX-License-Identifier: Apache-2.0
// Schedule: a program being transformed, and the trace of how.
//
// C++ calls a primitive as Python does: `auto loops = sch.Split(loop, {4, 16});`. Each method below
// calls the primitive registered under its name (src/schedule/primitive), which records itself.
#pragma once
#include <optional>

#include "tvm/schedule/state.h"
#include "tvm/tir/index_map.h"

namespace tvm::tir {

// ---- random variables -------------------------------------------------------------------------
/// Stands for a block of a schedule's program.
struct BlockRVObj : NodeObj {
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindFreeVar;
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.BlockRV", BlockRVObj, NodeObj);
};
TVM_NODE_REF(BlockRV, ObjectRef, BlockRVObj);
/// Stands for a loop of a schedule's program.
struct LoopRVObj : NodeObj {
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindFreeVar;
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.LoopRV", LoopRVObj, NodeObj);
};
TVM_NODE_REF(LoopRV, ObjectRef, LoopRVObj);
/// Stands for an integer: a Var that a sampling primitive gave a value, or a constant.
using ExprRV = PrimExpr;

/// The places of compute_at that are no loops.
inline constexpr NodeId kInlineMark = -2, kRootMark = -3;

/// A buffer of a block: ("read" or "write", index), its name or itself. In traces the first.
using BufferRef = Variant<Array<Any>, String, Buffer>;

// ---- traces -----------------------------------------------------------------------------------
struct Primitive;
/// The name of a primitive in traces.
struct InstructionKindObj : NodeObj {
  String name;
  bool is_pure = false;  // it asks or samples; the program stays as it is
  const Primitive* primitive = nullptr;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUniqueInstance;
  static void Fields(auto&& def) {
    def("name", &InstructionKindObj::name);
    def("is_pure", &InstructionKindObj::is_pure);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.InstructionKind", InstructionKindObj, NodeObj);
};
struct InstructionKind : ObjectRef {
  static InstructionKind Get(const String& name);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(InstructionKind, ObjectRef, InstructionKindObj);
};

/// One primitive that was applied. Inputs are random variables (also in arrays) and expressions of
/// them; attrs are plain values; outputs the random variables it defined.
struct InstructionObj : NodeObj {
  InstructionKind kind;
  Array<Any> inputs, attrs, outputs;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUniqueInstance;
  static void Fields(auto&& def) {
    def("kind", &InstructionObj::kind);
    def("inputs", &InstructionObj::inputs);
    def("attrs", &InstructionObj::attrs);
    def("outputs", &InstructionObj::outputs);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Instruction", InstructionObj, NodeObj);
};
TVM_NODE_REF(Instruction, ObjectRef, InstructionObj);

/// (instruction, mapped inputs, attrs, recorded decision) -> decision
using DecisionProvider =
    std::function<Any(const Instruction&, const Array<Any>&, const Array<Any>&, const Any&)>;

struct Schedule;
/// Instructions in order, and what the sampling ones of them decided.
struct TraceObj : NodeObj {
  static constexpr bool _type_mutable = true;
  Array<Instruction> insts;
  Map<Instruction, Any> decisions;
  static void Fields(auto&& def) {
    def("insts", &TraceObj::insts, Default(Array<Instruction>()));
    def("decisions", &TraceObj::decisions, Default(Map<Instruction, Any>()));
  }
  /// The decision of an instruction, or None.
  Any GetDecision(const Instruction& inst) const;
  void Append(Instruction inst, Any decision = nullptr);
  /// Removes and returns the last instruction; undefined when there is none.
  Instruction Pop();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Trace", TraceObj, NodeObj);
};
struct Trace : ObjectRef {
  Trace(Array<Instruction> insts, Map<Instruction, Any> decisions);
  /// Applies the instructions; `decide` may change what is decided.
  void ApplyToSchedule(const Schedule& sch, bool remove_postproc,
                       const DecisionProvider& decide = nullptr) const;
  /// [instructions, decisions], all of it plain data.
  Array<Any> AsJson(bool remove_postproc = false) const;
  static void ApplyJsonToSchedule(const Array<Any>& json, const Schedule& sch);
  /// One call per line, to be run with the schedule as `sch`.
  Array<String> AsPython(bool remove_postproc = false) const;
  Trace WithDecision(const Instruction& inst, Any decision, bool remove_postproc) const;
  /// Without instructions that define nothing used later and change nothing.
  Trace Simplified(bool remove_postproc) const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Trace, ObjectRef, TraceObj);
};

// ---- state as an object -------------------------------------------------------------------------
enum ScheduleDebugMask : int { kVerifySRefTree = 1, kVerifyCachedFlags = 2 };

/// A State that Python can hold: it changes as primitives are applied.
struct ScheduleStateObj : NodeObj {
  static constexpr bool _type_mutable = true;
  State value;
  int64_t debug_mask = 0;
  bool enable_check = true;
  void Init();  // raises: it is not made from fields
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.ScheduleState", ScheduleStateObj, NodeObj);
};
struct ScheduleState : ObjectRef {
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(ScheduleState, ObjectRef, ScheduleStateObj);
};
/// One block or loop of a ScheduleState.
struct StmtSRefObj : NodeObj {
  ScheduleState state;
  NodeId id = kNoNode;
  void Init();  // raises without a state: it is not made from fields
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.StmtSRef", StmtSRefObj, NodeObj);
};
TVM_NODE_REF(StmtSRef, ObjectRef, StmtSRefObj);

// ---- schedule -----------------------------------------------------------------------------------
/// How much an error says: all with the program, the reason alone, or next to nothing.
enum class ErrorRenderLevel : int { kDetail = 0, kFast = 1, kNone = 2 };

/// What a random variable stands for.
struct Symbol {
  ObjectRef rv;
  NodeId node = kNoNode;
  PrimExpr value;
};

struct ScheduleObj : NodeObj {
  static constexpr bool _type_mutable = true;
  ScheduleState state;
  PersistentMap<Symbol> symbols;  // by the random variable
  Array<Instruction> insts;
  Map<Instruction, Any> decisions;
  uint64_t random = 0;
  Optional<GlobalVar> working_on;
  ErrorRenderLevel error_render_level = ErrorRenderLevel::kDetail;
  void Init();  // raises: it is not made from fields
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Schedule", ScheduleObj, NodeObj);
};

struct Schedule : ObjectRef {
  using Blocks = Array<BlockRV>;
  using Loops = Array<LoopRV>;
  using Factors = Array<Optional<PrimExpr>>;
  using Exprs = Array<Var>;

  /// A negative seed: another one every time.
  explicit Schedule(IRModule mod, int64_t seed = -1, int64_t debug_mask = 0,
                    ErrorRenderLevel level = ErrorRenderLevel::kDetail, bool enable_check = true);

  const IRModule& mod() const { return (*this)->state->value.mod(); }
  State& state() const { return (*this)->state->value; }
  Trace trace() const;
  /// A schedule that goes its own way from here; random variables stand for the same in both.
  Schedule Copy() const;
  void Seed(int64_t seed) const;
  /// A seed for another generator, from this one.
  int64_t ForkSeed() const;
  void WorkOn(const String& func_name) const;
  /// The number of what a random variable stands for; refuses what is stale or foreign.
  NodeId IdOf(const ObjectRef& rv) const;
  Block Get(const BlockRV& rv) const;
  For Get(const LoopRV& rv) const;
  PrimExpr Get(const ExprRV& rv) const;
  void RemoveRV(const ObjectRef& rv) const;
  /// A new random variable for a block or loop of the program; it is not in the trace.
  BlockRV NewBlockRV(BlockId id) const;
  LoopRV NewLoopRV(NodeId id) const;

  /// Applies a primitive by the name of its instruction; see the methods below.
  template <class R, class... A>
  R Apply(const char* kind, const A&... args) const {
    AnyView views[sizeof...(A) + 1] = {args...};
    Any result = ApplyPacked(kind, views, sizeof...(A));
    if constexpr (!std::is_void_v<R>) return result.cast<R>();
  }
  Any ApplyPacked(const char* kind, const AnyView* args, int count) const;

  // ---- sampling
  Var SampleCategorical(Array<int64_t> candidates, Array<double> probs,
                        Optional<int64_t> decision = {}) const {
    return Apply<Var>("SampleCategorical", candidates, probs, decision);
  }
  Exprs SamplePerfectTile(LoopRV loop, int64_t n, int64_t max_innermost_factor = 16,
                          Optional<Array<int64_t>> decision = {}) const {
    return Apply<Exprs>("SamplePerfectTile", loop, n, max_innermost_factor, decision);
  }
  Exprs SamplePartitionedTile(LoopRV loop, int64_t n, int64_t partition_pos = 0,
                              int64_t innerpart_factor = 1,
                              Optional<Array<int64_t>> decision = {}) const {
    return Apply<Exprs>("SamplePartitionedTile", loop, n, partition_pos, innerpart_factor,
                        decision);
  }
  LoopRV SampleComputeLocation(BlockRV block, Optional<int64_t> decision = {}) const {
    return Apply<LoopRV>("SampleComputeLocation", block, decision);
  }
  // ---- questions
  BlockRV GetBlock(String name, Optional<String> func_name = {}) const {
    return Apply<BlockRV>("GetBlock", name, func_name);
  }
  Loops GetLoops(BlockRV block) const { return Apply<Loops>("GetLoops", block); }
  Blocks GetChildBlocks(ObjectRef block_or_loop) const {
    return Apply<Blocks>("GetChildBlocks", block_or_loop);
  }
  Blocks GetProducers(BlockRV block) const { return Apply<Blocks>("GetProducers", block); }
  Blocks GetConsumers(BlockRV block) const { return Apply<Blocks>("GetConsumers", block); }
  Blocks GetOutputBlocks(BlockRV scope) const { return Apply<Blocks>("GetOutputBlocks", scope); }
  // ---- loops
  LoopRV Merge(Loops loops) const { return Apply<LoopRV>("Merge", loops); }
  LoopRV Fuse(Loops loops, bool preserve_unit_iters = true) const {
    return Apply<LoopRV>("Fuse", loops, preserve_unit_iters);
  }
  Loops Split(LoopRV loop, Factors factors, bool preserve_unit_iters = true,
              bool disable_predication = false) const {
    return Apply<Loops>("Split", loop, factors, preserve_unit_iters, disable_predication);
  }
  Loops LoopPartition(LoopRV loop, Factors factors, bool preserve_unit_iters = true) const {
    return Apply<Loops>("LoopPartition", loop, factors, preserve_unit_iters);
  }
  void Reorder(Loops loops) const { Apply<void>("Reorder", loops); }
  void ReorderBlockIterVar(BlockRV block, Array<int64_t> new_order) const {
    Apply<void>("ReorderBlockIterVar", block, new_order);
  }
  LoopRV AddUnitLoop(ObjectRef block_or_loop) const {
    return Apply<LoopRV>("AddUnitLoop", block_or_loop);
  }
  void Parallel(LoopRV loop) const { Apply<void>("Parallel", loop); }
  void Vectorize(LoopRV loop) const { Apply<void>("Vectorize", loop); }
  void Bind(LoopRV loop, String thread_axis) const { Apply<void>("Bind", loop, thread_axis); }
  void Unroll(LoopRV loop) const { Apply<void>("Unroll", loop); }
  // ---- caches
  BlockRV CacheRead(BlockRV block, int64_t read_buffer_index, String storage_scope,
                    Blocks consumer_blocks = {}) const {
    return Apply<BlockRV>("CacheRead", block, read_buffer_index, storage_scope, consumer_blocks);
  }
  BlockRV CacheWrite(BlockRV block, int64_t write_buffer_index, String storage_scope,
                     Blocks consumer_blocks = {}) const {
    return Apply<BlockRV>("CacheWrite", block, write_buffer_index, storage_scope, consumer_blocks);
  }
  BlockRV ReindexCacheRead(BlockRV block, int64_t read_buffer_index, String storage_scope,
                           IndexMap index_map) const {
    return Apply<BlockRV>("ReindexCacheRead", block, read_buffer_index, storage_scope, index_map);
  }
  BlockRV ReindexCacheWrite(BlockRV block, int64_t write_buffer_index, String storage_scope,
                            IndexMap index_map) const {
    return Apply<BlockRV>("ReindexCacheWrite", block, write_buffer_index, storage_scope, index_map);
  }
  Blocks CacheInplace(BlockRV block, int64_t read_buffer_index, String storage_scope) const {
    return Apply<Blocks>("CacheInplace", block, read_buffer_index, storage_scope);
  }
  Blocks CacheIndex(BlockRV block, String storage_scope, int64_t cse_thresh = 0) const {
    return Apply<Blocks>("CacheIndex", block, storage_scope, cse_thresh);
  }
  BlockRV ReIndex(BlockRV block, BufferRef buffer) const {
    return Apply<BlockRV>("ReIndex", block, buffer);
  }
  // ---- where blocks run
  BlockRV ReadAt(LoopRV loop, BlockRV block, int64_t read_buffer_index, String scope) const {
    return Apply<BlockRV>("ReadAt", loop, block, read_buffer_index, scope);
  }
  BlockRV WriteAt(LoopRV loop, BlockRV block, int64_t write_buffer_index, String scope) const {
    return Apply<BlockRV>("WriteAt", loop, block, write_buffer_index, scope);
  }
  void ComputeAt(BlockRV block, LoopRV loop, bool preserve_unit_loops = false,
                 int64_t index = -1) const {
    Apply<void>("ComputeAt", block, loop, preserve_unit_loops, index);
  }
  void ReverseComputeAt(BlockRV block, LoopRV loop, bool preserve_unit_loops = false,
                        int64_t index = -1) const {
    Apply<void>("ReverseComputeAt", block, loop, preserve_unit_loops, index);
  }
  void ComputeInline(BlockRV block) const { Apply<void>("ComputeInline", block); }
  void ReverseComputeInline(BlockRV block) const { Apply<void>("ReverseComputeInline", block); }
  void FuseReductionEpilogue(BlockRV reduction_block, BlockRV epilogue_block) const {
    Apply<void>("FuseReductionEpilogue", reduction_block, epilogue_block);
  }
  // ---- reductions
  BlockRV DecomposeReduction(BlockRV block, LoopRV loop) const {
    return Apply<BlockRV>("DecomposeReduction", block, loop);
  }
  BlockRV RFactor(LoopRV loop, int64_t factor_axis) const {
    return Apply<BlockRV>("RFactor", loop, factor_axis);
  }
  // ---- buffers
  void StorageAlign(BlockRV block, int64_t buffer_index, int64_t axis, int64_t factor,
                    int64_t offset) const {
    Apply<void>("StorageAlign", block, buffer_index, axis, factor, offset);
  }
  void SetScope(BlockRV block, int64_t buffer_index, String storage_scope) const {
    Apply<void>("SetScope", block, buffer_index, storage_scope);
  }
  void UnsafeSetDType(BlockRV block, int64_t buffer_index, String dtype) const {
    Apply<void>("UnsafeSetDType", block, buffer_index, dtype);
  }
  void TransformLayout(BlockRV block, BufferRef buffer, IndexMap index_map,
                       Optional<IndexMap> pad_value = {},
                       bool assume_injective_transform = false) const {
    Apply<void>("TransformLayout", block, buffer, index_map, pad_value, assume_injective_transform);
  }
  void TransformBlockLayout(BlockRV block, IndexMap index_map) const {
    Apply<void>("TransformBlockLayout", block, index_map);
  }
  void SetAxisSeparator(BlockRV block, BufferRef buffer, Array<int64_t> axis_separators) const {
    Apply<void>("SetAxisSeparator", block, buffer, axis_separators);
  }
  // ---- blocks
  /// target: a loop, or an array of blocks.
  BlockRV Blockize(ObjectRef target, bool preserve_unit_iters = true) const {
    return Apply<BlockRV>("Blockize", target, preserve_unit_iters);
  }
  void Tensorize(ObjectRef block_or_loop, String tensor_intrin,
                 bool preserve_unit_iters = true) const {
    Apply<void>("Tensorize", block_or_loop, tensor_intrin, preserve_unit_iters);
  }
  BlockRV DecomposePadding(BlockRV block, LoopRV loop) const {
    return Apply<BlockRV>("DecomposePadding", block, loop);
  }
  void PadEinsum(BlockRV block, Array<int64_t> padding) const {
    Apply<void>("PadEinsum", block, padding);
  }
  Blocks PackProducts(BlockRV block, String instruction, int64_t shifted = -1,
                      Array<int64_t> padding = {}) const {
    return Apply<Blocks>("PackProducts", block, instruction, shifted, padding);
  }
  void RollingBuffer(BlockRV block, int64_t write_buffer_index) const {
    Apply<void>("RollingBuffer", block, write_buffer_index);
  }
  // ---- annotations
  void Annotate(ObjectRef block_or_loop, String ann_key, Any ann_val) const {
    Apply<void>("Annotate", block_or_loop, ann_key, ann_val);
  }
  void Unannotate(ObjectRef block_or_loop, String ann_key) const {
    Apply<void>("Unannotate", block_or_loop, ann_key);
  }
  void EnterPostproc() const { Apply<void>("EnterPostproc"); }
  void UnsafeHideBufferAccess(BlockRV block, String buf_type, Array<int64_t> indices) const {
    Apply<void>("UnsafeHideBufferAccess", block, buf_type, indices);
  }
  void AnnotateBufferAccess(BlockRV block, int64_t buffer_index, String buf_type,
                            IndexMap index_map) const {
    Apply<void>("AnnotateBufferAccess", block, buffer_index, buf_type, index_map);
  }

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Schedule, ObjectRef, ScheduleObj);
};

}  // namespace tvm::tir
