// The types of CUPTI's second API, as its headers have them from 13.3 on: the ones that the tree is
// built with are older. A client finds the functions by name.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace ranktap::second_api {

// cuptiSubscribe_v2's parameters; 13.0's end before `allow_multiple`.
struct SubscriberParams {
  size_t struct_size = offsetof(SubscriberParams, allow_multiple) + sizeof(uint8_t);
  const char* name = nullptr;
  char* old_name = nullptr;
  size_t old_name_bytes = 0;
  uint8_t allow_multiple = 0;
  uint8_t padding[7] = {};
};

// The fields that a record is made of, `*_FIELD_KIND` (0) first.
struct FieldSelection {
  size_t struct_size = sizeof(FieldSelection);
  size_t count = 0;
  int* fields = nullptr;
};

// 13.4 has one member more.
struct ActivityConfig {
  size_t struct_size = sizeof(ActivityConfig);
  FieldSelection selection;
};

struct FieldLayout {
  size_t struct_size = sizeof(FieldLayout);
  int field = 0;
  size_t offset = 0, size = 0, alignment = 0;
};

struct RecordLayout {
  size_t struct_size = sizeof(RecordLayout);
  FieldLayout* entries = nullptr;
  size_t count = 0;
  size_t record_bytes = 0;
};

struct RequestInfo {
  size_t struct_size = sizeof(RequestInfo);
};

struct CompleteInfo {
  size_t struct_size = sizeof(CompleteInfo);
  uint64_t thread = 0;
  RecordLayout** layouts = nullptr;
  size_t layout_count = 0;
};

using BufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* most_records,
                                 RequestInfo* info);
using BufferCompleted = void (*)(uint8_t* buffer, size_t size, size_t valid, CompleteInfo* info);

// Attributes that only this API has.
inline constexpr int kUserDefinedRecords = 11, kHardwareEvents = 13, kLatencyTimestamps = 15,
                     kGraphsWhole = 20, kThreadIdType = 21, kTimestampCallback = 22;

// Fields of the records of kernels, of calls and of waits.
inline constexpr int kKernelStart = 7, kKernelEnd = 8, kKernelCorrelation = 22, kKernelName = 24,
                     kKernelGraphNode = 31;
inline constexpr int kCallId = 1, kCallStart = 2, kCallEnd = 3, kCallCorrelation = 6;
inline constexpr int kWaitStart = 2, kWaitEnd = 3, kWaitCorrelation = 4;

}  // namespace ranktap::second_api
