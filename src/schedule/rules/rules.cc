// SPDX-License-Identifier: Apache-2.0
// The rules in the order in which they are tried, and when they are.
#include "tvm/schedule/rules.h"

#include <algorithm>

#include "schedule/rules/look.h"
#include "tir/any_stmt.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt.h"

namespace tvm::tir {
namespace {
// ---- blocks one by one --------------------------------------------------------------------------
bool Reduces(const Block& block) {
  return std::any_of(block->iter_vars.begin(), block->iter_vars.end(), [](const IterVar& iter) {
    return iter->iter_type == IterVarType::kCommReduce;
  });
}
/// The blocks in the order in which they are scheduled. What a reduction alone reads may be taken
/// to where it is read: the reduction goes first.
Array<BlockRV> InOrder(const Schedule& sch, const Array<BlockRV>& blocks) {
  if (blocks.size() < 2) return blocks;
  Array<BlockRV> order, later;
  for (const BlockRV& block : blocks) {
    Array<BlockRV> consumers = sch.GetConsumers(block);
    bool waits =
        consumers.size() == 1 && Reduces(sch.Get(consumers[0])) && !Reduces(sch.Get(block));
    (waits ? later : order).push_back(block);
  }
  for (const BlockRV& block : later) order.push_back(block);
  return order;
}
/// Each block by itself: always possible.
bool BlockByBlock(const Schedule& sch, BlockRV root, const Machine& machine) {
  InlineCheap(sch, root);
  InlinePadding(sch, root);
  for (const BlockRV& block : InOrder(sch, sch.GetChildBlocks(root))) {
    if (!sch.state().Has(sch->symbols.Find(reinterpret_cast<uint64_t>(block.get()))->node))
      continue;
    BlockLook look = LookAt(sch, block);
    if (look.IsEmpty() && !look.has_reduction) continue;
    bool is_placed = !look.axes.empty() && sch.GetChildBlocks(look.axes[0].loop).size() > 1;
    if (is_placed) continue;
    Attempt(sch, [&] {
      if (look.has_reduction) {
        ScheduleReduction(sch, block, machine);
      } else {
        ScheduleSpatial(sch, block, machine);
      }
      return true;
    });
  }
  return true;
}

// ---- rows ---------------------------------------------------------------------------------------
/// Leading axes of the last block that the results of reductions are indexed by; 0 when there are
/// none, or others are.
size_t RowAxes(const BlockLook& last, const std::vector<BlockLook>& all) {
  size_t rows = 0;
  for (const Access& access : last.accesses) {
    if (access.is_store) continue;
    for (const BlockLook& producer : all) {
      if (!producer.has_reduction || !producer.Store().buffer.same_as(access.buffer)) continue;
      for (size_t i = 0; i < last.axes.size(); ++i) {
        if (access.Moves(i)) rows = std::max(rows, i + 1);
      }
    }
  }
  return rows;
}
/// Whether results of a reduction share what they read, as in a product: this wants tiles, or runs
/// along the results.
bool SharesOperands(const BlockLook& look) {
  return std::any_of(look.accesses.begin(), look.accesses.end(), [&](const Access& access) {
    size_t axes = 0, moving = 0;
    bool is_reduced = false;
    for (size_t i = 0; i < look.axes.size(); ++i) {
      if (look.axes[i].size == 1) continue;
      if (look.axes[i].reduce) {
        is_reduced |= access.Moves(i);
      } else {
        ++axes;
        moving += access.Moves(i);
      }
    }
    return !access.is_store && moving < axes && (moving > 0 || is_reduced);
  });
}
/// Whether what a reduction reads lies side by side along its results: these want vectors across
/// it.
bool ReadsAcross(const BlockLook& look) {
  for (const Access& access : look.accesses) {
    for (size_t i = 0; look.IsOperand(access) && i < look.axes.size(); ++i) {
      if (!look.axes[i].reduce && look.axes[i].size != 1 && access.StepsBy(i, 1)) return true;
    }
  }
  return false;
}
/// A sum over nothing has a value, too.
void StartIfEmpty(const Schedule& sch, const BlockRV& block) {
  BlockLook look = LookAt(sch, block);
  if (look.Size([](const Axis& a) { return a.reduce; })) return;
  auto first = std::find_if(look.axes.begin(), look.axes.end(),
                            [](const Axis& axis) { return axis.reduce; });
  sch.DecomposeReduction(block, first->loop);
}
/// How many rows go through a stage before the next one begins: the last steps of a reduction wait
/// for each other, and those of several rows overlap. All of them stay in the cache.
int64_t RowsAtOnce(const BlockLook& last, size_t rows, const Machine& machine) {
  auto is_row = [&](const Axis& a) {
    return &a - last.axes.data() < static_cast<std::ptrdiff_t>(rows);
  };
  auto count = last.Size(is_row), length = last.Size([&](const Axis& a) { return !is_row(a); });
  const Axis& axis = last.axes[rows - 1];
  if (!count || !length || *length == 0 || !axis.size) return 1;
  int64_t bytes = *length * std::max(1, last.widest_bits / 8);
  int64_t most = std::min({cost::kRowsAtOnce, machine->l1_bytes / 4 / bytes,
                           *count / (cost::kTasksPerCore * machine->cores)});
  return most > 1 ? LargestDivisor(*axis.size, most) : 1;
}
/// Several stages over the same rows, such as softmax and normalisation: all stages of a row run
/// while it is in the cache.
bool RowByRow(const Schedule& sch, BlockRV root, const Machine& machine) {
  if (sch.GetChildBlocks(root).size() < 2) return false;
  InlineCheap(sch, root);
  Array<BlockRV> blocks = sch.GetChildBlocks(root);
  if (blocks.size() < 2) return false;
  std::vector<BlockLook> looks;
  for (const BlockRV& block : blocks) looks.push_back(LookAt(sch, block));
  if (std::any_of(looks.begin(), looks.end(), [](const BlockLook& l) { return l.IsEmpty(); }))
    return false;
  const BlockLook& last = looks.back();
  if (last.has_reduction || !sch.GetConsumers(last.rv).empty()) return false;
  size_t rows = RowAxes(last, looks);
  if (rows == 0) return false;
  std::optional<double> work = 0;
  for (const BlockLook& look : looks) {
    auto all = look.TotalWork();
    work = all && work ? std::optional(*work + *all) : std::nullopt;
    if (!look.has_reduction) continue;
    auto results = look.Size([](const Axis& a) { return a.spatial; });
    auto row_count = last.Size(
        [&](const Axis& a) { return &a - last.axes.data() < static_cast<std::ptrdiff_t>(rows); });
    if (results != row_count || SharesOperands(look) || IsWindow(look)) return false;
    bool are_rows = last.Size() != row_count;  // else each has one element
    if (!are_rows && ReadsAcross(look)) return false;
  }
  LoopRV row = last.axes[rows - 1].loop;
  if (int64_t group = RowsAtOnce(last, rows, machine); group > 1)
    row = sch.Split(row, {std::nullopt, PrimExpr(group)})[0];
  for (size_t i = blocks.size() - 1; i-- > 0;) sch.ComputeAt(blocks[i], row);
  for (const BlockRV& block : blocks) {
    StartIfEmpty(sch, block);
    FuseRun(sch, block, rows);
    VectorizeInner(sch, block, machine);
  }
  Array<LoopRV> outer;
  for (size_t i = 0; i + 1 < rows; ++i) outer.push_back(last.axes[i].loop);
  outer.push_back(row);
  ParallelIfWorth(sch, FuseToShare(sch, outer, machine), machine, work);
  return true;
}
}  // namespace

const std::vector<Rule>& CpuRules() {
  static const std::vector<Rule> rules = {
      {"RowByRow", "All stages of a row while it is in the cache: softmax, normalisation.",
       RowByRow},
      {"Winograd", "Products of transformed tiles, and back: Winograd's convolutions.",
       ScheduleWinograd},
      {"BlockByBlock", "Every block by itself: elementwise, reductions, products.", BlockByBlock},
  };
  return rules;
}

namespace {
/// Whether schedules leave the annotation on a block, or passes read it. Others tell what the block
/// computes: tensor expressions have such ("axis", "schedule_rule", the user's own).
bool IsScheduleAnnotation(std::string_view key) {
  constexpr std::string_view kBeginnings[] = {
      "auto_copy",      "buffer_dim_align", "double_buffer_scope", "explicit_",
      "meta_schedule.", "pragma_",          "software_pipeline_",  "tir.",
  };
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view beginning) { return key.starts_with(beginning); });
}
}  // namespace

