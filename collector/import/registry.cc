// The table of contents of collector/import. One line a format.
#include <algorithm>

#include "collector/import/byte_source.h"
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
    {"torch.cuda.memory snapshot", ".pickle .pkl", &LooksLikeMemorySnapshot,
     &One<&ImportMemorySnapshot>, TraceOrigin::kMemory},
    {"torch memory timeline", ".json .json.gz .raw.gz", &LooksLikeMemoryTimeline,
     &One<&ImportMemoryTimeline>, TraceOrigin::kMemory},
    {"torch.profiler", ".json .json.gz", &LooksLikeKineto, &One<&ImportKineto>,
     TraceOrigin::kKineto},
};

}  // namespace

std::span<const Importer> AllImporters() { return kImporters; }

const Importer* ImporterOf(const std::string& path) {
  Result<ByteSource> source = ByteSource::Open(path);
  if (!source) return nullptr;
  char bytes[kHeadBytes] = {};
  const std::string_view head(bytes, source->Read(bytes, sizeof bytes));
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
