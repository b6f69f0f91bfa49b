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
#include <memory>

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

// Into the buffers of everybody who wants it.
void WriteRecord(const Record& record);

// The buffers of one client: of the first API's, or of one subscriber of the second. Never deleted.
struct BufferSet;
BufferSet& FirstApiBuffers();
BufferSet& NewBufferSet();

// Of a subscriber of the second API.
class SecondCallbacks {
 public:
  virtual void Request(uint8_t** buffer, size_t* bytes, size_t* most_records) const = 0;
  // The shapes of the records in a buffer that is handed over now.
  virtual std::shared_ptr<const void> Shapes() const = 0;
  virtual void Complete(uint8_t* buffer, size_t bytes, size_t valid_bytes,
                        const std::shared_ptr<const void>& shapes) const = 0;

 protected:
  ~SecondCallbacks() = default;
};

// `bytes` of the record, whatever its kind's size is.
void WriteInto(BufferSet& buffers, const Record& record, size_t bytes);
void SetBufferCallbacks(CUpti_BuffersCallbackRequestFunc request,
                        CUpti_BuffersCallbackCompleteFunc complete);
// nullptr: nobody gets a buffer any more.
void SetBufferCallbacks(BufferSet& buffers, const SecondCallbacks* callbacks);
// Somebody has.
bool HaveBufferCallbacks();
void SetPerThreadBuffers(BufferSet& buffers, bool per_thread);
void SetBuffersZeroed(BufferSet& buffers, bool zeroed);
void CountDropped(BufferSet& buffers);
size_t TakeDroppedRecords(BufferSet& buffers);
// What the client has not got by now it will never get.
void DiscardBuffers(BufferSet& buffers);
void FlushBuffers(bool forced);
// Milliseconds; 0 stops the periodic hand-over.
void SetFlushPeriod(uint32_t period_ms);

}  // namespace ranktap::standin