bool IsScheduled(const PrimFunc& func) {
  if (func->scheduled_by_hand || func->HasNonzeroAttr(attr::kIsScheduled)) return true;
  return AnyStmt<ForObj>(func->body,
                         [](auto* loop) {
                           return loop->kind != ForKind::kSerial || !loop->annotations.empty();
                         }) ||
         AnyStmt<BlockObj>(func->body, [](auto* block) {
           return std::any_of(
               block->annotations.begin(), block->annotations.end(),
               [](const auto& annotation) { return IsScheduleAnnotation(View(annotation.first)); });
         });
}

bool ApplyRule(const Schedule& sch, const Rule& rule, const String& func_name,
               const Target& target) {
  BlockId root = sch.state().Root(func_name);
  if (root == kNoNode || sch.state().ChildBlocks(root).empty()) return false;
  return Attempt(sch, [&] {
    sch.WorkOn(func_name);
    BlockRV block = sch.GetBlock(sch.state().block(root)->name_hint, func_name);
    return rule.apply(sch, block, Machine::Of(target));
  });
}
String ApplyDefaultRules(const Schedule& sch, const String& func_name, const Target& target) {
  for (const Rule& rule : target->DeviceType() == kDLCPU ? CpuRules() : GpuRules()) {
    if (ApplyRule(sch, rule, func_name, target)) return rule.name;
  }
  return "";
}

