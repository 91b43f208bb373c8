//===- HostMath.cpp - Functions of a lane's numbers -----------------------===//
//
// Part of the kvbuf project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The device libraries (libdevice, ocml) promise a few units in the last place;
// the host's library is at least as good. Directed rounding is the host's too,
// which is why this file is compiled with -frounding-math.
//
//===----------------------------------------------------------------------===//

#include "HostMath.h"
#include "Program.h"

#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <unordered_map>

using namespace kvbuf::emu;

namespace {
#include "ExecMath.h"
} // namespace

//===----------------------------------------------------------------------===//
// Numbers in words
//===----------------------------------------------------------------------===//

namespace {

template <typename T> T load(uint64_t word) {
  T x;
  std::memcpy(&x, &word, sizeof(T));
  return x;
}

template <typename T> uint64_t store(T x) {
  uint64_t word = 0;
  std::memcpy(&word, &x, sizeof(T));
  return word;
}

/// Calls a function of numbers with words.
template <typename R, typename... A> struct Wrap {
  template <R (*F)(A...)>
  static void call(const uint64_t *in, uint64_t *out, unsigned) {
    apply<F>(in, out, std::index_sequence_for<A...>());
  }
  template <R (*F)(A...), size_t... I>
  static void apply(const uint64_t *in, uint64_t *out,
                    std::index_sequence<I...>) {
    out[0] = store<R>(F(load<A>(in[I])...));
  }
};

using i32 = int32_t;
using u32 = uint32_t;
using i64 = int64_t;
using u64 = uint64_t;

template <typename T> T rsqrtOf(T x) { return T(1) / std::sqrt(x); }
template <typename T> T rcbrtOf(T x) { return T(1) / std::cbrt(x); }
template <typename T> T rcpOf(T x) { return T(1) / x; }
template <typename T> T exp10Of(T x) {
  return static_cast<T>(std::pow(10.0L, static_cast<long double>(x)));
}
constexpr double pi = 3.14159265358979323846;
template <typename T> T sinpiOf(T x) {
  return static_cast<T>(
      std::sin(pi * std::remainder(static_cast<double>(x), 2)));
}
template <typename T> T cospiOf(T x) {
  return static_cast<T>(
      std::cos(pi * std::remainder(static_cast<double>(x), 2)));
}
template <typename T> T powiOf(T x, i32 n) {
  return static_cast<T>(
      std::pow(static_cast<double>(x), static_cast<double>(n)));
}
template <typename T> T hypot3Of(T x, T y, T z) { return std::hypot(x, y, z); }
template <typename T> T normcdfOf(T x) {
  return static_cast<T>(0.5 *
                        std::erfc(-static_cast<double>(x) / std::sqrt(2.0)));
}
template <typename T> T erfcxOf(T x) {
  long double y = x;
  return static_cast<T>(std::exp(y * y) * std::erfc(y));
}
template <typename T> T saturateOf(T x) {
  return x != x ? T(0) : x < T(0) ? T(0) : x > T(1) ? T(1) : x;
}
template <typename T> T maxNumOf(T x, T y) { return std::fmax(x, y); }
template <typename T> T minNumOf(T x, T y) { return std::fmin(x, y); }
template <typename T> i32 isnanOf(T x) { return std::isnan(x); }
template <typename T> i32 isinfOf(T x) { return std::isinf(x); }
template <typename T> i32 isfiniteOf(T x) { return std::isfinite(x); }
template <typename T> i32 signbitOf(T x) { return std::signbit(x); }
template <typename T> T ldexpOf(T x, i32 n) { return std::ldexp(x, n); }
template <typename T> i32 ilogbOf(T x) { return std::ilogb(x); }
template <typename T> T absOf(T x) {
  using U = std::make_unsigned_t<T>;
  return x < 0 ? static_cast<T>(U(0) - static_cast<U>(x)) : x;
}
u32 mulhiU(u32 x, u32 y) { return static_cast<u64>(x) * y >> 32; }
u32 mulhiS(i32 x, i32 y) {
  return static_cast<u32>(static_cast<u64>(static_cast<i64>(x) * y) >> 32);
}
u64 mulhiUL(u64 x, u64 y) {
  return static_cast<u64>(static_cast<unsigned __int128>(x) * y >> 64);
}
u64 mulhiSL(i64 x, i64 y) {
  return static_cast<u64>(
      static_cast<unsigned __int128>(static_cast<__int128>(x) * y) >> 64);
}
u32 mul24S(u32 x, u32 y) {
  auto cut = [](u32 v) {
    return static_cast<i64>(static_cast<i32>(v << 8) >> 8);
  };
  return static_cast<u32>(cut(x) * cut(y));
}
u32 mul24U(u32 x, u32 y) {
  return static_cast<u32>(static_cast<u64>(x & 0xFFFFFF) * (y & 0xFFFFFF));
}
u32 reverse32(u32 x) {
  u32 r = 0;
  for (unsigned k = 0; k < 32; ++k)
    r |= (x >> k & 1) << (31 - k);
  return r;
}
u64 reverse64(u64 x) {
  return static_cast<u64>(reverse32(static_cast<u32>(x))) << 32 |
         reverse32(static_cast<u32>(x >> 32));
}
u32 swap32(u32 x) { return __builtin_bswap32(x); }
u64 swap64(u64 x) { return __builtin_bswap64(x); }
u32 f16From(float x) { return roundToF16(x); }
u32 f16FromDouble(double x) {
  // Rounded once: through fp32 rounded to odd.
  float y = static_cast<float>(x);
  if (static_cast<double>(y) != x && y == y && !std::isinf(y)) {
    u32 bits = asBits(y);
    if (std::fabs(static_cast<double>(y)) > std::fabs(x))
      --bits;
    y = asFloat(bits | 1);
  }
  return roundToF16(y);
}
u32 bf16FromDouble(double x) {
  float y = static_cast<float>(x);
  if (static_cast<double>(y) != x && y == y && !std::isinf(y)) {
    u32 bits = asBits(y);
    if (std::fabs(static_cast<double>(y)) > std::fabs(x))
      --bits;
    y = asFloat(bits | 1);
  }
  return roundToBF16(y);
}
// Fused multiply-add of f16 and bf16: exact in fp64 but for the sum, which is
// rounded to odd there.
double fmaOdd(double x, double y, double z) {
  double product = x * y; // exact
  double sum = product + z, error;
  double b = sum - product;
  error = (product - (sum - b)) + (z - b);
  if (error != 0 && std::isfinite(sum)) {
    u64 bits = store(sum);
    bool up = (error > 0) == (sum > 0);
    if (!(bits & 1))
      bits += up ? 1 : -1;
    sum = load<double>(bits);
  }
  return sum;
}
template <typename T> T fmaNearest(T x, T y, T z) { return std::fma(x, y, z); }
u32 fmaF16(u32 x, u32 y, u32 z) {
  return f16FromDouble(fmaOdd(extendF16(x), extendF16(y), extendF16(z)));
}
u32 fmaBF16(u32 x, u32 y, u32 z) {
  return bf16FromDouble(fmaOdd(fromBF16(x), fromBF16(y), fromBF16(z)));
}

//===----------------------------------------------------------------------===//
// Arithmetic that rounds as told
//===----------------------------------------------------------------------===//

template <typename T> T flushed(T x, unsigned flags) {
  bool small = std::fabs(x) < std::numeric_limits<T>::min();
  return (flags & flushDenormals) && small ? std::copysign(T(0), x) : x;
}

template <typename T, unsigned N, T (*F)(const T *)>
void rounded(const uint64_t *in, uint64_t *out, unsigned flags) {
  static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD,
                              FE_TOWARDZERO};
  // Through volatile variables, so that nothing is computed before the mode is
  // set or after it is set back.
  volatile T x[N];
  for (unsigned i = 0; i < N; ++i)
    x[i] = flushed(load<T>(in[i]), flags);
  std::fesetround(modes[flags & roundMask]);
  T y[N];
  for (unsigned i = 0; i < N; ++i)
    y[i] = x[i];
  volatile T result = F(y);
  std::fesetround(FE_TONEAREST);
  T r = flushed<T>(result, flags);
  out[0] = store<T>(flags & saturate ? saturateOf<T>(r) : r);
}

