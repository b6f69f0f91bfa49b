#include <cstdio>
#include <cstdlib>

#include "tests/workloads/train/model.h"

namespace train {
namespace {

constexpr int kThreads = 128;

__global__ void fill_parameters(float* parameters, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned state = static_cast<unsigned>(i) * 2654435761u + 12345u;
  state ^= state >> 16;
  state *= 2246822519u;
  parameters[i] = (static_cast<float>(state >> 8) / 16777216.0f - 0.5f) * 0.2f;
}

__global__ void forward_hidden(const float* parameters, const float* inputs, float* hidden) {
  int unit = threadIdx.x, sample = blockIdx.x;
  float sum = 0;
  for (int i = 0; i < kInputs; ++i) {
    sum += parameters[i * kHidden + unit] * inputs[sample * kInputs + i];
  }
  hidden[sample * kHidden + unit] = sum > 0 ? sum : 0;
}

__global__ void forward_output(const float* parameters, const float* hidden, float* output) {
  __shared__ float partial[kHidden];
  int unit = threadIdx.x, sample = blockIdx.x;
  partial[unit] = parameters[kInputs * kHidden + unit] * hidden[sample * kHidden + unit];
  __syncthreads();
  for (int width = kHidden / 2; width > 0; width /= 2) {
    if (unit < width) partial[unit] += partial[unit + width];
    __syncthreads();
  }
  if (unit == 0) output[sample] = partial[0];
}

// One block, in a fixed order: the sum is the same in every run.
__global__ void mean_squared_error(const float* output, const float* targets, float* output_grad,
                                   float* loss) {
  __shared__ float partial[kBatch];
  int sample = threadIdx.x;
  float difference = output[sample] - targets[sample];
  output_grad[sample] = 2 * difference / kBatch;
  partial[sample] = difference * difference / kBatch;
  __syncthreads();
  for (int width = kBatch / 2; width > 0; width /= 2) {
    if (sample < width) partial[sample] += partial[sample + width];
    __syncthreads();
  }
  if (sample == 0) *loss = partial[0];
}

__global__ void backward_hidden(const float* parameters, const float* hidden,
                                const float* output_grad, float* hidden_grad) {
  int unit = threadIdx.x, sample = blockIdx.x;
  float open = hidden[sample * kHidden + unit] > 0 ? 1.0f : 0.0f;
  hidden_grad[sample * kHidden + unit] =
      output_grad[sample] * parameters[kInputs * kHidden + unit] * open;
}

__global__ void backward_weights(const float* inputs, const float* hidden, const float* hidden_grad,
                                 const float* output_grad, float* gradients) {
  int unit = threadIdx.x, row = blockIdx.x;  // row kInputs is the output layer
  float sum = 0;
  for (int sample = 0; sample < kBatch; ++sample) {
    sum += row < kInputs ? inputs[sample * kInputs + row] * hidden_grad[sample * kHidden + unit]
                         : hidden[sample * kHidden + unit] * output_grad[sample];
  }
  gradients[row * kHidden + unit] += sum;
}

__global__ void sgd_update(float* parameters, const float* gradients, float rate, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) parameters[i] -= rate * gradients[i];
}

template <typename Number>
Number* OnDevice(int count) {
  Number* memory;
  CHECK(cudaMalloc(&memory, count * sizeof(Number)));
  return memory;
}

}  // namespace

void Check(cudaError_t error, const char* file, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "train_cuda: %s:%d: %s (%d)\n", file, line, cudaGetErrorString(error),
               static_cast<int>(error));
  std::exit(1);
}

Model Allocate() {
  Model model;
  model.parameters = OnDevice<float>(kParameters);
  model.gradients = OnDevice<float>(kParameters);
  model.hidden = OnDevice<float>(kBatch * kHidden);
  model.hidden_grad = OnDevice<float>(kBatch * kHidden);
  model.output = OnDevice<float>(kBatch);
  model.output_grad = OnDevice<float>(kBatch);
  model.loss = OnDevice<float>(1);
  return model;
}

void Release(Model& model) {
  for (float* memory : {model.parameters, model.gradients, model.hidden, model.hidden_grad,
                        model.output, model.output_grad, model.loss}) {
    CHECK(cudaFree(memory));
  }
  model = {};
}

void Initialize(const Model& model, cudaStream_t stream) {
  int blocks = (kParameters + kThreads - 1) / kThreads;
  fill_parameters<<<blocks, kThreads, 0, stream>>>(model.parameters, kParameters);
  CHECK(cudaGetLastError());
}

void Forward(const Model& model, const float* inputs, const float* targets, cudaStream_t stream) {
  forward_hidden<<<kBatch, kHidden, 0, stream>>>(model.parameters, inputs, model.hidden);
  forward_output<<<kBatch, kHidden, 0, stream>>>(model.parameters, model.hidden, model.output);
  mean_squared_error<<<1, kBatch, 0, stream>>>(model.output, targets, model.output_grad,
                                               model.loss);
  CHECK(cudaGetLastError());
}

void Backward(const Model& model, const float* inputs, cudaStream_t stream) {
  backward_hidden<<<kBatch, kHidden, 0, stream>>>(model.parameters, model.hidden, model.output_grad,
                                                  model.hidden_grad);
  backward_weights<<<kInputs + 1, kHidden, 0, stream>>>(inputs, model.hidden, model.hidden_grad,
                                                        model.output_grad, model.gradients);
  CHECK(cudaGetLastError());
}

void Optimize(const Model& model, float rate, cudaStream_t stream) {
  int blocks = (kParameters + kThreads - 1) / kThreads;
  sgd_update<<<blocks, kThreads, 0, stream>>>(model.parameters, model.gradients, rate, kParameters);
  CHECK(cudaGetLastError());
}

}  // namespace train
