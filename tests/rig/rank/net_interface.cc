#include "tests/rig/rank/net_interface.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <tuple>
#include <type_traits>

#include "common/nccl_abi/net_v10.h"
#include "common/nccl_abi/net_v11.h"
#include "common/nccl_abi/net_v12.h"
#include "common/nccl_abi/net_v6.h"
#include "common/nccl_abi/net_v7.h"
#include "common/nccl_abi/net_v8.h"
#include "common/nccl_abi/net_v9.h"

namespace weft::versions {
namespace {

// What the Nth argument of a function pointer, from 0, points to.
template <std::size_t N, class Function>
struct Pointee;
template <std::size_t N, class Result, class... Arguments>
struct Pointee<N, Result (*)(Arguments...)> {
  using type = std::remove_pointer_t<std::tuple_element_t<N, std::tuple<Arguments...>>>;
};

template <class Table>
class Adapter final : public NetInterface {
  static constexpr bool kHasContext = requires(Table table) { table.finalize; };
  static constexpr bool kHasDeviceHandles = requires(Table table) { table.getDeviceMr; };

 public:
  Adapter(const Table& table, bool optional) : table_(table), optional_(optional) {}

  ncclResult_t init(ncclDebugLogger_t logger) override {
    if constexpr (kHasContext) {
      typename Pointee<2, decltype(table_.init)>::type config{-1};
      return table_.init(&context_, 7, &config, logger, nullptr);
    } else if constexpr (std::is_invocable_v<decltype(table_.init), ncclDebugLogger_t, ncclProfilerCallback_t>) {
      return table_.init(logger, nullptr);
    } else {
      return table_.init(logger);
    }
  }

  ncclResult_t finalize() override {
    if constexpr (kHasContext) return table_.finalize(context_);
    return ncclSuccess;
  }

  ncclResult_t devices(int* count) override { return table_.devices(count); }

  ncclResult_t properties(int device, Properties* out) override {
    using Theirs = typename Pointee<1, decltype(table_.getProperties)>::type;
    Theirs theirs;
    std::memset(static_cast<void*>(&theirs), 0xa5, sizeof theirs);  // NCCL's own memory here is not initialised
    const ncclResult_t result = table_.getProperties(device, &theirs);
    if (result != ncclSuccess) return result;
    out->name = theirs.name;
    out->pointer_support = theirs.ptrSupport;
    out->speed = theirs.speed;
    out->max_receives = theirs.maxRecvs;
    if constexpr (requires { theirs.regIsGlobal; }) out->reg_is_global = theirs.regIsGlobal;
    if constexpr (requires { theirs.vProps; }) {
      out->members = theirs.vProps.ndevs;
      out->first_member = theirs.vProps.devs[0];
      out->max_p2p_bytes = theirs.maxP2pBytes;
      out->max_coll_bytes = theirs.maxCollBytes;
    }
    if constexpr (requires { theirs.maxMultiRequestSize; }) out->max_multi_request = theirs.maxMultiRequestSize;
    if constexpr (requires { theirs.railId; }) {
      out->rail = theirs.railId;
      out->plane = theirs.planeId;
    }
    return result;
  }

  ncclResult_t merge(const std::vector<int>& members, int* device) override {
    if constexpr (requires { table_.makeVDevice; }) {
      typename Pointee<1, decltype(table_.makeVDevice)>::type wanted{};
      if (members.size() > std::size(wanted.devs)) return ncclInvalidUsage;
      wanted.ndevs = int(members.size());
      std::copy(members.begin(), members.end(), wanted.devs);
      return table_.makeVDevice ? table_.makeVDevice(device, &wanted) : ncclInvalidUsage;
    }
    return ncclInvalidUsage;
  }

  ncclResult_t listen(int device, void* handle, void** comm) override {
    if constexpr (kHasContext)
      return table_.listen(context_, device, handle, comm);
    else
      return table_.listen(device, handle, comm);
  }

  ncclResult_t connect(int device, void* handle, void** comm) override {
    if constexpr (kHasContext)
      return table_.connect(context_, device, handle, comm, nullptr);
    else if constexpr (std::is_same_v<Table, ncclNet_v10_t>) {
      ncclNetCommConfig_v10_t config{-1};
      return table_.connect(device, &config, handle, comm, nullptr);
    } else if constexpr (kHasDeviceHandles)
      return table_.connect(device, handle, comm, nullptr);
    else
      return table_.connect(device, handle, comm);
  }

