// Matrix products and convolutions: their shapes, and which kernel does them.
#include <type_traits>

#include "product.cuh"

namespace skald {

static size_t size_of(int dtype) { return dtype == SKALD_F32 ? 4 : 2; }

static bool rows_in_pieces(const void *p, int64_t row, int dtype) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0 && row * int64_t(size_of(dtype)) % 16 == 0;
}

static bool takes(int t, int w) {
  return (t == SKALD_F32 || t == SKALD_BF16) && (w == SKALD_F32 || w == SKALD_BF16 || w == SKALD_F16);
}

static int multiply(int t, int w, const Shape &s, Group &g, int count, int rows, unsigned z, void *stream) {
  if (t == SKALD_BF16 && w == SKALD_BF16) return product_bf16(s, g, count, rows, z, stream);
  return product_float(t, w, s, g, count, rows, z, stream);
}

// [a, b, taps] becomes [taps, out, in].
template <class T>
__global__ void __launch_bounds__(256) pack_kernel(T *dst, const T *src, int out, int in, int taps, bool transposed) {
  begin();
  const int64_t at = int64_t(blockIdx.x) * 256 + threadIdx.x;
  if (at >= int64_t(out) * in * taps) return;
  const int64_t i = at % in, o = at / in % out, k = at / in / out;
  dst[at] = src[(transposed ? i * out + o : o * in + i) * taps + k];
}

static int convolve(int t, void *y, const void *x, const skald_conv &c, bool transposed, void *stream) {
  const int64_t length = transposed ? (int64_t(c.length) - 1) * c.stride - 2 * int64_t(c.pad) + c.taps
                                    : int64_t(c.length) + 2 * int64_t(c.pad) - int64_t(c.dilation) * (c.taps - 1);
  if (!takes(t, c.w.dtype) || c.batch < 0 || c.length < 1 || c.in < 1 || c.out < 1 || c.taps < 1 || c.pad < 0 ||
      (transposed ? c.stride : c.dilation) < 1 || length < 1 || length > INT32_MAX)
    return SKALD_INVALID;
  if (c.batch == 0) return 0;
  const int phases = transposed ? c.stride : 1;
  const Shape s{x, c.in, c.length, int32_t(length), c.taps, phases, c.dilation, c.pad, transposed,
                rows_in_pieces(x, c.in, t), rows_in_pieces(c.w.data, c.in, c.w.dtype)};
  Group g = {};
  g.product[0] = {y, c.out, c.w.data, c.w.scales, c.bias, c.residual, c.out};
  return multiply(t, c.w.dtype, s, g, 1, int(blocks_of(length, phases)), unsigned(c.batch) * phases, stream);
}

}  // namespace skald

using namespace skald;

extern "C" int skald_linear_takes(int t, int w, int k) { return takes(t, w) && k > 0; }

extern "C" int skald_linear(int t, const void *x, int rows, int k, const skald_product *group, int count, void *stream) {
  if (rows < 0 || k < 1 || count < 0) return SKALD_INVALID;
  for (int i = 0; i < count; i++) {
    if (!takes(t, group[i].w.dtype) || group[i].n < 0 || group[i].stride < group[i].n) return SKALD_INVALID;
  }
  if (rows == 0) return 0;
  for (int i = 0; i < count;) {
    // As many as fit in a launch, with weights of one type.
    Group g = {};
    const int w = group[i].w.dtype;
    Shape s{x, k, rows, rows, 1, 1, 1, 0, false, rows_in_pieces(x, k, t), true};
    int n = 0;
    for (; i < count && n < SKALD_GROUP && group[i].w.dtype == w; i++) {
      const skald_product &p = group[i];
      if (p.n == 0) continue;
      g.product[n++] = {p.y, p.stride, p.w.data, p.w.scales, p.bias, p.residual, p.n};
      s.w_pieces = s.w_pieces && rows_in_pieces(p.w.data, k, w);
    }
    if (n == 0) continue;
    if (int e = multiply(t, w, s, g, n, rows, 1, stream)) return e;
  }
  return 0;
}

extern "C" int skald_conv1d(int t, void *y, const void *x, const skald_conv *c, void *stream) { return convolve(t, y, x, *c, false, stream); }

extern "C" int skald_conv_transpose1d(int t, void *y, const void *x, const skald_conv *c, void *stream) {
  return convolve(t, y, x, *c, true, stream);
}

extern "C" int skald_pack_conv(int dtype, void *dst, const void *src, int out, int in, int taps, int transposed, void *stream) {
  if (out < 0 || in < 0 || taps < 0) return SKALD_INVALID;
  const int64_t n = int64_t(out) * in * taps;
  if (n == 0) return 0;
  return with_stored(dtype, [&](auto *p) {
    using T = SKALD_TYPE(p);
    return launch("pack_conv", {dim3(unsigned(blocks_of(n, 256))), dim3(256), 0}, stream, pack_kernel<T>, static_cast<T *>(dst),
                  static_cast<const T *>(src), out, in, taps, transposed != 0);
  });
}
