// Norms, element-wise functions, the arithmetic of the flow, copies.
#include "check.h"

namespace test {

static double silu(double x) { return x / (1 + std::exp(-x)); }

static Numbers arguments(int t, size_t n) {
  Numbers x = Numbers::normal(t, n, 3);
  const double edges[] = {0, 1, -1, 20, -20, 88, -88, 89, -89, 104, -104, 1000, -1000, 1e30, -1e30, 1e-30, -1e-30};
  for (size_t i = 0; i < sizeof edges / sizeof *edges && 2 * i < n; i++) x.set(2 * i, edges[i]);
  return x;
}

static void unary(const char *name, int (*op)(int, void *, const void *, int64_t, void *), double (*f)(double)) {
  for (int t : kTypes) {
    for (size_t n : {1, 7, 100, 5003}) {
      for (size_t offset : {0, 1}) {
        Numbers x = arguments(t, n), y(t, n, offset);
        compare(text("%s of %zu, type %d", name, n, t), y, [&] { return op(t, y.data(), x.data(), int64_t(n), nullptr); },
                [&](size_t i) { return Want{f(x[i]), std::fabs(f(x[i])) + 2e-38 * 0x1p24}; }, 4);
      }
    }
  }
}

static void gates() {
  for (int t : kTypes) {
    for (auto [rows, n] : {std::pair{1, 1}, {3, 7}, {5, 64}, {2, 1001}}) {
      Numbers gate = arguments(t, size_t(rows) * n), up = Numbers::normal(t, size_t(rows) * n, 2), y(t, size_t(rows) * n);
      const auto value = [t](double g, double u) {
        const double v = rounded(silu(g), t) * u;
        // A step of bfloat16 between the two roundings.
        return Want{v, std::fabs(v) + 2e-38 * 0x1p24 + (t == SKALD_BF16 ? std::fabs(v) * 0x1p14 : 0)};
      };
      compare("swiglu", y, [&] { return skald_swiglu(t, y.data(), gate.data(), up.data(), int64_t(rows) * n, nullptr); }, [&](size_t i) { return value(gate[i], up[i]); }, 6);
      Numbers x = arguments(t, 2 * size_t(rows) * n);
      compare("value_silu", y, [&] { return skald_value_silu(t, y.data(), x.data(), rows, n, nullptr); }, [&](size_t i) {
        const size_t at = i / n * 2 * n + i % n;
        return value(x[at + n], x[at]);
      }, 6);
      Numbers a = Numbers::normal(t, size_t(rows) * n, 2), b = Numbers::normal(t, size_t(n), 1);
      compare("add", y, [&] { return skald_add(t, y.data(), a.data(), b.data(), rows, n, nullptr); }, [&](size_t i) { return Want{rounded(a[i] + b[i % n], t), 0}; }, 0);
    }
  }
}

static void norms() {
  for (int t : kTypes) {
    for (auto [rows, n] : {std::pair{1, 1}, {3, 7}, {4, 64}, {2, 300}, {3, 1032}, {2, 4099}}) {
      Numbers x = Numbers::normal(t, size_t(rows) * n, 2), w = Numbers::normal(SKALD_F32, size_t(n), 1), b = Numbers::normal(SKALD_F32, size_t(n), 1);
      Numbers y(t, size_t(rows) * n);
      const auto moments = [&](size_t row, double centre) {
        double sum = 0;
        for (int i = 0; i < n; i++) sum += centre == 0 ? x[row * n + i] * x[row * n + i] : std::pow(x[row * n + i] - centre, 2);
        return sum / n;
      };
      compare(text("rms_norm [%d, %d], type %d", rows, n, t), y, [&] { return skald_rms_norm(t, y.data(), x.data(), w.floats(), rows, n, 1e-6f, nullptr); }, [&](size_t i) {
        const double v = rounded(x[i] / std::sqrt(moments(i / n, 0) + 1e-6), t) * w[i % n];
        return Want{v, std::fabs(v) * (t == SKALD_BF16 ? 0x1p14 : 1)};
      }, 6 + std::sqrt(double(n)));
      compare(text("layer_norm [%d, %d], type %d", rows, n, t), y, [&] { return skald_layer_norm(t, y.data(), x.data(), w.floats(), b.floats(), rows, n, 1e-5f, nullptr); }, [&](size_t i) {
        double mean = 0;
        for (int j = 0; j < n; j++) mean += x[i / n * n + j];
        mean /= n;
        double variance = 0;
        for (int j = 0; j < n; j++) variance += std::pow(x[i / n * n + j] - mean, 2);
        const double factor = 1 / std::sqrt(variance / n + 1e-5), v = (x[i] - mean) * factor * w[i % n];
        return Want{v + b[i % n], std::fabs(v) + std::fabs(b[i % n]) + std::fabs(mean) * std::fabs(w[i % n]) * factor};
      }, 6 + std::sqrt(double(n)));
    }
  }
}

static void snakes() {
  for (int t : kTypes) {
    for (int channels : {1, 5, 64}) {
      for (double size : {1.0, 1e4, 1e9, 1e30}) {
        const int rows = 9;
        Numbers x = Numbers::normal(t, size_t(rows) * channels, size), alpha = Numbers::normal(SKALD_F32, size_t(channels), 2);
        for (int i = 0; i < channels; i++) alpha.set(i, rounded(i == 1 ? 0 : i == 2 ? 1e-9 : alpha[i], t));
        Numbers y(t, x.count());
        compare(text("snake, type %d, size %g", t, size), y, [&] { return skald_snake(t, y.data(), x.data(), alpha.floats(), rows, channels, nullptr); }, [&](size_t i) {
          const double a = alpha[i % channels], inverse = rounded(1 / rounded(a + double(1e-9f), t), t), s = rounded(std::sin(rounded(a * x[i], t)), t);
          const double wave = inverse * rounded(s * s, t);
          return Want{x[i] + wave, std::fabs(x[i]) + std::fabs(wave) * (t == SKALD_BF16 ? 0x1p15 : 4)};
        }, 2);
      }
    }
  }
}

static void finite() {
  for (int t : kTypes) {
    for (size_t n : {size_t(1), size_t(9), size_t(10007)}) {
      Numbers x = Numbers::normal(t, n, 1);
      int32_t out[2] = {5, 5};
      const auto f = [&] { return skald_finite(t, out, x.data(), int64_t(n), nullptr); };
      run("finite", f);
      check(out[0] == 0 && out[1] == 5, "finite of %zu numbers gives %d", n, out[0]);
      for (uint64_t seed : {0, 1, 2}) {
        emu::set_seed(seed);
        x.set(n - 1, NAN);
        x.set(n / 3, -INFINITY);
        run("finite", f);
        check(out[0] == int32_t(n / 3 + 1), "finite: %d, want %zu", out[0], n / 3 + 1);
      }
      emu::set_seed(0);
    }
  }
}

void elements() {
  unary("silu", skald_silu, silu);
  unary("tanh", skald_tanh, std::tanh);
  gates();
  norms();
  snakes();
  finite();
}

void flow() {
  for (int t : kTypes) {
    const int rows = 5, n = 19, layers = 8;
    Numbers x = Numbers::normal(t, size_t(rows) * n * layers, 1), y(t, size_t(rows) * n);
    std::vector<float> weights;
    for (int l = 0; l < layers; l++) weights.push_back(0.1f * float(l) - 0.25f);
    compare("mix_layers", y, [&] { return skald_mix_layers(t, y.data(), x.data(), rows, n, weights.data(), layers, 1.3f, nullptr); }, [&](size_t i) {
      double sum = 0, size = 0;
      for (int l = 0; l < layers; l++) {
        const double p = weights[l] * x[(i / n * layers + l) * n + i % n];
        sum += p;
        size += std::fabs(p);
      }
      return Want{rounded(sum, t) * 1.3f, size * (t == SKALD_BF16 ? 0x1p14 : 2)};
    }, 4);
    for (int in : {1, 32, 150, 200}) {
      const int out = in * 441 / 128 + 1;
      Numbers a = Numbers::normal(t, size_t(in) * 3, 1), b(t, size_t(out) * 3);
      compare("nearest_rows", b, [&] { return skald_nearest_rows(t, b.data(), out, a.data(), in, 3, nullptr); }, [&](size_t i) {
        const float step = float(in) / float(out);
        const int row = std::min(int(float(i / 3) * step), in - 1);
        return Want{a[size_t(row) * 3 + i % 3], 0};
      }, 0);
    }
    Numbers s(t, size_t(7) * 12), from = Numbers::normal(t, s.count(), 1);
    compare("split_channels", s, [&] { return skald_split_channels(t, s.data(), from.data(), 7, 12, 3, nullptr); }, [&](size_t i) { return Want{from[i / 4 % 7 * 12 + i / 28 * 4 + i % 4], 0}; }, 0);
    const size_t m = 1003;
    Numbers noise = Numbers::normal(t, m, 1), carry = Numbers::normal(t, m, 1), vu = Numbers::normal(t, m, 1), z(t, m);
    compare("blend", z, [&] { return skald_blend(t, z.data(), noise.data(), carry.data(), 0.3f, 0.7f, int64_t(m), nullptr); },
            [&](size_t i) { return Want{rounded(rounded(noise[i] * 0.3f, t) + rounded(carry[i] * 0.7f, t), t), 0}; }, 0);
    for (bool guided : {false, true}) {
      Numbers before = noise.copy(), now = noise.copy();
      compare("euler_step", now, [&] { return skald_euler_step(t, now.data(), carry.data(), guided ? vu.data() : nullptr, 1.7f, 0.1f, int64_t(m), nullptr); }, [&](size_t i) {
        double v = carry[i];
        if (guided) v = rounded(vu[i] + rounded(double(1.7f) * rounded(v - vu[i], t), t), t);
        return Want{rounded(before[i] + rounded(v * double(0.1f), t), t), 0};
      }, 0);
    }
  }
}

void memory() {
  const int types[] = {SKALD_F32, SKALD_BF16, SKALD_F16};
  for (int from : types) {
    for (int to : types) {
      for (size_t n : {1, 31, 5000}) {
        for (size_t offset : {0, 1, 3}) {
          Numbers x = Numbers::normal(from, n, 1, offset), y(to, n, offset / 2);
          compare("copy", y, [&] { return skald_copy(to, y.data(), from, x.data(), int64_t(n), nullptr); }, [&](size_t i) { return Want{rounded(x[i], to), 0}; }, 0);
          std::vector<unsigned char> bytes(n + 8, 7);
          run("zero", [&] { return skald_zero(bytes.data() + offset, n, nullptr); });
          bool right = true;
          for (size_t i = 0; i < bytes.size(); i++) right = right && bytes[i] == (i >= offset && i < offset + n ? 0 : 7);
          check(right, "zero of %zu bytes at %zu", n, offset);
        }
      }
    }
  }
  // Types that are only stored, at any address.
  for (int odd : {0, 1}) {
    std::vector<unsigned char> bytes(257 + 8 * 4);
    for (int i = 0; i < 256; i++) bytes[odd + i] = (unsigned char)i;
    Numbers y(SKALD_F32, 256);
    run("copy", [&] { return skald_copy(SKALD_F32, y.data(), SKALD_F8E4M3, bytes.data() + odd, 256, nullptr); });
    check(y[0] == 0 && y[1] == std::ldexp(1, -9) && y[0x38] == 1 && y[0x7e] == 448 && y[0xb8] == -1 && std::isnan(y[0x7f]), "float8 e4m3");
    run("copy", [&] { return skald_copy(SKALD_F32, y.data(), SKALD_F8E5M2, bytes.data() + odd, 256, nullptr); });
    check(y[0] == 0 && y[1] == std::ldexp(1, -16) && y[0x3c] == 1 && y[0x7b] == 57344 && y[0xbc] == -1 && std::isinf(y[0x7c]), "float8 e5m2");
    const double wide[2] = {1 + 1e-9, -3.5};
    std::memcpy(bytes.data() + odd, wide, sizeof wide);
    run("copy", [&] { return skald_copy(SKALD_F32, y.data(), SKALD_F64, bytes.data() + odd, 2, nullptr); });
    check(y[0] == 1 && y[1] == -3.5, "float64");
  }
}

void graphs() {
  Numbers x = Numbers::normal(SKALD_F32, 10, 1), y(SKALD_F32, 10);
  int stream = 0;
  void *graph = nullptr;
  check(!skald_capture_begin(&stream), "capture begins");
  skald_copy(SKALD_F32, y.data(), SKALD_F32, x.data(), 10, &stream);
  skald_add(SKALD_F32, y.data(), y.data(), y.data(), 1, 10, &stream);
  check(!skald_capture_end(&stream, &graph) && graph, "capture ends");
  size_t nodes = 0;
  check(!skald_graph_nodes(graph, &nodes) && nodes == 2, "the graph has %zu nodes", nodes);
  run("nothing", [] { return 0; });
  check(std::isnan(y[0]), "a capture runs what it records");
  for (int i = 0; i < 3; i++) {
    x.set(4, i);
    skald_graph_launch(graph, &stream);
    run("graph", [] { return 0; });
    check(y[4] == 2 * i, "a graph reads its buffers anew");
  }
  check(!skald_graph_free(graph), "the graph is freed");
}

}  // namespace test
