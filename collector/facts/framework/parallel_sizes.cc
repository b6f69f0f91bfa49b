#include "collector/facts/framework/parallel_sizes.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

namespace ranktap::collector {
namespace {

enum class Use { kUnsaid, kData, kModel, kMixed };

std::set<std::string> Words(const std::string& text) {
  std::set<std::string> words;
  std::string word;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!word.empty()) {
      words.insert(std::move(word));
      word.clear();
    }
  }
  return words;
}

bool HasAny(const std::set<std::string>& words, std::initializer_list<const char*> wanted) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [&words](const char* word) { return words.contains(word); });
}

// Megatron's groups of experts, and its parts and sums of others, say nothing about the batch.
Use UseOf(const ProcessGroup& group) {
  const std::set<std::string> words = Words(group.description);
  if (HasAny(words, {"expert", "ep", "moe", "embedding", "partial", "intra", "inter", "amax"})) {
    return Use::kMixed;
  }
  const bool data = HasAny(words, {"data", "dp", "ddp", "fsdp", "hsdp", "replicate", "shard"});
  const bool model = HasAny(words, {"tp", "tensor", "pp", "pipeline", "pipe", "cp", "context", "sp",
                                    "sequence", "model"});
  if (data && model) return Use::kMixed;
  return data ? Use::kData : model ? Use::kModel : Use::kUnsaid;
}

// This rank and all that groups of this use connect it with; 0: there is no such group.
int64_t Connected(const Run& run, uint32_t rank, Use use) {
  std::set<std::vector<uint32_t>> groups;
  for (const Trace& trace : run.traces) {
    for (const ProcessGroup& group : trace.process_groups) {
      if (UseOf(group) == use) groups.insert(group.ranks);
    }
  }
  std::set<uint32_t> members = {rank};
  for (size_t before = 0; before != members.size();) {
    before = members.size();
    for (const std::vector<uint32_t>& group : groups) {
      const bool meets = std::any_of(group.begin(), group.end(),
                                     [&members](uint32_t of) { return members.contains(of); });
      if (meets) members.insert(group.begin(), group.end());
    }
  }
  return groups.empty() ? 0 : static_cast<int64_t>(members.size());
}

int64_t WorldOf(const Run& run, const Trace& trace) {
  int64_t world = static_cast<int64_t>(run.traces.size());
  if (trace.info.world_size) world = std::max<int64_t>(world, *trace.info.world_size);
  for (const ProcessGroup& group : trace.process_groups) {
    world = std::max<int64_t>(world, group.size);
  }
  return world;
}

std::set<std::vector<uint32_t>> SmallerGroups(const Run& run, int64_t world) {
  std::set<std::vector<uint32_t>> smaller;
  for (const Trace& trace : run.traces) {
    for (const ProcessGroup& group : trace.process_groups) {
      if (group.size > 1 && group.size < world) smaller.insert(group.ranks);
    }
  }
  return smaller;
}

}  // namespace

ParallelSizes SizeParallelism(const Run& run, const Trace& trace, int64_t given) {
  ParallelSizes sizes{.world = WorldOf(run, trace)};
  const auto answer = [&sizes](int64_t data, const char* known) {
    sizes.data = data;
    sizes.known = known;
    return sizes;
  };
  if (given > 0) return answer(given, "given");
  if (sizes.world == 1) return answer(1, "one rank");
  const uint32_t rank = trace.info.rank.value_or(0);
  if (const int64_t data = Connected(run, rank, Use::kData); data > 0 && sizes.world % data == 0) {
    return answer(data, "groups that say data parallel");
  }
  if (const int64_t model = Connected(run, rank, Use::kModel);
      model > 0 && sizes.world % model == 0) {
    return answer(sizes.world / model, "the world by groups that say model parallel");
  }
  if (trace.process_groups.empty()) return answer(0, "no process groups were told");
  const std::set<std::vector<uint32_t>> smaller = SmallerGroups(run, sizes.world);
  if (smaller.empty()) return answer(sizes.world, "no group is smaller than the world");
  const size_t each = smaller.begin()->size();
  const auto of_each_size = [each](const std::vector<uint32_t>& group) {
    return group.size() == each;
  };
  // A grid: each rank is in a row and in a column of it.
  if (static_cast<int64_t>(each * each) == sizes.world && smaller.size() == 2 * each &&
      std::all_of(smaller.begin(), smaller.end(), of_each_size)) {
    return answer(static_cast<int64_t>(each), "nameless groups that make a square grid");
  }
  return answer(0, "groups do not say what they are for");
}

}  // namespace ranktap::collector
