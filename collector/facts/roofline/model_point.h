// A whole model as one point of a roofline, in two ways of counting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collector/trace/model.h"

namespace ranktap::collector {

// One forward of the root module with most arithmetic.
struct ModelPoint {
  std::string root;
  // As articles about roofline models of networks count: a multiply-add is one operation; each
  // parameter moves once and each layer's output once, however often both are read. Layers that
  // work in place put out nothing.
  int64_t multiply_adds = 0, parameter_bytes = 0, output_bytes = 0;
  // Ours: two operations a multiply-add; each operator's inputs and outputs.
  int64_t flops = 0, bytes = 0;

  double IntensityOfArticle() const {
    return static_cast<double>(multiply_adds) / static_cast<double>(parameter_bytes + output_bytes);
  }
  double Intensity() const { return static_cast<double>(flops) / static_cast<double>(bytes); }
};

// nullopt: the model is not described (at level full after its first step), or nothing is counted.
std::optional<ModelPoint> FindModelPoint(const Trace& trace);

}  // namespace ranktap::collector
