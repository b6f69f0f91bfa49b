#include "collector/import/kineto/ranked_id.h"

#include "collector/import/json_scan.h"

namespace ranktap::collector {

std::optional<RankedId> RankedIdIn(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789", kSeparators = "_-:/ ])";
  constexpr size_t kMostDigits = 7, kLongestWord = 16;
  const size_t first = text.find_first_of(kDigits);
  if (first == text.npos || first > kLongestWord || text.front() == '-') return std::nullopt;
  const size_t end = text.find_first_not_of(kDigits, first);
  if (end == text.npos || end - first > kMostDigits) return std::nullopt;
  const size_t rest = text.find_first_not_of(kSeparators, end);
  if (rest == text.npos || rest == end) return std::nullopt;
  uint64_t rank = 0;
  ParseUnsigned(text.substr(first, end - first), &rank);
  return RankedId{static_cast<uint32_t>(rank), text.substr(rest)};
}

}  // namespace ranktap::collector
