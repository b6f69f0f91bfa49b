// Exports what PyTorch exports for its Flight Recorder, by names and types as PyTorch's headers
// have them. FLIGHT_OF_CUDA: as libtorch_cuda of 2.6 and newer; else as libtorch_cpu of 2.15.
#include <string>

#define SHOWN __attribute__((visibility("default")))

// Set by the test.
extern "C" SHOWN std::string (*made_up_dump)(const std::string& backend);
std::string (*made_up_dump)(const std::string& backend) = nullptr;

namespace c10d {

#ifdef FLIGHT_OF_CUDA
SHOWN std::string dump_nccl_trace_json(bool with_collectives, bool only_active) {
  return with_collectives && !only_active ? made_up_dump("nccl") : "asked for something else";
}
#else
SHOWN std::string dump_fr_trace_json(bool with_collectives, bool only_active,
                                     const std::string& backend) {
  return with_collectives && !only_active ? made_up_dump(backend) : "asked for something else";
}
#endif

}  // namespace c10d
