// SPDX-License-Identifier: Apache-2.0
// A simulated device whose streams run late and in any legal order: what works there does not rely
// on luck.
#include "tvm/runtime/device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>

#include "runtime/device/memory_ledger.h"
#include "tvm/runtime/tensor.h"

namespace tvm::runtime {
namespace {
constexpr DLDevice kSim{kDLExtDev, 0}, kCpu{kDLCPU, 0};
constexpr uint64_t kTotal = 1 << 20;

/// Work is done when somebody waits for it, a step of a random stream at a time.
class SimDevice : public DeviceAPI {
 public:
  struct Step {
    std::function<bool()> is_ready;
    std::function<void()> run;
  };
  struct SimStream {
    std::deque<Step> steps;
  };
  struct SimEvent {
    int pending = 0;  // recordings that were not reached
  };

  Any GetAttr(DLDevice, DeviceAttr attr) final {
    return attr == DeviceAttr::kExist ? Any(true) : Any(nullptr);
  }
  void* Alloc(DLDevice device, uint64_t nbytes, size_t alignment, std::string_view) final {
    ledger.CheckLimit(device, nbytes);
    if (ledger.stats().used + nbytes > kTotal)
      ledger.ThrowNoMemory(device, nbytes, static_cast<int64_t>(kTotal - ledger.stats().used));
    void* data = aligned_alloc(alignment, (nbytes / alignment + 1) * alignment);
    std::memset(data, 0xdd, nbytes);
    ledger.Add(data, nbytes);
    return data;
  }
  void Free(DLDevice device, void* data) final {
    // After what is queued on the current stream; what comes too late finds poison.
    uint64_t nbytes = ledger.Remove(data);
    Push(CurrentStream(device), [data, nbytes] { std::memset(data, 0xee, nbytes); });
    graveyard.push_back(data);
  }
  MemoryStats Memory(DLDevice) final { return ledger.stats(); }
  void SetMemoryLimit(DLDevice, uint64_t bytes) final { ledger.SetLimit(bytes); }
  void Copy(DLDevice, const void* from, DLDevice, void* to, uint64_t nbytes, Stream stream) final {
    Push(stream, [=] { std::memmove(to, from, nbytes); });
  }
  void Fill(DLDevice, void* data, uint8_t byte, uint64_t nbytes, Stream stream) final {
    Push(stream, [=] { std::memset(data, byte, nbytes); });
  }
  Stream CreateStream(DLDevice) final { return &streams[++count]; }
  void FreeStream(DLDevice device, Stream stream) final { Sync(device, stream); }
  void Sync(DLDevice, Stream stream) final {
    while (!Of(stream).steps.empty()) ASSERT_TRUE(RunSomething()) << "the streams wait in a circle";
  }
  Event CreateEvent(DLDevice) final { return &events.emplace_back(); }
  void FreeEvent(DLDevice, Event) final {}
  void Record(DLDevice, Event event, Stream stream) final {
    auto* e = static_cast<SimEvent*>(event);
    ++e->pending;
    Push(stream, [e] { --e->pending; });
  }
  void WaitForEvent(DLDevice, Stream stream, Event event) final {
    auto* e = static_cast<SimEvent*>(event);
    Of(stream).steps.push_back({[e] { return e->pending == 0; }, [] {}});
  }
  bool IsDone(DLDevice, Event event) final {
    RunSomething();
    return static_cast<SimEvent*>(event)->pending == 0;
  }
  double Seconds(DLDevice, Event, Event end) final {
    while (static_cast<SimEvent*>(end)->pending > 0) RunSomething();
    return 1e-3;
  }

  void Push(Stream stream, std::function<void()> run) {
    Of(stream).steps.push_back({[] { return true; }, std::move(run)});
  }
  /// A step of a random stream whose next one may run; false where there is none.
  bool RunSomething() {
    std::vector<SimStream*> ready;
    for (auto& [id, stream] : streams) {
      if (!stream.steps.empty() && stream.steps.front().is_ready()) ready.push_back(&stream);
    }
    if (ready.empty()) return false;
    SimStream* stream = ready[random() % ready.size()];
    Step step = std::move(stream->steps.front());
    stream->steps.pop_front();
    step.run();
    return true;
  }
  SimStream& Of(Stream stream) { return stream ? *static_cast<SimStream*>(stream) : streams[0]; }

