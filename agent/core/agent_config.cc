// The parser of proto/environment.h's table.
// Runs on: the thread that starts the agent.  May not: run in a constructor (but
// DisabledByEnvironment).
#include "agent/core/agent_config.h"

#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <variant>

#include "proto/environment.h"

namespace ranktap::agent {
namespace {

using proto::EnvKind;
using proto::EnvVar;
using proto::Level;
using proto::StackPolicy;

using Field = std::variant<std::string AgentConfig::*, bool AgentConfig::*, uint32_t AgentConfig::*,
                           Level AgentConfig::*, StackPolicy AgentConfig::*,
                           proto::TensorDetail AgentConfig::*>;

struct FieldOf {
  std::string_view name;
  Field field;
};

// A test asks for every row of the environment's table; this cannot lack one.
constexpr auto kFields = std::to_array<FieldOf>({
    {"RANKTAP_DISABLE", &AgentConfig::disable},
    {"RANKTAP_SOCKET", &AgentConfig::socket_path},
    {"RANKTAP_SPOOL", &AgentConfig::spool_directory},
    {"RANKTAP_SPOOL_MIB", &AgentConfig::spool_mib},
    {"RANKTAP_LEVEL", &AgentConfig::level},
    {"RANKTAP_LOG", &AgentConfig::log_path},
    {"RANKTAP_RANK", &AgentConfig::rank},
    {"RANKTAP_RING_MIB", &AgentConfig::ring_mib},
    {"RANKTAP_CUPTI_BUFFERS_MIB", &AgentConfig::cupti_buffers_mib},
    {"RANKTAP_DEVICE_BUFFERS", &AgentConfig::device_buffers},
    {"RANKTAP_FLUSH_MS", &AgentConfig::flush_ms},
    {"RANKTAP_CUDA", &AgentConfig::cuda},
    {"RANKTAP_RETURN_MS", &AgentConfig::return_ms},
    {"RANKTAP_EXIT_MS", &AgentConfig::exit_ms},
    {"RANKTAP_CUPTI", &AgentConfig::cupti_path},
    {"RANKTAP_DRIVER_LAUNCHES", &AgentConfig::driver_launches},
    {"RANKTAP_HARDWARE_EVENTS", &AgentConfig::hardware_events},
    {"RANKTAP_WHOLE_GRAPHS", &AgentConfig::whole_graphs},
    {"RANKTAP_SHARE_CUPTI", &AgentConfig::share_cupti},
    {"RANKTAP_STACKS", &AgentConfig::stacks},
    {"RANKTAP_STACKS_SAMPLE", &AgentConfig::stacks_sample},
    {"RANKTAP_SAMPLE_US", &AgentConfig::sample_us},
    {"RANKTAP_RUN_PID", &AgentConfig::run_pid},
    {"RANKTAP_BUDGET_PPM", &AgentConfig::budget_ppm},
    {"RANKTAP_REDACT", &AgentConfig::redact},
    {"RANKTAP_PYTHON", &AgentConfig::python},
    {"RANKTAP_SCHEDULE", &AgentConfig::schedule},
    {"RANKTAP_FLOP_CHECK", &AgentConfig::flop_check},
    {"RANKTAP_TENSORS", &AgentConfig::tensors},
});
static_assert(kFields.size() == proto::kEnvVars.size());

template <typename Row, size_t N>
const Row* FindRow(const std::array<Row, N>& rows, std::string_view name) {
  for (const Row& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::optional<uint32_t> ParseNumber(std::string_view text, uint32_t min, uint32_t max) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value < min || value > max) return std::nullopt;
  return value;
}

std::optional<proto::TensorDetail> ParseTensorDetail(std::string_view text) {
  if (text == "0") return proto::TensorDetail::kNone;
  if (text == "1") return proto::TensorDetail::kShared;
  if (text == "2" || text == "full") return proto::TensorDetail::kFull;
  return std::nullopt;
}

// False: the value is not one of the field's.
bool SetField(const EnvVar& variable, const Field& field, std::string_view value,
              AgentConfig& config) {
  switch (variable.kind) {
    case EnvKind::kText:
      config.*std::get<std::string AgentConfig::*>(field) = value;
      return true;
    case EnvKind::kFlag:
      if (value != "0" && value != "1") return false;
      config.*std::get<bool AgentConfig::*>(field) = value == "1";
      return true;
    case EnvKind::kLevel: {
      const std::optional<Level> level = proto::ParseLevel(value);
      if (level) config.*std::get<Level AgentConfig::*>(field) = *level;
      return level.has_value();
    }
    case EnvKind::kStacks: {
      const std::optional<StackPolicy> policy = proto::ParseStackPolicy(value);
      if (policy) config.*std::get<StackPolicy AgentConfig::*>(field) = *policy;
      return policy.has_value();
    }
    case EnvKind::kTensors: {
      const auto detail = ParseTensorDetail(value);
      if (detail) config.*std::get<proto::TensorDetail AgentConfig::*>(field) = *detail;
      return detail.has_value();
    }
    case EnvKind::kNumber: {
      const auto number = ParseNumber(value, variable.min, variable.max);
      if (number) config.*std::get<uint32_t AgentConfig::*>(field) = *number;
      return number.has_value();
    }
  }
  return false;
}

std::string ExpectedValues(const EnvVar& variable) {
  switch (variable.kind) {
    case EnvKind::kFlag:
      return "0 or 1";
    case EnvKind::kLevel:
      return "dormant, ranges, kernels or full";
    case EnvKind::kStacks:
      return "auto, off, launch, sync or all";
    case EnvKind::kTensors:
      return "0, 1, 2 or full";
    default:
      return std::to_string(variable.min) + " to " + std::to_string(variable.max);
  }
}

}  // namespace

ParsedConfig ParseAgentConfig(std::span<const char* const> environment) {
  ParsedConfig parsed;
  for (const char* entry : environment) {
    const std::string_view text(entry);
    const size_t equals = text.find('=');
    if (!text.starts_with("RANKTAP_") || equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (proto::IsToolVariable(name)) continue;
    const std::string_view value = text.substr(equals + 1);
    const EnvVar* variable = FindRow(proto::kEnvVars, name);
    const FieldOf* field = FindRow(kFields, name);
    if (variable == nullptr || field == nullptr) {
      parsed.warnings.push_back(std::string(name) + " is not a variable of ranktap");
    } else if (!SetField(*variable, field->field, value, parsed.config)) {
      parsed.warnings.push_back(std::string(name) + "=" + std::string(value) + " is not " +
                                ExpectedValues(*variable) + "; ignored");
    }
  }
  return parsed;
}

bool DisabledByEnvironment(const char* const* environment) {
  constexpr std::string_view kSwitch = "RANKTAP_DISABLE=1";
  if (environment == nullptr) return false;
  for (; *environment != nullptr; ++environment) {
    if (std::strcmp(*environment, kSwitch.data()) == 0) return true;
  }
  return false;
}

}  // namespace ranktap::agent
