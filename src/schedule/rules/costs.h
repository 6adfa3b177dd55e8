// SPDX-License-Identifier: Apache-2.0
// The numbers behind the default rules, all of them here. Sizes of caches and registers come from
// the machine (tvm/ir/machine.h); what stands here is counted in operations, elements or ratios.
//
// Behind each: what the seconds of operators whose code differs become, by geometric mean, when it
// is halved and when it is doubled (of a ratio, what is beyond 1): above 1 it is better as it is.
// "same": no code differs on that machine. One thread of a Zen 5, up to 8 operators of some 370;
// numbers of several threads were not timed. docs/bench.md has how, and who is off by a tenth.
// Where a number looks better changed, it says there why it stays.
#pragma once
#include <cstdint>

namespace tvm::tir::cost {

// ---- threads ------------------------------------------------------------------------------------
/// Work, in simple operations, that pays for waking the other threads.
inline constexpr double kParallel = 1 << 16;  // of several threads
/// Tasks per core that let threads which are not equally fast end together.
inline constexpr int64_t kTasksPerCore = 4;  // 1.00, 1.00
/// How much longer than with all cores busy to the end it may take before loops are shared in
/// another way: where the other way costs locality, and where it is as good.
inline constexpr double kIdle = 1.15;       // of several threads
inline constexpr double kIdleTiles = 1.05;  // of several threads
/// The same where it saves that all threads wait until a factor is packed.
inline constexpr double kIdlePackers = 1.4;  // of several threads
/// Elements of a reduction that pay for a second pass over the results of its parts.
inline constexpr int64_t kDeep = 4096;  // of several threads
/// Bytes of a row that a thread reads at once: from a cache, and from memory, which is fastest
/// along whole rows.
inline constexpr int64_t kPiece = 1024;     // of several threads
inline constexpr int64_t kFarPiece = 4096;  // of several threads

// ---- latencies ----------------------------------------------------------------------------------
/// Vectors next to each other that hide the latency of a chain of operations.
inline constexpr int kInterleave = 4;  // 1.01, 1.14
/// Chains of multiply-adds of a tile that hide their latency; those of a window overlap with the
/// next tile's.
inline constexpr double kChains = 8;        // 1.01, 1.04
inline constexpr double kWindowChains = 4;  // same, 1.03
/// Chains of a tile that a larger one is no faster than.
inline constexpr double kManyChains = 12;  // same, 0.99
/// Rows that go through a stage together, whose last steps wait for each other.
inline constexpr int64_t kRowsAtOnce = 4;  // 1.07, 1.03
/// Rows that are added to the same sums together.
inline constexpr int64_t kRowsTogether = 8;  // 0.98, 1.03

// ---- work ---------------------------------------------------------------------------------------
/// A call, in simple operations: exp takes about as long.
inline constexpr double kCall = 16;  // same, same
/// Up to this much work is cheaper to do again than to store and load the result.
inline constexpr double kCheap = 8;  // same, 1.11
/// Work of expressions that may stand in a value several times and are computed once: what is
/// written for a value must not double from stage to stage.
inline constexpr double kMostRepeated = 1 << 10;  // not timed: it bounds the size of code
/// Vectors that are partly beyond the columns take longer.
inline constexpr double kConditions = 1.1;  // same, same
/// A tile that has this much of the best one's score is good.
inline constexpr double kGoodTile = 0.75;  // 1.26, 1.14
/// How much less a product has to cost for rows that nobody asked for to be computed, too.
inline constexpr double kWorthFilling = 1.1;  // same, same
/// A tile that costs so much more than the best one is left for the rest of the columns.
inline constexpr double kWorse = 1.5;  // 1.05, same

// ---- tiles --------------------------------------------------------------------------------------
/// A size that all tiles divide: that of an axis whose size is not known.
inline constexpr int64_t kEven = 1 << 10;  // same, same
/// More rows than any tile has.
inline constexpr int64_t kMostRows = 24;  // 0.99, same
/// Vectors next to each other in a tile.
inline constexpr int64_t kMostVectors = 8;  // 0.99, same
/// Copies of what follows a tile that are unrolled.
inline constexpr int64_t kMostUnrolled = 256;  // same, same
/// A load of vectors that lie in different runs of memory, along lines, beside one of neighbours.
inline constexpr double kApart = 1.5;  // same, same
/// A load of part of a vector, which lies across lines of the cache more often.
inline constexpr double kMasked = 1.5;  // 1.14, 1.16
/// Rows that pay for copying the other operand: to transpose it, to pack what lies in lines
/// already, and to have lines together that collide nowhere.
inline constexpr int64_t kRowsToTranspose = 16;  // same, 0.61
inline constexpr int64_t kRowsToPack = 64;       // same, same
inline constexpr int64_t kRowsToGather = 256;    // 1.02, 1.00
/// How much larger a product may become by filling up tiles of matrix units, which are that much
/// faster than vectors.
inline constexpr double kTileWaste = 3;  // same, same
/// Results that share a factor and pay for packing it into words.
inline constexpr int64_t kResultsToPack = 4;  // same, 1.59
/// A reduction this short keeps its results in registers, whatever their number.
inline constexpr int64_t kShortReduction = 64;  // 1.05, 1.04
/// A run of a reduction that is worth vectors of its own; runs of so many whole reductions are
/// added in a block of its own.
inline constexpr int64_t kShortestRun = 8;  // same, same
inline constexpr int64_t kManyRuns = 16;    // same, 1.00
/// A window that is worth its code, which repeats for every place of it.
inline constexpr int64_t kLongestWindow = 16;  // same, same
/// Vectors of a tile, or lanes of one, below which a window is no better than a plain reduction.
inline constexpr int64_t kSmallestWindow = 4;  // 0.85, 1.46

// ---- memory -------------------------------------------------------------------------------------
/// Bytes of a page, and pages whose addresses the CPU knows at once.
inline constexpr int64_t kPage = 4096;      // 0.99, 1.01
inline constexpr int64_t kKnownPages = 64;  // 0.97, 1.02
/// Elements of a reduction for which results of few rows stay in registers: as many pages of the
/// other factor are used together.
inline constexpr int64_t kPartOfReduction = 128;  // 0.96, 1.06
/// Bytes that come from the second cache in a cycle. On a Zen 5 tiles of 3 x 5 vectors of 64 bytes
/// reach 0.65 of what tiles of 9 x 2 do, and 4 x 4 as much.
inline constexpr double kSecondCacheBytes = 32;  // 0.98, 0.96
/// The part of the third cache, which others share, that rows of a product may take.
inline constexpr int64_t kShareOfThirdCache = 4;  // 1.02, 0.99
/// Elements between the lanes of a load that is still a few vectors of memory.
inline constexpr int64_t kNear = 4;  // 0.93, same
/// Bytes of which caches hold little until they are read again, where the third cache is not known;
/// else half of it.
inline constexpr int64_t kBeyondCaches = 8 << 20;  // same, same
/// Squares of a transpose next to each other, and where lines come from memory; sides of a square.
inline constexpr int64_t kSquares = 2;         // 0.99, 1.38
inline constexpr int64_t kFarSquares = 4;      // 1.05, 1.13
inline constexpr int64_t kSmallestSquare = 4;  // 0.99, 1.12
inline constexpr int64_t kLargestSquare = 16;  // 0.97, 0.82

}  // namespace tvm::tir::cost
