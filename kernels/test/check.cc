#include "check.h"

#include <cstdarg>

namespace test {

int checks, failures;

static std::mt19937_64 &source() {
  static std::mt19937_64 s(1);
  return s;
}

static float narrow(double v, int type) {
  const float f = float(v);
  switch (type) {
    case SKALD_BF16: return emu::from_bf16(emu::to_bf16(f));
    case SKALD_F16: return emu::from_half(emu::to_half(f));
  }
  return f;
}

double rounded(double v, int type) { return narrow(v, type); }

Numbers Numbers::normal(int type, size_t n, double deviation, size_t offset) {
  Numbers x(type, n, offset);
  std::normal_distribution<double> d(0, deviation);
  for (size_t i = 0; i < n; i++) x.set(i, d(source()));
  return x;
}

double Numbers::operator[](size_t i) const {
  if (type_ == SKALD_F32) {
    float f;
    std::memcpy(&f, static_cast<const char *>(data()) + 4 * i, 4);
    return f;
  }
  uint16_t h;
  std::memcpy(&h, static_cast<const char *>(data()) + 2 * i, 2);
  return type_ == SKALD_BF16 ? emu::from_bf16(h) : emu::from_half(h);
}

void Numbers::set(size_t i, double v) {
  if (type_ == SKALD_F32) {
    const float f = float(v);
    std::memcpy(static_cast<char *>(data()) + 4 * i, &f, 4);
    return;
  }
  const uint16_t h = type_ == SKALD_BF16 ? emu::to_bf16(float(v)) : emu::to_half(float(v));
  std::memcpy(static_cast<char *>(data()) + 2 * i, &h, 2);
}

std::string text(const char *format, ...) {
  char line[300];
  va_list args;
  va_start(args, format);
  std::vsnprintf(line, sizeof line, format, args);
  va_end(args);
  return line;
}

void check(bool ok, const char *format, ...) {
  checks++;
  if (ok) return;
  if (++failures > 20) return;  // enough to see what is wrong
  va_list args;
  va_start(args, format);
  std::printf("FAIL ");
  std::vprintf(format, args);
  std::printf(" %s\n", emu::message());
  va_end(args);
}

void run(const std::string &what, const std::function<int()> &f) {
  int e = f();
  if (!e) e = emu::synchronize();
  check(e == 0, "%s: error %d:", what.c_str(), e);
  if (e) emu::reset();
}

void compare(const std::string &what, Numbers &out, const std::function<int()> &f, const std::function<Want(size_t)> &want, double slack) {
  const std::vector<unsigned char> before = out.bytes();
  std::vector<unsigned char> first;
  for (uint64_t seed : {0, 1, 2}) {
    emu::set_seed(seed);
    std::memcpy(out.data(), before.data(), before.size());
    run(what, f);
    if (seed == 0) first = out.bytes();
    check(out.bytes() == first, "%s: another order of threads gives other bits", what.c_str());
  }
  emu::set_seed(0);
  for (size_t i = 0; i < out.count(); i++) {
    const Want w = want(i);
    const double got = out[i], error = std::fabs(got - w.value);
    double allowed = slack * 0x1p-24 * w.size + 1e-37;
    if (out.type() == SKALD_BF16) allowed += 0x1p-8 * std::fabs(w.value);
    if (error <= allowed) continue;
    check(false, "%s: number %zu of %zu is %.9g, want %.9g, %.1f times what is allowed", what.c_str(), i, out.count(), got, w.value, error / allowed);
    return;
  }
  check(true, "%s", what.c_str());
}

}  // namespace test
