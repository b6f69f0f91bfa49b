// Activity buffers: requested from the client on the thread that needs one, filled record by
// record, handed back by a worker thread once every record in them is complete.
//
// A record takes its place when the work is submitted and is complete when the work ends. A buffer
// goes back by itself when it is full and complete; cuptiActivityFlushAll(0) hands back what is
// complete, full or not; a forced flush hands back everything, with end 0 in what still runs. The
// client gets them LATE_US afterwards, on another thread; with 0 a flush waits for that.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace ranktap::standin {

// A record of the newest layout; what goes into the buffer is its first RecordSize(kind) bytes.
struct Record {
  uint32_t kind;
  const void* data;
  size_t data_bytes;
  // Offsets of the record's times, 0 where it has none, and when it will be complete.
  size_t start_offset = 0;
  size_t end_offset = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

void WriteRecord(const Record& record);

void SetBufferCallbacks(CUpti_BuffersCallbackRequestFunc request,
                        CUpti_BuffersCallbackCompleteFunc complete);
bool HaveBufferCallbacks();
void SetPerThreadBuffers(bool per_thread);
bool PerThreadBuffers();
void SetBuffersZeroed(bool zeroed);
bool BuffersZeroed();
void FlushBuffers(bool forced);
// Milliseconds; 0 stops the periodic hand-over.
void SetFlushPeriod(uint32_t period_ms);
size_t TakeDroppedRecords();

}  // namespace ranktap::standin
