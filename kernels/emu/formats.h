// formats.h converts between float and the 16-bit formats, bit for bit as CUDA does.
#ifndef SKALD_EMU_FORMATS_H
#define SKALD_EMU_FORMATS_H

#include <cstdint>
#include <cstring>

namespace emu {

inline uint32_t bits_of(float f) {
  uint32_t u;
  std::memcpy(&u, &f, sizeof u);
  return u;
}
inline float float_of(uint32_t u) {
  float f;
  std::memcpy(&f, &u, sizeof f);
  return f;
}

inline uint16_t to_bf16(float f) {
  const uint32_t u = bits_of(f);
  if ((u & 0x7fffffff) > 0x7f800000) return 0x7fff;  // any NaN
  return uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
inline float from_bf16(uint16_t h) { return float_of(uint32_t(h) << 16); }

inline uint16_t to_half(float f) {
  const uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return 0x7fff;
  if (a >= 0x477ff000) return uint16_t(sign | 0x7c00);  // 65520 and more
  if (a < 0x38800000) {                                 // subnormal: one unit of 0.5 + x is 2^-24
    return uint16_t(sign | (bits_of(float_of(a) + 0.5f) - bits_of(0.5f)));
  }
  return uint16_t(sign | ((a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13));
}
inline float from_half(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
  if (exponent == 31) return float_of(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0) return float_of(sign | bits_of(float(mantissa) * 0x1p-24f));
  return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
}

}  // namespace emu

#endif
