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

// Pieces in the order in which they were appended. Keeps 1.25 B of a kernel (5 where the rows of
// kernels do not count up) and reads the rest in the trace's columns as it is asked: kept whole,
// the kernels of 64 ranks of a million events took 1.2 GB. Other work, mostly rare, is kept whole.
// A piece is made as it is read: nobody keeps a pointer to one. Lives as long as the columns do;
// moving the trace leaves them where they are.
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
    pieces_.reserve(pieces);
    groups_.reserve(pieces / kGroup + 1);
  }
  void Append(const DeviceSpan& span) {
    if (span.table == DeviceSpan::Table::kKernel && span.row < kOther) {
      AppendKernel(span.row, span.kind);
      return;
    }
    Add(kOther | static_cast<uint32_t>(others_.size()), span.kind);
    others_.push_back(span);
  }
  // `row` < 2^31.
  void AppendKernel(uint32_t row, WorkKind kind) { Add(row, kind); }

  size_t size() const { return pieces_.size(); }
  bool empty() const { return pieces_.empty(); }
  // Inlined, it reads those columns alone whose fields are asked for.
  [[gnu::always_inline]] DeviceSpan operator[](size_t i) const {
    const uint32_t at = rows_.empty() ? Place(i) : rows_[i];
    if ((at & kOther) != 0) return others_[at & ~kOther];
    const Lane& lane = lanes_[lane_[at]];
    return {start_[at],       end_[at], lane.device, lane.stream,
            name_[at],        at,       launch_[at], DeviceSpan::Table::kKernel,
            pieces_[i].kind()};
  }
  DeviceSpan front() const { return (*this)[0]; }
  DeviceSpan back() const { return (*this)[size() - 1]; }
  Iterator begin() const;
  Iterator end() const;

 private:
  static constexpr uint32_t kOther = uint32_t{1} << 31;
  static constexpr size_t kGroup = 32;

  struct Piece {
    WorkKind kind() const { return static_cast<WorkKind>(of_kind); }
    uint8_t of_kind : 2, is_other : 1, others_before : 5;  // before it in its group
  };
  static_assert(sizeof(Piece) == 1);
  struct Group {
    uint32_t row = 0;    // of its first kernel
    uint32_t other = 0;  // place in others_ of its first piece that is none
  };

  [[gnu::always_inline]] uint32_t Place(size_t i) const {
    const Piece piece = pieces_[i];
    const Group& group = groups_[i / kGroup];
    if (piece.is_other != 0) return kOther | (group.other + piece.others_before);
    return group.row + static_cast<uint32_t>(i % kGroup) - piece.others_before;
  }
  void Add(uint32_t place, WorkKind kind) {
    const size_t i = pieces_.size();
    const bool is_other = (place & kOther) != 0;
    uint8_t before = 0;
    if (i % kGroup == 0) {
      groups_.push_back({.other = static_cast<uint32_t>(others_.size())});
    } else {
      before = pieces_.back().others_before + pieces_.back().is_other;
    }
    pieces_.push_back({static_cast<uint8_t>(kind), is_other, before});
    if (!is_other && i % kGroup == before) groups_.back().row = place;
    if (rows_.empty() && Place(i) == place) return;
    for (size_t at = rows_.size(); at < i; ++at) rows_.push_back(Place(at));
    rows_.push_back(place);
  }

  const int64_t *start_ = nullptr, *end_ = nullptr;  // of kernels, as all columns here
  const uint32_t *lane_ = nullptr, *name_ = nullptr, *launch_ = nullptr;
  const Lane* lanes_ = nullptr;
  std::vector<Piece> pieces_;
  std::vector<Group> groups_;
  std::vector<uint32_t> rows_;  // else by piece: row of a kernel, or kOther and a place in others_
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
