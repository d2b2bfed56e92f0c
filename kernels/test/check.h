// check.h is what the tests share: typed memory, and comparison with double precision.
#ifndef SKALD_TEST_CHECK_H
#define SKALD_TEST_CHECK_H

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "emu.h"
#include "formats.h"
#include "skald_kernels.h"

namespace test {

constexpr int kTypes[] = {SKALD_F32, SKALD_BF16};

// Numbers of one type, in memory of their exact size, so that a sanitizer sees a step
// beyond. offset leaves the memory aligned to the type only.
class Numbers {
 public:
  Numbers(int type, size_t n, size_t offset = 0) : type_(type), n_(n), offset_(offset), bytes_(new unsigned char[(n + offset) * size()]) {
    std::memset(bytes_.get(), 0xff, (n + offset) * size());  // NaN
  }
  Numbers(int type, const std::vector<double> &v, size_t offset = 0) : Numbers(type, v.size(), offset) {
    for (size_t i = 0; i < n_; i++) set(i, v[i]);
  }
  // Normal numbers with this deviation.
  static Numbers normal(int type, size_t n, double deviation, size_t offset = 0);

  void *data() { return bytes_.get() + offset_ * size(); }
  const void *data() const { return bytes_.get() + offset_ * size(); }
  float *floats() { return static_cast<float *>(data()); }
  size_t count() const { return n_; }
  int type() const { return type_; }
  double operator[](size_t i) const;
  void set(size_t i, double v);
  void poison() { std::memset(data(), 0xff, n_ * size()); }
  std::vector<unsigned char> bytes() const {
    const unsigned char *p = static_cast<const unsigned char *>(data());
    return {p, p + n_ * size()};
  }
  Numbers copy() const {
    Numbers c(type_, n_, offset_);
    std::memcpy(c.data(), data(), n_ * size());
    return c;
  }
  size_t size() const { return type_ == SKALD_F32 ? 4 : 2; }
  skald_weight weight() const { return {data(), nullptr, type_, 0}; }

 private:
  int type_;
  size_t n_, offset_;
  std::unique_ptr<unsigned char[]> bytes_;
};

// v rounded to a type.
double rounded(double v, int type);

// A reference: what a number should be, and what its parts add up to in size.
struct Want {
  double value, size;
};

extern int checks, failures;
void check(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Runs f with several orders of threads and wants the same bits each time in out, which
// holds before what f finds there; then compares with what is wanted. slack counts
// roundings of float32 (2^-24) of the size; a bfloat16 result may be rounded once more.
void compare(const std::string &what, Numbers &out, const std::function<int()> &f, const std::function<Want(size_t)> &want, double slack);

// Runs f in the current order.
void run(const std::string &what, const std::function<int()> &f);

std::string text(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The tests.
void products();
void gathers();
void convolutions();
void caches();
void full_attention();
void elements();
void sampling();
void flow();
void memory();
void graphs();
void faulty();

}  // namespace test

#endif
