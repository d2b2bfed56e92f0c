// Kernels with one mistake each, as the emulation must find them.
#ifndef SKALD_TEST_FAULTY_H
#define SKALD_TEST_FAULTY_H

int faulty_no_barrier(float *out, const float *in);
int faulty_one_barrier(float *out, const float *in);
int faulty_lower_only(float *out, const float *in);
int faulty_half_barrier(float *out);
int faulty_lost_lane(float *out);
int faulty_two_calls(float *out);
int faulty_no_wait(float *out, const float *in);
int faulty_past_shared(float *out, int n);
int faulty_past_global(float *out, int n);

#endif
