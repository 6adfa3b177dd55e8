// SPDX-License-Identifier: Apache-2.0
// Functions behind operators whose results C leaves undefined. A file holds only those it uses.
#include <algorithm>
#include <cstdio>

#include "backend/source/file.h"

namespace tvm::codegen::source {

const std::vector<HelperRow>& SharedHelpers() {
  static const auto* rows = new std::vector<HelperRow>{
      // ---- division: 0 where the divisor is 0; the smallest number by -1 wraps ----
      {"div", 'i', R"(static inline $T $N($T a, $T b) {
  return ($T)(b == 0 ? 0 : b == -1 ? ($T)(0 - ($U)a) : a / b);
})"},
      {"div", 'u', R"(static inline $T $N($T a, $T b) { return ($T)(b == 0 ? 0 : a / b); })"},
      {"mod", 'i', R"(static inline $T $N($T a, $T b) {
  return ($T)(b == 0 || b == -1 ? 0 : a % b);
})"},
      {"mod", 'u', R"(static inline $T $N($T a, $T b) { return ($T)(b == 0 ? 0 : a % b); })"},
      {"floordiv", 'i', R"(static inline $T $N($T a, $T b) {
  if (b == 0) return 0;
  if (b == -1) return ($T)(0 - ($U)a);
  return ($T)(a / b - (a % b != 0 && (a % b < 0) != (b < 0)));
})"},
      {"floormod", 'i', R"(static inline $T $N($T a, $T b) {
  $T r;
  if (b == 0 || b == -1) return 0;
  r = ($T)(a % b);
  return ($T)(r != 0 && (r < 0) != (b < 0) ? r + b : r);
})"},
      {"floormod", 'f', R"(/* The remainder takes the sign of the divisor; a zero one too. */
static inline $T $N($T a, $T b) {
  $T r = fmod$f(a, b);
  if (r == 0) return copysign$f(0, b);
  return (r < 0) != (b < 0) ? r + b : r;
})"},
      // ---- the second operand wins when it is better or NaN; a NaN in the first one stays ----
      {"min", 'f', R"(static inline $T $N($T a, $T b) { return b < a || b != b ? b : a; })"},
      {"max", 'f', R"(static inline $T $N($T a, $T b) { return b > a || b != b ? b : a; })"},
      {"min", '*', R"(static inline $T $N($T a, $T b) { return b < a ? b : a; })"},
      {"max", '*', R"(static inline $T $N($T a, $T b) { return b > a ? b : a; })"},
      // ---- bits ----
      {"shl", '*', R"(static inline $T $N($T a, $T n) {
  return ($T)(($U)n < $B ? ($W)a << n : 0);
})"},
      {"shr", 'i', R"(static inline $T $N($T a, $T n) {
  int k = ($U)n < $B ? (int)n : $B - 1;
  return ($T)(a < 0 ? ~(~a >> k) : a >> k);
})"},
      {"shr", 'u', R"(static inline $T $N($T a, $T n) { return ($T)(n < $B ? a >> n : 0); })"},
      {"popcount", '*', R"(static inline int32_t $N($U x) {
#if defined(__GNUC__)
  return __builtin_popcountll(x);
#else
  int32_t n = 0;
  for (; x != 0; x &= ($U)(x - 1)) ++n;
  return n;
#endif
})"},
      {"clz", '*', R"(static inline int32_t $N($U x) {
#if defined(__GNUC__)
  return x == 0 ? $B : __builtin_clzll(x) - (64 - $B);
#else
  int32_t n = $B;
  for (; x != 0; x = ($U)(x >> 1)) --n;
  return n;
#endif
})"},
      {"sign_extend", '*', R"(/* The low bits of a number, the highest of them the sign. */
static inline int64_t $N(int64_t x, int bits) {
  uint64_t sign = (uint64_t)1 << (bits - 1), low = (uint64_t)x & (2 * sign - 1);
  return (int64_t)((low ^ sign) - sign);
})"},
      {"bits", '*', R"(static inline $T $N($F x) {
  $T y;
  memcpy(&y, &x, sizeof(y));
  return y;
})"},
      // ---- memory that is used with several types ----
      {"load", '*', R"(static inline $T $N(const void* p) {
  $T x;
  memcpy(&x, p, sizeof(x));
  return x;
})"},
      {"store", '*', R"(static inline void $N(void* p, $T x) { memcpy(p, &x, sizeof(x)); })"},
      // Element i is in bits [i * width, (i + 1) * width), lowest first.
      {"packed_load", '*',
       R"(/* Elements below a byte lie in memory from the lowest bit on; one that
   crosses the end of a byte goes on in the next. */
static inline uint8_t $N(const uint8_t* p, int64_t i, int bits) {
  int64_t at = i * bits;
  int word = p[at >> 3] | p[(at + bits - 1) >> 3] << 8;
  return (uint8_t)(word >> (at & 7) & ((1 << bits) - 1));
})"},
      {"packed_store", '*', R"(static inline void $N(uint8_t* p, int64_t i, int bits, int x) {
  int64_t at = i * bits;
  int mask = ((1 << bits) - 1) << (at & 7);
  int word = p[at >> 3] | p[(at + bits - 1) >> 3] << 8;
  word = (word & ~mask) | ((int)((unsigned)x << (at & 7)) & mask);
  p[(at + bits - 1) >> 3] = (uint8_t)(word >> 8); /* where both are one byte, its old value */
  p[at >> 3] = (uint8_t)word;
})"},
      // ---- float to integer: NaN gives 0, what is out of range the nearest ----
      {"cast", 'i', R"(static inline $T $N($F x) {
  if (x != x) return 0;
  return x <= -$L ? $MIN : x >= $L ? $MAX : ($T)x;
})"},
      {"cast", 'u', R"(static inline $T $N($F x) {
  return x > 0 ? x >= $L ? $MAX : ($T)x : 0; /* a NaN is not above 0 */
})"},
      // ---- float16 is kept as its bits ----
      {"f32_from_f16", '*', R"(static inline float $N(uint16_t h) {
#if defined(__FLT16_MAX__) && (defined(__F16C__) || defined(__aarch64__)) && !defined(__cplusplus)
  _Float16 x;
  memcpy(&x, &h, sizeof(x));
  return (float)x;
#else
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, m = h & 0x7fff, u;
  float tiny = (float)m * 0x1p-24f, x;
  if (m >= 0x7c00) {
    u = 0x7f800000 | m << 13;
    if (m > 0x7c00) u |= 0x400000;
  } else if (m < 0x400) {
    memcpy(&u, &tiny, sizeof(u));
  } else {
    u = (m << 13) + 0x38000000;
  }
  u |= sign;
  memcpy(&x, &u, sizeof(x));
  return x;
#endif
})"},
      {"f16_from_f32", '*', R"(static inline uint16_t $N(float x) {
#if defined(__FLT16_MAX__) && (defined(__F16C__) || defined(__aarch64__)) && !defined(__cplusplus)
  _Float16 y = (_Float16)x;
  uint16_t h;
  memcpy(&h, &y, sizeof(h));
  return h;
#else
  uint32_t u, m, sign;
  float aligned;
  memcpy(&u, &x, sizeof(u));
  sign = u >> 16 & 0x8000;
  m = u & 0x7fffffff;
  if (m > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (m >> 13 & 0x3ff));
  if (m >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
  if (m < 0x38800000) { /* subnormal: an addition aligns and rounds it */
    memcpy(&aligned, &m, sizeof(aligned));
    aligned += 0.5f;
    memcpy(&u, &aligned, sizeof(u));
    return (uint16_t)(sign | (u - 0x3f000000));
  }
  return (uint16_t)(sign | (m - 0x38000000 + 0xfff + (m >> 13 & 1)) >> 13);
#endif
})"},
      {"f16_from_f64",
       '*',
       R"(/* Rounded to odd first, so that the second rounding gives what a single one would. */
static inline uint16_t $N(double x) {
  float y = (float)x;
  uint32_t u;
  double back = y;
  if (back != x && x == x) {
    memcpy(&u, &y, sizeof(u));
    u = (u - (fabs(back) > fabs(x))) | 1;
    memcpy(&y, &u, sizeof(y));
  }
  return tvm_f16_from_f32(y);
})",
       {"f16_from_f32"}},
  };
  return *rows;
}

