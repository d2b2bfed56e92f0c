// FullAttention.
#include "numbers.cuh"

namespace skald {

int attend_dense(int t, void *o, const void *q, const void *k, const void *v, int batch, int length, int heads, int head_dim, float scale, void *stream);

}  // namespace skald

using namespace skald;

extern "C" int skald_full_attention(int t, void *o, const void *q, const void *k, const void *v, int batch, int length, int heads,
                                    int head_dim, float scale, void *stream) {
  if (batch < 0 || length < 0 || heads < 0 || head_dim < 0) return SKALD_INVALID;
  if (int64_t(batch) * length * heads * head_dim == 0) return 0;
  return attend_dense(t, o, q, k, v, batch, length, heads, head_dim, scale, stream);
}
