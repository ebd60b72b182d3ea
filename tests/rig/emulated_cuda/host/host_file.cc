#include "tests/rig/emulated_cuda/host/host_file.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "common/json/strict.h"
#include "common/text/format.h"

namespace weft::emulated_cuda {
namespace {

void read_compute_capability(json::Fields& fields, Gpu& gpu) {
  const std::string text = fields.text("compute_capability", "8.0");
  char rest = 0;
  if (std::sscanf(text.c_str(), "%2d.%1d%c", &gpu.compute_major, &gpu.compute_minor, &rest) != 2) {
    fields.problem("compute_capability", text::format("\"{}\" is not MAJOR.MINOR", text), "for example 8.0 or 9.0");
  }
}

Gpu read_gpu(json::Fields& fields) {
  Gpu gpu;
  const std::string bus_id = fields.text("bus_id", json::required);
  if (auto address = parse_pci_address(bus_id)) {
    gpu.address = *address;
  } else if (!bus_id.empty()) {
    fields.problem("bus_id", address.error().what, address.error().hint);
  }
  read_compute_capability(fields, gpu);
  gpu.gpudirect = fields.boolean("gpudirect", false);
  gpu.dmabuf = fields.boolean("dmabuf", false);
  fields.done();
  return gpu;
}

// Fields of the host file that are for the other parts of the rig.
void pass_over_foreign_fields(json::Fields& host) {
  for (const char* key : {"host", "nics", "control", "statistics"})
    host.raw(key);
}

[[noreturn]] void give_up(const Error& error) {
  std::fprintf(stderr, "emulated CUDA: RIG_HOST_FILE: %s\n", error.text().c_str());
  std::abort();
}

HostFile read_this_host() {
  const char* path = std::getenv("RIG_HOST_FILE");
  if (!path) return {};
  auto host = read_host_file(path);
  if (!host) give_up(host.error());
  return host.take();
}

}  // namespace

std::string PciAddress::text() const {
  return text::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, device, function);
}

Result<PciAddress> parse_pci_address(const std::string& text) {
  PciAddress address;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%8x:%2x:%2x.%1x%c", &address.domain, &address.bus, &address.device, &address.function,
                  &rest) != 4) {
    return Error{text::format("\"{}\" is not a PCI address", text), {}, 0, "for example 0000:10:00.0"};
  }
  return address;
}

Result<HostFile> read_host_file(const std::string& path) {
  auto document = json::read_file(path);
  if (!document) return document.take_error();
  json::Problems problems;
  json::Fields fields(*document, path, problems);
  HostFile host;
  host.gpus.clear();
  for (json::Fields& gpu : fields.objects("gpus"))
    host.gpus.push_back(read_gpu(gpu));
  host.defects = fields.texts("defects");
  pass_over_foreign_fields(fields);
  fields.done();
  if (auto error = problems.error()) return *error;
  return host;
}

const HostFile& this_host() {
  static const HostFile& host = *new HostFile(read_this_host());
  return host;
}

bool has_defect(const std::string& name) {
  const auto& defects = this_host().defects;
  return std::find(defects.begin(), defects.end(), name) != defects.end();
}

}  // namespace weft::emulated_cuda
