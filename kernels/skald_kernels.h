/* skald_kernels.h is the C interface of the kernels: what cuda/ calls to run the
 * operations of host/compute, whose doc comments say what each of them computes.
 *
 * Pointers are device pointers unless a comment says "host". stream is the stream to
 * queue on, a CUstream or cudaStream_t of the device's primary context, which must be
 * current on the calling thread. No function waits, allocates, or reads device memory on
 * the host, so all may be captured. Each returns 0 or the number of a cudaError_t:
 * SKALD_INVALID for arguments that make no sense; skald_error gives the text.
 *
 * Activations (type, "t" below) are SKALD_F32 or SKALD_BF16; all activations of one call
 * have that type. Vectors (biases, scales of norms, alpha) are float32 whatever type
 * their values were rounded to. Buffers need the alignment of their type only, but 16
 * bytes and rows that are a multiple of 16 bytes are what runs fast. A row's bits never
 * depend on how many rows are computed beside it, nor on addresses.
 *
 * Kernels may begin to read weights and tables before the kernel ahead of them on the
 * stream has ended. So what was uploaded or packed must be complete (synchronised) before
 * the first operation that uses it is queued.
 */
#ifndef SKALD_KERNELS_H
#define SKALD_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types of numbers. The first are those of compute.DType and have their values. */
enum {
  SKALD_F32 = 1,
  SKALD_BF16 = 2,
  SKALD_F16 = 3,
  SKALD_F64 = 4,
  SKALD_F8E4M3 = 5,
  SKALD_F8E5M2 = 6,
  SKALD_I32 = 7,
  /* Weight-only quantisation, 32 numbers of a row to a scale: 8-bit integers [n, k], and
     4-bit ones [n, k/2] (low nibble first, 8 subtracted), with float16 scales [n, k/32]. */
  SKALD_Q8_0 = 32,
  SKALD_Q4_0 = 33
};

enum { SKALD_INVALID = 1 }; /* cudaErrorInvalidValue */

/* A matrix or a table, row-major, as it is stored. */
typedef struct skald_weight {
  const void *data;
  const void *scales; /* of the quantised types, else NULL */
  int32_t dtype;      /* SKALD_F32, _BF16, _F16; _Q8_0 and _Q4_0 where skald_linear_takes says so */
  int32_t reserved;   /* 0 */
} skald_weight;

/* ---- products and gathers (linear.cu, embed.cu) ---- */

typedef struct skald_product {
  void *y;              /* [rows, n], t */
  int64_t stride;       /* numbers from one row of y and residual to the next, at least n */
  skald_weight w;       /* [n, k] */
  const float *bias;    /* [n] or NULL */
  const void *residual; /* like y, t, or NULL; may be y */
  int32_t n;
  int32_t reserved; /* 0 */
} skald_product;

/* compute.MatrixOps.Linear. group is a host array. One launch takes SKALD_GROUP products;
   more are several launches. */
enum { SKALD_GROUP = 4 };
int skald_linear(int t, const void *x, int rows, int k, const skald_product *group, int count, void *stream);
/* 1 if skald_linear takes weights of type w with activations of type t and this k, else 0. */
int skald_linear_takes(int t, int w, int k);

typedef struct skald_part {
  skald_weight table; /* [rows, width], F32, BF16 or F16 */
  int32_t rows, base;
} skald_part;

/* fault is I32 [4], zeroed by the caller, or NULL. The first fault to happen is written to
   it, and later ones are not; the row at fault is not written. What it holds: */
enum {
  SKALD_FAULT_ID = 1,       /* row, part, id (without base): outside its table */
  SKALD_FAULT_POSITION = 2, /* row, position, 0: not in the sequence's blocks, or the rope table */
  SKALD_FAULT_SEQUENCE = 3, /* row, sequence, 0: not in the table of blocks */
  SKALD_FAULT_BLOCK = 4     /* row, sequence, block: not in the cache */
};

