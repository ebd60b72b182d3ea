#include "tests/rig/rank/report.h"

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/text/format.h"

namespace weft::rank {
namespace {

using Json = nlohmann::ordered_json;

Json operation_json(const OperationReport& report) {
  const Operation& operation = report.operation;
  Json out = {{"op", kind_name(operation.kind)}, {"bytes", operation.bytes}, {"type", element_name(operation.element)},
              {"time_us", report.time_us},       {"wrong", report.wrong},    {"first_wrong", nullptr}};
  if (report.first_wrong) {
    out["first_wrong"] = {{"index", report.first_wrong->index},
                          {"expected", report.first_wrong->expected},
                          {"got", report.first_wrong->got}};
  }
  if (!report.message_us.empty()) out["message_us"] = report.message_us;
  return out;
}

}  // namespace

void Report::set_net(const std::string& name) {
  std::lock_guard lock(mutex_);
  net_ = name;
}

void Report::set_version(int code) {
  std::lock_guard lock(mutex_);
  version_ = text::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

void Report::set_init_seconds(double seconds) {
  std::lock_guard lock(mutex_);
  init_seconds_ = seconds;
}

void Report::add(OperationReport operation) {
  std::lock_guard lock(mutex_);
  operations_.push_back(std::move(operation));
}

void Report::fail(Failure failure) {
  std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = std::move(failure);
  failure_after_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

bool Report::good() const {
  std::lock_guard lock(mutex_);
  if (failure_) return false;
  for (const OperationReport& operation : operations_) {
    if (operation.wrong != 0) return false;
  }
  return true;
}

Result<void> Report::write() {
  std::lock_guard lock(mutex_);
  if (written_) return {};
  written_ = true;
  Json out = {{"rank", file_.rank}, {"nccl", version_}, {"init_s", init_seconds_}, {"error", nullptr}};
  if (!net_.empty()) out["net"] = net_;
  if (failure_) {
    out["error"] = {{"call", failure_->call},
                    {"code", failure_->code},
                    {"name", failure_->name},
                    {"text", failure_->text},
                    {"after_s", failure_after_s_}};
  }
  out["operations"] = Json::array();
  for (const OperationReport& operation : operations_)
    out["operations"].push_back(operation_json(operation));
  const std::string unfinished = file_.result + ".unfinished";
  std::ofstream stream(unfinished);
  stream << out.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
  stream.close();
  if (!stream || std::rename(unfinished.c_str(), file_.result.c_str()) != 0) {
    return system_error("cannot write", errno, file_.result);
  }
  return {};
}

}  // namespace weft::rank
