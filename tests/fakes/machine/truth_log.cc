#include "tests/fakes/machine/truth_log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "tests/fakes/machine/call.h"
#include "tests/fakes/machine/clock.h"
#include "tests/fakes/machine/script.h"
#include "tests/fakes/machine/truth_file.h"

namespace ranktap::standin {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::string, uint64_t> refusals;
  std::map<std::string, uint64_t> violations;
};

struct ProcessLog {
  int pid = getpid();
  TruthFile* file = nullptr;
  Counts counts;
};

void AppendHead(TruthFile& file) {
  char command[256] = "";
  if (FILE* source = fopen("/proc/self/comm", "re")) {
    if (fgets(command, sizeof command, source) != nullptr) command[strcspn(command, "\n\"\\")] = 0;
    fclose(source);
  }
  char line[512];
  snprintf(line, sizeof line,
           "{\"type\":\"process\",\"version\":1,\"pid\":%d,\"parent\":%d,\"command\":\"%s\","
           "\"raw_ns\":%lu,\"device_ns\":%lu}",
           getpid(), getppid(), command, RawNow(), DeviceNow());
  file.Append(line);
}

ProcessLog* OpenLog() {
  ProcessLog* log = new ProcessLog;
  const char* directory = Setting("TRUTH");
  if (directory == nullptr || directory[0] == 0) return log;
  TruthFile* opened = new TruthFile(directory);
  if (!opened->usable()) return log;
  AppendHead(*opened);
  log->file = opened;
  return log;
}

// Leaked: calls come after static destructors too. A fork child has a log of its own, made at its
// first violation: its parent's locks may be held for ever there, and its parent's file is not its
// own.
ProcessLog& Log() {
  if (InForkedChild()) {
    static std::atomic<ProcessLog*> of_child{nullptr};
    ProcessLog* log = of_child.load();
    if (log == nullptr || log->pid != getpid()) of_child.store(log = OpenLog());
    return *log;
  }
  static ProcessLog* of_process = OpenLog();
  return *of_process;
}

TruthFile* File() { return Log().file; }
Counts& GetCounts() { return Log().counts; }

__attribute__((format(printf, 1, 2))) void Line(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char* text = nullptr;
  int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  if (TruthFile* file = File()) file->Append({text, static_cast<size_t>(length)});
  free(text);
}

const char* KindText(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kUnknown:
      return "unknown";
    case MemoryKind::kPageable:
      return "pageable";
    case MemoryKind::kPinned:
      return "pinned";
    case MemoryKind::kDevice:
      return "device";
    case MemoryKind::kArray:
      return "array";
    case MemoryKind::kManaged:
      return "managed";
    case MemoryKind::kDeviceStatic:
      return "device_static";
  }
  return "unknown";
}

// The part that every device line has. The string has no braces.
std::string Where(const Operation& operation) {
  char text[512];
  snprintf(text, sizeof text,
           "\"device\":%u,\"context\":%u,\"stream\":%u,\"correlation\":%u,\"serial\":%lu,"
           "\"queued_ns\":%lu,\"start_ns\":%lu,\"end_ns\":%lu,\"start_raw_ns\":%lu,"
           "\"end_raw_ns\":%lu,\"graph\":%u,\"graph_node\":%lu",
           operation.device, operation.context_id, operation.stream_id, operation.correlation,
           operation.serial, operation.queued_ns, operation.start_ns, operation.end_ns,
           RawOfDevice(operation.start_ns), RawOfDevice(operation.end_ns), operation.graph_id,
           operation.graph_node_id);
  return text;
}

void LogKernel(const Operation& operation) {
  const KernelShape& shape = operation.kernel;
  Line(
      "{\"type\":\"kernel\",\"name\":\"%s\",%s,\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],"
      "\"cluster\":[%u,%u,%u],\"static_shared\":%u,\"dynamic_shared\":%u,\"registers\":%u,"
      "\"local_per_thread\":%u,\"cooperative\":%s}",
      shape.name, Where(operation).c_str(), shape.grid[0], shape.grid[1], shape.grid[2],
      shape.block[0], shape.block[1], shape.block[2], shape.cluster[0], shape.cluster[1],
      shape.cluster[2], shape.static_shared, shape.dynamic_shared, shape.registers,
      shape.local_per_thread, shape.cooperative ? "true" : "false");
}

