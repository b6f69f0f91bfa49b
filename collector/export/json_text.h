// JSON by hand, into a buffer: an exporter writes millions of small objects of known shape, and the
// general libraries build each of them first.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace ranktap::collector {

class JsonText {
 public:
  std::string& buffer() { return text_; }

  JsonText& Raw(std::string_view text) {
    text_.append(text);
    return *this;
  }
  template <typename Integer>
  requires std::is_integral_v<Integer> JsonText& Number(Integer value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
    text_.append(digits, end);
    return *this;
  }
  // Shortest text that reads back as the same number; JSON has no NaN.
  JsonText& Number(double value) {
    if (!std::isfinite(value)) return Raw("0");
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
    text_.append(digits, end);
    return *this;
  }
  // Nanoseconds as microseconds with three decimals, exactly: doubles cannot hold 19 digits.
  JsonText& Microseconds(int64_t ns) {
    if (ns < 0) {
      text_ += '-';
      ns = -ns;
    }
    Number(ns / 1000);
    const auto rest = static_cast<unsigned>(ns % 1000);
    const char decimals[4] = {'.', static_cast<char>('0' + rest / 100),
                              static_cast<char>('0' + rest / 10 % 10),
                              static_cast<char>('0' + rest % 10)};
    text_.append(decimals, 4);
    return *this;
  }
  // A quoted string that any JSON reader takes, whatever bytes the program used.
  JsonText& Text(std::string_view text);

 private:
  std::string text_;
};

// As Kineto writes names: backslashes become slashes, control characters spaces, and bytes that are
// not UTF-8 question marks.
std::string SanitizedName(std::string_view name);

}  // namespace ranktap::collector
