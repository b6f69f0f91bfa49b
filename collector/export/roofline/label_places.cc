#include "collector/export/roofline/label_places.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ranktap::collector {
namespace {

constexpr int kDirections = 16;
constexpr int kRings = 24;
constexpr double kRing = 8;         // the distance between two of them
constexpr double kGap = 3;          // between a mark and its label
constexpr double kCoverCost = 0.7;  // of a square unit of what is avoided, in units of distance
constexpr double kMostCover = 120;
constexpr double kCrossingCost = 160;  // of a leader over another label
constexpr int kLeaderPieces = 12;

bool Within(const Box& box, const Box& frame) {
  return box.left >= frame.left && box.right <= frame.right && box.top >= frame.top &&
         box.bottom <= frame.bottom;
}

bool Holds(const Box& box, double x, double y) {
  return x > box.left && x < box.right && y > box.top && y < box.bottom;
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
    } else if (std::string_view("ijl.,:;'|! ").find(c) != std::string_view::npos) {
      ems += 0.36;
    } else if (std::string_view("ftr()[]-/").find(c) != std::string_view::npos) {
      ems += 0.44;
    } else {
      ems += c == 'm' || c == 'w' || c == '%' ? 0.98 : 0.63;
    }
  }
  return ems * font_size;
}

bool LabelPlaces::IsFree(const Box& box) const {
  return std::ranges::none_of(taken_, [&](const Box& one) { return Overlap(box, one) > 0; });
}

bool LabelPlaces::IsAvoided(const Box& box) const {
  return std::ranges::any_of(avoided_, [&](const Box& one) { return Overlap(box, one) > 0; });
}

bool LabelPlaces::CrossesTaken(double x, double y, const Box& label) const {
  const double to_x = std::clamp(x, label.left, label.right),
               to_y = std::clamp(y, label.top, label.bottom);
  for (int i = 0; i <= kLeaderPieces; ++i) {
    const double part = static_cast<double>(i) / kLeaderPieces;
    const double at_x = x + (to_x - x) * part, at_y = y + (to_y - y) * part;
    if (std::ranges::any_of(taken_, [&](const Box& one) { return Holds(one, at_x, at_y); })) {
      return true;
    }
  }
  return false;
}

bool LabelPlaces::TakeIfFree(const Box& box) {
  if (!IsFree(box)) return false;
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
      if (!IsFree(box)) continue;
      double covered = 0;
      for (const Box& one : avoided_) covered += Overlap(box, one);
      const bool crosses = ring > 0 && CrossesTaken(x, y, box);
      const double cost =
          ring * kRing + std::min(covered * kCoverCost, kMostCover) + (crosses ? kCrossingCost : 0);
      if (cost >= best_cost) continue;
      best_cost = cost;
      best = box;
    }
  }
  if (best) taken_.push_back(*best);
  return best;
}

}  // namespace ranktap::collector
