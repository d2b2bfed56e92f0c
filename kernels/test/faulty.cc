// The emulation must find mistakes, or its other tests say nothing.
#include "faulty.h"

#include "check.h"

namespace test {

static void stopped(int e, const char *sentence) {
  if (!e) e = emu::synchronize();
  check(e && std::strstr(emu::message(), sentence), "not found: %s; instead", sentence);
  emu::reset();
}

void faulty() {
  std::vector<float> in(256), out(64), want(64);
  for (int i = 0; i < 256; i++) in[i] = float(i * i % 97);

  emu::set_seed(0);
  faulty_no_barrier(out.data(), in.data());
  emu::synchronize();
  check(std::isnan(out[0]), "without a barrier, shared memory that nobody wrote is not NaN");

  emu::set_seed(2);  // copies arrive late
  faulty_no_wait(out.data(), in.data());
  emu::synchronize();
  check(std::isnan(out[0]), "a copy that is not awaited is there");

  for (int t = 0; t < 64; t++) {
    for (int i = 0; i < 4; i++) want[t] += in[i * 64 + 63 - t];
  }
  int wrong = 0, wrong_lower = 0;
  for (uint64_t seed = 0; seed < 8; seed++) {
    emu::set_seed(seed);
    faulty_one_barrier(out.data(), in.data());
    emu::synchronize();
    wrong += out != want;
    faulty_lower_only(out.data(), in.data());
    emu::synchronize();
    for (int t = 0; t < 64; t++) {
      if (out[t] != in[t / 2]) {
        wrong_lower += seed != 0;
        break;
      }
    }
  }
  emu::set_seed(0);
  check(wrong > 0, "a barrier that is missing at the end of a turn");
  check(wrong_lower > 0, "a barrier that is missing where only lower threads are read");

  stopped(faulty_half_barrier(out.data()), "different barriers");
  stopped(faulty_lost_lane(out.data()), "is stuck");
  stopped(faulty_two_calls(out.data()), "__syncwarp");
  stopped(skald_zero(out.data(), size_t(1) << 50, nullptr), "no device takes");
}

}  // namespace test
