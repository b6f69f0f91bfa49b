// How samples of Python stacks travel: marks in one domain whose payload is lines, each an array of
// JSON. Old traces are read with these texts, so none may change.
#pragma once

#include <cstdint>
#include <string_view>

namespace ranktap::proto {

inline constexpr std::string_view kSampleDomain = "ranktap.sample";

// A code object, told before the first frame that has it: [its number, "file", "function"]. A
// collector that came later is told again, with new numbers.
inline constexpr std::string_view kSampledCodesMark = "codes";
// A place in a stack, told before the first sample that has it: [its number, its caller's, code,
// line]. Numbers begin at 1; caller 0: the outermost that was read; line 0: it has none.
inline constexpr std::string_view kSampledFramesMark = "frames";
// Of another process, which the traced one started and read: [thread, its process]. Told before the
// first sample of the thread.
inline constexpr std::string_view kSampledChildrenMark = "children";
// A thread was found at one place in one state each time that it was looked at: [thread, frame,
// state, looks, start, end, CPU time in ns]. Times are the host clock's ticks; the first is where
// the look before ended. Frame 0: the stack changed each time it was read.
inline constexpr std::string_view kSamplesMark = "samples";

enum class SampleState : uint8_t { kOnCpu = 1, kWaits = 2, kWantsGil = 3 };

}  // namespace ranktap::proto
