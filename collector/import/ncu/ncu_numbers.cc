#include "collector/import/ncu/ncu_numbers.h"

#include <charconv>
#include <cmath>
#include <string>

namespace ranktap::collector {
namespace {

// Of thousands alone: a space, a no-break space of either width, an apostrophe, ’.
constexpr std::string_view kGaps[] = {" ", "\xc2\xa0", "\xe2\x80\xaf", "'", "\xe2\x80\x99"};

std::string WithoutGaps(std::string_view number) {
  std::string plain;
  while (!number.empty()) {
    size_t length = 0;
    for (const std::string_view gap : kGaps) {
      if (number.starts_with(gap)) length = gap.size();
    }
    if (length == 0) plain += number.front();
    number.remove_prefix(length == 0 ? 1 : length);
  }
  return plain;
}

bool IsPlain(std::string_view number) {
  return !number.empty() && number.find_first_not_of("0123456789.,+-eE") == number.npos &&
         number.find_first_of("0123456789") != number.npos;
}

// The character that must begin the fraction; '\0': the number has none or does not tell.
char PointOf(std::string_view number, bool* three) {
  const size_t last = number.find_last_of(".,");
  if (last == number.npos) return '\0';
  const char mark = number[last], other = mark == '.' ? ',' : '.';
  if (number.find(other) != number.npos) return mark;
  if (number.find(mark) != last) return other;  // twice: of thousands
  const size_t sign = number.front() == '-' || number.front() == '+' ? 1 : 0;
  const bool may_group = number.size() == last + 4 && last > sign && last <= sign + 3 &&
                         number[sign] != '0' && number.find_first_of("eE") == number.npos;
  if (!may_group) return mark;
  *three |= mark == '.';
  return '\0';
}

}  // namespace

bool NumberStyle::Learn(std::string_view number) {
  const std::string plain = WithoutGaps(number);
  if (!IsPlain(plain)) return false;
  const char point = PointOf(plain, &has_three_);
  if (point == '\0') return true;
  if (point_ == '\0') point_ = point;
  return point_ == point;
}

std::optional<double> NumberStyle::Read(std::string_view number) const {
  std::string plain = WithoutGaps(number);
  if (!IsPlain(plain)) return std::nullopt;
  const char point = point_ == '\0' ? '.' : point_, group = point == '.' ? ',' : '.';
  std::erase(plain, group);
  for (char& c : plain) {
    if (c == point) c = '.';
  }
  double value = 0;
  const char* const begin = plain.data() + (plain.front() == '+' ? 1 : 0);
  const char* const end = plain.data() + plain.size();
  const auto [at, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || at != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> ScaleOfUnit(std::string_view unit) {
  struct Known {
    std::string_view unit;
    double scale;
  };
  // Long names until Nsight Compute 2024.1, short ones since; prefixes of bytes are powers of ten.
  constexpr Known kKnown[] = {{"", 1},         {"%", 1},       {"inst", 1},        {"byte", 1},
                              {"Kbyte", 1e3},  {"Mbyte", 1e6}, {"Gbyte", 1e9},     {"Tbyte", 1e12},
                              {"B", 1},        {"KB", 1e3},    {"MB", 1e6},        {"GB", 1e9},
                              {"TB", 1e12},    {"nsecond", 1}, {"usecond", 1e3},   {"msecond", 1e6},
                              {"second", 1e9}, {"ns", 1},      {"us", 1e3},        {"ms", 1e6},
                              {"s", 1e9},      {"op", 1},      {"thread inst", 1}, {"cycle", 1}};
  // Of a rate: its names have what it is by.
  for (const std::string_view by : {"/second", "/s", "/cycle"}) {
    if (unit.ends_with(by)) return ScaleOfUnit(unit.substr(0, unit.size() - by.size()));
  }
  for (const Known& known : kKnown) {
    if (unit == known.unit) return known.scale;
  }
  return std::nullopt;
}

}  // namespace ranktap::collector
