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
// state, looks, start, end, CPU time in ns, time in ns in which it was ready to run and no CPU ran
// it, major faults, bytes read from storage]. Times are the host clock's ticks; the first is where
// the look before ended. Frame 0: the stack changed each time it was read. Older agents wrote seven
// numbers.
inline constexpr std::string_view kSamplesMark = "samples";
// A look met a thread in a call that reads a file from storage: [thread, time of the look, "path"].
inline constexpr std::string_view kReadFilesMark = "reads";
// The main thread of a process that the traced one started was in a call that reads a file: [its
// number, time of the look, ns since it was asked before, "path"].
inline constexpr std::string_view kChildReadsMark = "child reads";

// What the kernel counted of a thread between two times: [thread, start, end, CPU time in ns, time
// in ns ready to run without a CPU, major faults, bytes read from storage, bytes written to it,
// switches that it asked for, switches that it did not, CPU it ran on last, "name"].
inline constexpr std::string_view kThreadCountsMark = "threads";
// And of the machine and the process: [start, end, time in ns that control groups were throttled,
// their periods that were, CPU time in ns of threads that Python does not know, their time ready to
// run, how many of these were read, all threads, microseconds of pressure on CPUs, on devices, on
// memory, CPUs allowed to the main thread, HostLack bits, "these CPUs"].
inline constexpr std::string_view kHostCountsMark = "host";
// Where there are several NUMA nodes: [node, "its CPUs"].
inline constexpr std::string_view kNodesMark = "nodes";
// And of each device for graphics or computing on the PCI bus: [its node, "0000:3b:00.0"].
inline constexpr std::string_view kBusNodesMark = "bus nodes";
// No lines: codes, frames, children and nodes that were told before this are told again, under the
// same numbers, before a sample that comes after this needs them. Written for --keep.
inline constexpr std::string_view kSampledAgainMark = "again";

inline constexpr uint32_t kUnknownCpu = UINT32_MAX;

// What the system does not show.
enum HostLack : uint32_t {
  kLacksQueue = 1,        // schedstat
  kLacksFaults = 2,       // stat
  kLacksBytes = 4,        // io
  kLacksSwitches = 8,     // status
  kLacksThrottling = 16,  // cpu.stat
  kLacksPressure = 32,    // /proc/pressure
};

enum class SampleState : uint8_t { kOnCpu = 1, kWaits = 2, kWantsGil = 3 };

}  // namespace ranktap::proto
