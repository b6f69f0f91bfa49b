#include "collector/export/roofline/label_places.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ranktap::collector {
namespace {

constexpr int kDirections = 16;
constexpr int kRings = 24;
constexpr double kRing = 8;       // the distance between two of them
constexpr double kGap = 3;        // between a mark and its label
constexpr double kCoverCost = 1;  // of a square unit of what is avoided, in units of distance
constexpr double kMostCover = 40;

bool Within(const Box& box, const Box& frame) {
  return box.left >= frame.left && box.right <= frame.right && box.top >= frame.top &&
         box.bottom <= frame.bottom;
}

}  // namespace

double Overlap(const Box& a, const Box& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  return width > 0 && height > 0 ? width * height : 0;
}

double TextWidth(std::string_view text, double font_size) {
  double ems = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0U) == 0x80) continue;  // not the first of its character
    if (byte >= 0x80) {
      ems += 1;
    } else if (byte >= 'A' && byte <= 'Z') {
      ems += 0.72;
    } else {
      ems += c == 'm' || c == 'w' || c == '%' ? 0.95 : 0.61;
    }
  }
  return ems * font_size;
}

bool LabelPlaces::TakeIfFree(const Box& box) {
  if (std::ranges::any_of(taken_, [&](const Box& one) { return Overlap(box, one) > 0; })) {
    return false;
  }
  taken_.push_back(box);
  return true;
}

std::optional<Box> LabelPlaces::Find(double x, double y, double radius, double width,
                                     double height) {
  std::optional<Box> best;
  double best_cost = HUGE_VAL;
  for (int ring = 0; ring < kRings && ring * kRing < best_cost; ++ring) {
    for (int direction = 0; direction < kDirections; ++direction) {
      // Right of the mark first: there the eye looks.
      const double angle = 2 * std::numbers::pi * direction / kDirections;
      const double away = radius + kGap + ring * kRing;
      const double centre_x = x + std::cos(angle) * (away + width / 2);
      const double centre_y = y + std::sin(angle) * (away + height / 2);
      const Box box = {centre_x - width / 2, centre_y - height / 2, centre_x + width / 2,
                       centre_y + height / 2};
      if (!Within(box, frame_)) continue;
      if (std::ranges::any_of(taken_, [&](const Box& one) { return Overlap(box, one) > 0; })) {
        continue;
      }
      double covered = 0;
      for (const Box& one : avoided_) covered += Overlap(box, one);
      const double cost = ring * kRing + std::min(covered * kCoverCost, kMostCover);
      if (cost >= best_cost) continue;
      best_cost = cost;
      best = box;
    }
  }
  if (best) taken_.push_back(*best);
  return best;
}

}  // namespace ranktap::collector
