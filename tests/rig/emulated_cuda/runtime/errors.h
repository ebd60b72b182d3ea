// The error that a thread's CUDA calls leave behind, and the end of everything that is not emulated.
#pragma once

#include <string>

namespace weft::emulated_cuda {

// Keeps an error for cudaGetLastError of this thread and returns it. "Not ready" is an answer, not an error.
int remember(int error);

// Ends the process: what is asked for is not emulated, and going on would give a wrong result or a silent hang.
[[noreturn]] void not_emulated(const std::string& what);

}  // namespace weft::emulated_cuda
