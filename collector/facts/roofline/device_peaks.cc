#include "collector/facts/roofline/device_peaks.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace ranktap::collector {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

bool IsTensor(ComputeUnit unit) {
  return unit != ComputeUnit::kFp64 && unit != ComputeUnit::kFp32 && unit != ComputeUnit::kHalf;
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_' || c == '/') {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += Lower(c);
    }
  }
  if (words.back().empty()) words.pop_back();
  // "RTX4090", "GTX1080Ti"
  for (size_t i = 0; i < words.size(); ++i) {
    std::string& word = words[i];
    if (word.size() >= 7 && (word.starts_with("rtx") || word.starts_with("gtx"))) word.erase(0, 3);
    if (word.size() == 6 && word.ends_with("ti")) {
      word.resize(4);
      words.emplace_back("ti");
    }
  }
  return words;
}

bool Has(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// A device that shares the number and not the chip.
bool IsAnother(const std::vector<std::string>& words, const DevicePeaks& known) {
  for (const std::string_view word :
       {"ti", "super", "laptop", "mobile", "max", "maxq", "d", "mig", "ada", "pro"}) {
    if (Has(words, word) && std::ranges::find(known.words, word) == known.words.end()) return true;
  }
  return false;
}

bool Fits(const std::vector<std::string>& words, const DevicePeaks& known) {
  return std::ranges::all_of(
             known.words,
             [&words](std::string_view word) { return word.empty() || Has(words, word); }) &&
         !IsAnother(words, known);
}

// "SXM4" is SXM, "H100 80GB HBM3" is the one with 80 GB of them.
std::vector<std::string> Known(std::string_view name, uint64_t memory) {
  std::vector<std::string> words = WordsOf(name);
  for (std::string& word : words) {
    if (word.starts_with("sxm")) word = "sxm";
    if (word == "pci" || word == "pcie4" || word == "pcie5") word = "pcie";
  }
  const bool says_size =
      std::ranges::any_of(words, [](const std::string& word) { return word.ends_with("gb"); });
  constexpr double kGib = 1024 * kMib;
  if (!says_size && static_cast<double>(memory) > 60 * kGib) words.emplace_back("80gb");
  return words;
}

size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      const bool is_same = Lower(a[i]) == Lower(b[j]);
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (is_same ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

// Words may stand in any order: the sum of what each word of `name` lacks to its nearest word.
size_t WordDistance(const std::vector<std::string>& name, const DevicePeaks& known) {
  const std::vector<std::string> words = WordsOf(known.name);
  size_t sum = 0;
  for (const std::string& word : name) {
    size_t least = word.size();
    for (const std::string& other : words) least = std::min(least, Distance(word, other));
    sum += least;
  }
  return sum;
}

std::string Nearest(std::string_view name) {
  std::vector<std::string> words = WordsOf(name);
  std::erase_if(words, [](const std::string& word) {
    return word == "nvidia" || word == "geforce" || word == "tesla";
  });
  std::vector<std::pair<size_t, std::string_view>> by_distance;
  for (const DevicePeaks& known : AllDevicePeaks()) {
    by_distance.emplace_back(WordDistance(words, known), known.name);
  }
  std::ranges::stable_sort(by_distance, {}, [](const auto& entry) { return entry.first; });
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(3, by_distance.size()); ++i) {
    names += (i == 0 ? "" : ", ") + std::string(by_distance[i].second);
  }
  return names;
}

}  // namespace

std::string_view NameOf(ComputeUnit unit) {
  constexpr std::array<std::string_view, kComputeUnits> kNames = {
      "fp64", "fp64 tensor", "fp32", "tf32", "fp16", "fp16 tensor", "fp8", "int8"};
  return kNames[static_cast<size_t>(unit)];
}

double DevicePeaks::FlopsAt(ComputeUnit unit, double mhz) const {
  const int of_peak = IsTensor(unit) && tensor_mhz > 0 ? tensor_mhz : boost_mhz;
  return of_peak > 0 ? flops(unit) * mhz / of_peak : 0;
}

const DevicePeaks* FindDevicePeaks(std::string_view name, uint64_t memory) {
  const std::vector<std::string> words = Known(name, memory);
  if (words.empty()) return nullptr;
  for (const DevicePeaks& known : AllDevicePeaks()) {
    if (Fits(words, known)) return &known;
  }
  return nullptr;
}

Result<const DevicePeaks*> DevicePeaksNamed(std::string_view name) {
  if (const DevicePeaks* const found = FindDevicePeaks(name)) return found;
  return Failure{
      fmt::format("no peaks are known of a device '{}'; nearest: {}; --peak-flops and "
                  "--peak-bandwidth describe any other",
                  name, Nearest(name))};
}

double PeakFlops(std::string_view device, std::string_view type) {
  const DevicePeaks* const found = FindDevicePeaks(device);
  if (found == nullptr) return 0;
  if (type == "double") {
    return std::max(found->flops(ComputeUnit::kFp64Tensor), found->flops(ComputeUnit::kFp64));
  }
  if (type == "float") return found->flops(ComputeUnit::kFp32);
  if (type == "c10::Half" || type == "c10::BFloat16") {
    return std::max(found->flops(ComputeUnit::kHalfTensor), found->flops(ComputeUnit::kHalf));
  }
  return type.starts_with("c10::Float8") ? found->flops(ComputeUnit::kFp8) : 0;
}

}  // namespace ranktap::collector
