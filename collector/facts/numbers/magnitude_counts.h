// How many whole numbers there are of each magnitude: of many numbers only those around a quantile
// are looked at again.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ranktap::collector {

class MagnitudeCounts {
 public:
  // Below it nth_element of all is as fast.
  static constexpr size_t kMany = 1 << 15;

  void Count(int64_t number) { ++counts_[BucketOf(number)]; }

  // The numbers from `least` to `most` are those of some ranks, and others of their magnitude.
  struct Near {
    int64_t least = 0, most = 0;
    size_t before = 0, count = 0;  // how many are less; how many are near
    bool Holds(int64_t number) const { return least <= number && number <= most; }
  };
  // Those of ranks `first` to `last`, which counts from 0.
  Near Around(size_t first, size_t last) const {
    size_t bucket = 0;
    Near near;
    while (near.before + counts_[bucket] <= first) near.before += counts_[bucket++];
    near.least = LeastOf(bucket);
    near.count = counts_[bucket];
    while (near.before + near.count <= last) near.count += counts_[++bucket];
    near.most = bucket + 1 == kBuckets ? INT64_MAX : LeastOf(bucket + 1) - 1;
    return near;
  }

 private:
  // The bits that a bucket tells of a number; numbers of fewer bits have a bucket each, and those
  // below 0 share the first.
  static constexpr int kBits = 9;
  static constexpr int64_t kHalf = 1 << (kBits - 1);
  static constexpr size_t kBuckets = size_t{(63 - kBits) * kHalf + 2 * kHalf + 1};

  static size_t BucketOf(int64_t number) {
    if (number < 2 * kHalf) return number < 0 ? 0 : static_cast<size_t>(number) + 1;
    const int shift = std::bit_width(static_cast<uint64_t>(number)) - kBits;
    return static_cast<size_t>(shift * kHalf + (number >> shift) + 1);
  }
  static int64_t LeastOf(size_t bucket) {
    if (bucket == 0) return INT64_MIN;
    const int64_t place = static_cast<int64_t>(bucket) - 1;
    if (place < 2 * kHalf) return place;
    const int64_t shift = place / kHalf - 1;
    return (place - shift * kHalf) << shift;
  }

  std::vector<uint32_t> counts_ = std::vector<uint32_t>(kBuckets);
};

}  // namespace ranktap::collector
