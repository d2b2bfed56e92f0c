// Convolutions of both kinds.
#include "check.h"

namespace test {

struct Case {
  int batch, length, in, out, taps, stride, dilation, pad;
};

static void convolve(int t, int wt, const Case &c, bool transposed, bool bias, bool residual) {
  const int length = transposed ? (c.length - 1) * c.stride - 2 * c.pad + c.taps : c.length + 2 * c.pad - c.dilation * (c.taps - 1);
  const std::string what = text("%s, types %d and %d, %d of %d, %d to %d channels, %d taps, stride %d, dilation %d, pad %d", transposed ? "conv_transpose1d" : "conv1d", t, wt, c.batch, c.length, c.in, c.out, c.taps, c.stride, c.dilation, c.pad);
  const Numbers x = Numbers::normal(t, size_t(c.batch) * c.length * c.in, 1), w = Numbers::normal(wt, size_t(c.in) * c.out * c.taps, 1);
  Numbers packed(wt, w.count()), b = Numbers::normal(SKALD_F32, size_t(c.out), 2);
  run(what, [&] { return skald_pack_conv(wt, packed.data(), w.data(), c.out, c.in, c.taps, transposed, nullptr); });
  const Numbers before = Numbers::normal(t, size_t(c.batch) * length * c.out, 3);
  Numbers y = residual ? before.copy() : Numbers(t, before.count());
  const skald_conv conv{c.batch, c.length, c.in, c.out, c.taps, c.stride, c.dilation, c.pad, packed.weight(), bias ? b.floats() : nullptr, residual ? y.data() : nullptr};
  compare(what, y, [&] { return transposed ? skald_conv_transpose1d(t, y.data(), x.data(), &conv, nullptr) : skald_conv1d(t, y.data(), x.data(), &conv, nullptr); }, [&](size_t at) {
    const int entry = int(at / c.out) / length, u = int(at / c.out) % length, o = int(at % c.out);
    double sum = bias ? b[o] : 0, size = std::fabs(sum);
    for (int k = 0; k < c.taps; k++) {
      int row = u + k * c.dilation - c.pad;
      if (transposed) {
        row = u + c.pad - k;
        if (row % c.stride != 0) continue;
        row /= c.stride;
      }
      if (row < 0 || row >= c.length) continue;
      for (int i = 0; i < c.in; i++) {
        const double p = x[(size_t(entry) * c.length + row) * c.in + i] * w[transposed ? (size_t(i) * c.out + o) * c.taps + k : (size_t(o) * c.in + i) * c.taps + k];
        sum += p;
        size += std::fabs(p);
      }
    }
    if (residual) sum = before[at] + (t == SKALD_BF16 ? rounded(sum, t) : sum), size += std::fabs(before[at]);
    return Want{sum, size};
  }, 2 + 0.75 * std::sqrt(double(c.in) * c.taps) + (t == SKALD_BF16 && residual ? 0x1p16 : 0));
}

void convolutions() {
  for (auto [t, w] : {std::pair{SKALD_F32, SKALD_F32}, {SKALD_F32, SKALD_BF16}, {SKALD_BF16, SKALD_BF16}}) {
    for (bool full : {false, true}) {
      for (const Case &c : {Case{1, 1, 1, 1, 1, 0, 1, 0}, {2, 31, 5, 6, 7, 0, 3, 9}, {1, 65, 40, 3, 7, 0, 9, 27}, {1, 150, 8, 70, 3, 0, 1, 1}, {2, 9, 16, 5, 2, 0, 1, 4}}) {
        convolve(t, w, c, false, full, full);
      }
      for (const Case &c : {Case{1, 1, 1, 1, 1, 1, 0, 0}, {2, 9, 5, 3, 4, 2, 0, 1}, {1, 9, 5, 3, 10, 5, 0, 3}, {3, 17, 40, 7, 5, 2, 0, 0}, {1, 3, 4, 2, 2, 5, 0, 0}, {1, 140, 8, 66, 4, 2, 0, 1}}) {
        convolve(t, w, c, true, full, full);
      }
    }
  }
}

}  // namespace test
