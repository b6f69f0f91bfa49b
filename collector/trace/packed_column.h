// Columns of a trace whose values take less than they are wide. Read like Column, by value; written
// by Append, Set and Write. A column never gives another value than the one it was given.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

#include "collector/trace/column.h"

namespace ranktap::collector {

template <typename Packed>
class PackedIterator {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = typename Packed::Value;
  using difference_type = std::ptrdiff_t;
  using reference = value_type;
  using pointer = void;

  PackedIterator() = default;
  PackedIterator(const Packed* column, size_t at) : column_(column), at_(at) {}

  [[gnu::always_inline]] value_type operator*() const { return (*column_)[at_]; }
  value_type operator[](difference_type n) const { return *(*this + n); }
  PackedIterator& operator+=(difference_type n) {
    at_ += static_cast<size_t>(n);
    return *this;
  }
  PackedIterator& operator-=(difference_type n) { return *this += -n; }
  PackedIterator& operator++() { return *this += 1; }
  PackedIterator& operator--() { return *this += -1; }
  PackedIterator operator++(int) { return std::exchange(*this, *this + 1); }
  PackedIterator operator--(int) { return std::exchange(*this, *this - 1); }
  friend PackedIterator operator+(PackedIterator it, difference_type n) { return it += n; }
  friend PackedIterator operator+(difference_type n, PackedIterator it) { return it += n; }
  friend PackedIterator operator-(PackedIterator it, difference_type n) { return it -= n; }
  friend difference_type operator-(const PackedIterator& a, const PackedIterator& b) {
    return static_cast<difference_type>(a.at_ - b.at_);
  }
  friend bool operator==(const PackedIterator& a, const PackedIterator& b) {
    return a.at_ == b.at_;
  }
  friend auto operator<=>(const PackedIterator& a, const PackedIterator& b) {
    return a.at_ <=> b.at_;
  }

 private:
  const Packed* column_ = nullptr;
  size_t at_ = 0;
};

// Times, 4 B each: a block of rows keeps one time whole, and of each row how much later it is. A
// block with a time that is 4 s away from another (a pause; one that is not known) keeps a copy of
// all of its times.
class TimeColumn {
  struct Block {
    uint64_t base = 0;
    uint32_t whole = 0;  // 1 + number of its times in whole_, by kBlock; 0: none
  };

 public:
  using Value = int64_t;
  static constexpr size_t kBlock = 1024;

  // Valid as long as the column neither grows nor goes; moving the column leaves it valid.
  struct View {
    const Block* blocks = nullptr;
    const uint32_t* later = nullptr;
    const int64_t* whole = nullptr;

    [[gnu::always_inline]] int64_t operator[](size_t i) const {
      const Block& block = blocks[i / kBlock];
      if (block.whole != 0) [[unlikely]] {
        return whole[(block.whole - 1) * kBlock + i % kBlock];
      }
      return static_cast<int64_t>(block.base + later[i]);
    }
    // What the times of its block are later than; false: they are kept whole.
    bool BaseOf(size_t i, uint64_t* base) const {
      const Block& block = blocks[i / kBlock];
      *base = block.base;
      return block.whole == 0;
    }
  };

  [[gnu::always_inline]] View view() const {
    return {blocks_.data(), later_.data(), whole_.data()};
  }
  [[gnu::always_inline]] int64_t operator[](size_t i) const { return view()[i]; }
  size_t size() const { return later_.size(); }
  bool empty() const { return later_.empty(); }
  int64_t back() const { return (*this)[size() - 1]; }
  PackedIterator<TimeColumn> begin() const { return {this, 0}; }
  PackedIterator<TimeColumn> end() const { return {this, size()}; }
  // What grows with the rows, for who takes its pages ahead.
  Column<uint32_t>& array() { return later_; }
  size_t bytes() const { return blocks_.bytes() + later_.bytes() + whole_.bytes(); }

