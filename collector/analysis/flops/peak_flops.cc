#include "collector/analysis/flops/peak_flops.h"

#include <algorithm>
#include <array>

namespace ranktap::collector {
namespace {

enum class Precision { kDouble, kFloat, kHalf, kEight, kNone };

Precision PrecisionOf(std::string_view type) {
  if (type == "double") return Precision::kDouble;
  if (type == "float") return Precision::kFloat;
  if (type == "c10::Half" || type == "c10::BFloat16") return Precision::kHalf;
  if (type.starts_with("c10::Float8")) return Precision::kEight;
  return Precision::kNone;
}

struct Device {
  // Words of the device's name, all of them.
  std::array<std::string_view, 2> words;
  std::array<double, 4> tera;  // by Precision; 0: not known
};

// NVIDIA's data sheets: dense, without sparsity; double on tensor cores where they do it. The first
// line that fits.
constexpr Device kDevices[] = {
    {{"B200", ""}, {0, 0, 2250, 4500}},
    {{"H200", ""}, {67, 67, 989.4, 1978.9}},
    {{"GH200", ""}, {67, 67, 989.4, 1978.9}},
    {{"H100", "PCIe"}, {51, 51, 756, 1513}},
    {{"H100", "NVL"}, {60, 60, 835.5, 1670.5}},
    {{"H100", ""}, {67, 67, 989.4, 1978.9}},
    {{"A100", ""}, {19.5, 19.5, 312, 0}},
    {{"A40", ""}, {0, 37.4, 149.7, 0}},
    {{"A10", ""}, {0, 31.2, 125, 0}},
    {{"L40S", ""}, {0, 91.6, 362.05, 733}},
    {{"L4", ""}, {0, 30.3, 121, 242.5}},
    {{"V100S", ""}, {8.2, 16.4, 130, 0}},
    {{"V100", "PCIE"}, {7, 14, 112, 0}},
    {{"V100", ""}, {7.8, 15.7, 125, 0}},
    {{"T4", ""}, {0, 8.1, 65, 0}},
};

bool HasWord(std::string_view name, std::string_view word) {
  const auto ends_word = [](char c) { return c == ' ' || c == '-'; };
  for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || ends_word(name[at - 1])) && (end == name.size() || ends_word(name[end]))) {
      return true;
    }
  }
  return false;
}

}  // namespace

double PeakFlops(std::string_view device, std::string_view type) {
  const Precision precision = PrecisionOf(type);
  if (precision == Precision::kNone) return 0;
  const auto* const found =
      std::find_if(std::begin(kDevices), std::end(kDevices), [device](const Device& known) {
        return HasWord(device, known.words[0]) &&
               (known.words[1].empty() || HasWord(device, known.words[1]));
      });
  return found == std::end(kDevices) ? 0 : found->tera[static_cast<size_t>(precision)] * 1e12;
}

}  // namespace ranktap::collector
