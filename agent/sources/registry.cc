// The agent's table of contents. One line a source.
// Runs on: the sender thread, the exiting thread.  May not: anything but read the table.
#include "agent/sources/cupti/cupti_source.h"
#include "agent/sources/samples/sampler.h"
#include "agent/sources/source.h"
#include "agent/sources/torch/torch_flight.h"
#include "agent/sources/torch/torch_source.h"

namespace ranktap::agent {
namespace {

constexpr Source kSources[] = {
    {.name = "samples",
     .start = &StartSampler,
     .set_level = &SetSampleLevel,
     .finish = &FinishSamples,
     .pause = &PauseSampler,
     .resume = &ResumeSampler,
     .close_in_fork_child = &CloseSamplerInForkChild,
     .add_cost = &AddSampleCost},
    {.name = "nvtx"},  // its handlers stay installed
    {.name = "torch", .set_level = &SetTorchLevel, .finish = &FinishFlight},
    {.name = "cupti",
     .set_level = &SetCuptiLevel,
     .finish = &FinishCupti,
     .pause = &PauseCupti,
     .resume = &ResumeCupti,
     .add_cost = &AddCuptiCost},
};

}  // namespace

std::span<const Source> AllSources() { return kSources; }

}  // namespace ranktap::agent
