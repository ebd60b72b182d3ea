// soft_rnic_broker HOST_FILE: the broker of all NICs of one emulated host. Prints "ready" when processes may start, and
// ends when its standard input closes. Exit codes: 0 ended so, 2 wrong usage or host file, 3 the ports cannot be had.
#include <cstdio>
#include <vector>

#include "tests/rig/soft_rnic/broker/broker.h"

namespace weft::soft_rnic {
namespace {

int fail(int code, const Error& error) {
  std::fprintf(stderr, "soft_rnic_broker: %s\n", error.text().c_str());
  return code;
}

bool standard_input_closed(const pollfd& source) {
  if (source.revents == 0) return false;
  char bytes[256];
  return read(source.fd, bytes, sizeof bytes) <= 0;
}

int serve(std::vector<NicBroker>& brokers) {
  std::vector<pollfd> sources;
  for (;;) {
    sources.assign(1, {STDIN_FILENO, POLLIN, 0});
    for (const NicBroker& broker : brokers)
      broker.append_sources(sources);
    if (poll(sources.data(), sources.size(), -1) < 0) continue;  // interrupted by a signal
    if (standard_input_closed(sources.front())) return 0;
    const pollfd* next = sources.data() + 1;
    for (NicBroker& broker : brokers)
      next += broker.handle(next);
  }
}

int run(const char* host_file) {
  auto host = read_host_description(host_file);
  if (!host) return fail(2, host.error());
  std::vector<NicBroker> brokers;
  for (const DeviceDescription& device : host->devices) {
    auto broker = NicBroker::open(device);
    if (!broker) {
      Error error = broker.take_error();
      error.where = device.name;
      return fail(3, error);
    }
    brokers.push_back(broker.take());
  }
  std::puts("ready");
  std::fflush(stdout);
  return serve(brokers);
}

}  // namespace
}  // namespace weft::soft_rnic

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: soft_rnic_broker HOST_FILE\n", stderr);
    return 2;
  }
  return weft::soft_rnic::run(arguments[1]);
}
