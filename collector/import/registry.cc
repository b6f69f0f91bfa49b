// The table of contents of collector/import. One line a format.
#include <algorithm>

#include "collector/import/byte_source.h"
#include "collector/import/foreign_tools.h"
#include "collector/import/importer.h"
#include "collector/import/importers.h"

namespace ranktap::collector {
namespace {

template <Result<Trace> (*import)(const std::string&)>
Result<std::vector<Trace>> One(const std::string& path) {
  Result<Trace> trace = import(path);
  if (!trace) return Failure{trace.message()};
  std::vector<Trace> traces;
  traces.push_back(std::move(*trace));
  return traces;
}

constexpr Importer kImporters[] = {
    {"nsys", ".sqlite", &LooksLikeNsys, &ImportNsys, TraceOrigin::kNsys},
    // Its files end with their rank: "nccl_trace_rank_13".
    {"PyTorch's Flight Recorder", "0 1 2 3 4 5 6 7 8 9 .json .pickle .pkl",
     &LooksLikeFlightRecorder, &One<&ImportFlightRecorder>, TraceOrigin::kExecution},
    {"torch.cuda.memory snapshot", ".pickle .pkl", &LooksLikeMemorySnapshot,
     &One<&ImportMemorySnapshot>, TraceOrigin::kMemory},
    {"Chakra", ".et .et.gz", &LooksLikeChakra, &One<&ImportChakra>, TraceOrigin::kChakra},
    {"torch execution trace", ".json .json.gz", &LooksLikeExecutionTrace,
     &One<&ImportExecutionTrace>, TraceOrigin::kExecution},
    {"torch memory timeline", ".json .json.gz .raw.gz", &LooksLikeMemoryTimeline,
     &One<&ImportMemoryTimeline>, TraceOrigin::kMemory},
    {"torch.profiler", ".json .json.gz", &LooksLikeKineto, &ImportKineto, TraceOrigin::kKineto},
};

// The first bytes behind any white space.
std::string HeadOf(ByteSource* source) {
  constexpr size_t kMostSpace = 1 << 20;
  std::string head(kHeadBytes, '\0');
  for (size_t skipped = 0; skipped < kMostSpace; skipped += kHeadBytes) {
    head.resize(source->Read(head.data(), kHeadBytes));
    if (head.empty() || head.find_first_not_of(" \t\r\n") != head.npos) break;
    head.resize(kHeadBytes);
  }
  if (const size_t first = head.find_first_not_of(" \t\r\n"); first != head.npos && first > 0) {
    head.erase(0, first);
    const size_t kept = head.size();
    head.resize(kHeadBytes);
    head.resize(kept + source->Read(head.data() + kept, kHeadBytes - kept));
  }
  return head;
}

struct OtherKind {
  std::string_view head, says;
};
using std::string_view_literals::operator""sv;
constexpr OtherKind kOtherKinds[] = {
    {"PK\x03\x04"sv, "is a zip archive: unpack it and name the file inside"},
    {"BZh"sv, "is compressed with bzip2: bunzip2 it first"},
    {"\xfd"
     "7zXZ"sv,
     "is compressed with xz: unxz it first"},
    {"\x28\xb5\x2f\xfd"sv, "is compressed with zstd: unzstd it first"},
    {"\x1f\x8b"sv, "is compressed with gzip twice: gunzip it once"},
    {"\xff\xfe"sv, "is UTF-16: iconv -f UTF-16 -t UTF-8 it first"},
    {"\xfe\xff"sv, "is UTF-16: iconv -f UTF-16 -t UTF-8 it first"},
    {"{\0"sv, "is UTF-16: iconv -f UTF-16LE -t UTF-8 it first"},
    {"[\0"sv, "is UTF-16: iconv -f UTF-16LE -t UTF-8 it first"},
    {"\0{"sv, "is UTF-16: iconv -f UTF-16BE -t UTF-8 it first"},
    {"\0["sv, "is UTF-16: iconv -f UTF-16BE -t UTF-8 it first"},
    {"version https://git-lfs"sv, "is a pointer of git LFS, not the file: git lfs pull"},
};

std::string_view OtherKindOf(std::string_view head) {
  const auto found = std::ranges::find_if(
      kOtherKinds, [head](const OtherKind& kind) { return head.starts_with(kind.head); });
  return found == std::end(kOtherKinds) ? std::string_view() : found->says;
}

}  // namespace

std::string WhyNoImporterReads(const std::string& path) {
  Result<ByteSource> source = ByteSource::Open(path);
  if (!source) return "";
  const std::string head = HeadOf(&*source);
  const ForeignTool* const tool = ForeignToolOfFile(head, path);
  return tool != nullptr ? WhyNotRead(*tool) : std::string(OtherKindOf(head));
}

const Importer* ImporterOf(const std::string& path) {
  Result<ByteSource> source = ByteSource::Open(path);
  if (!source) return nullptr;
  const std::string head = HeadOf(&*source);
  if (!OtherKindOf(head).empty()) return nullptr;  // UTF-16 begins with a bracket, too
  if (ForeignToolOfFile(head, path) != nullptr) return nullptr;
  const auto found = std::ranges::find_if(
      kImporters, [head](const Importer& importer) { return importer.recognises(head); });
  return found == std::end(kImporters) ? nullptr : found;
}

bool HasImportedEnding(std::string_view name) {
  for (const Importer& importer : kImporters) {
    std::string_view endings = importer.endings;
    while (!endings.empty()) {
      const size_t end = std::min(endings.find(' '), endings.size());
      if (name.ends_with(endings.substr(0, end))) return true;
      endings.remove_prefix(std::min(end + 1, endings.size()));
    }
  }
  return false;
}

}  // namespace ranktap::collector
