// Symbols that NCCL's archive needs from the library it is linked into.
//
// 1. Names of C23 that the archive refers to because it was compiled with glibc 2.38 or newer; older ones lack them.
// 2. The archive defines some runtime functions weakly, as stubs that answer "not supported", so that a runtime in a
//    shared library does not replace them. Two matter; the definitions here are not weak.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "tests/rig/emulated_cuda/emulated_cuda.h"

extern "C" {

#if defined(__GLIBC__) && __GLIBC__ == 2 && __GLIBC_MINOR__ < 38
long __isoc23_strtol(const char* text, char** end, int base) {
  return strtol(text, end, base);
}
long long __isoc23_strtoll(const char* text, char** end, int base) {
  return strtoll(text, end, base);
}
unsigned long __isoc23_strtoul(const char* text, char** end, int base) {
  return strtoul(text, end, base);
}
unsigned long long __isoc23_strtoull(const char* text, char** end, int base) {
  return strtoull(text, end, base);
}

int __isoc23_sscanf(const char* text, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int matched = vsscanf(text, format, arguments);
  va_end(arguments);
  return matched;
}

int __isoc23_fscanf(FILE* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int matched = vfscanf(file, format, arguments);
  va_end(arguments);
  return matched;
}
#endif

int cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long, int* status) {
  return emulated_cuda_driver_entry_point(name, function, status);
}

int cudaStreamGetCaptureInfo_v2(void*, int* status, unsigned long long*, void**, const void**, std::size_t*) {
  *status = 0;  // not capturing, as ever
  return 0;
}

}  // extern "C"
