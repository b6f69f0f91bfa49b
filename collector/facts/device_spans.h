// What ran on a rank's devices: one piece of work, and a list of them.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
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

// Pieces in the order in which they were appended. Keeps 1.4 B of a kernel and reads the rest in
// the trace's columns as it is asked: kept whole, the kernels of 64 ranks of a million events took
// 1.2 GB, and with their rows 0.16. Other work, mostly rare, is kept whole, and so are kernels
// whose rows do not count up. A piece is made as it is read: nobody keeps a pointer to one. Lives
// as long as the columns do; moving the trace leaves them where they are.
class DeviceSpans {
 public:
  class Iterator;

  DeviceSpans() = default;
  explicit DeviceSpans(const Trace& trace)
      : start_(trace.kernels.start.view()),
        end_(trace.kernels.end.view()),
        lane_(trace.kernels.lane.view()),
        name_(trace.kernels.name.view()),
        launch_(trace.kernels.launch.data()),
        lanes_(trace.lanes.data()) {}

  void Reserve(size_t pieces) {
    pieces_.reserve(pieces);
    groups_.reserve(pieces / kGroup + 1);
  }
  void Append(const DeviceSpan& span) {
    if (span.table == DeviceSpan::Table::kKernel) {
      AppendKernel(span.row, span.kind);
    } else {
      AppendWhole(span);
    }
  }
  void AppendKernel(uint32_t row, WorkKind kind) { AppendKernels(row, {&kind, 1}); }
  // Those of rows row, row + 1, ...
  void AppendKernels(uint32_t row, std::span<const WorkKind> kinds) {
    while (!kinds.empty()) {
      const auto i = static_cast<uint32_t>(pieces_.size());
      const uint8_t before = BeginPiece();
      Group& group = groups_.back();
      if (i % kGroup == before) group.row_minus_place = row - i + before;  // its first kernel
      size_t some = 1;
      if (i + group.row_minus_place - before != row) {
        AppendWhole(KernelAt(row, kinds[0]));
      } else {
        some = std::min(kinds.size(), kGroup - i % kGroup);
        for (size_t k = 0; k < some; ++k) {
          pieces_.push_back({static_cast<uint8_t>(kinds[k]), 0, before});
        }
      }
      kinds = kinds.subspan(some);
      row += static_cast<uint32_t>(some);
    }
  }