template <typename T> T addOf(const T *x) { return x[0] + x[1]; }
template <typename T> T mulOf(const T *x) { return x[0] * x[1]; }
template <typename T> T divOf(const T *x) { return x[0] / x[1]; }
template <typename T> T fmaOf(const T *x) { return std::fma(x[0], x[1], x[2]); }
template <typename T> T sqrtOf(const T *x) { return std::sqrt(x[0]); }
template <typename T> T inverseOf(const T *x) { return T(1) / x[0]; }
template <typename T> T rsqrtFlushed(const T *x) {
  return T(1) / std::sqrt(x[0]);
}
template <typename T> T sinFlushed(const T *x) { return std::sin(x[0]); }
template <typename T> T cosFlushed(const T *x) { return std::cos(x[0]); }
template <typename T> T ex2Flushed(const T *x) { return std::exp2(x[0]); }
template <typename T> T lg2Flushed(const T *x) { return std::log2(x[0]); }
template <typename T> T absFlushed(const T *x) { return std::fabs(x[0]); }
template <typename T> T identity(const T *x) { return x[0]; }

// To an integer, as PTX's cvt does it: NaN is 0, what does not fit is the
// nearest that does.
template <typename From, typename To>
void toIntegerAs(const uint64_t *in, uint64_t *out, unsigned flags) {
  static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD,
                              FE_TOWARDZERO};
  volatile From x = flushed(load<From>(in[0]), flags);
  std::fesetround(modes[flags & roundMask]);
  volatile From whole = std::nearbyint(x);
  std::fesetround(FE_TONEAREST);
  long double y = whole;
  To r = y != y ? To(0)
         : y < static_cast<long double>(std::numeric_limits<To>::min())
             ? std::numeric_limits<To>::min()
         : y > static_cast<long double>(std::numeric_limits<To>::max())
             ? std::numeric_limits<To>::max()
             : static_cast<To>(y);
  out[0] = store<To>(r);
}

