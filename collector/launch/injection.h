// How a command is made to load the agent: which variables it gets, and what to tell the user where
// that cannot be done. A pure function of the environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ranktap::collector {

// The value of "NAME=value" among them.
std::optional<std::string_view> FindVariable(const std::vector<std::string_view>& environment,
                                             std::string_view name);

struct InjectionPlan {
  std::string library;
  // Set for the command; they replace what it would inherit.
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::string> messages;  // one line each
};

struct InjectionRequest {
  std::string library;  // absolute path of libranktap.so
  std::string socket;
  std::string level;
  bool preload = true;
  // Settings of the agent that the command line names, as variables.
  std::vector<std::pair<std::string, std::string>> settings;
};

// `environment`: "NAME=value" each. A variable through which another tool injects itself is never
// replaced: two injected profilers are one too many, and that one was there first.
InjectionPlan PlanInjection(const std::vector<std::string_view>& environment,
                            const InjectionRequest& request);

// Has the loader choose the file by its own number of bits: in LD_PRELOAD of `variables`, `library`
// becomes lib/preload/$LIB/libranktap.so beside it, where programs of 32 bits find an empty one and
// do not complain. The injection variables name what the loader then has open: under the same name
// opening it again takes a microsecond, in which no fork comes (reliability, "What stays"). Nothing
// changes where this machine's $LIB leads elsewhere. Not for what a shell will read.
void ChooseByLoader(const std::string& library,
                    std::vector<std::pair<std::string, std::string>>* variables);

// Why nothing can be injected into this executable; empty: it can.
std::string InjectionObstacle(const std::string& executable);

// Whether the executable is linked with AddressSanitizer's shared library, which ends a program in
// which it is not the first of all libraries: a preloaded one comes before it.
bool WantsToBeFirst(const std::string& executable);

// "../lib/libranktap.so" seen from this program's own binary; empty with `*why` set when it, or the
// agent beside it, is not there or cannot be loaded from where it is.
std::string FindAgentLibrary(std::string* why);

// For --help: the variables that the agent reads.
std::string EnvironmentHelp();

}  // namespace ranktap::collector
