// SPDX-License-Identifier: Apache-2.0
// Recurrent states of sequences, with some steps of history that can be taken back.
#include <algorithm>
#include <map>
#include <set>

#include "runtime/vm/kv_state.h"
#include "tvm/runtime/data_type.h"

namespace tvm::runtime::vm {
namespace {
/// States are (sequences, history, ...) tensors, one per layer and kind of state. A sequence has a
/// row; in it the slots are a ring, of which `slot` is the state now.
class RNNStateObj : public KVStateObj {
 public:
  RNNStateObj(int64_t layers, int64_t max_sequences, int64_t max_history, Array<Function> getters,
              Array<Function> setters, Array<Tensor> initial)
      : max_history_(max_history), getters_(getters), setters_(setters), initial_(initial) {
    if (layers <= 0 || max_sequences <= 0 || max_history <= 0 || initial.empty() ||
        getters.size() != initial.size() || setters.size() != initial.size()) {
      TVM_FFI_THROW(ValueError) << "rnn_state_create: expected positive sizes and a getter, a "
                                   "setter and an initial value for each state";
    }
    for (int64_t layer = 0; layer < layers; ++layer) {
      for (const Tensor& value : initial) {
        std::vector<int64_t> shape{max_sequences, max_history};
        shape.insert(shape.end(), value.shape().begin(), value.shape().end());
        storage_.push_back(Empty({shape.data(), shape.size()}, value.dtype(), value.device()));
      }
    }
    for (int64_t row = max_sequences; row-- > 0;) free_.push_back(row);
    ids_ = Empty({max_sequences}, DataType::Int(32), initial[0].device());
    slots_ = Empty({max_sequences}, DataType::Int(32), initial[0].device());
    next_slots_ = Empty({max_sequences}, DataType::Int(32), initial[0].device());
  }
  void Clear() final {
    std::lock_guard lock(mutex_);
    for (const auto& [id, sequence] : sequences_) free_.push_back(sequence.row);
    sequences_.clear();
    running_.clear();
  }
  void AddSequence(int64_t id) final {
    auto lock = Idle("kv_state_add_sequence");
    int64_t row = NewRow("kv_state_add_sequence", id);
    for (size_t i = 0; i < storage_.size(); ++i) {
      CopyTensor(initial_[static_cast<int64_t>(i % initial_.size())], At(storage_[i], row, 0));
    }
    free_.pop_back();
    sequences_[id] = {row, 0, 0};
  }
  void RemoveSequence(int64_t id) final {
    auto lock = Idle("kv_state_remove_sequence");
    free_.push_back(Find("kv_state_remove_sequence", id).row);
    sequences_.erase(id);
  }
  void ForkSequence(int64_t parent, int64_t child, int64_t position) final {
    constexpr const char* kName = "kv_state_fork_sequence";
    auto lock = Idle(kName);
    Sequence from = Find(kName, parent);
    if (position != -1) {
      TVM_FFI_THROW(ValueError) << kName << ": expected position -1 for a recurrent state, got "
                                << position;
    }
    int64_t row = NewRow(kName, child);
    for (const Tensor& tensor : storage_) {
      for (int64_t slot = 0; slot < max_history_; ++slot) {
        CopyTensor(At(tensor, from.row, slot), At(tensor, row, slot));
      }
    }
    free_.pop_back();
    sequences_[child] = {row, from.slot, from.history};
  }
  void PopN(int64_t id, int64_t n) final {
    auto lock = Idle("kv_state_popn");
    Sequence& sequence = Find("kv_state_popn", id);
    if (n < 0 || n > sequence.history) {
      TVM_FFI_THROW(ValueError) << "kv_state_popn: expected 0 to " << sequence.history
                                << " steps, the history of sequence " << id << ", got " << n;
    }
    sequence.slot = (sequence.slot + max_history_ - n) % max_history_;
    sequence.history -= n;
  }
  void BeginForward(const Shape& ids, const Shape& lengths, const Optional<Shape>& parents) final {
    constexpr const char* kName = "kv_state_begin_forward";
    auto lock = Idle(kName);
    std::set<int64_t> seen(ids.begin(), ids.end());
    if (ids.size() != lengths.size() || ids.size() == 0 || seen.size() != ids.size() || parents) {
      TVM_FFI_THROW(ValueError) << kName << ": expected different sequences, a length for each and "
                                << "no tree, got " << ids << " and " << lengths;
    }
    std::vector<Running> running;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (lengths[i] <= 0) {
        TVM_FFI_THROW(ValueError) << kName << ": expected positive lengths, got " << lengths;
      }
      running.push_back({&Find(kName, ids[i]), lengths[i]});
    }
    std::vector<int32_t> rows, slots, next;
    for (const Running& r : running) {
      rows.push_back(static_cast<int32_t>(r.sequence->row));
      slots.push_back(static_cast<int32_t>(r.sequence->slot));
      next.push_back(static_cast<int32_t>((r.sequence->slot + 1) % max_history_));
    }
    Upload(rows, ids_);
    Upload(slots, slots_);
    Upload(next, next_slots_);
    running_ = std::move(running);
  }
  void EndForward() final {
    std::lock_guard lock(mutex_);
    CheckRunning("kv_state_end_forward");
    for (const auto& [sequence, length] : running_) {
      sequence->slot = (sequence->slot + 1) % max_history_;
      // Of several steps at once only the last one's state is there.
      sequence->history = length > 1 ? 0 : std::min(sequence->history + 1, max_history_ - 1);
    }
    running_.clear();
  }
  Tensor Get(int64_t layer, int64_t state, const Tensor& out) {
    std::lock_guard lock(mutex_);
    CheckRunning("rnn_state_get");
    getters_[CheckState(state)](Storage(layer, state), Part(ids_), Part(slots_), out);
    return out;
  }
  void Set(int64_t layer, int64_t state, const Tensor& value) {
    std::lock_guard lock(mutex_);
    CheckRunning("rnn_state_set");
    setters_[CheckState(state)](Storage(layer, state), Part(ids_), Part(next_slots_), value);
  }
  Tensor DebugGet(int64_t layer, int64_t state, int64_t id) {
    std::lock_guard lock(mutex_);
    CheckState(state);
    const Sequence& sequence = Find("rnn_state_debug_get", id);
    Tensor now = At(Storage(layer, state), sequence.row, sequence.slot);
    Tensor copy = Empty(now.shape(), now.dtype(), now.device());
    CopyTensor(now, copy);
    return copy;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.vm.RNNState", RNNStateObj, KVStateObj);

 private:
  struct Sequence {
    int64_t row, slot, history;  // history: steps that can be taken back
  };
  struct Running {
    Sequence* sequence;
    int64_t length;
  };
  std::unique_lock<std::mutex> Idle(const char* what) {
    std::unique_lock lock(mutex_);
    if (!running_.empty()) {
      TVM_FFI_THROW(RuntimeError) << what << ": expected kv_state_end_forward of the pass before";
    }
    return lock;
  }
  void CheckRunning(const char* what) const {
    if (running_.empty()) {
      TVM_FFI_THROW(RuntimeError) << what << ": expected kv_state_begin_forward before it";
    }
  }
  int64_t CheckState(int64_t state) const {
    if (state < 0 || state >= static_cast<int64_t>(initial_.size())) {
      TVM_FFI_THROW(IndexError) << "rnn_state: expected a state below " << initial_.size()
                                << ", got " << state;
    }
    return state;
  }
  Sequence& Find(const char* what, int64_t id) {
    auto it = sequences_.find(id);
    if (it == sequences_.end()) {
      TVM_FFI_THROW(ValueError) << what << ": expected a sequence of the state, got " << id;
    }
    return it->second;
  }
  int64_t NewRow(const char* what, int64_t id) const {
    if (sequences_.count(id) || free_.empty()) {
      TVM_FFI_THROW(ValueError) << what << ": expected "
                                << (free_.empty() ? "room for another sequence"
                                                  : "a sequence that is new")
                                << ", got " << id;
    }
    return free_.back();
  }
  const Tensor& Storage(int64_t layer, int64_t state) const {
    auto layers = static_cast<int64_t>(storage_.size() / initial_.size());
    if (layer < 0 || layer >= layers) {
      TVM_FFI_THROW(IndexError) << "rnn_state: expected a layer below " << layers << ", got "
                                << layer;
    }
    return storage_[layer * static_cast<int64_t>(initial_.size()) + state];
  }
  /// One state of one row.
  Tensor At(const Tensor& tensor, int64_t row, int64_t slot) const {
    ShapeView shape = tensor.shape();
    ShapeView one(shape.data() + 2, shape.size() - 2);
    auto bytes = static_cast<int64_t>(DataSize(one, tensor.dtype()));
    return CreateView(tensor, one, tensor.dtype(), (row * max_history_ + slot) * bytes);
  }
  Tensor Part(const Tensor& room) const {
    return CreateView(room, {static_cast<int64_t>(running_.size())}, room.dtype());
  }
  static void Upload(const std::vector<int32_t>& values, const Tensor& to) {
    auto n = static_cast<int64_t>(values.size());
    Tensor host = Empty({n}, DataType::Int(32), {kDLCPU, 0});
    std::copy(values.begin(), values.end(), static_cast<int32_t*>(host.data_ptr()));
    CopyTensor(host, CreateView(to, {n}, to.dtype()));
  }

  int64_t max_history_;
  Array<Function> getters_, setters_;
  Array<Tensor> initial_;
  std::vector<Tensor> storage_;
  std::vector<int64_t> free_;
  std::map<int64_t, Sequence> sequences_;
  std::vector<Running> running_;  // of the pass between begin and end
  Tensor ids_{nullptr}, slots_{nullptr}, next_slots_{nullptr};
};
class RNNState : public ffi::ObjectRef {
 public:
  explicit RNNState(ffi::ObjectPtr<RNNStateObj> ptr) : ffi::ObjectRef(std::move(ptr)) {}
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(RNNState, ffi::ObjectRef, RNNStateObj);
};

TVM_REGISTER() {
  RNNStateObj::RuntimeTypeIndex();
  Def(
      "vm.builtin.rnn_state_create",
      [](int64_t layers, int64_t max_sequences, int64_t max_history, Array<Function> getters,
         Array<Function> setters, Array<Tensor> initial) {
        return RNNState(ffi::make_object<RNNStateObj>(layers, max_sequences, max_history, getters,
                                                      setters, initial));
      },
      "Recurrent states: for each a function (storage, rows, slots, out) that reads it, one "
      "(storage, rows, slots, value) that writes it, and its value at the beginning.",
      Arg("num_layers"), Arg("reserved_num_seqs"), Arg("max_history"), Arg("f_gets"), Arg("f_sets"),
      Arg("init_layer_value"));
  Def(
      "vm.builtin.rnn_state_get",
      [](RNNState state, int64_t layer, int64_t id, Tensor out) {
        return state->Get(layer, id, out);
      },
      "The state of the sequences of this pass.", Arg("state"), Arg("layer_id"), Arg("state_id"),
      Arg("o_data"));
  Def(
      "vm.builtin.rnn_state_set",
      [](RNNState state, int64_t layer, int64_t id, Tensor value) {
        state->Set(layer, id, value);
        return state;
      },
      "The state of the sequences after this pass.", Arg("state"), Arg("layer_id"), Arg("state_id"),
      Arg("data"));
  Def(
      "vm.builtin.rnn_state_debug_get",
      [](RNNState state, int64_t layer, int64_t id, int64_t sequence) {
        return state->DebugGet(layer, id, sequence);
      },
      "The state of a sequence now.", Arg("state"), Arg("layer_id"), Arg("state_id"),
      Arg("seq_id"));
}
}  // namespace
}  // namespace tvm::runtime::vm
