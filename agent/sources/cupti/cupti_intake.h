// Turns CUPTI's completed buffers into events, losses with a counter, or nothing, where a record is
// of no call that anybody wants.
// Runs on: the drain thread; kernels() on whoever gives up waiting for it.  May not: arm or disarm.
#pragma once

#include <cstdint>
#include <optional>

#include "agent/core/arena.h"
#include "agent/core/writer.h"
#include "agent/sources/cupti/cupti_api.h"
#include "agent/sources/cupti/cupti_buffers.h"
#include "agent/sources/cupti/cupti_doubts.h"
#include "agent/sources/cupti/cupti_kernel_count.h"
#include "agent/sources/cupti/cupti_records.h"
#include "agent/sources/cupti/cupti_session.h"
#include "agent/sources/cupti/cupti_window.h"

namespace ranktap::agent::cupti {

class Intake {
 public:
  Intake(const LoadedApi& loaded, const std::optional<Session>& session, BufferPool& buffers)
      : loaded_(loaded), session_(session), buffers_(buffers) {}

  // While no buffer is out: the version decides how records are read.
  void MakeReader(Arena& names) { reader_.emplace(loaded_.version, names); }
  // The drain thread's; without one nothing is taken.
  void SetWriter(ThreadState* writer) { writer_ = writer; }
  bool has_writer() const { return writer_ != nullptr; }

  void TakeCompleted(const Doubts& doubts);

  const RecordReader& reader() const { return *reader_; }
  uint64_t TakeUntimed() { return reader_->TakeUntimed(); }
  uint64_t events() const { return writer_ == nullptr ? 0 : writer_->produced(); }
  Window& window() { return window_; }
  KernelCount& kernels() { return kernels_; }

 private:
  void TakeBuffer(const BufferPool::Buffer& buffer);
  void CountDiscarded(const BufferPool::Buffer& buffer);
  void CountDropped(void* context);
  void EmitRecord(const Record& record);
  [[nodiscard]] bool CountKernel(const Record& record);
  bool IsOfAGap(const Record& record) const;

  const LoadedApi& loaded_;
  const std::optional<Session>& session_;
  BufferPool& buffers_;
  ThreadState* writer_ = nullptr;
  std::optional<RecordReader> reader_;
  Window window_;
  KernelCount kernels_;
};

}  // namespace ranktap::agent::cupti
