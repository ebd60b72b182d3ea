// Arithmetic on elements: what a reduction does to a rank's own input, to two values, and to the result. README §5.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/rig/emulated_cuda/kernels/layout.h"

namespace weft::nccl_kernels {

std::size_t element_bytes(int type);

class Reduction {
 public:
  // `argument` is the work's: the scalar of a pre-multiplied sum, the divisor, or what tells min from max. Ends the
  // process for an element type that is not emulated.
  Reduction(Operation operation, int type, std::uint64_t argument);

  // Bytes that are only moved.
  static Reduction none() { return Reduction(kSum, kUint8, 0); }

  std::size_t element_bytes() const { return element_bytes_; }

  // out = a (+) b. `out` may be `a` or `b`.
  void combine(void* out, const void* a, const void* b, std::size_t elements) const;

  // Applied to a rank's own input before it is combined.
  bool has_preparation() const { return prepare_ != nullptr; }
  void prepare(void* out, const void* in, std::size_t elements) const;

  // Applied to the result, in place.
  bool has_completion() const { return complete_ != nullptr; }
  void complete(void* values, std::size_t elements) const;

 private:
  using Combine = void (*)(void* out, const void* a, const void* b, std::size_t elements, std::uint64_t argument);
  using Map = void (*)(void* out, const void* in, std::size_t elements, std::uint64_t argument);
  struct Code;
  template <class Element>
  static Code code_for(Operation operation);
  static Code code_for(Operation operation, int type);

  std::size_t element_bytes_;
  std::uint64_t argument_;
  Combine combine_;
  Map prepare_ = nullptr, complete_ = nullptr;
};

}  // namespace weft::nccl_kernels
