// A two-layer perceptron that learns a fixed linear map: enough to have a forward pass, a backward
// pass and an optimizer, all of them kernels of our own.
#pragma once

#include <cuda_runtime.h>

namespace train {

inline constexpr int kBatch = 256;
inline constexpr int kInputs = 64;
inline constexpr int kHidden = 128;
inline constexpr int kParameters = kInputs * kHidden + kHidden;

// Device memory of one rank. Owned by the caller: Allocate, then Release.
struct Model {
  float* parameters = nullptr;
  float* gradients = nullptr;
  float* hidden = nullptr;  // batch x hidden
  float* hidden_grad = nullptr;
  float* output = nullptr;  // batch
  float* output_grad = nullptr;
  float* loss = nullptr;  // one number
};

Model Allocate();
void Release(Model& model);

// Fills the parameters from a seed that is the same on every rank.
void Initialize(const Model& model, cudaStream_t stream);
// Each enqueues its kernels on `stream` and returns.
void Forward(const Model& model, const float* inputs, const float* targets, cudaStream_t stream);
void Backward(const Model& model, const float* inputs, cudaStream_t stream);
void Optimize(const Model& model, float rate, cudaStream_t stream);

// Ends the program with the file, the line and CUDA's words.
void Check(cudaError_t error, const char* file, int line);

}  // namespace train

#define CHECK(call) ::train::Check((call), __FILE__, __LINE__)
