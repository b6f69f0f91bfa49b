// Records of a client's own choice of fields (user-defined records), made of the newest layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/fakes/cupti/activity_buffers.h"
#include "tests/second_api.h"

namespace ranktap::standin {

class RecordShape {
 public:
  // False: a field that is not modelled, or the kind is not the first.
  bool Choose(uint32_t kind, const second_api::FieldSelection& selection);
  bool is_chosen() const { return !layout_entries_.empty(); }
  size_t bytes() const { return bytes_; }
  // Good as long as this is.
  second_api::RecordLayout layout() const;

  // The record in this shape, in `into`.
  Record Shape(const Record& record, std::vector<uint8_t>& into) const;

 private:
  struct Field {
    int id;
    size_t from, size_there;  // in the newest layout
    size_t at, size;
  };
  std::vector<Field> fields_;
  std::vector<second_api::FieldLayout> layout_entries_;
  size_t bytes_ = 0;
};

}  // namespace ranktap::standin