  size_t size() const { return pieces_.size(); }
  bool empty() const { return pieces_.empty(); }
  // Inlined, it reads those columns alone whose fields are asked for.
  [[gnu::always_inline]] DeviceSpan operator[](size_t i) const {
    const Piece piece = pieces_[i];
    const Group& group = groups_[i / kGroup];
    if (piece.is_whole != 0) return whole_[group.whole + piece.whole_before];
    return KernelAt(static_cast<uint32_t>(i) + group.row_minus_place - piece.whole_before,
                    static_cast<WorkKind>(piece.kind));
  }
  DeviceSpan front() const { return (*this)[0]; }
  DeviceSpan back() const { return (*this)[size() - 1]; }
  Iterator begin() const;
  Iterator end() const;
  // Calls visit(place, piece) for those of one kind: where these are few, most pieces cost a byte.
  template <typename Visit>
  void ForEachOfKind(WorkKind kind, Visit&& visit) const {
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (pieces_[i].kind == static_cast<uint8_t>(kind))
        visit(static_cast<uint32_t>(i), (*this)[i]);
    }
  }
  // Calls visit(place, piece) for all but kernels; some kernels are among them.
  template <typename Visit>
  void ForEachKeptWhole(Visit&& visit) const {
    for (size_t group = 0; group < groups_.size(); ++group) {
      size_t next = groups_[group].whole;
      for (uint32_t rest = groups_[group].is_whole; rest != 0; rest &= rest - 1) {
        visit(static_cast<uint32_t>(group * kGroup) + std::countr_zero(rest), whole_[next++]);
      }
    }
  }

 private:
  static constexpr size_t kGroup = 32;

  struct Piece {
    uint8_t kind : 2, is_whole : 1, whole_before : 5;  // those before it in its group
  };
  static_assert(sizeof(Piece) == 1);
  struct Group {
    uint32_t row_minus_place = 0;  // of its kernels that are not kept whole, without whole_before
    uint32_t whole = 0;            // its first in whole_
    uint32_t is_whole = 0;         // a bit for each piece
  };

  [[gnu::always_inline]] DeviceSpan KernelAt(uint32_t row, WorkKind kind) const {
    const Lane& lane = lanes_[lane_[row]];
    return {start_[row], end_[row], lane.device,  lane.stream,
            name_[row],  row,       launch_[row], DeviceSpan::Table::kKernel,
            kind};
  }
  // Kernels one after the other, whose rows count up and whose times have one base each.
  struct KernelRun {
    size_t end = 0;  // place after the last; without kernels, after the piece that is none
    bool are_there = false;
    uint32_t row_minus_place = 0;
    uint64_t start_base = 0, end_base = 0;
  };
  KernelRun KernelsFrom(size_t i) const {
    if (i >= pieces_.size()) return {.end = i + 1};
    const Group& group = groups_[i / kGroup];
    const uint32_t whole = group.is_whole >> i % kGroup;
    const uint32_t row_minus_place = group.row_minus_place - pieces_[i].whole_before;
    const size_t row = static_cast<uint32_t>(i) + row_minus_place;
    KernelRun run{.row_minus_place = row_minus_place};
    run.are_there =
        (whole & 1) == 0 && start_.BaseOf(row, &run.start_base) && end_.BaseOf(row, &run.end_base);
    if (!run.are_there) return {.end = i + 1};
    const size_t kernels = std::min<size_t>(std::countr_zero(whole), kGroup - i % kGroup);
    run.end = i + std::min(kernels, TimeColumn::kBlock - row % TimeColumn::kBlock);
    return run;
  }
  [[gnu::always_inline]] DeviceSpan KernelOf(const KernelRun& run, size_t i) const {
    const uint32_t row = static_cast<uint32_t>(i) + run.row_minus_place;
    const Lane& lane = lanes_[lane_[row]];
    return {static_cast<int64_t>(run.start_base + start_.later[row]),
            static_cast<int64_t>(run.end_base + end_.later[row]),
            lane.device,
            lane.stream,
            name_[row],
            row,
            launch_[row],
            DeviceSpan::Table::kKernel,
            static_cast<WorkKind>(pieces_[i].kind)};
  }
  // How many of its group are kept whole so far.
  uint8_t BeginPiece() {
    if (pieces_.size() % kGroup != 0) {
      return static_cast<uint8_t>(pieces_.back().whole_before + pieces_.back().is_whole);
    }
    if (groups_.size() * kGroup == pieces_.size()) {
      groups_.push_back({.whole = static_cast<uint32_t>(whole_.size())});
    }
    return 0;
  }
  void AppendWhole(const DeviceSpan& span) {
    const uint8_t before = BeginPiece();
    groups_.back().is_whole |= uint32_t{1} << pieces_.size() % kGroup;
    pieces_.push_back({static_cast<uint8_t>(span.kind), 1, before});
    whole_.push_back(span);
  }

  TimeColumn::View start_, end_;  // of kernels, as all columns here
  IdColumn::View lane_, name_;
  const uint32_t* launch_ = nullptr;
  const Lane* lanes_ = nullptr;
  std::vector<Piece> pieces_;
  std::vector<Group> groups_;
  std::vector<DeviceSpan> whole_;
};

// Looks once for each run of kernels where their columns are, and not at each piece.
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
  Iterator(const DeviceSpans* spans, size_t at)
      : spans_(spans), at_(at), kernels_(spans->KernelsFrom(at)) {}

  // What reads spans is compiled at -O1, which inlines nothing else: all fields were read.
  [[gnu::always_inline]] DeviceSpan operator*() const {
    return kernels_.are_there ? spans_->KernelOf(kernels_, at_) : (*spans_)[at_];
  }
  [[gnu::always_inline]] Arrow operator->() const { return {**this}; }
  DeviceSpan operator[](difference_type n) const { return (*spans_)[at_ + static_cast<size_t>(n)]; }
  Iterator& operator+=(difference_type n) {
    at_ += static_cast<size_t>(n);
    kernels_ = {.end = at_ + 1};
    return *this;
  }
  Iterator& operator-=(difference_type n) { return *this += -n; }
  [[gnu::always_inline]] Iterator& operator++() {
    if (++at_ == kernels_.end) kernels_ = spans_->KernelsFrom(at_);
    return *this;
  }
  Iterator& operator--() { return *this -= 1; }
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
  KernelRun kernels_;
};

inline DeviceSpans::Iterator DeviceSpans::begin() const { return {this, 0}; }
inline DeviceSpans::Iterator DeviceSpans::end() const { return {this, size()}; }

}  // namespace ranktap::collector
