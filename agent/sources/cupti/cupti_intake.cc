// Takes completed buffers apart.
// Runs on: see cupti_intake.h.  May not: arm or disarm.
#include "agent/sources/cupti/cupti_intake.h"

#include "agent/core/announcements.h"
#include "agent/core/contain.h"
#include "agent/core/sanitizers.h"
#include "agent/sources/cupti/cupti_callbacks.h"
#include "agent/sources/cupti/cupti_encode.h"

namespace ranktap::agent::cupti {
namespace {

bool IsDeviceWork(Kind kind) {
  return kind == Kind::kConcurrentKernel || kind == Kind::kMemcpy || kind == Kind::kMemcpy2 ||
         kind == Kind::kMemset || kind == Kind::kGraphTrace;
}

}  // namespace

void Intake::TakeCompleted(const Doubts& doubts) {
  BufferPool::Buffer* buffer = buffers_.TakeCompleted();
  if (buffer != nullptr) reader_->SetBounds(doubts.PossibleTimes(Doubts::ReadClocks()));
  while (buffer != nullptr) {
    BufferPool::Buffer* next = buffer->next;
    if (buffer->discard) {
      CountDiscarded(*buffer);
    } else {
      TakeBuffer(*buffer);
    }
    CountDropped(buffer->context);
    buffers_.Recycle(*buffer);
    buffer = next;
  }
  if (const uint32_t shared = buffers_.TakeSharedCompleted(); shared != 0) {
    writer_->Lose(proto::Loss::kCuptiUnreadable, shared);
  }
}

void Intake::TakeBuffer(const BufferPool::Buffer& buffer) {
  constexpr Result kErrorMaxLimit = 12;  // CUPTI's way to say: no more records
  Record* record = nullptr;
  Result result;
  while ((result = loaded_.api.ActivityGetNextRecord(buffer.data, buffer.valid_bytes, &record)) ==
         kSuccess) {
    (void)Contain(false, [this, record] { return EmitRecord(*record), true; });
  }
  if (result != kErrorMaxLimit) writer_->Lose(proto::Loss::kCuptiUnreadable);
}

void Intake::CountDiscarded(const BufferPool::Buffer& buffer) {
  Record* record = nullptr;
  while (loaded_.api.ActivityGetNextRecord(buffer.data, buffer.valid_bytes, &record) == kSuccess) {
    if (CountKernel(*record)) writer_->Lose(proto::Loss::kCuptiDiscarded);
  }
}

void Intake::CountDropped(void* context) {
  size_t dropped = 0;
  // Between windows it is nobody's loss; asked all the same, since CUPTI then begins at 0.
  if (loaded_.api.ActivityGetNumDroppedRecords(context, 0, &dropped) == kSuccess && dropped != 0 &&
      !session_->parked()) {
    writer_->Lose(proto::Loss::kCuptiDropped, dropped);
    kernels_.Add(dropped);
  }
}

void Intake::EmitRecord(const Record& record) {
  switch (record.kind) {
    case Kind::kDevice:
      HideFromLeakCheck(reinterpret_cast<const DeviceRecord&>(record).name);
      return Announce(proto::FrameType::kAmend, true,
                      EncodeDevice(reinterpret_cast<const DeviceRecord&>(record)));
    case Kind::kRuntime:
    case Kind::kDriver:
      return;  // only on so that CUPTI gives correlation ids (EnableApiRecords)
    default:
      break;
  }
  if (IsDeviceWork(record.kind)) writer_->CountEndedWork();
  if (!window_.Takes(record)) return;
  if (!CountKernel(record)) return;
  if (!reader_->Emit(record, *writer_)) writer_->Lose(proto::Loss::kCuptiUnknown);
}

// Launched after the last window and before this one: nobody has seen its call.
bool Intake::IsOfAGap(const Record& record) const {
  if (!session_->was_parked()) return false;
  const uint32_t first = g_callbacks.first_correlation.load(std::memory_order_relaxed);
  return window_.IsAfterPark(record, session_->parked() ? 0 : first);
}

bool Intake::CountKernel(const Record& record) {
  return !IsOfAGap(record) && kernels_.Count(record, loaded_.version);
}

}  // namespace ranktap::agent::cupti
