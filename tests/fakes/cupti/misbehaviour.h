// The ways in which the stand-in's records can be wrong on request (see cupti_script.h).
#pragma once

#include <cstdint>
#include <vector>

#include "tests/fakes/cupti/activity_buffers.h"

namespace ranktap::standin {

// Decides what becomes of one record on its way into a buffer.
class Misbehaviour {
 public:
  explicit Misbehaviour(const Record& record);
  bool drops() const { return drops_; }
  bool counts_drop() const { return counts_drop_; }
  // The record to write: the one given, or a changed copy that lives as long as this object.
  const Record& record() const { return record_; }

 private:
  void ChangeTimes(uint64_t start_ns, uint64_t end_ns);

  Record record_;
  std::vector<uint8_t> copy_;
  bool drops_ = false;
  bool counts_drop_ = false;
};

// REENTER_ON_REQUEST: an API callback raised while the client is asked for a buffer.
void RaiseWithinRequest();

}  // namespace ranktap::standin
