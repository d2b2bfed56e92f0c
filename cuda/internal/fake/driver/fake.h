/* What tests tell the driver in driver.cc, and ask of it. */
#ifndef SKALD_FAKE_H
#define SKALD_FAKE_H
#ifdef __cplusplus
extern "C" {
#endif

/* What is taken and not given back; refuse is how far the next refusal is away. */
typedef struct {
  int memory, pinned, streams, events, contexts, refuse;
} skald_fake_counts;

/* Refuses the nth memory, stream, event or context asked for from now on; 0: none. */
void skald_fake_refuse(int nth);
/* Lets the nth launch from now on fail, when it is queued or when it runs; 0: none. */
void skald_fake_fail_launch(int nth, int error, int when_it_runs);
/* The order in which threads and blocks run; 0 is ascending. */
void skald_fake_set_seed(unsigned long long seed);
skald_fake_counts skald_fake_count(void);

#ifdef __cplusplus
}
#endif
#endif
