// Gives the answers that libibverbs gave on another host.
#pragma once

#include <deque>

#include "bench/weft/save_tree/questions.h"
#include "bench/weft/save_tree/verbs_answers.h"

namespace weft::save_tree {

class RecordedVerbs final : public Questions {
 public:
  explicit RecordedVerbs(VerbsAnswers answers);

  ibv_device** get_device_list(int* count) override;
  void free_device_list(ibv_device** list) override;
  const char* get_device_name(ibv_device* device) override;
  ibv_context* open_device(ibv_device* device) override;
  int close_device(ibv_context*) override { return 0; }
  int query_device(ibv_context* context, ibv_device_attr* attributes) override;
  int query_port(ibv_context* context, std::uint8_t port, verbs::PortAttributes* attributes) override;
  int query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) override;
  ibv_pd* alloc_pd(ibv_context* context) override;
  int dealloc_pd(ibv_pd*) override { return 0; }
  ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                        unsigned access) override;
  int dereg_mr(ibv_mr*) override { return 0; }
  bool has_optional_access() const override { return answers_.optional_access; }
  bool has_dmabuf() const override { return answers_.dmabuf; }

 private:
  // The handles of one device; they are there as long as this is.
  struct Device {
    const DeviceAnswers* answers = nullptr;
    ibv_device device{};
    ibv_context context{};
    ibv_pd domain{};
    ibv_mr region{};
  };
  const DeviceAnswers& of(const ibv_device* device) const;
  Device& handles_of(const ibv_device* device);

  VerbsAnswers answers_;
  std::deque<Device> devices_;
};

}  // namespace weft::save_tree
