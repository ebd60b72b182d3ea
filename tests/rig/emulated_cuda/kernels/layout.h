// The layouts of the NCCL version that this is compiled for (EMULATED_NCCL_VERSION). Another version: a layout header,
// a version_*.cc beside it, and a line here and in CMakeLists.txt.
#pragma once

#if EMULATED_NCCL_VERSION == 22907
#include "tests/rig/emulated_cuda/kernels/layout_2_29_7.h"
#elif EMULATED_NCCL_VERSION == 22203
#include "tests/rig/emulated_cuda/kernels/layout_2_22_3.h"
#else
#error "The layouts of this NCCL version are not known: EMULATED_NCCL_VERSION is 22203 or 22907"
#endif