/* compute.MatrixOps.EmbedSum. parts is a host array of 1 to SKALD_PARTS. */
enum { SKALD_PARTS = 16 };
int skald_embed_sum(int t, void *y, int rows, int width, const int32_t *ids, int stride, const skald_part *parts,
                    int count, float scale, int32_t *fault, void *stream);

/* ---- attention (cache.cu, cached_attention.cu, full_attention.cu) ---- */

/* compute.KVCache: [layers][blocks][keys, values][heads][block_size][head_dim]. */
typedef struct skald_cache {
  void *data;
  int32_t dtype; /* SKALD_F32 or SKALD_BF16, whatever t is */
  int32_t layers, heads, head_dim, block_size, blocks;
} skald_cache;

/* compute.Rows; sequences is how many the table of blocks holds. */
typedef struct skald_rows {
  const int32_t *pos, *seq; /* [n] */
  const int32_t *blocks;    /* [sequences, max_blocks] */
  int32_t n, sequences, max_blocks;
  int32_t reserved; /* 0 */
} skald_rows;

/* compute.RopeTable: cos and sin are [positions, dim/2], t. dim 0 for none. */
typedef struct skald_rope_table {
  const void *cos, *sin;
  int32_t dim, positions;
} skald_rope_table;

/* compute.AttentionOps.AppendKV: q [n, q_heads*head_dim] in place; k, v [n, heads*head_dim]
   are read; the norms [head_dim] may be NULL. */
int skald_append_kv(int t, const skald_cache *cache, int layer, void *q, const void *k, const void *v, int q_heads,
                    const float *q_norm, const float *k_norm, float eps, const skald_rope_table *rope,
                    const skald_rows *at, int32_t *fault, void *stream);

/* compute.AttentionOps.CachedAttention. Keys are taken in fixed ranges whose results are
   combined in order. With workspace, 16-byte aligned and of skald_attention_workspace
   bytes, the ranges are computed side by side, which few rows need to be fast; without
   (NULL), one after another, with the same bits. */
int skald_cached_attention(int t, void *o, const void *q, const skald_cache *cache, int layer, int q_heads,
                           float scale, const skald_rows *at, void *workspace, int32_t *fault, void *stream);
size_t skald_attention_workspace(const skald_cache *cache, int q_heads, int rows, int max_blocks);

/* compute.AttentionOps.CopyBlock: every layer, keys and values. */
int skald_copy_block(const skald_cache *cache, int dst, int src, void *stream);

/* compute.AttentionOps.Rope: x [batch, length, heads*head_dim], in place. */
int skald_rope(int t, void *x, int batch, int length, int heads, int head_dim, const skald_rope_table *rope,
               void *stream);

/* compute.AttentionOps.FullAttention: all [batch, length, heads*head_dim]. */
int skald_full_attention(int t, void *o, const void *q, const void *k, const void *v, int batch, int length,
                         int heads, int head_dim, float scale, void *stream);

/* ---- norms and element-wise functions (norm.cu, elements.cu, snake.cu) ---- */

int skald_rms_norm(int t, void *y, const void *x, const float *w, int rows, int n, float eps, void *stream);
int skald_layer_norm(int t, void *y, const void *x, const float *w, const float *b, int rows, int n, float eps,
                     void *stream);
int skald_swiglu(int t, void *y, const void *gate, const void *up, int64_t n, void *stream);
int skald_value_silu(int t, void *y, const void *x, int rows, int n, void *stream); /* x [rows, 2n] */
int skald_silu(int t, void *y, const void *x, int64_t n, void *stream);
int skald_tanh(int t, void *y, const void *x, int64_t n, void *stream);
int skald_add(int t, void *y, const void *a, const void *b, int64_t rows, int64_t n, void *stream); /* b [n] */
int skald_snake(int t, void *y, const void *x, const float *alpha, int64_t rows, int channels, void *stream);
int skald_finite(int t, int32_t *out, const void *x, int64_t n, void *stream);

/* ---- convolutions (linear.cu holds the kernel, convolution.cu the geometry) ---- */

