// JSON by hand, into a buffer: an exporter writes millions of small objects of known shape, and the
// general libraries build each of them first.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ranktap::collector {

// Not std::string: what is appended is mostly a few bytes of a length that the compiler knows, and
// a call of append for each is half of an exporter's time.
class JsonText {
 public:
  std::string_view view() const { return {text_.data(), size_}; }
  std::string str() const { return std::string(view()); }
  size_t size() const { return size_; }
  char back() const { return text_[size_ - 1]; }  // of a text that is not empty
  void Truncate(size_t size) { size_ = size; }

  template <size_t N>
  JsonText& Raw(const char (&literal)[N]) {
    std::memcpy(Room(N), literal, N - 1);
    size_ += N - 1;
    return *this;
  }
  JsonText& Raw(std::string_view text) {
    if (text.empty()) return *this;
    std::memcpy(Room(text.size()), text.data(), text.size());
    size_ += text.size();
    return *this;
  }
  template <typename Integer>
  requires std::is_integral_v<Integer> JsonText& Number(Integer value) {
    char* const at = Room(kLongestNumber);
    size_ += static_cast<size_t>(std::to_chars(at, at + kLongestNumber, value).ptr - at);
    return *this;
  }
  // Shortest text that reads back as the same number; JSON has no NaN.
  JsonText& Number(double value) {
    if (!std::isfinite(value)) return Raw("0");
    char* const at = Room(kLongestNumber);
    size_ += static_cast<size_t>(std::to_chars(at, at + kLongestNumber, value).ptr - at);
    return *this;
  }
  // Nanoseconds as microseconds with three decimals, exactly: doubles cannot hold 19 digits.
  JsonText& Microseconds(int64_t ns) {
    if (ns < 0) {
      Raw("-");
      ns = -ns;
    }
    Number(ns / 1000);
    const auto rest = static_cast<unsigned>(ns % 1000);
    const char decimals[4] = {'.', static_cast<char>('0' + rest / 100),
                              static_cast<char>('0' + rest / 10 % 10),
                              static_cast<char>('0' + rest % 10)};
    std::memcpy(Room(4), decimals, 4);
    size_ += 4;
    return *this;
  }
  // A quoted string that any JSON reader takes, whatever bytes the program used.
  JsonText& Text(std::string_view text);

 private:
  static constexpr size_t kLongestNumber = 32;

  char* Room(size_t bytes) {
    if (text_.size() - size_ < bytes) Grow(bytes);
    return text_.data() + size_;
  }
  void Grow(size_t bytes);

  std::vector<char> text_;  // its first size_ are the text
  size_t size_ = 0;
};

// As Kineto writes names: backslashes become slashes, control characters spaces, and bytes that are
// not UTF-8 question marks.
std::string SanitizedName(std::string_view name);

}  // namespace ranktap::collector
