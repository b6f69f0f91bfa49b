#include "tests/fakes/machine/script.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

extern char** environ;

namespace ranktap::standin {
namespace {

constexpr char kPrefix[] = "RANKTAP_STANDIN_";

struct ScriptedFailure {
  std::string function;
  int status;
  uint64_t successes_left;
};

struct ScriptedKernel {
  std::string part;
  uint64_t duration_ns;
};

class Script {
 public:
  // Leaked: the process may still call CUDA after static destructors have run.
  static Script& Get() {
    static Script* script = new Script;
    return *script;
  }

  const char* Find(const char* name) {
    std::lock_guard lock(mutex_);
    auto found = values_.find(name);
    return found == values_.end() ? nullptr : found->second->c_str();
  }

  void Change(const char* name, const char* value) {
    std::lock_guard lock(mutex_);
    if (value == nullptr) {
      values_.erase(name);
    } else {
      values_[name] = Keep(value);
    }
    Derive();
    generation_.fetch_add(1, std::memory_order_relaxed);
  }

  bool TakeFailure(const char* function, int* status) {
    if (!any_failure_.load(std::memory_order_relaxed)) return false;
    std::lock_guard lock(mutex_);
    for (ScriptedFailure& failure : failures_) {
      if (failure.function != function) continue;
      if (failure.successes_left > 0) {
        --failure.successes_left;
        return false;
      }
      *status = failure.status;
      return true;
    }
    return false;
  }

  bool KernelDuration(const char* name, uint64_t* duration_ns) {
    if (!any_kernel_.load(std::memory_order_relaxed)) return false;
    std::lock_guard lock(mutex_);
    for (const ScriptedKernel& kernel : kernels_) {
      if (std::strstr(name, kernel.part.c_str()) == nullptr) continue;
      *duration_ns = kernel.duration_ns;
      return true;
    }
    return false;
  }

  uint64_t generation() const { return generation_.load(std::memory_order_relaxed); }

 private:
  Script() {
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      const char* equals = std::strchr(*entry, '=');
      if (equals == nullptr || std::strncmp(*entry, kPrefix, sizeof kPrefix - 1) != 0) continue;
      values_[std::string(static_cast<const char*>(*entry) + sizeof kPrefix - 1, equals)] =
          Keep(equals + 1);
    }
    Derive();
  }

  const std::string* Keep(const char* value) { return &*texts_.insert(value).first; }

  static std::vector<std::string> Split(const std::string& text, char separator) {
    std::vector<std::string> parts(1);
    for (char c : text) {
      if (c == separator) {
        parts.emplace_back();
      } else {
        parts.back() += c;
      }
    }
    return parts;
  }

  void Derive() {
    failures_.clear();
    kernels_.clear();
    if (auto fail = values_.find("FAIL"); fail != values_.end()) {
      for (const std::string& text : Split(*fail->second, ',')) AddFailure(Split(text, ':'));
    }
    if (auto kernels = values_.find("KERNELS"); kernels != values_.end()) {
      for (const std::string& text : Split(*kernels->second, ',')) {
        std::vector<std::string> parts = Split(text, '=');
        if (parts.size() != 2) continue;
        kernels_.push_back({parts[0], std::strtoull(parts[1].c_str(), nullptr, 10)});
      }
    }
    any_failure_.store(!failures_.empty(), std::memory_order_relaxed);
    any_kernel_.store(!kernels_.empty(), std::memory_order_relaxed);
  }

  void AddFailure(const std::vector<std::string>& parts) {
    if (parts.size() < 2) return;
    ScriptedFailure failure{parts[0], std::atoi(parts[1].c_str()), 0};
    if (parts.size() > 2 && parts[2].rfind("after=", 0) == 0) {
      failure.successes_left = std::strtoull(parts[2].c_str() + 6, nullptr, 10);
    }
    failures_.push_back(failure);
  }

  std::mutex mutex_;
  std::map<std::string, const std::string*, std::less<>> values_;
  std::set<std::string> texts_;
  std::vector<ScriptedFailure> failures_;
  std::vector<ScriptedKernel> kernels_;
  std::atomic<bool> any_failure_{false};
  std::atomic<bool> any_kernel_{false};
  std::atomic<uint64_t> generation_{1};
};

}  // namespace

const char* Setting(const char* name) { return Script::Get().Find(name); }

uint64_t NumberSetting(const char* name, uint64_t fallback) {
  const char* text = Setting(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

int64_t SignedSetting(const char* name, int64_t fallback) {
  const char* text = Setting(name);
  return text == nullptr ? fallback : std::strtoll(text, nullptr, 10);
}

void ChangeSetting(const char* name, const char* value) { Script::Get().Change(name, value); }

uint64_t SettingsGeneration() { return Script::Get().generation(); }

bool TakeScriptedFailure(const char* function, int* status) {
  return Script::Get().TakeFailure(function, status);
}

bool ScriptedKernelDuration(const char* name, uint64_t* duration_ns) {
  return Script::Get().KernelDuration(name, duration_ns);
}

}  // namespace ranktap::standin
