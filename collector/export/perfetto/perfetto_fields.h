// Field numbers of Perfetto's public schema (protos/perfetto/trace), only those that we write.
#pragma once

#include <protozero/pbf_writer.hpp>
#include <protozero/types.hpp>
#include <string_view>

namespace ranktap::collector::perfetto {

using Tag = protozero::pbf_tag_type;

inline void AddText(protozero::pbf_writer* writer, Tag tag, std::string_view text) {
  writer->add_bytes(tag, text.data(), text.size());
}

inline constexpr Tag kTracePacket = 1;

namespace packet {
inline constexpr Tag kClockSnapshot = 6, kTimestamp = 8, kSequence = 10, kTrackEvent = 11,
                     kInternedData = 12, kSequenceFlags = 13, kRenderStage = 53,
                     kTimestampClock = 58, kDefaults = 59, kTrackDescriptor = 60,
                     kFirstOnSequence = 87;
inline constexpr int kStateCleared = 1, kNeedsState = 2;
}  // namespace packet

namespace defaults {
inline constexpr Tag kTrackEvent = 11, kTimestampClock = 58;
}
namespace snapshot {
inline constexpr Tag kClocks = 1, kPrimaryClock = 2;
inline constexpr Tag kClockId = 1, kTimestamp = 2, kIsIncremental = 3;
inline constexpr int kRealtime = 1, kSequenceClock = 64;
}  // namespace snapshot

namespace descriptor {
inline constexpr Tag kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8,
                     kChildOrdering = 11, kSiblingRank = 12;
inline constexpr int kExplicitOrder = 3;
}  // namespace descriptor
namespace process {
inline constexpr Tag kPid = 1, kCommandLine = 2, kName = 6, kLabels = 8;
}
namespace thread {
inline constexpr Tag kPid = 1, kTid = 2, kName = 5;
}
namespace counter {
inline constexpr Tag kUnit = 3;
inline constexpr int kCount = 2, kBytes = 3;
}  // namespace counter

namespace event {
inline constexpr Tag kCategories = 3, kAnnotations = 4, kType = 9, kName = 10, kTrack = 11,
                     kCounterValue = 30, kDoubleCounterValue = 44, kFlows = 47, kEndingFlows = 48,
                     kGpuCorrelation = 3000;
inline constexpr Tag kSubmissions = 1;  // of GpuCorrelation: render_stage_submission_event_ids
inline constexpr int kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4;
}  // namespace event
namespace annotation {
inline constexpr Tag kNameId = 1, kUint = 3, kInt = 4, kDouble = 5, kString = 6, kName = 10,
                     kArray = 12;
}
namespace interned {
inline constexpr Tag kCategories = 1, kEventNames = 2, kAnnotationNames = 3, kGraphicsContexts = 23,
                     kGpuSpecifications = 24, kComputeKernels = 1000;
inline constexpr Tag kId = 1, kText = 2;
inline constexpr Tag kContextPid = 2, kContextApi = 3;  // of InternedGraphicsContext
inline constexpr Tag kSpecificationCategory = 4;        // of InternedGpuRenderStageSpecification
inline constexpr Tag kDemangled = 3;                    // of InternedComputeKernel
inline constexpr int kCuda = 4, kOtherStage = 0, kComputeStage = 2;
}  // namespace interned

namespace stage {  // GpuRenderStageEvent
inline constexpr Tag kEventId = 1, kDuration = 2, kContext = 5, kExtraData = 6, kGpu = 11,
                     kQueue = 13, kStage = 14, kKernel = 19, kNameId = 20, kLaunch = 21;
inline constexpr Tag kExtraName = 1, kExtraValue = 2;
inline constexpr Tag kGrid = 1, kBlock = 2, kArguments = 3;  // of the launch
inline constexpr Tag kArgumentName = 2, kArgumentUint = 4;
}  // namespace stage

}  // namespace ranktap::collector::perfetto
