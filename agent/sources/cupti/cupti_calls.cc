// The table of what is recorded.
// Runs on: the arming thread.  May not: run in a hook.
#include "agent/sources/cupti/cupti_calls.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace ranktap::agent::cupti {
namespace {

struct Rule {
  std::string_view begins;  // after "cuda" or "cu"
  CallGroup group;
};

// The first that fits wins. StreamQuery is not among them: a pair of callbacks a poll, to count it.
constexpr std::array<Rule, 23> kRules = {{
    {"LaunchHostFunc", CallGroup::kHostFunction},
    {"Launch", CallGroup::kLaunch},
    {"GraphLaunch", CallGroup::kGraphLaunch},
    {"DeviceSynchronize", CallGroup::kSynchronize},
    {"CtxSynchronize", CallGroup::kSynchronize},
    {"ThreadSynchronize", CallGroup::kSynchronize},
    {"StreamSynchronize", CallGroup::kSynchronize},
    {"Memcpy", CallGroup::kCopy},
    {"Memset", CallGroup::kCopy},
    {"MemPrefetch", CallGroup::kCopy},
    {"Malloc", CallGroup::kAllocate},
    {"Free", CallGroup::kAllocate},
    {"HostAlloc", CallGroup::kAllocate},
    {"HostRegister", CallGroup::kAllocate},
    {"HostUnregister", CallGroup::kAllocate},
    {"MemAlloc", CallGroup::kAllocate},
    {"MemFree", CallGroup::kAllocate},
    {"MemHost", CallGroup::kAllocate},
    {"MemCreate", CallGroup::kAllocate},
    {"MemMap", CallGroup::kAllocate},
    {"MemUnmap", CallGroup::kAllocate},
    {"MemRelease", CallGroup::kAllocate},
    {"Event", CallGroup::kEvent},
}};

EventArguments ArgumentsOf(std::string_view rest) {
  if (rest.starts_with("EventRecord")) return EventArguments::kEventStream;
  if (rest.starts_with("EventSynchronize") || rest.starts_with("EventQuery")) {
    return EventArguments::kEvent;
  }
  if (rest.starts_with("StreamWaitEvent")) return EventArguments::kStreamEvent;
  return EventArguments::kNone;
}

}  // namespace

std::string_view PlainName(std::string_view name) {
  const size_t at = name.rfind("_v");
  // "_v7000" is CUPTI's; "_v2" belongs to the driver function's name.
  constexpr size_t kShortestVersion = 4;
  if (at == std::string_view::npos || name.size() - at - 2 < kShortestVersion) return name;
  const std::string_view digits = name.substr(at + 2);
  return std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c) != 0; })
             ? name.substr(0, at)
             : name;
}

Call ClassifyCall(std::string_view name) {
  Call call;
  // nvcc 13 compiles <<<>>> to __cudaLaunchKernel.
  std::string_view rest = name.substr(std::min(name.find_first_not_of('_'), name.size()));
  if (rest.starts_with("cuda")) {
    rest.remove_prefix(4);
  } else if (rest.starts_with("cu")) {
    rest.remove_prefix(2);
  } else {
    return call;
  }
  call.arguments = ArgumentsOf(rest);
  if (call.arguments != EventArguments::kNone) {
    call.group = CallGroup::kEvent;
    return call;
  }
  const auto rule = std::ranges::find_if(
      kRules, [rest](const Rule& candidate) { return rest.starts_with(candidate.begins); });
  if (rule != kRules.end()) call.group = rule->group;
  return call;
}

std::vector<Call> CallTable::BuildDomain(const Api& api, Domain domain, Arena& names) {
  // 13.0 knows 523 and 807 ids; a library may have gaps.
  constexpr uint32_t kMostIds = 4096;
  constexpr uint32_t kLongestGap = 64;
  std::vector<Call> calls(1);
  for (uint32_t cbid = 1, unnamed = 0; cbid < kMostIds && unnamed < kLongestGap; ++cbid) {
    const char* given = nullptr;
    if (api.GetCallbackName(static_cast<uint32_t>(domain), cbid, &given) != kSuccess ||
        given == nullptr) {
      ++unnamed;
      continue;
    }
    unnamed = 0;
    const std::string_view name = PlainName(given);
    Call call = ClassifyCall(name);
    if (call.group == CallGroup::kNone) continue;
    const proto::ApiFunctionEntry head{.domain = domain == Domain::kRuntime
                                                     ? proto::ApiDomain::kRuntime
                                                     : proto::ApiDomain::kDriver,
                                       .cbid = cbid};
    std::vector<std::byte> content(sizeof(head) + name.size());
    std::memcpy(content.data(), &head, sizeof(head));
    std::memcpy(content.data() + sizeof(head), name.data(), name.size());
    call.api = names.Intern(proto::EntryKind::kApiFunction, content);
    calls.resize(cbid + 1);
    calls[cbid] = call;
  }
  return calls;
}

void CallTable::Build(const Api& api, Arena& names) {
  runtime_ = BuildDomain(api, Domain::kRuntime, names);
  driver_ = BuildDomain(api, Domain::kDriver, names);
}

}  // namespace ranktap::agent::cupti
