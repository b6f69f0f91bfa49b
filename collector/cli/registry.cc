// The verbs, in the order of the help. One line each.
#include "collector/cli/command.h"

namespace ranktap::collector {
namespace {

constexpr Command kCommands[] = {
    {"run", "run a command and trace every rank in it", &RunCommand},
    {"collect", "collect from every program that is told of this collector", &CollectCommand},
    {"start", "begin to capture, on all ranks at the same instant", &StartCommand},
    {"stop", "end capture, on all ranks at the same instant", &StopCommand},
    {"status", "what is being traced now, and what that costs", &StatusCommand},
    {"doctor", "what keeps this machine from tracing, and what to do about it", &DoctorCommand},
    {"report", "print reports of a run", &ReportCommand},
    {"view", "make the page of a run, all views in one file, and open it", &ViewCommand},
    {"serve", "show the runs of a folder in your browser", &ServeCommand},
    {"export", "write a run in another tool's format", &ExportCommand},
    {"sql", "answer a question in SQL about runs, by DuckDB", &SqlCommand},
    {"merge", "join runs, nodes and torch.profiler's files of several ranks", &MergeCommand},
    {"profile-model", "what a forward of a model costs, by module", &ProfileModelCommand},
    {"verify", "check every byte and every count of a run", &VerifyCommand},
    {"completion", "print the script with which bash, zsh or fish completes our words",
     &CompletionCommand},
};

}  // namespace

std::span<const Command> AllCommands() { return kCommands; }

}  // namespace ranktap::collector