template <typename From, typename To>
void fromIntegerAs(const uint64_t *in, uint64_t *out, unsigned flags) {
  static const int modes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD,
                              FE_TOWARDZERO};
  volatile From x = load<From>(in[0]);
  std::fesetround(modes[flags & roundMask]);
  volatile To y = static_cast<To>(x);
  std::fesetround(FE_TONEAREST);
  out[0] = store<To>(y);
}

template <typename T> void sinCos(const uint64_t *in, uint64_t *out, unsigned) {
  T x = load<T>(in[0]);
  out[0] = store(std::sin(x));
  out[1] = store(std::cos(x));
}

// The fraction, and the whole part.
template <typename T> void modfOf(const uint64_t *in, uint64_t *out, unsigned) {
  T whole, fraction = std::modf(load<T>(in[0]), &whole);
  out[0] = store(fraction);
  out[1] = store(whole);
}

// The fraction, and the power of two.
template <typename T>
void frexpOf(const uint64_t *in, uint64_t *out, unsigned) {
  int power = 0;
  out[0] = store(std::frexp(load<T>(in[0]), &power));
  out[1] = store<i32>(power);
}

// The remainder, and the quotient's low bits.
template <typename T>
void remquoOf(const uint64_t *in, uint64_t *out, unsigned) {
  int quotient = 0;
  out[0] = store(std::remquo(load<T>(in[0]), load<T>(in[1]), &quotient));
  out[1] = store<i32>(quotient);
}

// The nearest integer, halves away from zero.
template <typename T>
void llroundOf(const uint64_t *in, uint64_t *out, unsigned) {
  out[0] = store<i64>(std::llround(load<T>(in[0])));
}

// Four products of bytes, or two of a half and a byte, and a sum.
void dot4(const uint64_t *in, uint64_t *out, unsigned flags) {
  u32 a = in[0], b = in[1], sum = in[2];
  for (unsigned k = 0; k < 4; ++k) {
    i32 x = flags & 1 ? static_cast<int8_t>(a >> 8 * k)
                      : static_cast<i32>(a >> 8 * k & 0xFF);
    i32 y = flags & 2 ? static_cast<int8_t>(b >> 8 * k)
                      : static_cast<i32>(b >> 8 * k & 0xFF);
    sum += static_cast<u32>(x * y);
  }
  out[0] = sum;
}
void dot2Bytes(const uint64_t *in, uint64_t *out, unsigned flags) {
  u32 a = in[0], b = in[1], sum = in[2], first = flags & 4 ? 16 : 0;
  for (unsigned k = 0; k < 2; ++k) {
    i32 x = flags & 1 ? static_cast<int16_t>(a >> 16 * k)
                      : static_cast<i32>(a >> 16 * k & 0xFFFF);
    i32 y = flags & 2 ? static_cast<int8_t>(b >> (first + 8 * k))
                      : static_cast<i32>(b >> (first + 8 * k) & 0xFF);
    sum += static_cast<u32>(x * y);
  }
  out[0] = sum;
}

