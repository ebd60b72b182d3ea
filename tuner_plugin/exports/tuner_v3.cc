// ncclTunerPlugin_v3.
#include "tuner_plugin/exports/tuner.h"

namespace weft::tuner {
namespace {

ncclResult_t get_v3(void* context, ncclFunc_t collective, std::size_t bytes, int, float** table, int algorithms,
                    int protocols, int* channels) {
  return choose(context, int(collective), bytes, table, algorithms, protocols, channels);
}

}  // namespace
}  // namespace weft::tuner

extern "C" __attribute__((visibility("default"))) const ncclTuner_v3_t ncclTunerPlugin_v3 = {
    weft::tuner::kName, weft::tuner::init, weft::tuner::get_v3, weft::tuner::finalize};
