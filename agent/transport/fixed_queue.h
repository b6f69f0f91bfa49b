// A queue of at most so many items: allocated once, touched as far as it has been used.
// Runs on: the sender thread.  May not: allocate after the constructor.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace ranktap::agent {

template <typename T>
class FixedQueue {
  static_assert(std::is_trivial_v<T>);

 public:
  explicit FixedQueue(size_t most)
      : items_(std::make_unique_for_overwrite<T[]>(most)), most_(most) {}

  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == most_; }
  size_t size() const { return size_; }
  const T& operator[](size_t index) const { return items_[(first_ + index) % most_]; }
  const T& front() const { return items_[first_]; }

  // Not when it is full.
  void push_back(const T& item) { items_[(first_ + size_++) % most_] = item; }
  void pop_front() {
    first_ = (first_ + 1) % most_;
    --size_;
  }
  void clear() { first_ = size_ = 0; }

 private:
  std::unique_ptr<T[]> items_;
  size_t most_;
  size_t first_ = 0, size_ = 0;
};

}  // namespace ranktap::agent