// Floats of 8 bits: flags = format | 4: saturate | 8: negative ones are 0.
void f8FromF32(const uint64_t *in, uint64_t *out, unsigned flags) {
  float x = load<float>(in[0]);
  if ((flags & 8) && x < 0)
    x = 0;
  out[0] = kvbuf::emu::toFloat8(x, flags & 3, flags & 4);
}
void f32FromF8(const uint64_t *in, uint64_t *out, unsigned flags) {
  out[0] = store(fromFloat8(static_cast<uint8_t>(in[0]), flags & 3));
}

// fp32 to the 19 bits of tf32. flags: how it rounds; 4: ties away from zero.
void toTf32(const uint64_t *in, uint64_t *out, unsigned flags) {
  u32 x = in[0], bias = flags & 4 ? 0x1000
                        : (flags & roundMask) == roundZero
                            ? 0
                            : 0xFFF + (x >> 13 & 1);
  bool special = (x & 0x7F800000) == 0x7F800000;
  out[0] = (special ? x : x + bias) & 0xFFFFE000;
}

} // namespace

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

#define F1(Name, Function)                                                     \
  {Name "f", "n=n", Wrap<float, float>::call<Function<float>>},                \
      {Name, "w=w", Wrap<double, double>::call<Function<double>>},
#define F2(Name, Function)                                                     \
  {Name "f", "n=nn", Wrap<float, float, float>::call<Function<float>>},        \
      {Name, "w=ww", Wrap<double, double, double>::call<Function<double>>},
#define STD1(Name)                                                             \
  {#Name "f", "n=n",                                                           \
   Wrap<float, float>::call<static_cast<float (*)(float)>(std::Name)>},        \
      {#Name, "w=w",                                                           \
       Wrap<double,                                                            \
            double>::call<static_cast<double (*)(double)>(std::Name)>},
#define STD2(Name)                                                             \
  {#Name "f", "n=nn",                                                          \
   Wrap<float, float,                                                          \
        float>::call<static_cast<float (*)(float, float)>(std::Name)>},        \
      {#Name, "w=ww",                                                          \
       Wrap<double, double, double>::call<                                     \
           static_cast<double (*)(double, double)>(std::Name)>},
#define PREDICATE(Name, Function)                                              \
  {Name "f", "n=n", Wrap<i32, float>::call<Function<float>>},                  \
      {Name, "n=w", Wrap<i32, double>::call<Function<double>>},
#define ROUNDED(Name, N, Signature, Function)                                  \
  {Name ".f", "n=" Signature, rounded<float, N, Function<float>>},
#define ROUNDED_D(Name, N, Signature, Function)                                \
  {Name ".d", "w=" Signature, rounded<double, N, Function<double>>},

