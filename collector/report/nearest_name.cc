#include "collector/report/nearest_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace ranktap::collector {
namespace {

constexpr size_t kLongestWord = 64;

// Letters put in, left out, changed or swapped with their neighbour.
size_t Slips(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> least(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        least[i][j] = i + j;
        continue;
      }
      const size_t changed = a[i - 1] == b[j - 1] ? 0 : 1;
      least[i][j] =
          std::min({least[i - 1][j] + 1, least[i][j - 1] + 1, least[i - 1][j - 1] + changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
      }
    }
  }
  return least[a.size()][b.size()];
}

}  // namespace

std::string DidYouMean(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() < 2 || word.size() > kLongestWord) return "";
  std::string_view nearest;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string_view name : known) {
    if (name.size() > kLongestWord) continue;
    const bool is_begun = word.size() >= 3 && name.starts_with(word);
    const size_t slips = is_begun ? 1 : Slips(word, name);
    if (slips >= least) continue;
    least = slips;
    nearest = name;
  }
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace ranktap::collector
