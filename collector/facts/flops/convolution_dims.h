// The places at which a convolution applies its filter, and so the size of its output. A part of
// op_flops.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collector/facts/flops/op_inputs.h"

namespace ranktap::collector {

// An entry of stride, padding or dilation: one for all axes, or one an axis.
inline int64_t AtAxis(const Dims& list, size_t axis, int64_t otherwise) {
  if (list.empty()) return otherwise;
  return list.size() == 1 ? list[0] : axis < list.size() ? list[axis] : otherwise;
}

// Spatial dimensions after a filter of these extents passed over x [N, C, ...].
struct Passing {
  Dims extents, stride, padding, dilation;
  bool rounds_up = false;  // a pooling's ceil_mode
};
inline Dims PassedDims(const Dims& x, const Passing& of) {
  Dims out;
  for (size_t axis = 0; axis + 2 < x.size(); ++axis) {
    const int64_t step = AtAxis(of.stride, axis, 1);
    const int64_t padding = AtAxis(of.padding, axis, 0);
    const int64_t extent = AtAxis(of.dilation, axis, 1) * (AtAxis(of.extents, axis, 1) - 1) + 1;
    const int64_t room = x[axis + 2] + 2 * padding - extent;
    if (step <= 0 || room < 0) {
      out.push_back(0);
      continue;
    }
    int64_t places = (room + (of.rounds_up ? step - 1 : 0)) / step + 1;
    // The last one begins in the image or in the padding before it.
    if (of.rounds_up && (places - 1) * step >= x[axis + 2] + padding) --places;
    out.push_back(places);
  }
  return out;
}

// Spatial dimensions after a convolution; w [Cout, Cin/groups, ...]; stride, padding and dilation
// are inputs 3, 4 and 5.
inline Dims ConvolvedDims(const OpInputs& in, const Dims& x, const Dims& w) {
  if (w.size() < 3) return {};
  Dims shared(x.begin(), x.begin() + static_cast<ptrdiff_t>(std::min(x.size(), w.size())));
  return PassedDims(shared, {.extents = Dims(w.begin() + 2, w.end()),
                             .stride = in.Integers(3),
                             .padding = in.Integers(4),
                             .dilation = in.Integers(5)});
}

// Spatial dimensions after a transposed one, whose inputs these are in this order.
struct TransposedInputs {
  size_t stride, padding, extra, dilation;
};
inline Dims TransposedDims(const OpInputs& in, const Dims& x, const Dims& w,
                           const TransposedInputs& at) {
  const Dims stride = in.Integers(at.stride), padding = in.Integers(at.padding),
             extra = in.Integers(at.extra), dilation = in.Integers(at.dilation);
  Dims out;
  for (size_t axis = 0; axis + 2 < x.size() && axis + 2 < w.size(); ++axis) {
    out.push_back((x[axis + 2] - 1) * AtAxis(stride, axis, 1) - 2 * AtAxis(padding, axis, 0) +
                  AtAxis(dilation, axis, 1) * (w[axis + 2] - 1) + AtAxis(extra, axis, 0) + 1);
  }
  return out;
}

}  // namespace ranktap::collector