void LogCopy(const Operation& operation) {
  const CopyShape& shape = operation.copy;
  Line(
      "{\"type\":\"%s\",%s,\"bytes\":%lu,\"from\":\"%s\",\"to\":\"%s\",\"from_device\":%u,"
      "\"to_device\":%u,\"from_context\":%u,\"to_context\":%u,\"async\":%s}",
      shape.peer ? "peer_copy" : "copy", Where(operation).c_str(), shape.bytes,
      KindText(shape.source), KindText(shape.target), shape.source_device, shape.target_device,
      shape.source_context, shape.target_context, shape.async ? "true" : "false");
}

}  // namespace

bool TruthIsLogged() {
  // Opening a file is a cancellation point, which a CUDA call is not.
  static thread_local int logged = -1;
  if (logged < 0) {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    logged = File() != nullptr;
    pthread_setcancelstate(before, nullptr);
  }
  return logged != 0;
}

void LogCall(const ApiCall& call, uint64_t exit_raw_ns, int status) {
  if (!TruthIsLogged()) return;
  Line(
      "{\"type\":\"api\",\"domain\":\"%s\",\"cbid\":%u,\"name\":\"%s\",\"thread\":%d,"
      "\"correlation\":%u,\"nested\":%s,\"enter_raw_ns\":%lu,\"exit_raw_ns\":%lu,\"status\":%d,"
      "\"symbol\":\"%s\"}",
      call.domain == ApiDomain::kDriver ? "driver" : "runtime", call.cbid, call.name,
      call.thread_id, call.correlation, call.nested ? "true" : "false", call.enter_raw_ns,
      exit_raw_ns, status, call.symbol == nullptr ? "" : call.symbol);
}

void LogOperation(const Operation& operation) {
  if (!TruthIsLogged()) return;
  switch (operation.kind) {
    case OperationKind::kKernel:
      LogKernel(operation);
      break;
    case OperationKind::kCopy:
      LogCopy(operation);
      break;
    case OperationKind::kMemset:
      Line("{\"type\":\"memset\",%s,\"bytes\":%lu,\"value\":%u,\"to\":\"%s\",\"async\":%s}",
           Where(operation).c_str(), operation.memset.bytes, operation.memset.value,
           KindText(operation.memset.kind), operation.memset.async ? "true" : "false");
      break;
    case OperationKind::kGraph:
      Line("{\"type\":\"graph_launch\",%s,\"source_graph\":%u,\"traced_at_instantiation\":%s}",
           Where(operation).c_str(), operation.graph_source_id,
           operation.graph_was_traced ? "true" : "false");
      break;
  }
}

void LogSynchronization(const Synchronization& sync) {
  if (!TruthIsLogged()) return;
  static const char* const kKinds[] = {"", "event", "stream_wait_event", "stream", "context"};
  Line(
      "{\"type\":\"synchronization\",\"kind\":\"%s\",\"context\":%u,\"stream\":%d,\"event\":%d,"
      "\"event_sync\":%lu,\"correlation\":%u,\"start_ns\":%lu,\"end_ns\":%lu,"
      "\"start_raw_ns\":%lu,\"end_raw_ns\":%lu}",
      kKinds[static_cast<int>(sync.kind)], sync.context_id, static_cast<int>(sync.stream_id),
      static_cast<int>(sync.event_id), sync.event_sync_id, sync.correlation, sync.start_ns,
      sync.end_ns, RawOfDevice(sync.start_ns), RawOfDevice(sync.end_ns));
}

void LogEventRecord(const EventRecord& record) {
  if (!TruthIsLogged()) return;
  Line(
      "{\"type\":\"event_record\",\"device\":%u,\"context\":%u,\"stream\":%u,\"event\":%u,"
      "\"event_sync\":%lu,\"correlation\":%u,\"device_ns\":%lu,\"raw_ns\":%lu}",
      record.device, record.context_id, record.stream_id, record.event_id, record.event_sync_id,
      record.correlation, record.device_ns, RawOfDevice(record.device_ns));
}

void LogMemory(const MemoryOperation& memory) {
  if (!TruthIsLogged()) return;
  Line(
      "{\"type\":\"memory\",\"operation\":\"%s\",\"kind\":\"%s\",\"address\":%lu,\"bytes\":%lu,"
      "\"device\":%u,\"context\":%u,\"stream\":%d,\"correlation\":%u,\"async\":%s,\"pool\":%lu,"
      "\"device_ns\":%lu,\"raw_ns\":%lu}",
      memory.allocation ? "allocate" : "free", KindText(memory.kind), memory.address, memory.bytes,
      memory.device, memory.context_id, static_cast<int>(memory.stream_id), memory.correlation,
      memory.async ? "true" : "false", memory.pool_address, memory.device_ns,
      RawOfDevice(memory.device_ns));
}

