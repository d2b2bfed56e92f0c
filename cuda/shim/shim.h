#ifndef SKALD_SHIM_H
#define SKALD_SHIM_H

/* What the driver's cuInit returned: 0, a CUresult, or CUDA_ERROR_NO_DEVICE (100) where
   there is no driver. */
extern int skald_driver_error;

#endif
