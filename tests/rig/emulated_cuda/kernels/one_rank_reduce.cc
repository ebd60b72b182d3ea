#include "tests/rig/emulated_cuda/kernels/one_rank_reduce.h"

#include <cstring>
#include <string>

#include "tests/rig/emulated_cuda/kernels/block.h"
#include "tests/rig/emulated_cuda/kernels/reduction.h"

namespace weft::nccl_kernels {
namespace {

struct Arguments {
  void* destination;
  const void* source;
  std::size_t elements;
  std::uint64_t scalar;
  bool scalar_is_pointer;
};

// The template argument in the mangled name of the kernel, e.g. …FuncPreMulSumIf… for float.
int type_of(const std::string& kernel) {
  constexpr struct {
    const char* mangled;
    int type;
  } kTypes[] = {
      {"a", kInt8},   {"h", kUint8},   {"i", kInt32},   {"j", kUint32},        {"l", kInt64},
      {"m", kUint64}, {"f", kFloat32}, {"d", kFloat64}, {"6__half", kFloat16}, {"13__nv_bfloat16", kBfloat16}};
  const std::string marker = "FuncPreMulSumI";
  const std::size_t found = kernel.find(marker);
  if (found != std::string::npos) {
    for (const auto& entry : kTypes)
      if (kernel.compare(found + marker.size(), std::strlen(entry.mangled), entry.mangled) == 0) return entry.type;
  }
  not_emulated("kernel " + kernel);
}

}  // namespace

bool is_one_rank_reduce(const char* kernel) {
  return std::strstr(kernel, "oneRankReduce") != nullptr;
}

std::size_t one_rank_reduce_argument_sizes(const std::size_t** sizes) {
  static constexpr std::size_t kSizes[] = {8, 8, 8, 8, 1};
  *sizes = kSizes;
  return std::size(kSizes);
}

void run_one_rank_reduce(const char* kernel, const void* packed) {
  const auto& arguments = *static_cast<const Arguments*>(packed);
  const int type = type_of(kernel);
  std::uint64_t scalar = arguments.scalar;
  if (arguments.scalar_is_pointer) {
    scalar = 0;
    std::memcpy(&scalar, reinterpret_cast<const void*>(arguments.scalar), element_bytes(type));
  }
  Reduction(kPreMulSum, type, scalar).prepare(arguments.destination, arguments.source, arguments.elements);
}

}  // namespace weft::nccl_kernels
