// Contexts, streams and events of the simulated devices, and the machine that owns them.
//
// Everything here is guarded by MachineLock(), but for `id`, `device` and other const members.
// Handles of the CUDA API are pointers to these objects; As*() check them and give null for a
// stranger's. Objects are never freed (a program may use a stale handle: it gets an error, not a
// crash).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "tests/fakes/machine/work.h"

namespace ranktap::standin {

struct Graph;
struct GraphNode;
struct Stream;

inline constexpr uint32_t kContextMagic = 0x63747831;
inline constexpr uint32_t kStreamMagic = 0x73747231;
inline constexpr uint32_t kEventMagic = 0x65767431;

struct Context {
  uint32_t magic = kContextMagic;
  uint32_t id = 0;
  uint32_t device = 0;
  bool primary = false;
  bool alive = false;
  uint32_t references = 0;
  unsigned flags = 0;
  uint32_t next_stream_id = 13;  // what real traces show for the first stream of a program
  Stream* legacy = nullptr;
  std::vector<Stream*> streams;     // without the legacy one
  std::vector<Stream*> per_thread;  // index: see PerThreadStream
};

struct Capture {
  Graph* graph = nullptr;
  Stream* origin = nullptr;
  uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool invalidated = false;
  bool graph_is_ours = true;  // false: the program's own graph (BeginCaptureToGraph)
  std::vector<Stream*> members;
};

struct Stream {
  uint32_t magic = kStreamMagic;
  uint32_t id = 0;
  Context* context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  bool alive = true;
  int32_t thread_id = 0;             // of a per-thread default stream
  uint64_t tail_ns = 0;              // when the last work given to it ends
  std::deque<uint64_t> outstanding;  // ends of what was submitted
  Capture* capture = nullptr;
  std::vector<GraphNode*> capture_tail;  // what the next captured node depends on

  bool is_legacy() const { return context->legacy == this; }
  bool blocking() const { return (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

struct Event {
  uint32_t magic = kEventMagic;
  uint32_t id = 0;
  Context* context = nullptr;
  unsigned flags = 0;
  bool alive = true;
  bool recorded = false;
  uint64_t time_ns = 0;
  uint64_t sync_id = 0;  // of the latest record
  Stream* stream = nullptr;
  Capture* capture = nullptr;  // recorded in a capture: what a wait joins
  std::vector<GraphNode*> capture_tail;
};

std::mutex& MachineLock();

bool Initialized();
void SetInitialized();
uint32_t DeviceCount();
const char* DeviceName(uint32_t device);

Context* AsContext(CUcontext handle);
// Null and the special handles resolve in the current thread's context; `per_thread` is what 0
// means.
Stream* AsStream(CUstream handle);
Event* AsEvent(CUevent handle);

Context* CreateContext(uint32_t device, unsigned flags, bool primary);
Context* PrimaryContext(uint32_t device);
void SetPrimaryContext(uint32_t device, Context* context);
// Announces the context and its default stream. Without the lock.
void AnnounceContext(const Context& context);
void DestroyContext(Context* context);

Stream* CreateStream(Context* context, unsigned flags, int priority);
Resource DescribeStream(const Stream& stream, ResourceChange change);
Resource DescribeContext(const Context& context, ResourceChange change);
const std::vector<Context*>& AllContexts();

Event* CreateEvent(Context* context, unsigned flags);

// The moment from which `stream` could start something new. Under the lock.
uint64_t ReadyAt(const Stream& stream);
// Everything given to the context so far ends at. Under the lock.
uint64_t ContextTail(const Context& context);

}  // namespace ranktap::standin
