// One column of a trace in memory: a growing array of plain values.
//
// Not std::vector: a trace's columns grow to hundreds of megabytes, and realloc moves such an array
// by remapping its pages (no copy, no moment with two of them), while pages that were reserved and
// not yet written cost nothing. New elements are not initialised.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace ranktap::collector {

template <typename T>
class Column {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Column() = default;
  Column(Column&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Column& operator=(Column&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Column() { std::free(data_); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void push_back(T value) { Grow(1)[0] = value; }
  // Appends `count` elements and returns the first; the caller fills them.
  T* Grow(size_t count) {
    if (capacity_ - size_ < count) Reserve(size_ + count);
    T* const first = data_ + size_;
    size_ += count;
    return first;
  }
  // Appends zeros up to `size`.
  void PadTo(size_t size) {
    if (size <= size_) return;
    T* const from = Grow(size - size_);
    for (T* at = from; at != data_ + size_; ++at) *at = T{};
  }
  void Truncate(size_t size) {
    if (size < size_) size_ = size;
  }
  // Gives back what was reserved and is not used.
  void ShrinkToFit() {
    if (size_ == capacity_) return;
    if (size_ == 0) {
      std::free(std::exchange(data_, nullptr));
      capacity_ = 0;
    } else {
      Resize(size_);
    }
  }
  size_t bytes() const { return capacity_ * sizeof(T); }

 private:
  void Reserve(size_t size) {
    size_t capacity = capacity_ < 64 ? 64 : capacity_;
    while (capacity < size) capacity += capacity / 2;
    Resize(capacity);
  }
  void Resize(size_t capacity) {
    void* const moved = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
    if (moved == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(moved);
    capacity_ = capacity;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace ranktap::collector
