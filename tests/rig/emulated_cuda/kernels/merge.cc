#include "tests/rig/emulated_cuda/kernels/merge.h"

#include <algorithm>
#include <cstring>

namespace weft::nccl_kernels {
namespace {

// Small enough that what the first output has got is still in the cache when it is copied to the others.
constexpr std::size_t kBlockBytes = 16384;

void copy(char* to, const char* from, std::size_t bytes) {
  if (to != from) std::memcpy(to, from, bytes);
}

void merge_block(const Reduction& reduction, const Inputs& inputs, const Outputs& outputs, std::size_t offset,
                 std::size_t elements, bool last) {
  const std::size_t bytes = elements * reduction.element_bytes();
  char* result = outputs.to[0] + offset;
  const char* value = inputs.own ? inputs.own + offset : inputs.received[0] + offset;
  if (inputs.own && reduction.has_preparation()) {
    reduction.prepare(result, value, elements);
    value = result;
  }
  for (int i = inputs.own ? 0 : 1; i < inputs.received_count; i++) {
    reduction.combine(result, value, inputs.received[std::size_t(i)] + offset, elements);
    value = result;
  }
  if (last && reduction.has_completion()) {
    copy(result, value, bytes);
    reduction.complete(result, elements);
    value = result;
  }
  for (int i = 0; i < outputs.count; i++)
    copy(outputs.to[std::size_t(i)] + offset, value, bytes);
}

}  // namespace

void merge(const Reduction& reduction, const Inputs& inputs, const Outputs& outputs, std::size_t elements, bool last) {
  if (outputs.count == 0) return;
  const std::size_t block = kBlockBytes / reduction.element_bytes();
  for (std::size_t done = 0; done < elements; done += block) {
    merge_block(reduction, inputs, outputs, done * reduction.element_bytes(), std::min(block, elements - done), last);
  }
}

}  // namespace weft::nccl_kernels
