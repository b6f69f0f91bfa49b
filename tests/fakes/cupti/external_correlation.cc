#include "tests/fakes/cupti/external_correlation.h"

#include <vector>

#include "tests/fakes/cupti/activity_buffers.h"
#include "tests/fakes/cupti/refusal.h"
#include "tests/fakes/cupti/subscription.h"

namespace ranktap::standin {
namespace {

std::vector<uint64_t>& Stack(int kind) {
  static thread_local std::vector<uint64_t> stacks[CUPTI_EXTERNAL_CORRELATION_KIND_SIZE];
  return stacks[kind];
}

bool Valid(CUpti_ExternalCorrelationKind kind) {
  return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID &&
         kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

}  // namespace

void WriteExternalCorrelations(uint32_t correlation) {
  if (!KindEnabled(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
  for (int kind = 1; kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE; ++kind) {
    if (Stack(kind).empty()) continue;
    CUpti_ActivityExternalCorrelation record{};
    record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    record.externalKind = static_cast<CUpti_ExternalCorrelationKind>(kind);
    record.externalId = Stack(kind).back();
    record.correlationId = correlation;
    WriteRecord({CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, &record, sizeof record});
  }
}

}  // namespace ranktap::standin

using namespace ranktap::standin;

extern "C" {

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                   uint64_t id) {
  RETURN_UNLESS_ADMITTED();
  if (!Valid(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  Stack(kind).push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                  uint64_t* last) {
  RETURN_UNLESS_ADMITTED();
  if (!Valid(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  if (Stack(kind).empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  if (last != nullptr) *last = Stack(kind).back();
  Stack(kind).pop_back();
  return CUPTI_SUCCESS;
}

}  // extern "C"
