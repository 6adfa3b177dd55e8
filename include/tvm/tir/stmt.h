// SPDX-License-Identifier: Apache-2.0
// Statements.
#pragma once
#include "tvm/expr/expr.h"

namespace tvm::tir {

struct StmtObj : NodeObj {
  Optional<Span> span;
  static constexpr uint32_t _type_child_slots = 20;
  static void Fields(auto&& def) { def("span", &StmtObj::span, Default(nullptr), Ignored()); }
  TVM_FFI_DECLARE_OBJECT_INFO("tir.Stmt", StmtObj, NodeObj);
};
TVM_NODE_REF(Stmt, ObjectRef, StmtObj);

/// `body` with `var` standing for `value`.
struct LetStmtObj : StmtObj {
  Var var;
  PrimExpr value;
  Stmt body;
  static void Fields(auto&& def) {
    def("var", &LetStmtObj::var, Binds());
    def("value", &LetStmtObj::value);
    def("body", &LetStmtObj::body);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.LetStmt", LetStmtObj, StmtObj);
};
struct LetStmt : Stmt {
  LetStmt(Var var, PrimExpr value, Stmt body, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(LetStmt, Stmt, LetStmtObj);
};

/// Raises an error with `message` (a StringImm) unless `condition` holds, then runs `body`.
struct AssertStmtObj : StmtObj {
  PrimExpr condition, message;
  Stmt body;
  static void Fields(auto&& def) {
    def("condition", &AssertStmtObj::condition);
    def("message", &AssertStmtObj::message);
    def("body", &AssertStmtObj::body);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.AssertStmt", AssertStmtObj, StmtObj);
};
struct AssertStmt : Stmt {
  AssertStmt(PrimExpr condition, PrimExpr message, Stmt body, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(AssertStmt, Stmt, AssertStmtObj);
};

/// How a loop runs. The values are part of the interface.
enum class ForKind : int {
  kSerial = 0,
  kParallel = 1,    ///< Iterations run on the thread pool.
  kVectorized = 2,  ///< All iterations become one vector operation.
  kUnrolled = 3,
  kThreadBinding = 4,  ///< Each thread of a GPU runs one iteration; thread_binding says which.
};

/// for loop_var in [min, min + extent), in steps of `step` (1 if none): body
struct ForObj : StmtObj {
  Var loop_var;
  PrimExpr min, extent;
  ForKind kind = ForKind::kSerial;
  Stmt body;
  Optional<IterVar> thread_binding;
  Map<String, Any> annotations;
  Optional<PrimExpr> step;
  static void Fields(auto&& def) {
    def("loop_var", &ForObj::loop_var, Binds());
    def("min", &ForObj::min);
    def("extent", &ForObj::extent);
    def("kind", &ForObj::kind);
    def("body", &ForObj::body);
    def("thread_binding", &ForObj::thread_binding, Default(nullptr));
    def("annotations", &ForObj::annotations, Default(Map<String, Any>()));
    def("step", &ForObj::step, Default(nullptr));
  }
  void Init();
  bool HasTrivialStep() const;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.For", ForObj, StmtObj);
};
struct For : Stmt {
  For(Var loop_var, PrimExpr min, PrimExpr extent, ForKind kind, Stmt body,
      Optional<IterVar> thread_binding = {}, Map<String, Any> annotations = {},
      Optional<PrimExpr> step = {}, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(For, Stmt, ForObj);
};

/// Runs `body` while `condition` holds.
struct WhileObj : StmtObj {
  PrimExpr condition;
  Stmt body;
  static void Fields(auto&& def) {
    def("condition", &WhileObj::condition);
    def("body", &WhileObj::body);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.While", WhileObj, StmtObj);
};
struct While : Stmt {
  While(PrimExpr condition, Stmt body, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(While, Stmt, WhileObj);
};

/// buffer[indices] = value; lanes whose predicate is false write nothing.
struct BufferStoreObj : StmtObj {
  Buffer buffer;
  PrimExpr value;
  Array<PrimExpr> indices;
  Optional<PrimExpr> predicate;
  static void Fields(auto&& def) {
    def("buffer", &BufferStoreObj::buffer);
    def("value", &BufferStoreObj::value);
    def("indices", &BufferStoreObj::indices);
    def("predicate", &BufferStoreObj::predicate, Default(nullptr));
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.BufferStore", BufferStoreObj, StmtObj);
};
struct BufferStore : Stmt {
  BufferStore(Buffer buffer, PrimExpr value, Array<PrimExpr> indices,
              Optional<PrimExpr> predicate = {}, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(BufferStore, Stmt, BufferStoreObj);
};

/// The region of a buffer that `body` needs.
struct BufferRealizeObj : StmtObj {
  Buffer buffer;
  Array<Range> bounds;
  PrimExpr condition;
  Stmt body;
  static void Fields(auto&& def) {
    def("buffer", &BufferRealizeObj::buffer, Binds());
    def("bounds", &BufferRealizeObj::bounds);
    def("condition", &BufferRealizeObj::condition);
    def("body", &BufferRealizeObj::body);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.BufferRealize", BufferRealizeObj, StmtObj);
};
struct BufferRealize : Stmt {
  BufferRealize(Buffer buffer, Array<Range> bounds, PrimExpr condition, Stmt body,
                Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(BufferRealize, Stmt, BufferRealizeObj);
};

/// Memory for `body`: product(extents) elements of dtype.
struct AllocateObj : StmtObj {
  Var buffer_var;
  DataType dtype;
  Array<PrimExpr> extents;
  PrimExpr condition;
  Stmt body;
  Map<String, Any> annotations;
  static void Fields(auto&& def) {
    def("buffer_var", &AllocateObj::buffer_var, Binds());
    def("dtype", &AllocateObj::dtype);
    def("extents", &AllocateObj::extents);
    def("condition", &AllocateObj::condition);
    def("body", &AllocateObj::body);
    def("annotations", &AllocateObj::annotations, Default(Map<String, Any>()));
  }
  void Init();
  /// The number of elements when it is constant, else 0.
  int64_t ConstantSize() const;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Allocate", AllocateObj, StmtObj);
};
struct Allocate : Stmt {
  Allocate(Var buffer_var, DataType dtype, Array<PrimExpr> extents, PrimExpr condition, Stmt body,
           Map<String, Any> annotations = {}, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Allocate, Stmt, AllocateObj);
};

/// Constant memory for `body`: a tensor, or an index into the module's "constants".
struct AllocateConstObj : StmtObj {
  Var buffer_var;
  DataType dtype;
  Array<PrimExpr> extents;
  Optional<ffi::Tensor> data;
  Optional<int64_t> irmod_storage_idx;
  Stmt body;
  Map<String, Any> annotations;
  static void Fields(auto&& def) {
    def("buffer_var", &AllocateConstObj::buffer_var, Binds());
    def("dtype", &AllocateConstObj::dtype);
    def("extents", &AllocateConstObj::extents);
    def("data", &AllocateConstObj::data);
    def("irmod_storage_idx", &AllocateConstObj::irmod_storage_idx);
    def("body", &AllocateConstObj::body);
    def("annotations", &AllocateConstObj::annotations, Default(Map<String, Any>()));
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.AllocateConst", AllocateConstObj, StmtObj);
};
struct AllocateConst : Stmt {
  AllocateConst(Var buffer_var, DataType dtype, Array<PrimExpr> extents, ffi::Tensor data,
                Stmt body, Map<String, Any> annotations = {}, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(AllocateConst, Stmt, AllocateConstObj);
};

/// Makes `buffer`, a view of a pointer that exists, known in `body`.
struct DeclBufferObj : StmtObj {
  Buffer buffer;
  Stmt body;
  static void Fields(auto&& def) {
    def("buffer", &DeclBufferObj::buffer);
    def("body", &DeclBufferObj::body);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.DeclBuffer", DeclBufferObj, StmtObj);
};
struct DeclBuffer : Stmt {
  DeclBuffer(Buffer buffer, Stmt body, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(DeclBuffer, Stmt, DeclBufferObj);
};

/// Says something about `node` while `body` runs; see namespace attr for the keys.
struct AttrStmtObj : StmtObj {
  Any node;
  String attr_key;
  PrimExpr value;
  Stmt body;
  static void Fields(auto&& def) {
    def("node", &AttrStmtObj::node);
    def("attr_key", &AttrStmtObj::attr_key);
    def("value", &AttrStmtObj::value);
    def("body", &AttrStmtObj::body);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.AttrStmt", AttrStmtObj, StmtObj);
};
struct AttrStmt : Stmt {
  AttrStmt(Any node, String attr_key, PrimExpr value, Stmt body, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(AttrStmt, Stmt, AttrStmtObj);
};

/// Statements one after the other: at least two, none of them a SeqStmt.
struct SeqStmtObj : StmtObj {
  Array<Stmt> seq;
  static void Fields(auto&& def) { def("seq", &SeqStmtObj::seq); }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.SeqStmt", SeqStmtObj, StmtObj);
};
struct SeqStmt : Stmt {
  /// The statements as one: nested sequences flattened, statements without effect left out, a
  /// single one itself.
  static Stmt Flatten(const Array<Stmt>& seq, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(SeqStmt, Stmt, SeqStmtObj);
};

struct IfThenElseObj : StmtObj {
  PrimExpr condition;
  Stmt then_case;
  Optional<Stmt> else_case;
  static void Fields(auto&& def) {
    def("condition", &IfThenElseObj::condition);
    def("then_case", &IfThenElseObj::then_case);
    def("else_case", &IfThenElseObj::else_case, Default(nullptr));
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.IfThenElse", IfThenElseObj, StmtObj);
};
struct IfThenElse : Stmt {
  IfThenElse(PrimExpr condition, Stmt then_case, Optional<Stmt> else_case = {},
             Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IfThenElse, Stmt, IfThenElseObj);
};

/// An expression evaluated for its effect; Evaluate(0) does nothing.
struct EvaluateObj : StmtObj {
  PrimExpr value;
  static void Fields(auto&& def) { def("value", &EvaluateObj::value); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Evaluate", EvaluateObj, StmtObj);
};
struct Evaluate : Stmt {
  explicit Evaluate(PrimExpr value, Optional<Span> span = {});
  static Stmt Nothing() { return Evaluate(PrimExpr(0)); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Evaluate, Stmt, EvaluateObj);
};
bool IsNothing(const Stmt& stmt);

/// A box of a buffer: one range per dimension.
struct BufferRegionObj : NodeObj {
  Buffer buffer;
  Array<Range> region;
  static void Fields(auto&& def) {
    def("buffer", &BufferRegionObj::buffer);
    def("region", &BufferRegionObj::region);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.BufferRegion", BufferRegionObj, NodeObj);
};
struct BufferRegion : ObjectRef {
  BufferRegion(Buffer buffer, Array<Range> region);
  static BufferRegion Full(Buffer buffer);
  static BufferRegion Point(Buffer buffer, const Array<PrimExpr>& indices);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(BufferRegion, ObjectRef, BufferRegionObj);
};

/// `buffer` is a view of `source` inside a block.
struct MatchBufferRegionObj : NodeObj {
  Buffer buffer;
  BufferRegion source;
  static void Fields(auto&& def) {
    def("buffer", &MatchBufferRegionObj::buffer, Binds());
    def("source", &MatchBufferRegionObj::source);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.MatchBufferRegion", MatchBufferRegionObj, NodeObj);
};
struct MatchBufferRegion : ObjectRef {
  MatchBufferRegion(Buffer buffer, BufferRegion source);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(MatchBufferRegion, ObjectRef, MatchBufferRegionObj);
};

/// The unit of scheduling: for each binding of iter_vars, `body` reads and writes the regions
/// given. `init` runs first where all reduction iterators are at their start.
struct BlockObj : StmtObj {
  Array<IterVar> iter_vars;
  Array<BufferRegion> reads, writes;
  String name_hint;
  Stmt body;
  Optional<Stmt> init;
  Array<Buffer> alloc_buffers;
  Array<MatchBufferRegion> match_buffers;
  Map<String, Any> annotations;
  static constexpr std::string_view kParamOrder =
      "iter_vars,reads,writes,name_hint,body,init,alloc_buffers,match_buffers,annotations,span";
  static void Fields(auto&& def) {
    def("iter_vars", &BlockObj::iter_vars, Binds());
    def("alloc_buffers", &BlockObj::alloc_buffers, Binds(), Default(Array<Buffer>()));
    def("match_buffers", &BlockObj::match_buffers, Default(Array<MatchBufferRegion>()));
    def("name_hint", &BlockObj::name_hint, NameOnly());
    def("reads", &BlockObj::reads);
    def("writes", &BlockObj::writes);
    def("annotations", &BlockObj::annotations, Default(Map<String, Any>()));
    def("init", &BlockObj::init, Default(nullptr));
    def("body", &BlockObj::body);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Block", BlockObj, StmtObj);
};
struct Block : Stmt {
  Block(Array<IterVar> iter_vars, Array<BufferRegion> reads, Array<BufferRegion> writes,
        String name_hint, Stmt body, Optional<Stmt> init = {}, Array<Buffer> alloc_buffers = {},
        Array<MatchBufferRegion> match_buffers = {}, Map<String, Any> annotations = {},
        Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Block, Stmt, BlockObj);
};

/// Runs a block with its iterators bound to values, where `predicate` holds.
struct BlockRealizeObj : StmtObj {
  Array<PrimExpr> iter_values;
  PrimExpr predicate;
  Block block;
  static void Fields(auto&& def) {
    def("iter_values", &BlockRealizeObj::iter_values);
    def("predicate", &BlockRealizeObj::predicate);
    def("block", &BlockRealizeObj::block);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.BlockRealize", BlockRealizeObj, StmtObj);
};
struct BlockRealize : Stmt {
  BlockRealize(Array<PrimExpr> iter_values, PrimExpr predicate, Block block,
               Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(BlockRealize, Stmt, BlockRealizeObj);
};

/// Keys of AttrStmt, of loops and of blocks that this project gives meaning to.
namespace attr {
inline constexpr const char* kThreadExtent = "thread_extent";
inline constexpr const char* kVirtualThread = "virtual_thread";
inline constexpr const char* kStorageAlignment = "buffer_dim_align";
inline constexpr const char* kPragmaUnroll = "pragma_auto_unroll_max_step";
inline constexpr const char* kPragmaUnrollExplicit = "pragma_unroll_explicit";
inline constexpr const char* kVolatile = "volatile_scope";
inline constexpr const char* kComputeScope = "compute_scope";
inline constexpr const char* kDeviceScope = "device_scope";
inline constexpr const char* kDeviceId = "device_id";
inline constexpr const char* kDeviceType = "device_type";
inline constexpr const char* kIsScheduled = "tir.is_scheduled";
inline constexpr const char* kNoAlias = "tir.noalias";
inline constexpr const char* kIsEntryFunc = "tir.is_entry_func";
inline constexpr const char* kIsHostFunc = "tir.is_host_func";
}  // namespace attr

}  // namespace tvm::tir