static const LaneFunction table[] = {
    // clang-format off
    STD1(acos) STD1(acosh) STD1(asin) STD1(asinh) STD1(atan) STD1(atanh)
    STD1(cbrt) STD1(ceil) STD1(cos) STD1(cosh) STD1(erf) STD1(erfc) STD1(exp)
    STD1(exp2) STD1(expm1) STD1(fabs) STD1(floor) STD1(lgamma) STD1(log)
    STD1(log10) STD1(log1p) STD1(log2) STD1(logb) STD1(nearbyint) STD1(rint)
    STD1(round) STD1(sin) STD1(sinh) STD1(sqrt) STD1(tan) STD1(tanh)
    STD1(tgamma) STD1(trunc)
    STD2(atan2) STD2(copysign) STD2(fdim) STD2(fmod) STD2(hypot)
    STD2(nextafter) STD2(pow) STD2(remainder)
    F1("rsqrt", rsqrtOf) F1("rcbrt", rcbrtOf) F1("rcp", rcpOf)
    F1("exp10", exp10Of) F1("sinpi", sinpiOf) F1("cospi", cospiOf)
    F1("normcdf", normcdfOf) F1("erfcx", erfcxOf) F1("saturate", saturateOf)
    F2("fmax", maxNumOf) F2("fmin", minNumOf)
    {"hypot3f", "n=nnn", Wrap<float, float, float, float>::call<hypot3Of<float>>},
    {"hypot3", "w=www", Wrap<double, double, double, double>::call<hypot3Of<double>>},
    {"powif", "n=nn", Wrap<float, float, i32>::call<powiOf<float>>},
    {"powi", "w=wn", Wrap<double, double, i32>::call<powiOf<double>>},
    {"ldexpf", "n=nn", Wrap<float, float, i32>::call<ldexpOf<float>>},
    {"ldexp", "w=wn", Wrap<double, double, i32>::call<ldexpOf<double>>},
    PREDICATE("ilogb", ilogbOf) PREDICATE("isnan", isnanOf)
    PREDICATE("isinf", isinfOf) PREDICATE("isfinite", isfiniteOf)
    PREDICATE("signbit", signbitOf)
    {"abs", "n=n", Wrap<i32, i32>::call<absOf<i32>>},
    {"llabs", "w=w", Wrap<i64, i64>::call<absOf<i64>>},
    {"umulhi", "n=nn", Wrap<u32, u32, u32>::call<mulhiU>},
    {"mulhi", "n=nn", Wrap<u32, i32, i32>::call<mulhiS>},
    {"umul64hi", "w=ww", Wrap<u64, u64, u64>::call<mulhiUL>},
    {"mul64hi", "w=ww", Wrap<u64, i64, i64>::call<mulhiSL>},
    {"mul24", "n=nn", Wrap<u32, u32, u32>::call<mul24S>},
    {"umul24", "n=nn", Wrap<u32, u32, u32>::call<mul24U>},
    {"brev", "n=n", Wrap<u32, u32>::call<reverse32>},
    {"brevll", "w=w", Wrap<u64, u64>::call<reverse64>},
    {"bswap", "n=n", Wrap<u32, u32>::call<swap32>},
    {"bswapll", "w=w", Wrap<u64, u64>::call<swap64>},
    {"f16.from.f32", "n=n", Wrap<u32, float>::call<f16From>},
    {"f16.from.f64", "n=w", Wrap<u32, double>::call<f16FromDouble>},
    {"bf16.from.f64", "n=w", Wrap<u32, double>::call<bf16FromDouble>},
    {"fmaf", "n=nnn", Wrap<float, float, float, float>::call<fmaNearest<float>>},
    {"fma", "w=www", Wrap<double, double, double, double>::call<fmaNearest<double>>},
    {"fma.f16", "n=nnn", Wrap<u32, u32, u32, u32>::call<fmaF16>},
    {"fma.bf16", "n=nnn", Wrap<u32, u32, u32, u32>::call<fmaBF16>},
    {"sincosf", "nn=n", sinCos<float>}, {"sincos", "ww=w", sinCos<double>},
    {"modff", "nn=n", modfOf<float>}, {"modf", "ww=w", modfOf<double>},
    {"frexpf", "nn=n", frexpOf<float>}, {"frexp", "wn=w", frexpOf<double>},
    {"remquof", "nn=nn", remquoOf<float>}, {"remquo", "wn=ww", remquoOf<double>},
    {"llroundf", "w=n", llroundOf<float>}, {"llround", "w=w", llroundOf<double>},
    ROUNDED("add", 2, "nn", addOf) ROUNDED_D("add", 2, "ww", addOf)
    ROUNDED("mul", 2, "nn", mulOf) ROUNDED_D("mul", 2, "ww", mulOf)
    ROUNDED("div", 2, "nn", divOf) ROUNDED_D("div", 2, "ww", divOf)
    ROUNDED("fma", 3, "nnn", fmaOf) ROUNDED_D("fma", 3, "www", fmaOf)
    ROUNDED("sqrt", 1, "n", sqrtOf) ROUNDED_D("sqrt", 1, "w", sqrtOf)
    ROUNDED("rcp", 1, "n", inverseOf) ROUNDED_D("rcp", 1, "w", inverseOf)
    ROUNDED("rsqrt", 1, "n", rsqrtFlushed) ROUNDED_D("rsqrt", 1, "w", rsqrtFlushed)
    ROUNDED("sin", 1, "n", sinFlushed) ROUNDED("cos", 1, "n", cosFlushed)
    ROUNDED("ex2", 1, "n", ex2Flushed) ROUNDED("lg2", 1, "n", lg2Flushed)
    ROUNDED_D("ex2", 1, "w", ex2Flushed) ROUNDED_D("lg2", 1, "w", lg2Flushed)
    ROUNDED("fabs", 1, "n", absFlushed) ROUNDED_D("fabs", 1, "w", absFlushed)
    ROUNDED("id", 1, "n", identity) ROUNDED_D("id", 1, "w", identity)
    {"f2i", "n=n", toIntegerAs<float, i32>},
    {"f2ui", "n=n", toIntegerAs<float, u32>},
    {"f2ll", "w=n", toIntegerAs<float, i64>},
    {"f2ull", "w=n", toIntegerAs<float, u64>},
    {"d2i", "n=w", toIntegerAs<double, i32>},
    {"d2ui", "n=w", toIntegerAs<double, u32>},
    {"d2ll", "w=w", toIntegerAs<double, i64>},
    {"d2ull", "w=w", toIntegerAs<double, u64>},
    {"i2f", "n=n", fromIntegerAs<i32, float>},
    {"ui2f", "n=n", fromIntegerAs<u32, float>},
    {"ll2f", "n=w", fromIntegerAs<i64, float>},
    {"ull2f", "n=w", fromIntegerAs<u64, float>},
    {"i2d", "w=n", fromIntegerAs<i32, double>},
    {"ui2d", "w=n", fromIntegerAs<u32, double>},
    {"ll2d", "w=w", fromIntegerAs<i64, double>},
    {"ull2d", "w=w", fromIntegerAs<u64, double>},
    {"d2f", "n=w", fromIntegerAs<double, float>},
    {"dot4", "n=nnn", dot4},
    {"dot2", "n=nnn", dot2Bytes},
    {"f8.from.f32", "n=n", f8FromF32},
    {"f32.from.f8", "n=n", f32FromF8},
    {"tf32", "n=n", toTf32},
    // clang-format on
};

