// Guided top-k sampling: a block draws for one song, with the numbers and the order of
// operations of host/cpu and host/rng, so that equal logits give the same code.
#include <type_traits>

#include "functions.cuh"
#include "numbers.cuh"

namespace skald {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kKept = 1024;  // candidates that are listed; more than that are ties in masses

// The first output of Philox4x32-10 for a counter and a seed.
__device__ inline unsigned philox(unsigned k0, unsigned k1, unsigned c0, unsigned c1, unsigned c2, unsigned c3) {
  for (int i = 0; i < 10; i++) {
    const unsigned hi0 = __umulhi(0xd2511f53u, c0), lo0 = 0xd2511f53u * c0;
    const unsigned hi1 = __umulhi(0xcd9e8d57u, c2), lo1 = 0xcd9e8d57u * c2;
    c0 = hi1 ^ c1 ^ k0;
    c1 = lo1;
    c2 = hi0 ^ c3 ^ k1;
    c3 = lo0;
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return c0;
}

// The natural logarithm of a normal positive number, in the order of host/rng.
__device__ inline float log32(float x) {
  const unsigned bits = __float_as_uint(x);
  float e = float(int(bits >> 23) - 126);
  const float m = __uint_as_float((bits & ~0x7f800000u) | 0x3f000000u);
  float f = m - 1.0f;
  if (m < 0.707106781186547524f) {
    e -= 1.0f;
    f += m;
  }
  const float z = f * f;
  float y = 7.0376836292e-2f;
  y = __fmaf_rn(y, f, -1.1514610310e-1f);
  y = __fmaf_rn(y, f, 1.1676998740e-1f);
  y = __fmaf_rn(y, f, -1.2420140846e-1f);
  y = __fmaf_rn(y, f, 1.4249322787e-1f);
  y = __fmaf_rn(y, f, -1.6668057665e-1f);
  y = __fmaf_rn(y, f, 2.0000714765e-1f);
  y = __fmaf_rn(y, f, -2.4999993993e-1f);
  y = __fmaf_rn(y, f, 3.3333331174e-1f);
  y = y * f;
  y = __fmaf_rn(y, z, e * -2.12194440e-4f);
  y = __fmaf_rn(-z, 0.5f, y);
  return __fmaf_rn(e, 0.693359375f, f + y);
}

// rng.Exponential.
__device__ inline float exponential(unsigned k0, unsigned k1, unsigned iteration, unsigned draw, unsigned candidate) {
  const unsigned w = philox(k0, k1, candidate, iteration, draw, 1);
  return -log32((float(w >> 9) + 0.5f) * (1.0f / (1 << 23)));
}

// Bits that order like the number.
__device__ __forceinline__ unsigned ordered(float v) {
  const unsigned u = __float_as_uint(v);
  return u >> 31 ? ~u : u | 0x80000000u;
}
__device__ __forceinline__ float unordered(unsigned u) { return __uint_as_float(u >> 31 ? u & 0x7fffffffu : ~u); }

// The k-th largest of value(0..n-1), counting equals: its bits, eight at a time.
template <class F> __device__ float kth_largest(int n, int k, unsigned *counts, unsigned *found, F value) {
  unsigned prefix = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (threadIdx.x < 256) counts[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += kThreads) {
      const unsigned u = ordered(value(i));
      if (shift == 24 || u >> (shift + 8) == prefix >> (shift + 8)) atomicAdd(&counts[u >> shift & 255], 1u);
    }
    __syncthreads();
    if (threadIdx.x < 32) {  // eight counts a lane, from the largest down
      unsigned mine = 0;
#pragma unroll
      for (int j = 0; j < 8; j++) mine += counts[255 - 8 * threadIdx.x - j];
      unsigned above = mine;  // of this lane and those before it
#pragma unroll
      for (int o = 1; o < 32; o <<= 1) {
        const unsigned other = __shfl_up_sync(0xffffffff, above, unsigned(o));
        if (int(threadIdx.x) >= o) above += other;
      }
      unsigned left = unsigned(k);
      if (above - mine < left && left <= above) {
        left -= above - mine;
        int bin = 255 - 8 * int(threadIdx.x);
        while (counts[bin] < left) left -= counts[bin--];
        found[0] = unsigned(bin);
        found[1] = left;
      }
    }
    __syncthreads();
    prefix |= found[0] << shift;
    k = int(found[1]);
    __syncthreads();
  }
  return unordered(prefix);
}

template <class T>
__global__ void __launch_bounds__(kThreads, 2) sample_kernel(const __grid_constant__ skald_sample_args s) {
  SKALD_SHARED(unsigned, counts, [256]);
  SKALD_SHARED(unsigned, found, [2]);
  SKALD_SHARED(float, red, [kWarps]);
  SKALD_SHARED(int, picks, [kWarps + 1]);
  SKALD_SHARED(int, kept, [kKept]);
  SKALD_SHARED(float, weights, [kKept]);
  begin();
  const int song = blockIdx.x, n = s.n, k = min(s.top_k, n), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const T *cond = static_cast<const T *>(s.logits) + int64_t(2 * song) * n, *uncond = cond + n;
  int32_t *out = s.out + int64_t(2 * song) * s.out_stride + s.out_column;

  bool bad = false;
  for (int i = threadIdx.x; i < n; i += kThreads) bad = bad || !(fabsf(widen(cond[i])) < INFINITY) || !(fabsf(widen(uncond[i])) < INFINITY);
  if (__syncthreads_or(bad)) {
    if (threadIdx.x == 0) out[0] = out[s.out_stride] = -1;
    return;
  }

  float floor = -INFINITY;
  if (s.restricted) floor = kth_largest(n, k, counts, found, [&](int i) { return widen(cond[i]); });
  const auto guided = [&](int i) {
    const float l = widen(cond[i]), u = widen(uncond[i]);
    return l < floor ? -INFINITY : u + (l - u) * s.guidance;
  };
  const float threshold = kth_largest(n, k, counts, found, guided);

  // The largest, and the list of those kept, in order.
  float top = -INFINITY;
  int count = 0;
  for (int base = 0; base < n; base += kThreads) {
    const int i = base + int(threadIdx.x);
    const float g = i < n ? guided(i) : -INFINITY;
    top = fmaxf(top, g);
    const bool keep = !(g < threshold) && g != -INFINITY;
    const unsigned votes = __ballot_sync(0xffffffff, keep);
    if (lane == 0) picks[warp] = __popc(votes);
    __syncthreads();
    int at = count + __popc(votes & ((1u << lane) - 1)), all = 0;
    for (int w = 0; w < kWarps; w++) {
      if (w < warp) at += picks[w];
      all += picks[w];
    }
    if (keep && at < kKept) kept[at] = i;
    count += all;
    __syncthreads();
  }
  top = warp_max(top);
  if (lane == 0) red[warp] = top;
  __syncthreads();
  for (int w = 0; w < kWarps; w++) top = fmaxf(top, red[w]);

  const auto draw = [&](int i) {
    if (s.exponentials) return s.exponentials[int64_t(song) * n + i];
    return exponential(unsigned(s.seeds[2 * song]), unsigned(s.seeds[2 * song + 1]), unsigned(s.iterations[song]), unsigned(s.draw), unsigned(i));
  };
  float best = -1.0f;
  int index = -1;
  if (count <= kKept) {
    for (int j = threadIdx.x; j < count; j += kThreads) weights[j] = exp_exact(guided(kept[j]) - top);
    __syncthreads();
    float total = 0;
    for (int j = 0; j < count; j++) total += weights[j];  // every thread, in order
    for (int j = threadIdx.x; j < count; j += kThreads) {
      const float ratio = __fdiv_rn(__fdiv_rn(weights[j], total), draw(kept[j]));
      if (ratio > best) best = ratio, index = kept[j];
    }
  } else if (threadIdx.x == 0) {  // nearly all logits are equal: slow, but right
    float total = 0;
    for (int i = 0; i < n; i++) {
      const float g = guided(i);
      if (!(g < threshold) && g != -INFINITY) total += exp_exact(g - top);
    }
    for (int i = 0; i < n; i++) {
      const float g = guided(i);
      if (g < threshold || g == -INFINITY) continue;
      const float ratio = __fdiv_rn(__fdiv_rn(exp_exact(g - top), total), draw(i));
      if (ratio > best) best = ratio, index = i;
    }
  }
  // The largest ratio; of equals the first candidate.
  const auto better = [&](float ratio, int i) { return ratio > best || (ratio == best && i >= 0 && (index < 0 || i < index)); };
#pragma unroll
  for (int o = 16; o; o >>= 1) {
    const float ratio = __shfl_xor_sync(0xffffffff, best, o);
    const int i = __shfl_xor_sync(0xffffffff, index, o);
    if (better(ratio, i)) best = ratio, index = i;
  }
  __syncthreads();
  if (lane == 0) red[warp] = best, picks[warp] = index;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < kWarps; w++) {
      if (better(red[w], picks[w])) best = red[w], index = picks[w];
    }
    out[0] = out[s.out_stride] = index;
  }
}

}  // namespace skald

using namespace skald;

extern "C" int skald_sample(int t, const skald_sample_args *s, void *stream) {
  if (s->songs < 0 || s->n < 1 || s->top_k < 1 || s->out_column < 0 || s->out_column >= s->out_stride) return SKALD_INVALID;
  if (s->songs == 0) return 0;
  return with_float(t, [&](auto *p) {
    return launch("sample", {dim3(unsigned(s->songs)), dim3(kThreads), 0}, stream, sample_kernel<SKALD_TYPE(p)>, *s);
  });
}
