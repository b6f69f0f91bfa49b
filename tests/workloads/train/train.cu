// Data-parallel training in CUDA C++, as an unmodified user's program would do it.
//
// usage: train_cuda [--ranks N] [--steps N]
//
// With --ranks it starts that many copies of itself, rank r on device r modulo the number of
// devices; with RANK set (torchrun, mpirun) it is one rank. Every rank prints its loss at every
// step.
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/workloads/train/model.h"
#include "tests/workloads/train/ranks.h"

namespace {

using train::kBatch;
using train::kInputs;
using train::kParameters;

struct Options {
  int ranks = 0;
  int steps = 10;
};

[[noreturn]] void Usage() {
  std::fprintf(stderr, "usage: train_cuda [--ranks N] [--steps N]\n");
  std::exit(2);
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) Usage();
    int value = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--ranks") == 0 && value >= 1 && value <= 64) {
      options.ranks = value;
    } else if (std::strcmp(argv[i], "--steps") == 0 && value >= 0) {
      options.steps = value;
    } else {
      Usage();
    }
  }
  return options;
}

// A range in the domain "train" whose payload is the step.
class StepRange {
 public:
  StepRange(nvtxDomainHandle_t domain, const char* name, int64_t step) : domain_(domain) {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    attributes.payload.llValue = step;
    nvtxDomainRangePushEx(domain_, &attributes);
  }
  ~StepRange() { nvtxDomainRangePop(domain_); }
  StepRange(const StepRange&) = delete;
  StepRange& operator=(const StepRange&) = delete;

 private:
  nvtxDomainHandle_t domain_;
};

class Trainer {
 public:
  explicit Trainer(const train::Rank& rank) : rank_(rank), domain_(nvtxDomainCreateA("train")) {
    CHECK(cudaStreamCreateWithFlags(&compute_, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithPriority(&copy_, cudaStreamNonBlocking, -1));
    CHECK(cudaEventCreateWithFlags(&input_ready_, cudaEventDisableTiming));
    CHECK(cudaEventCreate(&step_begin_));
    CHECK(cudaEventCreate(&step_end_));
    CHECK(cudaMallocHost(&host_inputs_, sizeof(float) * kBatch * (kInputs + 1)));
    CHECK(cudaMallocHost(&host_gradients_, sizeof(float) * kParameters));
    CHECK(cudaMallocHost(&host_loss_, sizeof(float)));
    CHECK(cudaMalloc(&inputs_, sizeof(float) * kBatch * (kInputs + 1)));
    model_ = train::Allocate();
    train::Initialize(model_, compute_);
    CaptureUpdate();
  }

  ~Trainer() {
    train::Release(model_);
    CHECK(cudaFree(inputs_));
    CHECK(cudaFreeHost(host_inputs_));
    CHECK(cudaFreeHost(host_gradients_));
    CHECK(cudaFreeHost(host_loss_));
    CHECK(cudaGraphExecDestroy(update_));
    for (cudaEvent_t event : {input_ready_, step_begin_, step_end_}) CHECK(cudaEventDestroy(event));
    CHECK(cudaStreamDestroy(compute_));
    CHECK(cudaStreamDestroy(copy_));
    nvtxDomainDestroy(domain_);
  }

  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void Step(int step) {
    StepRange range(domain_, "step", step);
    CHECK(cudaEventRecord(step_begin_, compute_));
    CopyInputs(step);
    nvtxRangePushA("forward");
    const float* targets = inputs_ + kBatch * kInputs;
    CHECK(cudaStreamWaitEvent(compute_, input_ready_, 0));
    train::Forward(model_, inputs_, targets, compute_);
    nvtxRangePop();
    nvtxRangePushA("backward");
    CHECK(cudaMemsetAsync(model_.gradients, 0, sizeof(float) * kParameters, compute_));
    train::Backward(model_, inputs_, compute_);
    nvtxRangePop();
    ReduceGradients(step);
    nvtxRangePushA("optimizer");
    CHECK(cudaGraphLaunch(update_, compute_));
    nvtxRangePop();
    CHECK(cudaEventRecord(step_end_, compute_));
    CHECK(cudaEventSynchronize(step_end_));
    std::printf("rank %d device %d step %d loss %.6f\n", rank_.rank, device_, step, *host_loss_);
    std::fflush(stdout);
  }

  void set_device(int device) { device_ = device; }

 private:
  // The same data in every run; another part of it on every rank.
  void CopyInputs(int step) {
    StepRange range(domain_, "load", step);
    unsigned state = static_cast<unsigned>(step * 7919 + rank_.rank * 104729 + 1);
    for (int sample = 0; sample < kBatch; ++sample) {
      float target = 0;
      for (int i = 0; i < kInputs; ++i) {
        state = state * 1664525u + 1013904223u;
        float value = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
        host_inputs_[sample * kInputs + i] = value;
        target += value * (i % 3 == 0 ? 0.5f : -0.25f);
      }
      host_inputs_[kBatch * kInputs + sample] = target;
    }
    CHECK(cudaMemcpyAsync(inputs_, host_inputs_, sizeof(float) * kBatch * (kInputs + 1),
                          cudaMemcpyHostToDevice, copy_));
    CHECK(cudaEventRecord(input_ready_, copy_));
  }

  void ReduceGradients(int step) {
    StepRange range(domain_, "all_reduce", step);
    CHECK(cudaMemcpyAsync(host_gradients_, model_.gradients, sizeof(float) * kParameters,
                          cudaMemcpyDeviceToHost, compute_));
    CHECK(
        cudaMemcpyAsync(host_loss_, model_.loss, sizeof(float), cudaMemcpyDeviceToHost, compute_));
    CHECK(cudaStreamSynchronize(compute_));
    train::SumOverRanks(rank_, host_gradients_, kParameters);
    CHECK(cudaMemcpyAsync(model_.gradients, host_gradients_, sizeof(float) * kParameters,
                          cudaMemcpyHostToDevice, compute_));
  }

  void CaptureUpdate() {
    cudaGraph_t graph;
    float rate = 0.5f / static_cast<float>(rank_.world_size);
    nvtxRangePushA("capture");
    CHECK(cudaStreamBeginCapture(compute_, cudaStreamCaptureModeThreadLocal));
    train::Optimize(model_, rate, compute_);
    CHECK(cudaMemsetAsync(model_.loss, 0, sizeof(float), compute_));
    CHECK(cudaStreamEndCapture(compute_, &graph));
    nvtxRangePop();
    CHECK(cudaGraphInstantiate(&update_, graph, 0));
    CHECK(cudaGraphDestroy(graph));
  }

  train::Rank rank_;
  nvtxDomainHandle_t domain_;
  int device_ = 0;
  cudaStream_t compute_, copy_;
  cudaEvent_t input_ready_, step_begin_, step_end_;
  cudaGraphExec_t update_;
  float* host_inputs_;
  float* host_gradients_;
  float* host_loss_;
  float* inputs_;  // the batch, and its targets behind it
  train::Model model_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options = Parse(argc, argv);
  train::Rank rank;
  if (!train::RankFromEnvironment(&rank) && options.ranks > 0) {
    return train::RunRanks(options.ranks, argv);
  }
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  int device = rank.local_rank % devices;
  CHECK(cudaSetDevice(device));
  cudaDeviceProp properties;
  CHECK(cudaGetDeviceProperties(&properties, device));
  nvtxNameOsThreadA(0, "trainer");
  {
    Trainer trainer(rank);
    trainer.set_device(device);
    for (int step = 0; step < options.steps; ++step) trainer.Step(step);
    CHECK(cudaDeviceSynchronize());
  }
  return 0;
}
