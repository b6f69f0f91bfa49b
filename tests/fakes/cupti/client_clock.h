// The clock that the client has given with cuptiActivityRegisterTimestampCallback: the times of a
// record are put into it as its buffer is handed over, by a line through the clocks' readings.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ranktap::standin {

// An activity kind has been enabled: a clock that comes now comes late.
void NoteActivity();

// In a full buffer. Nothing, without a clock.
void PutIntoClientClock(uint8_t* buffer, size_t valid_bytes);

// False: the client has given none.
bool ReadClientClock(uint64_t* now);

}  // namespace ranktap::standin
