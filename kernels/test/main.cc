// Runs the kernels on a processor and compares them with double precision; no GPU needed.
#include <chrono>

#include "check.h"
#include "faulty.h"

using namespace test;

// Steps beyond memory, which only a sanitizer notices: this must not come to its end.
static int step_beyond(const char *where) {
  std::vector<float> out(64);
  if (!std::strcmp(where, "past_shared")) faulty_past_shared(out.data(), 64);
  if (!std::strcmp(where, "past_global")) faulty_past_global(out.data(), 64);
  emu::synchronize();
  std::printf("%s was not noticed\n", where);
  return 1;
}

int main(int argc, char **argv) {
  const struct {
    const char *name;
    void (*run)();
  } tests[] = {
      {"products", products}, {"gathers", gathers}, {"convolutions", convolutions}, {"caches", caches}, {"full_attention", full_attention},
      {"elements", elements}, {"sampling", sampling}, {"flow", flow},               {"memory", memory}, {"graphs", graphs},
      {"faulty", faulty},
  };
  if (argc > 1 && !std::strncmp(argv[1], "past_", 5)) return step_beyond(argv[1]);
  bool found = argc < 2;
  for (const auto &t : tests) {
    if (argc > 1 && std::strcmp(argv[1], t.name) != 0) continue;
    found = true;
    const int before = checks;
    const auto begin = std::chrono::steady_clock::now();
    t.run();
    std::printf("%-16s %5d checks, %5.1f s\n", t.name, checks - before, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  if (!found || checks == 0) {
    std::printf("there is no such test\n");
    return 2;
  }
  const emu::Counts c = emu::counts();
  std::printf("%d checks, %d failed; %llu launches, %.1f million threads\n", checks, failures, (unsigned long long)c.launches, double(c.threads) / 1e6);
  return failures != 0;
}