  MemoryLedger ledger;
  std::mt19937 random{0};
  std::map<int, SimStream> streams;
  std::deque<SimEvent> events;
  std::vector<void*> graveyard;
  int count = 0;
};

class DeviceTest : public testing::Test {
 protected:
  static SimDevice& Sim() {
    static auto* sim = [] {
      auto* api = new SimDevice();
      RegisterDeviceAPI(kDLExtDev, api);
      return api;
    }();
    return *sim;
  }
  void SetUp() override {
    Sim().random.seed(testing::UnitTest::GetInstance()->random_seed());
    Sim().SetMemoryLimit(kSim, 0);
  }
  static Tensor Numbers(DLDevice device, float first) {
    Tensor cpu = Empty({64}, {kDLFloat, 32, 1}, kCpu);
    for (int i = 0; i < 64; ++i) static_cast<float*>(cpu.data_ptr())[i] = first + i;
    if (device.device_type == kDLCPU) return cpu;
    Tensor there = Empty({64}, {kDLFloat, 32, 1}, device);
    CopyTensor(cpu, there);
    return there;
  }
  static float First(const Tensor& t) {
    Tensor cpu = Empty({64}, {kDLFloat, 32, 1}, kCpu);
    CopyTensor(t, cpu);
    return *static_cast<float*>(cpu.data_ptr());
  }
};

TEST_F(DeviceTest, CopiesFromTheHostAreDoneWhenTheyReturn) {
  for (int i = 0; i < 50; ++i) {
    Tensor t = Numbers(kSim, static_cast<float>(i));  // the source goes at once
    EXPECT_EQ(First(t), static_cast<float>(i));
  }
}
TEST_F(DeviceTest, WorkOfAStreamStaysInOrder) {
  for (int i = 0; i < 50; ++i) {
    Tensor a = Numbers(kSim, 1), b = Numbers(kSim, 2);
    CopyTensor(a, b);
    Sim().Fill(kSim, a.data_ptr(), 0, 256, CurrentStream(kSim));
    EXPECT_EQ(First(b), 1);
    EXPECT_EQ(First(a), 0);
  }
}
TEST_F(DeviceTest, FreedMemoryStaysUntilItsStreamIsDone) {
  for (int i = 0; i < 50; ++i) {
    Tensor b = Numbers(kSim, 2);
    {
      Tensor a = Numbers(kSim, 7);
      CopyTensor(a, b);
    }
    EXPECT_EQ(First(b), 7);
  }
}
/// What stream `other` copies from `a` while the current one fills it.
float Raced(SimDevice& sim, const Tensor& a, const Tensor& b, bool waits) {
  Stream main = CurrentStream(kSim), other = sim.CreateStream(kSim);
  sim.Fill(kSim, a.data_ptr(), 0, 256, main);
  if (waits) sim.WaitForStream(kSim, other, main);
  sim.Copy(kSim, a.data_ptr(), kSim, b.data_ptr(), 256, other);
  sim.Sync(kSim, other);
  sim.Sync(kSim, main);
  return *static_cast<float*>(b.data_ptr());
}
TEST_F(DeviceTest, StreamsWaitForEachOther) {
  int early = 0;
  for (int i = 0; i < 100; ++i) {
    Tensor a = Numbers(kSim, 5), b = Numbers(kSim, 6);
    EXPECT_EQ(Raced(Sim(), a, b, true), 0);
    a = Numbers(kSim, 5);
    early += Raced(Sim(), a, b, false) == 5;
  }
  EXPECT_GT(early, 10);  // the simulation does find a missing wait
}
TEST_F(DeviceTest, CopiesToAnotherStreamSeeWhatItQueued) {
  Stream other = Sim().CreateStream(kSim), before = nullptr;
  Tensor a = Numbers(kSim, 3);
  ASSERT_EQ(TVMFFIEnvSetStream(kDLExtDev, 0, other, &before), 0);
  Sim().Fill(kSim, a.data_ptr(), 0, 256, other);
  EXPECT_EQ(First(a), 0);
  TVMFFIEnvSetStream(kDLExtDev, 0, before, nullptr);
}
TEST_F(DeviceTest, OutOfMemorySaysHowMuchThereIs) {
  Tensor some = Numbers(kSim, 0);
  uint64_t used = Sim().Memory(kSim).used;
  auto message = [&](int64_t bytes) -> std::string {
    try {
      Empty({bytes}, {kDLUInt, 8, 1}, kSim);
    } catch (const ffi::Error& error) {
      EXPECT_EQ(error.kind(), "MemoryError");
      return std::string(error.message());
    }
    return "";
  };
  std::string held = std::to_string(used) + " are in use, ";
  EXPECT_EQ(message(kTotal), "ext_dev:0: cannot allocate 1048576 bytes: " + held +
                                 std::to_string(kTotal - used) + " are free");
  Sim().SetMemoryLimit(kSim, used + 1000);
  EXPECT_EQ(message(1001), "ext_dev:0: cannot allocate 1001 bytes: " + held +
                               "1000 are free, the limit is " + std::to_string(used + 1000));
  EXPECT_EQ(message(1000), "");
  EXPECT_EQ(Sim().Memory(kSim).used, used);
  EXPECT_GE(Sim().Memory(kSim).peak, used + 1000);
}
TEST_F(DeviceTest, TheCpuCountsItsMemory) {
  DeviceAPI* cpu = GetDeviceAPI(kDLCPU);
  uint64_t before = cpu->Memory(kCpu).used;
  {
    Tensor t = Empty({1000}, {kDLUInt, 8, 1}, kCpu);
    EXPECT_EQ(cpu->Memory(kCpu).used, before + 1000);
  }
  EXPECT_EQ(cpu->Memory(kCpu).used, before);
  Event begin = cpu->CreateEvent(kCpu), end = cpu->CreateEvent(kCpu);
  cpu->Record(kCpu, begin, nullptr);
  cpu->Record(kCpu, end, nullptr);
  EXPECT_GE(cpu->Seconds(kCpu, begin, end), 0);
  cpu->FreeEvent(kCpu, begin);
  cpu->FreeEvent(kCpu, end);
}
}  // namespace
}  // namespace tvm::runtime