const LaneFunction *kvbuf::emu::laneFunctions() { return table; }
unsigned kvbuf::emu::numLaneFunctions() { return std::size(table); }

int kvbuf::emu::findLaneFunction(const char *name, size_t length) {
  static const auto numbers = [] {
    std::unordered_map<std::string_view, int> map;
    for (unsigned i = 0; i < std::size(table); ++i)
      map.emplace(table[i].name, i);
    return map;
  }();
  auto it = numbers.find(std::string_view(name, length));
  return it == numbers.end() ? -1 : it->second;
}

//===----------------------------------------------------------------------===//
// Small floats
//===----------------------------------------------------------------------===//

uint16_t kvbuf::emu::roundToF16(float x) {
  return static_cast<uint16_t>(toF16(x));
}
uint16_t kvbuf::emu::roundToBF16(float x) {
  return static_cast<uint16_t>(toBF16(x));
}
float kvbuf::emu::extendF16(uint16_t x) { return fromF16(x); }

float kvbuf::emu::fromFloat8(uint8_t x, unsigned format) {
  return float8Values(format & 2, format & 1)[x];
}

// The nearest of all values, ties to the even one: there are few of them.
uint8_t kvbuf::emu::toFloat8(float x, unsigned format, bool saturates) {
  bool bf8 = format & 2, fnuz = format & 1;
  const float *values = float8Values(bf8, fnuz);
  uint8_t sign = std::signbit(x) ? 0x80 : 0, nan = fnuz  ? 0x80
                                                   : bf8 ? 0x7F
                                                         : 0x7F;
  uint8_t largest = fnuz ? 0x7F : bf8 ? 0x7B : 0x7E;
  uint8_t above = fnuz ? 0x80 : bf8 ? 0x7C : 0x7F;
  if (x != x)
    return nan;
  float a = std::fabs(x), top = values[largest];
  // Half a step above the largest number is where rounding leaves the range.
  float step = top - values[largest - 1];
  if (a >= top + step / 2 || std::isinf(a)) {
    bool tie = a == top + step / 2 && !(largest & 1);
    if (saturates || tie)
      return largest | sign;
    return above | (fnuz ? 0 : sign);
  }
  unsigned low = 0, high = largest;
  while (low < high) { // the largest value not above a
    unsigned middle = (low + high + 1) / 2;
    if (values[middle] <= a)
      low = middle;
    else
      high = middle - 1;
  }
  if (low < largest) {
    float below = a - values[low], over = values[low + 1] - a;
    if (over < below || (over == below && (low & 1)))
      ++low;
  }
  return fnuz && low == 0 ? 0 : static_cast<uint8_t>(low) | sign;
}

