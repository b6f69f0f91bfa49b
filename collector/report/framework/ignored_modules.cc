#include "collector/report/framework/ignored_modules.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace ranktap::collector {
namespace {

// MODULE_HOOK_MAPPING in deepspeed/profiling/flops_profiler/profiler.py (0.19.8).
constexpr std::array<std::string_view, 6> kCountedWhole = {"RNN",     "GRU",      "LSTM",
                                                           "RNNCell", "LSTMCell", "GRUCell"};

struct Own {
  int64_t flops = 0, macs = 0;
};

class Ignoring {
 public:
  Ignoring(const std::vector<std::string>& types, ModelProfile* profile)
      : types_(types), modules_(profile->modules), own_(modules_.size()) {
    for (size_t i = 0; i < modules_.size(); ++i) {
      own_[i] = {modules_[i].flops, modules_[i].macs};
      for (const uint32_t child : modules_[i].children) {
        own_[i].flops -= modules_[child].flops;
        own_[i].macs -= modules_[child].macs;
      }
    }
  }

  void Ignore() {
    if (modules_.empty()) return;
    Hand(0, nullptr);
    for (size_t i = modules_.size(); i-- > 0;) Sum(&modules_[i], own_[i]);
  }

 private:
  bool IsIgnored(const ModuleProfile& module) const {
    return std::ranges::count(types_, module.type) != 0;
  }

  // Children come after their parents; no model is so deep that this does not fit the stack.
  void Hand(uint32_t index, Own* around) {
    const ModuleProfile& module = modules_[index];
    Own& own = own_[index];
    if (IsIgnored(module)) {
      if (around != nullptr && std::ranges::count(kCountedWhole, module.type) == 0) {
        around->flops += own.flops;
        around->macs += own.macs;
      }
      own = {};
    } else {
      around = &own;
    }
    for (const uint32_t child : module.children) Hand(child, around);
  }

  void Sum(ModuleProfile* module, const Own& own) {
    module->flops = own.flops;
    module->macs = own.macs;
    int64_t children_ns = 0;
    for (const uint32_t child : module->children) {
      module->flops += modules_[child].flops;
      module->macs += modules_[child].macs;
      children_ns += modules_[child].forward_ns;
    }
    if (IsIgnored(*module)) module->forward_ns = children_ns;
  }

  const std::vector<std::string>& types_;
  std::vector<ModuleProfile>& modules_;
  std::vector<Own> own_;
};

}  // namespace

std::optional<Failure> IgnoreModules(const std::vector<std::string>& types, ModelProfile* profile) {
  std::set<std::string> known;
  for (const ModuleProfile& module : profile->modules) known.insert(module.type);
  for (const std::string& type : types) {
    if (known.contains(type)) continue;
    return Failure{fmt::format("the model has no module of the type '{}'; it has {}", type,
                               fmt::join(known, ", "))};
  }
  Ignoring(types, profile).Ignore();
  return std::nullopt;
}

}  // namespace ranktap::collector
