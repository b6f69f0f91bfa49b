// A value, or the sentence that tells a person why there is none: what is wrong, where, and where
// possible what to do next.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace ranktap::collector {

struct Failure {
  std::string message;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}            // NOLINT: implicit on purpose
  Result(Failure failure) : value_(std::move(failure)) {}  // NOLINT: implicit on purpose
  bool ok() const { return std::holds_alternative<T>(value_); }
  explicit operator bool() const { return ok(); }
  T& operator*() { return std::get<T>(value_); }
  const T& operator*() const { return std::get<T>(value_); }
  T* operator->() { return &std::get<T>(value_); }
  const T* operator->() const { return &std::get<T>(value_); }
  const std::string& message() const { return std::get<Failure>(value_).message; }

 private:
  std::variant<T, Failure> value_;
};

// "PATH: could not open: No such file or directory"
Failure SystemFailure(const std::string& what, int error);

}  // namespace ranktap::collector
