// SPDX-License-Identifier: Apache-2.0
// The on-disk cache: damage, limits, many writers.
#include "tvm/runtime/disk_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace tvm::runtime {
namespace {
namespace fs = std::filesystem;

class DiskCacheTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = testing::TempDir() + "cache" + std::to_string(getpid()); }
  void TearDown() override { fs::remove_all(folder_); }
  int Files() { return static_cast<int>(std::distance(fs::directory_iterator(folder_), {})); }
  std::string folder_;
};

TEST_F(DiskCacheTest, FindsWhatWasStored) {
  DiskCache cache(folder_, 1 << 20);
  EXPECT_FALSE(cache.Find("key"));
  cache.Store("key", std::string("va\0lue", 6));
  EXPECT_EQ(cache.Find("key"), std::string("va\0lue", 6));
  EXPECT_FALSE(cache.Find("keys"));
  cache.Store("key", "");
  EXPECT_EQ(DiskCache(folder_, 1 << 20).Find("key"), "");
  cache.Clear();
  EXPECT_FALSE(cache.Find("key"));
  EXPECT_EQ(Files(), 0);
}
TEST_F(DiskCacheTest, DamageCountsAsMissing) {
  DiskCache cache(folder_, 1 << 20);
  cache.Store("key", "value");
  std::string path = fs::directory_iterator(folder_)->path();
  std::string good(fs::file_size(path), '\0');
  std::ifstream(path).read(good.data(), static_cast<std::streamsize>(good.size()));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    std::ofstream(path) << bad;
    EXPECT_FALSE(cache.Find("key")) << "byte " << i;
    std::ofstream(path) << good.substr(0, i);
    EXPECT_FALSE(cache.Find("key")) << "cut at " << i;
  }
  std::ofstream(path) << good;
  EXPECT_EQ(cache.Find("key"), "value");
}
TEST_F(DiskCacheTest, TheOldestGoWhenItIsFull) {
  DiskCache cache(folder_, 10000);
  std::string kilobyte(1000, 'x');
  for (int i = 0; i < 9; ++i) {
    cache.Store(std::to_string(i), kilobyte);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(cache.Find("0"));  // used just now: 1 is the oldest
  cache.Store("9", kilobyte);
  EXPECT_FALSE(cache.Find("1"));
  EXPECT_TRUE(cache.Find("0"));
  EXPECT_TRUE(cache.Find("9"));
  cache.Store("large", std::string(20000, 'x'));
  EXPECT_FALSE(cache.Find("large"));
}
TEST_F(DiskCacheTest, OffOrUnwritable) {
  DiskCache off(folder_, 0);
  off.Store("key", "value");
  EXPECT_FALSE(off.Find("key"));
  EXPECT_FALSE(fs::exists(folder_));
  DiskCache nowhere("/proc/no/such/folder", 1 << 20);
  nowhere.Store("key", "value");
  EXPECT_FALSE(nowhere.Find("key"));
}
TEST_F(DiskCacheTest, ManyProcesses) {
  std::string value(5000, 'v');
  for (int p = 0; p < 4; ++p) {
    if (fork() == 0) {
      DiskCache cache(folder_, 60000);
      for (int i = 0; i < 50; ++i) {
        std::string key = std::to_string(i % 17);
        cache.Store(key, value + key);
        auto found = cache.Find(key);
        if (found && *found != value + key) _exit(1);
      }
      _exit(0);
    }
  }
  for (int p = 0; p < 4; ++p) {
    int status = -1;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
}
}  // namespace
}  // namespace tvm::runtime
