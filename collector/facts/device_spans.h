// What ran on a rank's devices: one piece of work, and a list of them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

enum class WorkKind : uint8_t { kCompute, kCommunication, kMemory, kOther };
std::string_view NameOf(WorkKind kind);  // "compute", ...

struct DeviceSpan {
  int64_t start = 0, end = 0;
  uint32_t device = 0, stream = 0;
  uint32_t name = 0;        // Dictionary::String of a kernel; 0: see NameOf(span)
  uint32_t row = 0;         // in its table
  uint32_t launch = kNone;  // row of api_calls
  enum class Table : uint8_t { kKernel, kCopy, kMemset, kSync, kOperator, kGraphLaunch };
  Table table = Table::kKernel;
  WorkKind kind = WorkKind::kCompute;
};

// Pieces in the order in which they were appended. Keeps 5 B of a kernel and reads the rest in the
// trace's columns as it is asked: kept whole, the kernels of 64 ranks of a million events took 1.2
// GB. Other work, mostly rare, is kept whole. A piece is made as it is read: nobody keeps a pointer
// to one. Lives as long as the columns do; moving the trace leaves them where they are.
class DeviceSpans {
 public:
  class Iterator;

  DeviceSpans() = default;
  explicit DeviceSpans(const Trace& trace)
      : start_(trace.kernels.start.data()),
        end_(trace.kernels.end.data()),
        lane_(trace.kernels.lane.data()),
        name_(trace.kernels.name.data()),
        launch_(trace.kernels.launch.data()),
        lanes_(trace.lanes.data()) {}

  void Reserve(size_t pieces) {
    at_.reserve(pieces);
    kinds_.reserve(pieces);
  }
  void Append(const DeviceSpan& span) {
    if (span.table == DeviceSpan::Table::kKernel && span.row < kOther) {
      AppendKernel(span.row, span.kind);
      return;
    }
    at_.push_back(kOther | static_cast<uint32_t>(others_.size()));
    kinds_.push_back(span.kind);
    others_.push_back(span);
  }
  // `row` < 2^31.
  void AppendKernel(uint32_t row, WorkKind kind) {
    at_.push_back(row);
    kinds_.push_back(kind);
  }

  size_t size() const { return at_.size(); }
  bool empty() const { return at_.empty(); }
  // Inlined, it reads those columns alone whose fields are asked for.
  [[gnu::always_inline]] DeviceSpan operator[](size_t i) const {
    const uint32_t at = at_[i];
    if ((at & kOther) != 0) return others_[at & ~kOther];
    const Lane& lane = lanes_[lane_[at]];
    return {start_[at], end_[at], lane.device, lane.stream,
            name_[at],  at,       launch_[at], DeviceSpan::Table::kKernel,
            kinds_[i]};
  }
  DeviceSpan front() const { return (*this)[0]; }
  DeviceSpan back() const { return (*this)[size() - 1]; }
  Iterator begin() const;
  Iterator end() const;

 private:
  static constexpr uint32_t kOther = uint32_t{1} << 31;

  const int64_t *start_ = nullptr, *end_ = nullptr;  // of kernels, as all columns here
  const uint32_t *lane_ = nullptr, *name_ = nullptr, *launch_ = nullptr;
  const Lane* lanes_ = nullptr;
  std::vector<uint32_t> at_;  // row of a kernel, or kOther and the place in others_
  std::vector<WorkKind> kinds_;
  std::vector<DeviceSpan> others_;
};

class DeviceSpans::Iterator {
 public:
  struct Arrow {
    DeviceSpan span;
    const DeviceSpan* operator->() const { return &span; }
  };
  using iterator_category = std::random_access_iterator_tag;
  using value_type = DeviceSpan;
  using difference_type = std::ptrdiff_t;
  using reference = DeviceSpan;
  using pointer = Arrow;

  Iterator() = default;
  Iterator(const DeviceSpans* spans, size_t at) : spans_(spans), at_(at) {}

  DeviceSpan operator*() const { return (*spans_)[at_]; }
  Arrow operator->() const { return {(*spans_)[at_]}; }
  DeviceSpan operator[](difference_type n) const { return *(*this + n); }
  Iterator& operator+=(difference_type n) {
    at_ += static_cast<size_t>(n);
    return *this;
  }
  Iterator& operator-=(difference_type n) { return *this += -n; }
  Iterator& operator++() { return *this += 1; }
  Iterator& operator--() { return *this += -1; }
  Iterator operator++(int) { return std::exchange(*this, *this + 1); }
  Iterator operator--(int) { return std::exchange(*this, *this - 1); }
  friend Iterator operator+(Iterator it, difference_type n) { return it += n; }
  friend Iterator operator+(difference_type n, Iterator it) { return it += n; }
  friend Iterator operator-(Iterator it, difference_type n) { return it -= n; }
  friend difference_type operator-(const Iterator& a, const Iterator& b) {
    return static_cast<difference_type>(a.at_ - b.at_);
  }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }
  friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.at_ <=> b.at_; }

 private:
  const DeviceSpans* spans_ = nullptr;
  size_t at_ = 0;
};

inline DeviceSpans::Iterator DeviceSpans::begin() const { return {this, 0}; }
inline DeviceSpans::Iterator DeviceSpans::end() const { return {this, size()}; }

}  // namespace ranktap::collector
