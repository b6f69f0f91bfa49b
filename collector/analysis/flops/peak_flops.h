// What a GPU can compute at most, from its maker's data sheet.
#pragma once

#include <string_view>

namespace ranktap::collector {

// FLOP/s of one device, dense, at the boost clock, by its name ("NVIDIA H100 80GB HBM3") and the
// type of what is multiplied as torch.profiler writes it ("float", "c10::BFloat16"). float is the
// peak without TF32. 0: the device or the type is not in the table.
double PeakFlops(std::string_view device, std::string_view type);

}  // namespace ranktap::collector
