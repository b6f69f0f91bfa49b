// The verbs, in the order of the help. One line each.
#include "collector/cli/command.h"

namespace ranktap::collector {
namespace {

constexpr Command kCommands[] = {
    {"run", "run a command and trace every rank in it", &RunCommand},
    {"collect", "run a collector that stays, for every program that joins it", &CollectCommand},
    {"start", "begin to capture, on all ranks at the same instant", &StartCommand},
    {"stop", "end capture, on all ranks at the same instant", &StopCommand},
    {"status", "show what is being traced now, and what that costs", &StatusCommand},
    {"dump", "save the last minute of a job that runs with --keep", &DumpCommand},
    {"top", "watch what every rank does now, the worst first", &TopCommand},
    {"stacks", "show where every rank's Python threads are now", &StacksCommand},
    {"calibrate", "measure what this host and its GPUs can do, as roofs of reports",
     &CalibrateCommand},
    {"doctor", "find what keeps this machine from tracing, and say what to do", &DoctorCommand},
    {"report", "print reports of a run", &ReportCommand},
    {"whatif", "predict the step with a change that nobody has made yet", &WhatIfCommand},
    {"diff", "say whether runs are worse than others by more than a limit", &DiffCommand},
    {"baseline", "keep what runs took, for later comparisons", &BaselineCommand},
    {"bisect", "find the commit that made a program slower, by git bisect", &BisectCommand},
    {"view", "make the page of a run, all views in one file, and open it", &ViewCommand},
    {"serve", "show the runs of a folder in your browser", &ServeCommand},
    {"export", "write a run in another tool's format", &ExportCommand},
    {"sql", "ask DuckDB a question in SQL about runs", &SqlCommand},
    {"merge", "join runs, nodes and torch.profiler's files of several ranks", &MergeCommand},
    {"profile-model", "measure what a forward of a model costs, by module", &ProfileModelCommand},
    {"mcp", "answer a program's questions about runs (Model Context Protocol)", &McpCommand},
    {"verify", "check every byte and every count of a run", &VerifyCommand},
    {"completion", "print the script that lets bash, zsh or fish complete ranktap's words",
     &CompletionCommand},
};

}  // namespace

std::span<const Command> AllCommands() { return kCommands; }

}  // namespace ranktap::collector
