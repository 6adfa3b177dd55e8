// SPDX-License-Identifier: Apache-2.0
// Words are mixed in by steps that lose nothing (exclusive or, rotation, multiplication by an odd
// number), so that contents that differ in one word never have the same digest.
#include "runtime/content_hash.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tvm/runtime/thread_pool.h"

namespace tvm::runtime {
namespace {
constexpr uint64_t kPrimes[] = {0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
                                0x27d4eb2f165667c5};
inline uint64_t Mix(uint64_t state, uint64_t word, uint64_t prime) {
  return std::rotl(state ^ word, 29) * prime;
}
uint64_t WordAt(const char* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof(word));
  return word;
}
/// Four chains of steps at once: one would wait for its multiplications.
void PutPiece(Digest* digest, std::string_view bytes) {
  uint64_t lanes[4] = {kPrimes[0], kPrimes[1], kPrimes[2], kPrimes[3]};
  for (; bytes.size() >= sizeof(lanes); bytes.remove_prefix(sizeof(lanes))) {
    for (int i = 0; i < 4; ++i) lanes[i] = Mix(lanes[i], WordAt(bytes.data() + 8 * i), kPrimes[i]);
  }
  for (uint64_t lane : lanes) digest->Put(lane);
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) digest->Put(WordAt(bytes.data()));
  uint64_t rest = 0;
  if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
  digest->Put(rest);
}
}  // namespace

void Digest::Put(uint64_t word) {
  a = Mix(a, word, kPrimes[0]);
  b = Mix(b, std::rotl(word, 32) + kPrimes[2], kPrimes[1]) ^ (b >> 31);
}
void Digest::Put(std::string_view bytes) {
  constexpr size_t kPiece = size_t{4} << 20;  // a digest of its own; other sizes give others
  Put(bytes.size());
  if (bytes.size() <= kPiece) return PutPiece(this, bytes);
  std::vector<Digest> pieces((bytes.size() + kPiece - 1) / kPiece);
  int tasks = std::min(NumThreads(), static_cast<int>(pieces.size()));
  ParallelRun(tasks, [&](int task, int count) {
    for (size_t i = task; i < pieces.size(); i += count)
      PutPiece(&pieces[i], bytes.substr(i * kPiece, kPiece));
  });
  for (const Digest& piece : pieces) Put(piece);
}
std::string Digest::Hex() const {
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(a),
                static_cast<unsigned long long>(b));
  return text;
}
}  // namespace tvm::runtime
