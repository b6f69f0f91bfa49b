#include "tests/fakes/cupti/record_shape.h"

#include <cupti.h>
#include <stddef.h>
#include <string.h>

#include <algorithm>

namespace ranktap::standin {
namespace {

// Ids of threads, contexts, streams and calls are longer here than in the records of old.
struct KnownField {
  uint32_t kind;
  int id;
  size_t from, size_there, size;
};

#define FIELD(kind, id, type, member, size) \
  { CUPTI_ACTIVITY_KIND_##kind, id, offsetof(type, member), sizeof(type::member), size }

constexpr KnownField kKnown[] = {
    FIELD(CONCURRENT_KERNEL, 0, CUpti_ActivityKernel10, kind, 4),
    FIELD(CONCURRENT_KERNEL, 7, CUpti_ActivityKernel10, start, 8),
    FIELD(CONCURRENT_KERNEL, 8, CUpti_ActivityKernel10, end, 8),
    FIELD(CONCURRENT_KERNEL, 10, CUpti_ActivityKernel10, deviceId, 4),
    FIELD(CONCURRENT_KERNEL, 11, CUpti_ActivityKernel10, contextId, 8),
    FIELD(CONCURRENT_KERNEL, 12, CUpti_ActivityKernel10, streamId, 8),
    FIELD(CONCURRENT_KERNEL, 22, CUpti_ActivityKernel10, correlationId, 8),
    FIELD(CONCURRENT_KERNEL, 24, CUpti_ActivityKernel10, name, 8),
    FIELD(CONCURRENT_KERNEL, 31, CUpti_ActivityKernel10, graphNodeId, 8),
    FIELD(CONCURRENT_KERNEL, 33, CUpti_ActivityKernel10, graphId, 4),
    FIELD(RUNTIME, 0, CUpti_ActivityAPI, kind, 4),
    FIELD(RUNTIME, 1, CUpti_ActivityAPI, cbid, 4),
    FIELD(RUNTIME, 2, CUpti_ActivityAPI, start, 8),
    FIELD(RUNTIME, 3, CUpti_ActivityAPI, end, 8),
    FIELD(RUNTIME, 4, CUpti_ActivityAPI, processId, 4),
    FIELD(RUNTIME, 5, CUpti_ActivityAPI, threadId, 8),
    FIELD(RUNTIME, 6, CUpti_ActivityAPI, correlationId, 8),
    FIELD(RUNTIME, 7, CUpti_ActivityAPI, returnValue, 4),
    FIELD(SYNCHRONIZATION, 0, CUpti_ActivitySynchronization2, kind, 4),
    FIELD(SYNCHRONIZATION, 1, CUpti_ActivitySynchronization2, type, 4),
    FIELD(SYNCHRONIZATION, 2, CUpti_ActivitySynchronization2, start, 8),
    FIELD(SYNCHRONIZATION, 3, CUpti_ActivitySynchronization2, end, 8),
    FIELD(SYNCHRONIZATION, 4, CUpti_ActivitySynchronization2, correlationId, 8),
};

#undef FIELD

const KnownField* Find(uint32_t kind, int id) {
  uint32_t same = kind;
  if (kind == CUPTI_ACTIVITY_KIND_DRIVER) same = CUPTI_ACTIVITY_KIND_RUNTIME;
  const auto* found = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const auto& field) {
    return field.kind == same && field.id == id;
  });
  return found == std::end(kKnown) ? nullptr : found;
}

}  // namespace

bool RecordShape::Choose(uint32_t kind, const second_api::FieldSelection& selection) {
  *this = {};
  if (selection.count == 0 || selection.fields[0] != 0) return false;
  size_t at = 0;
  for (size_t i = 0; i < selection.count; ++i) {
    const KnownField* known = Find(kind, selection.fields[i]);
    if (known == nullptr) {
      *this = {};
      return false;
    }
    at = (at + known->size - 1) / known->size * known->size;
    fields_.push_back({known->id, known->from, known->size_there, at, known->size});
    layout_entries_.push_back(
        {.field = known->id, .offset = at, .size = known->size, .alignment = known->size});
    at += known->size;
  }
  bytes_ = (at + 7) / 8 * 8;
  return true;
}

second_api::RecordLayout RecordShape::layout() const {
  return {.entries = const_cast<second_api::FieldLayout*>(layout_entries_.data()),
          .count = layout_entries_.size(),
          .record_bytes = bytes_};
}

Record RecordShape::Shape(const Record& record, std::vector<uint8_t>& into) const {
  into.assign(bytes_, 0);
  Record shaped = record;
  shaped.start_offset = shaped.end_offset = 0;
  const auto* from = static_cast<const uint8_t*>(record.data);
  for (const Field& field : fields_) {
    memcpy(into.data() + field.at, from + field.from, field.size_there);
    if (record.end_offset == 0) continue;
    if (field.from == record.start_offset) shaped.start_offset = field.at;
    if (field.from == record.end_offset) shaped.end_offset = field.at;
  }
  shaped.data = into.data();
  shaped.data_bytes = into.size();
  return shaped;
}

}  // namespace ranktap::standin
