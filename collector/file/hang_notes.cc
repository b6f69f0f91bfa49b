#include "collector/file/hang_notes.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "collector/file/json.h"
#include "collector/file/owned_file.h"
#include "collector/file/printable.h"
#include "proto/redact.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostNotes = 16, kMostBytes = 16 << 20, kMostRanks = 4096;

std::string TextIn(const Json& object, const char* key) {
  std::string text = object.TextOf(key);
  proto::RedactText(text);
  return Printable(text);
}

std::vector<uint32_t> RanksIn(const Json& object, const char* key) {
  std::vector<uint32_t> ranks;
  const Json& member = object[key];
  if (!member.is_array()) return ranks;
  for (const Json& rank : member) {
    if (rank.is_number_unsigned() && rank.get<uint64_t>() <= UINT32_MAX &&
        ranks.size() < kMostRanks) {
      ranks.push_back(rank.get<uint32_t>());
    }
  }
  return ranks;
}

std::optional<HangCalls> CallsIn(const Json& object) {
  const Json& member = object["calls"];
  HangCalls calls{.cause = TextIn(member, "cause"),
                  .ranks = TextIn(member, "ranks"),
                  .finding = TextIn(member, "finding"),
                  .advice = TextIn(member, "advice")};
  calls.is_guilty = member["guilty"] == true;
  if (const Json& waiting = member["waiting"]; waiting.is_number_unsigned()) {
    calls.waiting = static_cast<uint32_t>(std::min<uint64_t>(waiting.get<uint64_t>(), kMostRanks));
  }
  return calls.finding.empty() ? std::nullopt : std::optional(std::move(calls));
}

}  // namespace

std::vector<HangNote> ReadHangNotes(const std::string& run) {
  namespace fs = std::filesystem;
  std::vector<std::string> folders;
  std::error_code error;
  for (fs::directory_iterator entry(run, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with("hang-")) folders.push_back(entry->path());
  }
  std::ranges::sort(folders, std::greater());
  if (folders.size() > kMostNotes) folders.resize(kMostNotes);
  std::vector<HangNote> notes;
  for (const std::string& folder : folders) {
    const Result<std::string> text = ReadRegularFile(folder + "/hang.json", kMostBytes);
    if (!text) continue;
    const Json object = ParseJson(*text);
    if (!object.is_object()) continue;
    HangNote note{.directory = folder,
                  .sentence = TextIn(object, "sentence"),
                  .advice = TextIn(object, "advice"),
                  .cause = TextIn(object, "cause"),
                  .waiting = RanksIn(object, "waiting"),
                  .awaited = RanksIn(object, "awaited"),
                  .calls = CallsIn(object)};
    if (const Json& time = object["realtime_ns"]; time.is_number_unsigned()) {
      note.realtime_ns = time.get<uint64_t>();
    }
    if (!note.sentence.empty()) notes.push_back(std::move(note));
  }
  return notes;
}

std::string CollectiveWord(std::string_view function) {
  std::string name;
  bool is_start = true;
  for (const char c : function) {
    if (c == '_') {
      is_start = true;
      continue;
    }
    name += is_start ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    is_start = false;
  }
  return name;
}

}  // namespace ranktap::collector