//===----------------------------------------------------------------------===//
// Atomic operations
//===----------------------------------------------------------------------===//

template <typename T> static uint64_t floatAtomic(AtomicKind kind, T a, T b) {
  switch (kind) {
  case AtomicKind::FAdd:
    return store<T>(a + b);
  case AtomicKind::FSub:
    return store<T>(a - b);
  case AtomicKind::FMax:
    return store<T>(std::fmax(a, b));
  case AtomicKind::FMin:
    return store<T>(std::fmin(a, b));
  case AtomicKind::FMaximum:
    return store<T>(a != a || b != b ? std::numeric_limits<T>::quiet_NaN()
                                     : std::fmax(a, b));
  default: // FMinimum
    return store<T>(a != a || b != b ? std::numeric_limits<T>::quiet_NaN()
                                     : std::fmin(a, b));
  }
}

uint64_t kvbuf::emu::atomicValue(unsigned flags, uint64_t old, uint64_t x,
                                 unsigned bytes) {
  AtomicKind kind = static_cast<AtomicKind>(flags & atomicKindMask);
  unsigned shift = 64 - 8 * bytes;
  uint64_t mask = ~uint64_t(0) >> shift;
  old &= mask;
  x &= mask;
  auto asSigned = [&](uint64_t v) {
    return static_cast<int64_t>(v << shift) >> shift;
  };
  auto halves = [&](auto extend, auto round) {
    uint64_t result = 0;
    for (unsigned k = 0; k < bytes / 2; ++k) {
      float sum = load<float>(
          floatAtomic<float>(kind, extend(static_cast<uint16_t>(old >> 16 * k)),
                             extend(static_cast<uint16_t>(x >> 16 * k))));
      result |= static_cast<uint64_t>(round(sum)) << 16 * k;
    }
    return result;
  };
  if (kind >= AtomicKind::FAdd && kind <= AtomicKind::FMinimum) {
    if (flags & atomicF16)
      return halves(extendF16, roundToF16);
    if (flags & atomicBF16)
      return halves([](uint16_t h) { return fromBF16(h); }, roundToBF16);
    return bytes == 8
               ? floatAtomic<double>(kind, load<double>(old), load<double>(x))
               : floatAtomic<float>(kind, load<float>(old), load<float>(x));
  }
  switch (kind) {
  case AtomicKind::Add:
    return (old + x) & mask;
  case AtomicKind::Sub:
    return (old - x) & mask;
  case AtomicKind::And:
    return old & x;
  case AtomicKind::Nand:
    return ~(old & x) & mask;
  case AtomicKind::Or:
    return old | x;
  case AtomicKind::Xor:
    return old ^ x;
  case AtomicKind::SMax:
    return asSigned(old) > asSigned(x) ? old : x;
  case AtomicKind::SMin:
    return asSigned(old) < asSigned(x) ? old : x;
  case AtomicKind::UMax:
    return old > x ? old : x;
  case AtomicKind::UMin:
    return old < x ? old : x;
  case AtomicKind::Wrap: // counts up to x, then from 0 again
    return old >= x ? 0 : old + 1;
  case AtomicKind::WrapDown: // counts down from x, after 0 again
    return old == 0 || old > x ? x : old - 1;
  case AtomicKind::SubIf:
    return old >= x ? old - x : old;
  case AtomicKind::SubSaturating:
    return old >= x ? old - x : 0;
  default: // Exchange, CompareExchange
    return x;
  }
}
