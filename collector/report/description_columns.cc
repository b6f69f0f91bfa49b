#include "collector/report/description_columns.h"

#include <cmath>
#include <cstdint>

namespace ranktap::collector {

Cell DescriptionCell(const Description& of, double Description::*number, Unit unit, size_t least) {
  if (of.count < least) return {};
  if (unit != Unit::kNs) return of.*number;
  return static_cast<int64_t>(std::llround(of.*number));
}

}  // namespace ranktap::collector
