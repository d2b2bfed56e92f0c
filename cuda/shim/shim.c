/* A libcuda.a in place of the driver's library: it opens the real one when the program
   starts. So the program needs no driver to start, and without one every function
   answers with an error. */
#include <dlfcn.h>
#include <stddef.h>

#include "shim.h"

enum { not_found = 500 }; /* CUDA_ERROR_NOT_FOUND */

static int missing_driver(void) { return skald_driver_error; }
static int missing_function(void) { return not_found; }

int skald_driver_error = 100; /* CUDA_ERROR_NO_DEVICE */

#define X(name) __attribute__((visibility("hidden"))) void *skald_slot_##name = (void *)missing_driver;
#include "driver.def"
#undef X

static const struct {
  const char *name;
  void **slot;
} functions[] = {
#define X(name) {#name, &skald_slot_##name},
#include "driver.def"
#undef X
};

__attribute__((constructor)) static void open_driver(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!driver) return;
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  int error = init ? init(0) : not_found;
  skald_driver_error = error;
  if (error) return;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *f = dlsym(driver, functions[i].name);
    *functions[i].slot = f ? f : (void *)missing_function;
  }
}

/* gorgonia.org/cu calls this when the program starts and ends the program if it fails.
   What the driver really said is kept in skald_driver_error. */
int cuInit(unsigned flags) {
  (void)flags;
  return 0;
}