void LogPool(const PoolOperation& pool) {
  if (!TruthIsLogged()) return;
  static const char* const kChanges[] = {"", "created", "destroyed", "trimmed"};
  Line(
      "{\"type\":\"memory_pool\",\"operation\":\"%s\",\"address\":%lu,\"device\":%u,"
      "\"correlation\":%u,\"device_ns\":%lu}",
      kChanges[static_cast<int>(pool.change)], pool.address, pool.device, pool.correlation,
      pool.device_ns);
}

void LogResource(const Resource& resource) {
  if (!TruthIsLogged()) return;
  Line(
      "{\"type\":\"resource\",\"change\":%u,\"device\":%u,\"context\":%u,\"stream\":%u,"
      "\"priority\":%d,\"correlation\":%u,\"module\":%u,\"raw_ns\":%lu}",
      static_cast<unsigned>(resource.change), resource.device, resource.context_id,
      resource.stream_id, resource.stream_priority, resource.correlation, resource.module_id,
      RawNow());
}

void LogCompilation(const Compilation& compilation) {
  if (!TruthIsLogged()) return;
  Line(
      "{\"type\":\"jit\",\"device\":%u,\"correlation\":%u,\"thread\":%d,\"start_ns\":%lu,"
      "\"end_ns\":%lu}",
      compilation.device, compilation.correlation, compilation.thread_id, compilation.start_ns,
      compilation.end_ns);
}

void LogOverhead(const Overhead& overhead) {
  if (!TruthIsLogged()) return;
  static const char* const kKinds[] = {"module_loading", "lazy_function_loading",
                                       "command_buffer_full", "compiler"};
  Line(
      "{\"type\":\"overhead\",\"kind\":\"%s\",\"thread\":%d,\"correlation\":%u,\"start_ns\":%lu,"
      "\"end_ns\":%lu}",
      kKinds[static_cast<int>(overhead.kind)], overhead.thread_id, overhead.correlation,
      overhead.start_ns, overhead.end_ns);
}

void LogHostFunction(uint32_t stream_id, uint32_t context_id, uint32_t correlation,
                     uint64_t start_ns, uint64_t end_ns) {
  if (!TruthIsLogged()) return;
  Line(
      "{\"type\":\"host_function\",\"context\":%u,\"stream\":%u,\"correlation\":%u,"
      "\"start_ns\":%lu,\"end_ns\":%lu}",
      context_id, stream_id, correlation, start_ns, end_ns);
}

void LogSubscription(bool subscribed) {
  if (!TruthIsLogged()) return;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  Line("{\"type\":\"subscription\",\"subscribed\":%s,\"raw_ns\":%lu}",
       subscribed ? "true" : "false",
       static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec));
}

void LogRefusal(const char* function) {
  Counts& counts = GetCounts();
  bool first;
  {
    std::lock_guard lock(counts.mutex);
    first = counts.refusals[function]++ == 0;
  }
  if (!first) return;
  if (TruthIsLogged()) Line("{\"type\":\"refused\",\"name\":\"%s\"}", function);
  if (NumberSetting("VERBOSE", 0) != 0) {
    fprintf(stderr, "stand-in GPU: %s is not modelled: refused\n", function);
  }
}

void LogViolation(const char* what) {
  Counts& counts = GetCounts();
  bool first;
  {
    std::lock_guard lock(counts.mutex);
    first = counts.violations[what]++ == 0;
  }
  if (!first) return;
  if (TruthIsLogged()) Line("{\"type\":\"violation\",\"what\":\"%s\"}", what);
  // Only on request: the program's stderr must be what it is without us.
  if (NumberSetting("VERBOSE", 0) != 0) {
    fprintf(stderr, "stand-in GPU: contract broken: %s\n", what);
  }
}

void CloseTruth() {
  if (InForkedChild() || !TruthIsLogged()) return;
  Counts& counts = GetCounts();
  std::lock_guard lock(counts.mutex);
  for (const auto& [name, count] : counts.refusals) {
    Line("{\"type\":\"refusals\",\"name\":\"%s\",\"count\":%lu}", name.c_str(), count);
  }
  for (const auto& [what, count] : counts.violations) {
    Line("{\"type\":\"violations\",\"what\":\"%s\",\"count\":%lu}", what.c_str(), count);
  }
  Line("{\"type\":\"end\",\"raw_ns\":%lu,\"device_ns\":%lu}", RawNow(), DeviceNow());
  File()->Trim();
}

}  // namespace ranktap::standin
