// Places for labels in a picture such that none lies on another.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace ranktap::collector {

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};
// The area that both cover.
double Overlap(const Box& a, const Box& b);

// The size of a text in the picture's units: measured on DejaVu Sans, the widest of the usual
// sans-serif fonts.
double TextWidth(std::string_view text, double font_size);

class LabelPlaces {
 public:
  explicit LabelPlaces(const Box& frame) : frame_(frame) {}

  // Nothing may lie on it.
  void Take(const Box& box) { taken_.push_back(box); }
  // The same, and true, where nothing is yet; else it changes nothing.
  bool TakeIfFree(const Box& box);
  // A label may lie on it where it finds no other place.
  void Avoid(const Box& box) { avoided_.push_back(box); }

  bool IsAvoided(const Box& box) const;

  // The nearest free place of a label of this size around (x, y), whose own mark has this radius;
  // it is taken then. nullopt: there is none within the frame.
  std::optional<Box> Find(double x, double y, double radius, double width, double height);

 private:
  bool IsFree(const Box& box) const;
  // The line from (x, y) to the nearest point of the label would lie on another label.
  bool CrossesTaken(double x, double y, const Box& label) const;

  Box frame_;
  std::vector<Box> taken_, avoided_;
};

}  // namespace ranktap::collector
