#include "faulty.h"

#include "device.cuh"

namespace skald {

// No barrier between writing shared memory and reading what another thread wrote.
__global__ void no_barrier(float *out, const float *in) {
  SKALD_SHARED(float, s, [64]);
  s[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = s[(threadIdx.x + 33) % 64];
}

// A barrier before reading, none before the next turn writes.
__global__ void one_barrier(float *out, const float *in) {
  SKALD_SHARED(float, s, [64]);
  float sum = 0;
  for (int i = 0; i < 4; i++) {
    s[threadIdx.x] = in[i * 64 + threadIdx.x];
    __syncthreads();
    sum += s[63 - threadIdx.x];
  }
  out[threadIdx.x] = sum;
}

// No barrier, but right as long as threads run in order.
__global__ void lower_only(float *out, const float *in) {
  SKALD_SHARED(float, s, [64]);
  s[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = s[threadIdx.x / 2];
}

// Half of the block waits in one barrier, half in another.
__global__ void half_barrier(float *out) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = 1;
}

// One lane does not come to a shuffle of all lanes.
__global__ void lost_lane(float *out) {
  float v = float(threadIdx.x);
  if (threadIdx.x != 7) v = __shfl_xor_sync(0xffffffff, v, 1);
  __syncthreads();
  out[threadIdx.x] = v;
}

// Lanes meet in two different calls.
__global__ void two_calls(float *out) {
  float v = float(threadIdx.x);
  if (threadIdx.x < 16) {
    v = __shfl_xor_sync(0xffffffff, v, 1);
  } else {
    __syncwarp();
  }
  out[threadIdx.x] = v;
}

// A copy is read that was not waited for.
__global__ void no_wait(float *out, const float *in) {
  SKALD_SHARED(float, s, [128]);
  cp_async16(s + threadIdx.x * 4, in + threadIdx.x * 4, true);
  cp_async_commit();
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void past_shared(float *out, int n) {
  SKALD_DYNAMIC_SHARED(raw);
  float *s = reinterpret_cast<float *>(raw);
  s[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = s[(threadIdx.x + 1) % (n + 1)];
}

__global__ void past_global(float *out, int n) { out[threadIdx.x + n] = 1; }

static const Grid kTwoWarps{dim3(1), dim3(64), 0}, kWarp{dim3(1), dim3(32), 0};

}  // namespace skald

using namespace skald;

int faulty_no_barrier(float *out, const float *in) { return launch("no_barrier", kTwoWarps, nullptr, no_barrier, out, in); }
int faulty_one_barrier(float *out, const float *in) { return launch("one_barrier", kTwoWarps, nullptr, one_barrier, out, in); }
int faulty_lower_only(float *out, const float *in) { return launch("lower_only", kTwoWarps, nullptr, lower_only, out, in); }
int faulty_half_barrier(float *out) { return launch("half_barrier", kTwoWarps, nullptr, half_barrier, out); }
int faulty_lost_lane(float *out) { return launch("lost_lane", kWarp, nullptr, lost_lane, out); }
int faulty_two_calls(float *out) { return launch("two_calls", kWarp, nullptr, two_calls, out); }
int faulty_no_wait(float *out, const float *in) { return launch("no_wait", kWarp, nullptr, no_wait, out, in); }
int faulty_past_shared(float *out, int n) { return launch("past_shared", {dim3(1), dim3(unsigned(n)), size_t(n) * 4}, nullptr, past_shared, out, n); }
int faulty_past_global(float *out, int n) { return launch("past_global", {dim3(1), dim3(1), 0}, nullptr, past_global, out, n); }
