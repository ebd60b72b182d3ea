// One emulated NIC of this process: its share of UDP port 4791, its queue pairs and memory, and the thread that keeps
// them going when the application does not.
//
// Threads: one lock per NIC guards everything but completion and event queues, which have their own. Whoever polls a
// completion queue drives the NIC (progress()); the engine thread sleeps meanwhile and takes over when polling stops,
// since an application that waits for memory to change calls no verb at all.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "common/result/result.h"
#include "tests/rig/soft_rnic/device/control_file.h"
#include "tests/rig/soft_rnic/device/host_description.h"
#include "tests/rig/soft_rnic/device/statistics.h"
#include "tests/rig/soft_rnic/engine/delay_line.h"
#include "tests/rig/soft_rnic/engine/memory_regions.h"
#include "tests/rig/soft_rnic/engine/queue_pair.h"
#include "tests/rig/soft_rnic/transport/broker_protocol.h"
#include "tests/rig/soft_rnic/transport/receiver.h"
#include "tests/rig/soft_rnic/transport/send_sockets.h"
#include "tests/rig/soft_rnic/transport/transmit_batch.h"

namespace weft::soft_rnic {

Nanoseconds monotonic_now();

// Receives what a NIC has sent since its start.
using StatisticsSink = std::function<void(const std::string& nic, NicStatistics statistics)>;

class Nic {
 public:
  // `publish_statistics` is called now and then by the engine thread, without a lock. It must not own the NIC: the last
  // owner ends the thread and waits for it.
  static Result<std::shared_ptr<Nic>> open(const DeviceDescription& device, const HostDescription& host,
                                           StatisticsSink publish_statistics);
  ~Nic();
  Nic(const Nic&) = delete;
  Nic& operator=(const Nic&) = delete;

  const DeviceDescription& device() const { return device_; }
  bool port_up() const { return port_up_; }
  std::mutex& mutex() { return mutex_; }

  // Port events go to every listener. Thread-safe.
  void add_listener(AsyncEvents* events);
  void remove_listener(AsyncEvents* events);

  // An application thread polls: receives, answers, runs timers, unless another thread is at it.
  void poll();

  // All below: the caller holds mutex().
  MemoryRegions& regions() { return regions_; }
  // Ends a registration, and with it all work that still needs the memory.
  void deregister(std::uint32_t key);
  // Whether a queue pair receives from this shared queue.
  bool uses(const SharedReceives& receives) const;
  // Fills in the number. Fails with ENOMEM when the device has no more.
  Result<QueuePair*> create_queue_pair(QueuePairParts parts);
  void destroy_queue_pair(QueuePair& queue_pair);
  // The path for these attributes; EINVAL for an address that is not IPv4 or another errno where there is no way there.
  Result<void> set_path(QueuePair& queue_pair, const ibv_ah_attr& address);
  // Moves a connected queue pair to another UDP source port.
  Result<void> set_source_port(QueuePair& queue_pair, std::uint16_t source_port);
  std::uint32_t window_packets(std::uint32_t mtu) const;
  bool never_retransmit() const { return never_retransmit_; }
  // Sends what the queue pair has to send, and acts on failures and deadlines. After every change to it.
  void settle(QueuePair& queue_pair);

  // What was sent since the start. Takes the lock itself; nothing if it cannot be had for a while (at process exit).
  std::optional<NicStatistics> statistics();

 private:
  Nic(const DeviceDescription& device, const HostDescription& host, Loan loan, StatisticsSink publish_statistics);

  void run();
  void wait_for_packets(Nanoseconds now);
  void housekeeping(Nanoseconds now);
  void apply_faults(const Faults& faults);
  void progress();
  bool receive(Nanoseconds now);
  void on_arrival(const Arrival& arrival, Nanoseconds now);
  void deliver(const Arrival& arrival, Nanoseconds now);
  void run_timers(Nanoseconds now);
  void settle_active();
  void transmit(QueuePair& queue_pair);
  bool transmit_from(QueuePair& queue_pair, PacketSource& source);
  void need_service_at(Nanoseconds time);
  Result<void> adopt_path(QueuePair& queue_pair, Path path);

  const DeviceDescription device_;
  const bool never_retransmit_;
  Loan loan_;
  std::uint32_t receive_buffer_ = 0;  // granted by the kernel, bytes

  std::mutex mutex_;
  MemoryRegions regions_;
  std::unordered_map<std::uint32_t, std::unique_ptr<QueuePair>> queue_pairs_;
  std::uint32_t next_queue_pair_;
  SendSockets send_sockets_;
  Receiver receiver_;
  TransmitBatch batch_;
  NicStatistics statistics_;
  std::vector<QueuePair*> active_;
  DelayLine delay_line_;
  Faults faults_;
  std::minstd_rand random_;

  std::mutex listeners_mutex_;
  std::vector<AsyncEvents*> listeners_;

  ControlFile control_file_;  // engine thread only
  Nanoseconds next_control_read_ = 0;
  Nanoseconds next_statistics_ = 0;
  StatisticsSink publish_statistics_;

  std::atomic<bool> port_up_{true};
  std::atomic<Nanoseconds> last_poll_{0};
  std::atomic<Nanoseconds> service_due_{kNever};  // earliest deadline of any queue pair
  std::atomic<Nanoseconds> thread_wakes_at_{0};   // when the engine thread ends its sleep
  std::atomic<bool> stop_{false};
  FileDescriptor wake_;
  std::thread thread_;
};

}  // namespace weft::soft_rnic
