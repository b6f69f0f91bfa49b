#include "collector/facts/flops/flop_expression.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

namespace ranktap::collector {
namespace {

// A command line may hold any number of parentheses.
constexpr int kDeepest = 64;

// Recursive descent, which evaluates as it reads. Without inputs every name is 1: syntax alone.
class Reader {
 public:
  Reader(std::string_view text, const OpInputs* in) : text_(text), in_(in) {}

  double Read() {
    const double value = Sum();
    if (at_ < text_.size()) is_wrong_ = true;
    return value;
  }
  bool is_wrong() const { return is_wrong_; }
  bool is_missing() const { return is_missing_; }
  size_t at() const { return at_; }

 private:
  double Sum() {
    double value = Product();
    while (!is_wrong_) {
      if (Take('+')) {
        value += Product();
      } else if (Take('-')) {
        value -= Product();
      } else {
        break;
      }
    }
    return value;
  }

  double Product() {
    double value = Factor();
    while (!is_wrong_) {
      if (Take('*')) {
        value *= Factor();
      } else if (Take('/')) {
        value /= Factor();
      } else {
        break;
      }
    }
    return value;
  }

  double Factor() {
    if (++depth_ > kDeepest) return Wrong();
    double value = 0;
    if (Take('(')) {
      value = Sum();
      if (!Take(')')) Wrong();
    } else if (TakeWord("numel")) {
      value = Take('(') ? Numel() : Wrong();
      if (!Take(')')) Wrong();
    } else if (TakeWord("in")) {
      value = Dimension();
    } else {
      value = Number<double>();
    }
    --depth_;
    return value;
  }

  double Numel() {
    if (!TakeWord("in")) return Wrong();
    const auto index = Number<size_t>();
    if (in_ == nullptr || is_wrong_) return 1;
    const Dims* const dims = in_->Tensor(index, 1);
    return dims == nullptr ? Missing() : static_cast<double>(ranktap::collector::Product(*dims));
  }

  double Dimension() {
    const auto index = Number<size_t>();
    if (!Take('[')) return Wrong();
    auto axis = Number<int64_t>();
    if (!Take(']')) return Wrong();
    if (in_ == nullptr || is_wrong_) return 1;
    const Dims* const dims = in_->Tensor(index, 1);
    if (dims == nullptr) return Missing();
    const auto rank = static_cast<int64_t>(dims->size());
    if (axis < 0) axis += rank;
    return axis < 0 || axis >= rank ? Missing()
                                    : static_cast<double>((*dims)[static_cast<size_t>(axis)]);
  }

  template <typename T>
  T Number() {
    SkipBlanks();
    T value{};
    const char* const from = text_.data() + at_;
    const auto [after, error] = std::from_chars(from, text_.data() + text_.size(), value);
    if (error != std::errc()) Wrong();
    at_ += static_cast<size_t>(after - from);
    return value;
  }

  void SkipBlanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool Take(char wanted) {
    SkipBlanks();
    if (is_wrong_ || at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    SkipBlanks();
    return true;
  }
  bool TakeWord(std::string_view word) {
    SkipBlanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  double Wrong() {
    is_wrong_ = true;
    return 0;
  }
  double Missing() {
    is_missing_ = true;
    return 0;
  }

  const std::string_view text_;
  const OpInputs* const in_;
  size_t at_ = 0;
  int depth_ = 0;
  bool is_wrong_ = false, is_missing_ = false;
};

}  // namespace

std::optional<int64_t> EvaluateFlops(std::string_view expression, const OpInputs& in) {
  Reader reader(expression, &in);
  const double value = reader.Read();
  constexpr double kMost = 9e18;
  if (reader.is_wrong() || reader.is_missing() || !(value >= 0 && value <= kMost)) {
    return std::nullopt;
  }
  return std::llround(value);
}

std::optional<std::string> WhatIsWrong(std::string_view expression) {
  Reader reader(expression, nullptr);
  reader.Read();
  if (!reader.is_wrong()) return std::nullopt;
  const std::string_view rest = expression.substr(reader.at());
  return fmt::format(
      "'{}' {}; write numbers, + - * / ( ), in0[1] for a dimension of an input, numel(in0) for its "
      "elements",
      expression,
      rest.empty() ? "ends too early" : fmt::format("cannot be read from '{}' on", rest));
}

}  // namespace ranktap::collector
