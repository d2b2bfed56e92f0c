// functions.cuh has the functions that must be right to half a unit in the last place. They
// work in double precision and round once, operation by operation like the portable code
// of host/cpu, and so give its bits.
#ifndef SKALD_FUNCTIONS_CUH
#define SKALD_FUNCTIONS_CUH

#include "device.cuh"

namespace skald {

// Adding it rounds a double to an integer, which its low bits then hold.
constexpr double kShift = 6755399441055744.0;  // 3 * 2^51

// 2^(i/32), as bits, less the i that the exponent of exp_exact adds.
#ifdef SKALD_EMU
static const
#else
static __device__ const
#endif
    long long kExp2[32] = {
        0x3ff0000000000000ll, 0x3fefd9b0d3158574ll, 0x3fefb5586cf9890fll, 0x3fef9301d0125b50ll,
        0x3fef72b83c7d517bll, 0x3fef54873168b9aall, 0x3fef387a6e756238ll, 0x3fef1e9df51fdee1ll,
        0x3fef06fe0a31b715ll, 0x3feef1a7373aa9call, 0x3feedea64c123422ll, 0x3feece086061892dll,
        0x3feebfdad5362a27ll, 0x3feeb42b569d4f81ll, 0x3feeab07dd485429ll, 0x3feea47eb03a5584ll,
        0x3feea09e667f3bcdll, 0x3fee9f75e8ec5f74ll, 0x3feea11473eb0187ll, 0x3feea589994cce12ll,
        0x3feeace5422aa0dcll, 0x3feeb737b0cdc5e5ll, 0x3feec49182a3f090ll, 0x3feed503b23e255cll,
        0x3feee89f995ad3aell, 0x3feeff76f2fb5e47ll, 0x3fef199bdd85529cll, 0x3fef3720dcef9069ll,
        0x3fef5818dcfba488ll, 0x3fef7c97337b9b5fll, 0x3fefa4afa2a490dall, 0x3fefd0765b6e4540ll,
};

// e^x, at most 0.501 ulp from it. With n the integer nearest 32x/ln 2 it is 2^(n/32) e^r.
__device__ inline float exp_exact(float v) {
  if (v > 89.0f) return INFINITY;
  if (v < -104.0f) return 0.0f;  // under half the smallest float32
  const double x = v, turned = x * 0x1.71547652b82fep+5 + kShift;
  const long long n = __double_as_longlong(turned);
  const double r = x - (turned - kShift) * 0x1.62e42fefa39efp-6;
  const double power = __longlong_as_double(kExp2[n & 31] + (long long)((unsigned long long)n << 47));
  const double r2 = r * r;
  double p = r * (1.0 / 24) + 1.0 / 6;
  p = p * r + 0.5;
  return float(power + power * (r + r2 * p));
}

// The sine, at most 0.501 ulp from it for every finite x. With n the integer nearest x/pi it
// is (-1)^n sin(x - n pi); pi has three parts, the first two of 27 bits.
__device__ inline float sine_exact(float v) {
  const double x = v;
  if (fabs(x) >= 0x1p27) return float(sin(x));
  const double turned = x * 0x1.45f306dc9c883p-2 + kShift, n = turned - kShift;
  double r = x - n * 0x6487ed5p-25;
  r -= n * 0x442d184p-55;
  r -= n * 0x1.a62633145c06ep-57;
  const double r2 = r * r;  // Taylor to r^15
  double p = r2 * (-1.0 / 1307674368000) + 1.0 / 6227020800;
  p = p * r2 - 1.0 / 39916800;
  p = p * r2 + 1.0 / 362880;
  p = p * r2 - 1.0 / 5040;
  p = p * r2 + 1.0 / 120;
  p = p * r2 - 1.0 / 6;
  const double s = r + r * (r2 * p);
  return float((__double_as_longlong(turned) & 1) ? -s : s);
}

}  // namespace skald

#endif