typedef struct skald_conv {
  int32_t batch, length; /* of x [batch, length, in] */
  int32_t in, out, taps;
  int32_t stride;   /* of a transposed convolution */
  int32_t dilation; /* of the other one */
  int32_t pad;
  skald_weight w;       /* [taps, out, in]: skald_pack_conv makes it */
  const float *bias;    /* [out] or NULL */
  const void *residual; /* like y or NULL; may be y */
} skald_conv;

int skald_conv1d(int t, void *y, const void *x, const skald_conv *c, void *stream);
int skald_conv_transpose1d(int t, void *y, const void *x, const skald_conv *c, void *stream);
/* Turns a kernel [out, in, taps], or [in, out, taps] when transposed, into [taps, out, in],
   of the same type (SKALD_F32, _BF16 or _F16). */
int skald_pack_conv(int dtype, void *dst, const void *src, int out, int in, int taps, int transposed, void *stream);

/* ---- sampling (sample.cu) ---- */

typedef struct skald_sample_args {
  const void *logits; /* [2*songs, n], t */
  int32_t songs, n;
  float guidance;
  int32_t top_k, restricted; /* compute.Sample.Restrict */
  int32_t draw;
  const float *exponentials; /* [songs, n], or NULL for Philox draws of: */
  const int32_t *seeds;      /* [songs, 2] */
  const int32_t *iterations; /* [songs] */
  int32_t *out;              /* [2*songs, out_stride] */
  int32_t out_stride, out_column;
} skald_sample_args;

int skald_sample(int t, const skald_sample_args *s, void *stream);

/* ---- conditions, windows and Euler steps (flow.cu) ---- */

/* weights is a host array of 1 to SKALD_LAYERS. */
enum { SKALD_LAYERS = 32 };
int skald_mix_layers(int t, void *y, const void *x, int rows, int n, const float *weights, int layers, float scale,
                     void *stream);
int skald_nearest_rows(int t, void *y, int out_rows, const void *x, int rows, int n, void *stream);
int skald_split_channels(int t, void *y, const void *x, int rows, int n, int parts, void *stream);
int skald_blend(int t, void *x, const void *noise, const void *carry, float noise_weight, float time, int64_t n,
                void *stream);
int skald_euler_step(int t, void *x, const void *vc, const void *vu, float guidance, float dt, int64_t n,
                     void *stream); /* vu may be NULL */

/* ---- memory (memory.cu) ---- */

/* Copies n numbers, converting. src is any type but I32 and the quantised ones, dst is
   SKALD_F32, SKALD_BF16 or SKALD_F16; or both are SKALD_I32. A number is rounded to nearest
   even, float64 to float32 first. src may start at any byte, dst where its type may. */
int skald_copy(int dst_type, void *dst, int src_type, const void *src, int64_t n, void *stream);
int skald_zero(void *dst, size_t bytes, void *stream);

/* ---- graphs and host memory (runtime.cu) ---- */

/* Records what is queued on stream between begin and end instead of running it. end gives
   a graph also when it was cut short; *graph is NULL after an error. */
int skald_capture_begin(void *stream);
int skald_capture_end(void *stream, void **graph);
int skald_graph_launch(void *graph, void *stream);
int skald_graph_free(void *graph);
/* How many nodes the graph has. */
int skald_graph_nodes(void *graph, size_t *nodes);

/* Pinned host memory, reachable by the device. */
int skald_host_alloc(void **p, size_t bytes);
int skald_host_free(void *p);

/* Devices that the CUDA runtime sees, or minus an error. */
int skald_device_count(void);
/* Forgets an error that a launch left behind in the runtime and returns it. A poisoned
   context returns it again. */
int skald_last_error(void);
/* The text of an error number: host, constant or good until the next call. */
const char *skald_error(int code);
/* "13.0; sm_80 sm_90 ..." or "emulation". Host, constant. */
const char *skald_build(void);

#ifdef __cplusplus
}
#endif
#endif
