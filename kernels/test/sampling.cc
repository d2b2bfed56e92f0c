// Guided sampling against the rule, candidate by candidate.
#include <algorithm>

#include "check.h"

namespace test {

static void draws(int t, int songs, int n, int top_k, bool restricted, bool ties) {
  const std::string what = text("sample, type %d, %d songs, %d of %d, restricted %d", t, songs, top_k, n, restricted);
  Numbers logits = Numbers::normal(t, size_t(2) * songs * n, 3);
  if (ties) {
    for (size_t i = 0; i < logits.count(); i++) logits.set(i, std::round(logits[i]));
  }
  std::mt19937 r(uint32_t(n) + uint32_t(top_k));
  std::exponential_distribution<float> e(1);
  std::vector<float> q(size_t(songs) * n);
  for (float &v : q) v = e(r) + 1e-6f;
  std::vector<int32_t> out(size_t(2) * songs * 3, 77);
  const float guidance = 1.5f;
  const skald_sample_args s{logits.data(), songs, n, guidance, top_k, restricted, 0, q.data(), nullptr, nullptr, out.data(), 3, 1};
  for (uint64_t seed : {0, 1, 2}) {
    emu::set_seed(seed);
    run(what, [&] { return skald_sample(t, &s, nullptr); });
    for (int song = 0; song < songs; song++) {
      std::vector<float> cond(n), guided(n);
      for (int i = 0; i < n; i++) cond[i] = float(logits[size_t(2 * song) * n + i]);
      const auto kth = [&](std::vector<float> v) {
        std::sort(v.rbegin(), v.rend());
        return v[std::min(top_k, n) - 1];
      };
      const float floor = kth(cond);
      for (int i = 0; i < n; i++) {
        const float u = float(logits[size_t(2 * song + 1) * n + i]);
        guided[i] = restricted && cond[i] < floor ? -INFINITY : u + (cond[i] - u) * guidance;
      }
      const float threshold = kth(guided);
      const float top = *std::max_element(guided.begin(), guided.end());
      double best = -1;
      int index = -1;
      for (int i = 0; i < n; i++) {
        if (guided[i] < threshold || std::isinf(guided[i])) continue;
        const double ratio = std::exp(double(guided[i] - top)) / q[size_t(song) * n + i];
        if (ratio > best) best = ratio, index = i;
      }
      check(out[size_t(song) * 6 + 1] == index && out[size_t(song) * 6 + 4] == index && out[size_t(song) * 6] == 77, "%s: drew %d, want %d", what.c_str(), out[size_t(song) * 6 + 1], index);
    }
  }
  emu::set_seed(0);
}

void sampling() {
  for (int t : kTypes) {
    for (bool restricted : {false, true}) {
      draws(t, 1, 1, 5, restricted, false);
      draws(t, 3, 7, 5, restricted, false);
      draws(t, 2, 1024, 50, restricted, false);
      draws(t, 1, 5000, 50, restricted, true);
    }
  }
  draws(SKALD_F32, 1, 16385, 50, true, false);
  draws(SKALD_F32, 1, 3000, 2000, false, false);  // more than the list holds

  // Draws that Philox makes: of equal candidates host/rng draws this one.
  const int n = 40;
  Numbers logits(SKALD_F32, 2 * n);
  for (size_t i = 0; i < logits.count(); i++) logits.set(i, 0);
  std::vector<int32_t> seeds{1234, 5}, iterations{7}, out(2);
  const skald_sample_args s{logits.data(), 1, n, 1.5f, n, 0, 3, nullptr, seeds.data(), iterations.data(), out.data(), 1, 0};
  run("sample", [&] { return skald_sample(SKALD_F32, &s, nullptr); });
  check(out[0] == 15 && out[1] == 15, "Philox draws %d, host/rng draws 15", out[0]);

  for (float bad : {float(NAN), float(INFINITY)}) {
    for (size_t at : {size_t(5), size_t(n + 9)}) {
      logits.set(at, bad);
      run("sample", [&] { return skald_sample(SKALD_F32, &s, nullptr); });
      check(out[0] == -1 && out[1] == -1, "a logit that is not finite draws %d", out[0]);
      logits.set(at, 0);
    }
  }
}

}  // namespace test
