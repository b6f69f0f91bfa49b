// Numbers for what samples name: code objects, and places in stacks. Each is told once, before the
// first sample that needs it.
// Runs on: the sampler.  May not: allocate but for a code object that is new.
#pragma once

#include <cstdint>
#include <span>

#include "agent/sources/samples/sample_lines.h"
#include "proto/python_frames.h"

namespace ranktap::agent::samples {

class StackNumbers {
 public:
  // Memory for the tables, untouched until it is used. False: there is none.
  [[nodiscard]] bool Map();

  // The place of the innermost of `frames` (innermost first); 0: there are none. `space`: of one
  // memory, an address names the same in it.
  uint32_t NumberOf(std::span<const proto::PythonFrame> frames, proto::PythonFrames& reader,
                    SampleLines& lines, int32_t space = 0);

  // A collector that came later has heard nothing: all is told anew, under new numbers.
  void Forget();
  // One that keeps the last part only has forgotten: each is told anew before it is needed.
  void TellAgain() { ++telling_; }

 private:
  static constexpr uint32_t kMostCodes = 1 << 14, kCodeSlots = 2 * kMostCodes;
  static constexpr uint32_t kMostPlaces = 1 << 16, kPlaceSlots = 2 * kMostPlaces;

  struct Code {
    proto::PythonCode code;
    int32_t space;
    uint32_t number;  // 0: a free slot
    uint32_t told;    // in which telling
  };
  struct Place {
    uint32_t parent, code, offset;
    uint32_t number;  // 0: a free slot
    uint32_t told;
  };
  struct Tables {
    Code codes[kCodeSlots];
    Place places[kPlaceSlots];
  };

  uint32_t CodeNumber(const proto::PythonCode& code, int32_t space, proto::PythonFrames& reader,
                      SampleLines& lines);
  uint32_t LineOf(const proto::PythonFrame& frame, proto::PythonFrames& reader);
  void Tell(const proto::PythonCode& code, uint32_t number, proto::PythonFrames& reader,
            SampleLines& lines);

  Tables* tables_ = nullptr;
  uint32_t codes_ = 0, places_ = 0;  // in the tables now
  uint32_t last_code_ = 0, last_place_ = 0;
  uint32_t telling_ = 1;
  proto::PythonCodeText text_;
};

}  // namespace ranktap::agent::samples