  ncclResult_t accept(void* listen_comm, void** comm) override {
    if constexpr (kHasDeviceHandles)
      return table_.accept(listen_comm, comm, nullptr);
    else
      return table_.accept(listen_comm, comm);
  }

  ncclResult_t register_memory(void* comm, void* data, std::size_t size, int type, void** memory) override {
    if constexpr (std::is_same_v<Table, ncclNet_v6_t> || std::is_same_v<Table, ncclNet_v7_t>) {
      return table_.regMr(comm, data, int(size), type, memory);
    } else {
      return table_.regMr(comm, data, size, type, memory);
    }
  }

  ncclResult_t deregister(void* comm, void* memory) override { return table_.deregMr(comm, memory); }

  ncclResult_t isend(void* comm, void* data, std::size_t size, int tag, void* memory, void** request) override {
    if constexpr (std::is_invocable_v<decltype(table_.isend), void*, void*, std::size_t, int, void*, void*, void**>) {
      return table_.isend(comm, data, size, tag, memory, nullptr, request);
    } else if constexpr (std::is_same_v<Table, ncclNet_v9_t>) {
      return table_.isend(comm, data, size, tag, memory, request);
    } else {
      return table_.isend(comm, data, int(size), tag, memory, request);
    }
  }

  ncclResult_t irecv(void* comm, const std::vector<void*>& data, const std::vector<std::size_t>& sizes,
                     const std::vector<int>& tags, const std::vector<void*>& memory, void** request) override {
    const int count = int(data.size());
    std::vector<void*> addresses = data, keys = memory;
    std::vector<int> marks = tags;
    if constexpr (std::is_invocable_v<decltype(table_.irecv), void*, int, void**, int*, int*, void**, void**>) {
      std::vector<int> small(sizes.begin(), sizes.end());
      return table_.irecv(comm, count, addresses.data(), small.data(), marks.data(), keys.data(), request);
    } else {
      std::vector<std::size_t> large = sizes;
      // NCCL's marker for "completion is optional", which must be overwritten; NCCL's own IB transport then completes a
      // receive before its data is there.
      *request = optional_ ? reinterpret_cast<void*>(std::uintptr_t(1)) : nullptr;
      if constexpr (std::is_same_v<Table, ncclNet_v9_t>) {
        return table_.irecv(comm, count, addresses.data(), large.data(), marks.data(), keys.data(), request);
      } else {
        return table_.irecv(comm, count, addresses.data(), large.data(), marks.data(), keys.data(), nullptr, request);
      }
    }
  }

  ncclResult_t iflush(void* comm, void* data, int size, void* memory, void** request) override {
    return table_.iflush(comm, 1, &data, &size, &memory, request);
  }
  ncclResult_t test(void* request, int* done, int* sizes) override { return table_.test(request, done, sizes); }
  ncclResult_t close_send(void* comm) override { return table_.closeSend(comm); }
  ncclResult_t close_receive(void* comm) override { return table_.closeRecv(comm); }
  ncclResult_t close_listen(void* comm) override { return table_.closeListen(comm); }

 private:
  Table table_;
  bool optional_;
  void* context_ = nullptr;
};

template <class Table>
std::unique_ptr<NetInterface> make(const void* table, bool optional) {
  return std::make_unique<Adapter<Table>>(*static_cast<const Table*>(table), optional);
}

}  // namespace

std::unique_ptr<NetInterface> adapt(int version, const void* table, bool optional_receives) {
  switch (version) {
    case 6:
      return make<ncclNet_v6_t>(table, optional_receives);
    case 7:
      return make<ncclNet_v7_t>(table, optional_receives);
    case 8:
      return make<ncclNet_v8_t>(table, optional_receives);
    case 9:
      return make<ncclNet_v9_t>(table, optional_receives);
    case 10:
      return make<ncclNet_v10_t>(table, optional_receives);
    case 11:
      return make<ncclNet_v11_t>(table, optional_receives);
    case 12:
      return make<ncclNet_v12_t>(table, optional_receives);
    default:
      return nullptr;
  }
}

}  // namespace weft::versions