namespace {
PrimFunc ScheduleFor(const Target& target, const PrimFunc& func) {
  GlobalVar var("main");
  PrimFunc prepared = Prepared(func);
  if (Machine::Of(target)->is_gpu) prepared = WithWideSums(prepared);
  Schedule sch(IRModule({{var, prepared}}), /*seed=*/0, /*debug_mask=*/0, ErrorRenderLevel::kNone);
  if (ApplyDefaultRules(sch, var->name_hint, target).empty()) return func;
  return Any(sch.mod()->Lookup(var)).cast<PrimFunc>();
}
PrimFunc DefaultSchedule(PrimFunc func) {
  if (IsScheduled(func)) return func;
  Target target = func->GetAttr<Target>(::tvm::attr::kTarget).value_or(Target::Current());
  if (!target.defined()) return func;
  auto schedule = [&](const PrimFunc& one) { return ScheduleFor(target, one); };
  return Machine::Of(target)->is_host ? WithOneRow(func, schedule) : schedule(func);
}
TVM_REGISTER() {
  Def(
      "tir.schedule.apply_default_rules",
      [](Schedule sch, String func_name, Target target) {
        return ApplyDefaultRules(sch, func_name, target);
      },
      "Schedules one function of a schedule; returns the name of the rule that applied.",
      Arg("sch"), Arg("func_name"), Arg("target"));
  Def(
      "tir.schedule.apply_rule",
      [](Schedule sch, String rule_name, String func_name, Target target) {
        for (const Rule& rule : CpuRules()) {
          if (rule_name == rule.name) return ApplyRule(sch, rule, func_name, target);
        }
        TVM_FFI_THROW(ValueError) << "apply_rule: expected the name of a rule, got " << rule_name;
        TVM_FFI_UNREACHABLE();
      },
      "Schedules one function with one of the rules for CPUs; returns whether it fits.", Arg("sch"),
      Arg("rule_name"), Arg("func_name"), Arg("target"));
  Def(
      "tir.schedule.cpu_rules",
      [] {
        Map<String, String> rules;
        for (const Rule& rule : CpuRules()) rules.Set(rule.name, rule.doc);
        return rules;
      },
      "The rules for CPUs and what they are for, in the order in which they are tried.");
  Def("tir.schedule.is_scheduled", &IsScheduled,
      "Whether somebody scheduled the function: the default rules leave it alone.", Arg("func"));
}
}  // namespace
TVM_PASS(tir, DefaultSchedule,
         R"(Schedules the functions that nobody scheduled, for their target.

before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.func_attr({"target": T.target({"kind": "llvm", "mcpu": "x86-64", "num-cores": 1})})
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] + 1.0
after:
    T.func_attr({"target": T.target({"kind": "llvm", "mcpu": "x86-64", "num-cores": 1})})
    for i_0 in range(4):
        for i_1 in T.vectorized(16):
            with T.block("B"):
                vi = T.axis.spatial(64, i_0 * 16 + i_1)
                B[vi] = A[vi] + 1.0)")
}  // namespace tvm::tir
