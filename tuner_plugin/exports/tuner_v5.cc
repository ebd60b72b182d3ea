// ncclTunerPlugin_v5: init also tells the communicator's number, NVLink domains and NCCL's model constants, none of
// which decides here.
#include "tuner_plugin/exports/tuner.h"

namespace weft::tuner {
namespace {

ncclResult_t init_v5(void** context, std::uint64_t, std::size_t ranks, std::size_t nodes, ncclDebugLogger_t logger,
                     ncclNvlDomainInfo_v5_t*, ncclTunerConstants_v5_t*) {
  return init(ranks, nodes, logger, context);
}

ncclResult_t get_v5(void* context, ncclFunc_t collective, std::size_t bytes, int, float** table, int algorithms,
                    int protocols, int, int* channels) {
  return choose(context, int(collective), bytes, table, algorithms, protocols, channels);
}

}  // namespace
}  // namespace weft::tuner

extern "C" __attribute__((visibility("default"))) const ncclTuner_v5_t ncclTunerPlugin_v5 = {
    weft::tuner::kName, weft::tuner::init_v5, weft::tuner::get_v5, weft::tuner::finalize};