  void push_back(int64_t time) { Append({&time, 1}); }
  void Append(std::span<const int64_t> times);
  void Set(size_t i, int64_t time);
  void Read(size_t first, std::span<int64_t> times) const;
  // Of all times, by modulo 2^64.
  uint64_t Sum() const;
  // Instead of those from row `first` on.
  void Write(size_t first, std::span<const int64_t> times);
  // Row first + i becomes what row first + order[i] was; `room` has 8 B for each.
  void Permute(size_t first, std::span<const uint32_t> order, void* room);
  // Appends zeros up to `size`.
  void PadTo(size_t size);
  void Truncate(size_t size);
  // Gives back what was reserved, and copies that are not needed (any more).
  void ShrinkToFit();

  // A block as it is kept: each of its times is *base + a row. No rows: they are kept whole. Valid
  // until the column changes.
  struct Later {
    uint64_t* base = nullptr;
    std::span<uint32_t> rows;
  };
  // Of the block that begins with row `first`.
  Later LaterFrom(size_t first);
  // A base for times that come nearly in order, of which this is the first.
  static uint64_t BaseFor(int64_t first) {
    return static_cast<uint64_t>(first) - (uint64_t{1} << 30);
  }
  // The times of rows [first, first + kRun) never go back; false where that takes more than a look.
  static constexpr size_t kRun = 32;
  bool RunCountsUp(size_t first) const;
  static bool Fits(uint64_t base, int64_t time) {
    return static_cast<uint64_t>(time) - base <= UINT32_MAX;
  }

 private:
  int64_t* WholeOf(const Block& block) { return whole_.data() + (block.whole - 1) * kBlock; }
  // `later`: of the block's rows so far.
  void KeepWhole(Block* block, std::span<const uint32_t> later);
  // All rows of the block that begins with row `first`.
  void Pack(size_t first, std::span<const int64_t> times);

  Column<Block> blocks_;
  Column<uint32_t> later_;
  Column<int64_t> whole_;
};

// Numbers of names and the like, 2 B each until one does not fit.
class IdColumn {
 public:
  using Value = uint32_t;

  // As TimeColumn::View.
  struct View {
    const uint16_t* narrow = nullptr;
    const uint32_t* wide = nullptr;  // null: all are in `narrow`

    [[gnu::always_inline]] uint32_t operator[](size_t i) const {
      return wide == nullptr ? narrow[i] : wide[i];
    }
  };

  [[gnu::always_inline]] View view() const {
    return {narrow_.data(), wide_.empty() ? nullptr : wide_.data()};
  }
  [[gnu::always_inline]] uint32_t operator[](size_t i) const { return view()[i]; }
  size_t size() const { return narrow_.size() + wide_.size(); }
  bool empty() const { return size() == 0; }
  uint32_t back() const { return (*this)[size() - 1]; }
  PackedIterator<IdColumn> begin() const { return {this, 0}; }
  PackedIterator<IdColumn> end() const { return {this, size()}; }
  // As TimeColumn::array().
  Column<uint16_t>& array() { return narrow_; }
  size_t bytes() const { return narrow_.bytes() + wide_.bytes(); }

  void push_back(uint32_t id) { Append({&id, 1}); }
  void Append(std::span<const uint32_t> ids);
  void Set(size_t i, uint32_t id);
  void Write(size_t first, std::span<const uint32_t> ids);
  void Permute(size_t first, std::span<const uint32_t> order, void* room);  // as TimeColumn's
  void PadTo(size_t size);
  void Truncate(size_t size) { narrow_.Truncate(size), wide_.Truncate(size); }
  void ShrinkToFit() { narrow_.ShrinkToFit(), wide_.ShrinkToFit(); }

 private:
  void Widen();

  // All ids are in one of them.
  Column<uint16_t> narrow_;
  Column<uint32_t> wide_;
};

template <typename Column>
concept PackedColumn = requires(Column& column) {
  column.array();
};

}  // namespace ranktap::collector
