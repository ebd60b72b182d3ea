// Asks libibverbs and writes down what it answers.
#pragma once

#include <map>
#include <memory>

#include "bench/weft/save_tree/questions.h"
#include "bench/weft/save_tree/verbs_answers.h"

namespace weft::save_tree {

class RecordingVerbs final : public Questions {
 public:
  // `answers` outlives this.
  RecordingVerbs(std::unique_ptr<verbs::Verbs> asked, VerbsAnswers& answers);

  ibv_device** get_device_list(int* count) override;
  void free_device_list(ibv_device** list) override;
  const char* get_device_name(ibv_device* device) override;
  ibv_context* open_device(ibv_device* device) override;
  int close_device(ibv_context* context) override;
  int query_device(ibv_context* context, ibv_device_attr* attributes) override;
  int query_port(ibv_context* context, std::uint8_t port, verbs::PortAttributes* attributes) override;
  int query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) override;
  ibv_pd* alloc_pd(ibv_context* context) override;
  int dealloc_pd(ibv_pd* pd) override;
  ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova, int fd,
                        unsigned access) override;
  int dereg_mr(ibv_mr* mr) override;
  bool has_optional_access() const override { return answers_.optional_access; }
  bool has_dmabuf() const override { return answers_.dmabuf; }

 private:
  DeviceAnswers& of(const ibv_context* context) { return answers_.devices[devices_.at(context->device)]; }

  std::unique_ptr<verbs::Verbs> asked_;
  VerbsAnswers& answers_;
  std::map<const ibv_device*, std::size_t> devices_;  // places among the answers
};

}  // namespace weft::save_tree
