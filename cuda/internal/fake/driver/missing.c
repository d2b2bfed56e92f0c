/* All functions of the driver, for those that driver.cc lacks. The two become one object,
   because a linker that looks for a name in an archive may be content with a weak one. */
#define X(name) \
  __attribute__((weak)) int name(void) { return 801; } /* CUDA_ERROR_NOT_SUPPORTED */
#include "driver.def"
