// What lanes of a warp do together.
#include "cuda_emu.h"

namespace emu {

void run_nothing(void **, unsigned) {}

void run_exchange(void **args, unsigned mask) {
  for (unsigned m = mask; m; m &= m - 1) {
    auto *e = static_cast<Exchange *>(args[__builtin_ctz(m)]);
    // A lane that does not take part has no value: all bits set is NaN.
    e->result = mask >> e->from & 1 ? static_cast<Exchange *>(args[e->from])->value : ~0u;
  }
}

void run_ballot(void **args, unsigned mask) {
  unsigned votes = 0;
  for (unsigned m = mask; m; m &= m - 1) {
    const unsigned lane = unsigned(__builtin_ctz(m));
    votes |= static_cast<Exchange *>(args[lane])->value << lane;
  }
  for (unsigned m = mask; m; m &= m - 1) static_cast<Exchange *>(args[__builtin_ctz(m)])->result = votes;
}

static void want_all(unsigned mask, const char *name) {
  if (mask != 0xffffffff) fail("%s needs all 32 lanes, has 0x%08x", name, mask);
}

// One tile: the lanes' registers become matrices, are multiplied, and go back.
static void mma_tile(Mma *const *lanes, int i, int j) {
  float a[16][16], b[16][8], d[16][8];
  for (int l = 0; l < 32; l++) {
    const Mma &x = *lanes[l];
    const int g = l / 4, t = l % 4 * 2;
    for (int r = 0; r < 4; r++) {
      const uint32_t pair = x.a[i * 4 + r];
      float *at = &a[g + r % 2 * 8][t + r / 2 * 8];
      at[0] = float_of(pair << 16);
      at[1] = float_of(pair & 0xffff0000);
      d[g + r / 2 * 8][t + r % 2] = x.d[(i * x.n + j) * 4 + r];
    }
    for (int r = 0; r < 2; r++) {
      const uint32_t pair = x.b[j * 2 + r];
      b[t + r * 8][g] = float_of(pair << 16);
      b[t + r * 8 + 1][g] = float_of(pair & 0xffff0000);
    }
  }
  for (int r = 0; r < 16; r++) {
    for (int k = 0; k < 16; k++) {
      for (int c = 0; c < 8; c++) d[r][c] += a[r][k] * b[k][c];
    }
  }
  for (int l = 0; l < 32; l++) {
    for (int r = 0; r < 4; r++) {
      lanes[l]->d[(i * lanes[l]->n + j) * 4 + r] = d[l / 4 + r / 2 * 8][l % 4 * 2 + r % 2];
    }
  }
}

void run_mma_bf16(void **args, unsigned mask) {
  want_all(mask, "mma");
  Mma *const *lanes = reinterpret_cast<Mma *const *>(args);
  for (int i = 0; i < lanes[0]->m; i++) {
    for (int j = 0; j < lanes[0]->n; j++) mma_tile(lanes, i, j);
  }
}

template <bool Trans> static void ldmatrix(void **args, unsigned mask) {
  want_all(mask, "ldmatrix");
  for (int j = 0; j < 4; j++) {
    uint16_t m[8][8];
    for (int i = 0; i < 8; i++) {
      const void *row = static_cast<Ldmatrix *>(args[j * 8 + i])->row;
      if (uintptr_t(row) % 16) fail("ldmatrix: lane %d gives an address that is not a multiple of 16", j * 8 + i);
      std::memcpy(m[i], row, 16);
    }
    for (int l = 0; l < 32; l++) {
      const int r = l / 4, c = l % 4 * 2;
      const uint32_t low = Trans ? m[c][r] : m[r][c], high = Trans ? m[c + 1][r] : m[r][c + 1];
      static_cast<Ldmatrix *>(args[l])->registers[j] = low | high << 16;
    }
  }
}
void run_ldmatrix(void **args, unsigned mask) { ldmatrix<false>(args, mask); }
void run_ldmatrix_trans(void **args, unsigned mask) { ldmatrix<true>(args, mask); }

}  // namespace emu
