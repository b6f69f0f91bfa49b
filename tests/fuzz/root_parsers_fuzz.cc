// What a collector that runs as root parses of a client's or a user's making, beside frames, traces
// and rings, which have fuzzers of their own: hellos, requests, checkpoints, indexes, run.json, and
// text on its way to a terminal. The first byte says which.
#include "collector/file/checkpoint_parts.h"
#include "collector/file/printable.h"
#include "collector/file/run_info.h"
#include "collector/file/trace_state.h"
#include "collector/ingest/control/level_plans.h"
#include "collector/ingest/net/handshake.h"
#include "tests/fuzz/edits.h"

using namespace ranktap;
using namespace ranktap::collector;

namespace {

void Require(bool ok) {
  if (!ok) __builtin_trap();
}

void FuzzHello(std::span<const std::byte> bytes) {
  v1::Hello hello, merged;
  if (!ParseHello(bytes, &hello)) return;
  (void)RefusalOf(hello);
  TraceState::Amend(hello, &merged);
  TraceState::Amend(hello, &merged);
  Require(HasFewItems(merged));
  TraceInfo info;
  Describe(hello, &info);
}

void FuzzRequest(std::span<const std::byte> bytes) {
  v1::ControlRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  LevelPlans plans(v1::LEVEL_DORMANT, v1::LEVEL_KERNELS);
  const auto change = plans.ChangeFor(request, 1000);
  if (!change) return;
  plans.Order(request.job(), *change, 1000);
  (void)plans.LevelAt(request.job(), 2000);
}

void FuzzCheckpoint(std::span<const std::byte> bytes) {
  TraceState state, again;
  if (!state.Restore(bytes)) return;
  const std::string checkpoint = state.EncodeCheckpoint({});
  Require(again.Restore(std::as_bytes(std::span(checkpoint))));
  Require(again.EncodeCheckpoint({}) == checkpoint);
}

void FuzzRunInfo(const std::string& text) {
  const Result<RunInfo> info = ParseRunInfo(text, "run.json");
  if (!info) return;
  const std::string json = ToJson(*info);
  Require(ParseRunInfo(json, "run.json").ok());
}

void FuzzText(const std::string& text) {
  const std::string clean = Printable(text);
  Require(Printable(clean) == clean);
  for (const char byte : clean) Require(static_cast<uint8_t>(byte) >= 0x20 && byte != 0x7f);
  const std::string cell = PrintableCell(text);
  Require(cell.empty() || std::string_view("=+-@").find(cell[0]) == std::string_view::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      FuzzHello(bytes);
      break;
    case 1:
      FuzzRequest(bytes);
      break;
    case 2:
      FuzzCheckpoint(bytes);
      break;
    case 3:
      (void)ForEachBlockEntry(bytes, [](std::string_view) {});
      break;
    case 4:
      FuzzRunInfo(text);
      break;
    default:
      FuzzText(text);
  }
  return 0;
}
