// The reader of torch.profiler's JSON, plain and gzip: a small file of every kind of event, edited.
#include <iterator>

#include "collector/import/importers.h"
#include "tests/fuzz/compressed.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/text_edits.h"

using namespace ranktap;

namespace {

constexpr std::string_view kSample = R"json({
"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "H100", "totalGlobalMem": 8}],
"distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8, "pg_count": 1,
 "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "ranks": [0, 1]}]},
"baseTimeNanoseconds": 1727390616000000000, "displayTimeUnit": "ms", "traceName": "a\u0041\ud83d\ude00",
"traceEvents": [
{"ph": "M", "name": "thread_name", "pid": 10, "tid": 11, "args": {"name": "thread 11 (main)"
}
},
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 10, "tid": 11, "ts": 100.5, "dur": 90,
 "args": {"External id": 1, "ev_idx": 0}},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 10, "tid": 11, "ts": 101.125, "dur": 20.25,
 "args": {"External id": 2, "Sequence number": 5, "Fwd thread id": 0, "Record function id": 0,
 "Concrete Inputs": ["", "[1, 2]"], "Input type": ["float", "Scalar"], "Input Dims": [[8, 16], []],
 "Input Strides": [[16, 1], []], "Call stack": "a.py(3): f;b.py(4): g"}},
{"ph": "X", "cat": "python_function", "name": "a.py(3): f", "pid": 10, "tid": 11, "ts": 101, "dur": 30,
 "args": {"Python id": 7, "Python parent id": null, "Python module id": 0}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10, "tid": 11, "ts": 105, "dur": 3,
 "args": {"External id": 2, "cbid": 211, "correlation": 77}},
{"ph": "X", "cat": "kernel", "name": "gemm<float>(float*)", "pid": 0, "tid": 7, "ts": 110, "dur": 6.5,
 "args": {"External id": 2, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 77,
 "registers per thread": 32, "shared memory": 0, "blocks per SM": 1.5, "warps per SM": 8, "grid": [1, 2, 3],
 "block": [128, 1, 1], "est. achieved occupancy %": 25, "graph id": 2, "graph node id": 9,
 "Collective name": "allreduce", "In msg nelems": 4096, "Out msg nelems": 4096, "Group size": 2,
 "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": 3}},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 120,
 "dur": 1, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 78, "bytes": 65536,
 "memory bandwidth (GB/s)": 12.5}},
{"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 122, "dur": 1,
 "args": {"device": 0, "stream": 7, "correlation": 79, "bytes": 64}},
{"ph": "X", "cat": "cuda_sync", "name": "Stream Wait Event", "pid": 0, "tid": 7, "ts": 123, "dur": 0,
 "args": {"cuda_sync_kind": "Stream Wait Event", "stream": 7, "correlation": 80, "wait_on_stream": 9,
 "wait_on_cuda_event_record_corr_id": 76, "wait_on_cuda_event_id": 2, "device": 0, "context": 1}},
{"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#1", "pid": 0, "tid": 7, "ts": 110, "dur": 14,
 "args": {"External id": 1}},
{"ph": "s", "id": 77, "pid": 10, "tid": 11, "ts": 105, "cat": "ac2g", "name": "ac2g"},
{"ph": "f", "id": 77, "pid": 0, "tid": 7, "ts": 110, "cat": "ac2g", "name": "ac2g", "bp": "e"},
{"ph": "s", "id": 5, "pid": 10, "tid": 11, "ts": 101, "cat": "fwdbwd", "name": "fwdbwd"},
{"ph": "f", "id": 5, "pid": 10, "tid": 12, "ts": 140, "cat": "fwdbwd", "name": "fwdbwd", "bp": "e"},
{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 10, "tid": 11, "ts": 103,
 "args": {"Total Reserved": 4096, "Total Allocated": 512, "Bytes": -512, "Addr": 139872,
 "Device Id": 0, "Device Type": 1, "Ev Idx": 4}},
{"ph": "C", "name": "GPU 0 Utilization", "pid": 0, "tid": 0, "ts": 104, "args": {"utilization": 0.5}},
{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch", "ts": 99, "dur": 99}
], "traceEnd": 1})json";

constexpr std::string_view kWords[] = {"{",
                                       "}",
                                       "[",
                                       "]",
                                       "\"",
                                       ":",
                                       ",",
                                       "\\",
                                       "\\u0000",
                                       "\\ud800",
                                       "null",
                                       "true",
                                       "-1",
                                       "1e308",
                                       "-1e308",
                                       "1e-320",
                                       "NaN",
                                       "Infinity",
                                       "0.1234567",
                                       "-0",
                                       "\xff\xfe",
                                       "4294967296",
                                       "-2147483649",
                                       "18446744073709551615",
                                       "9223372036854775807",
                                       "\"ts\": ",
                                       "\"dur\": ",
                                       "\"cat\": \"kernel\"",
                                       "\"ph\": \"X\"",
                                       "\"args\": {",
                                       "\"traceEvents\": [",
                                       "\"stream\": ",
                                       "\"correlation\": ",
                                       "\"rank\": ",
                                       "\"baseTimeNanoseconds\": ",
                                       "[[[[[[[[",
                                       "{\"a\":{\"a\":{\"a\":"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::MemoryFile file;
  fuzz::Input input(data, size);
  const auto mode = input.Take<uint8_t>();
  std::string text;
  if ((mode & 7) == 0) {
    text = input.TakeText(size);  // what the fuzzer makes up itself
  } else if ((mode & 7) == 1) {
    static const std::string packed = fuzz::Compressed(std::string(kSample));
    text = packed;
    fuzz::Edit(&input, std::as_writable_bytes(std::span(text)));
  } else {
    text = kSample;
    fuzz::EditText(&input, kWords, &text);
    if ((mode & 8) != 0) text = fuzz::Compressed(text);
  }
  (void)collector::ImportKineto(file.Write(text)).ok();
  return 0;
}