namespace {
char KindOf(DataType t) { return t.is_int() ? 'i' : t.is_uint() ? 'u' : t.is_float() ? 'f' : '*'; }
const HelperRow* FindRow(const std::vector<HelperRow>& rows, const std::string& name, DataType t) {
  auto row = std::find_if(rows.begin(), rows.end(), [&](const HelperRow& r) {
    return r.name == name && (r.kind == '*' || r.kind == KindOf(t));
  });
  return row == rows.end() ? nullptr : &*row;
}
void ReplaceAll(std::string* text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size())
    text->replace(at, from.size(), to);
}
}  // namespace

std::string FileWriter::Helper(const std::string& name, DataType t, DataType from) {
  std::string full = "tvm_" + name;
  for (DataType part : {t, from}) {
    if (!part.is_void()) full += "_" + ShortName(part);
  }
  if (!helpers_.insert(full).second) return full;
  const HelperRow* row = FindRow(own_helpers_, name, t);
  if (!row) row = FindRow(SharedHelpers(), name, t);
  TVM_FFI_ICHECK(row) << name;
  for (const char* need : row->needs) Helper(need);
  std::string text = row->text;
  ReplaceAll(&text, "static inline", inline_function_);
  if (!t.is_void()) {
    int width = HolderBits(t);
    std::string unsigned_type = "uint" + std::to_string(width) + "_t";
    ReplaceAll(&text, "$U", unsigned_type);
    ReplaceAll(&text, "$W", width == 64 ? "uint64_t" : "uint32_t");
    ReplaceAll(&text, "$B", std::to_string(t.bits()));
    if (t.is_integer()) {
      int magnitude = t.bits() - t.is_int();
      char limit[40];
      std::snprintf(limit, sizeof(limit), "0x1p%d%s", magnitude, from.bits() == 32 ? "f" : "");
      ReplaceAll(&text, "$L", limit);
      auto most =
          static_cast<int64_t>(magnitude == 64 ? ~uint64_t{0} : (uint64_t{1} << magnitude) - 1);
      ReplaceAll(&text, "$MAX", Number(t, most).text);
      ReplaceAll(&text, "$MIN", Number(t, t.is_int() ? -most - 1 : 0).text);
    }
    ReplaceAll(&text, "$T", t.is_bool() ? "bool" : TypeName(t));
    ReplaceAll(&text, "$f", t.bits() == 32 ? "f" : "");
  }
  if (!from.is_void()) ReplaceAll(&text, "$F", TypeName(from));
  ReplaceAll(&text, "$N", full);
  helper_text_ += text + "\n";
  return full;
}

}  // namespace tvm::codegen::source
