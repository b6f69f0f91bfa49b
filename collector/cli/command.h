// The verbs: argv in, exit status out. One file each, one line each in registry.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

struct Command {
  std::string_view name;
  std::string_view help;  // one line
  // `arguments`: what follows the verb.
  int (*run)(const std::vector<std::string>& arguments);
};

std::span<const Command> AllCommands();

int RunCommand(const std::vector<std::string>& arguments);
int CollectCommand(const std::vector<std::string>& arguments);
int StartCommand(const std::vector<std::string>& arguments);
int DumpCommand(const std::vector<std::string>& arguments);
int StopCommand(const std::vector<std::string>& arguments);
int StatusCommand(const std::vector<std::string>& arguments);
int TopCommand(const std::vector<std::string>& arguments);
int StacksCommand(const std::vector<std::string>& arguments);
int CalibrateCommand(const std::vector<std::string>& arguments);
int DoctorCommand(const std::vector<std::string>& arguments);
int ReportCommand(const std::vector<std::string>& arguments);
int ViewCommand(const std::vector<std::string>& arguments);
int ServeCommand(const std::vector<std::string>& arguments);
int ProfileModelCommand(const std::vector<std::string>& arguments);
int DiffCommand(const std::vector<std::string>& arguments);
int BaselineCommand(const std::vector<std::string>& arguments);
int WhatIfCommand(const std::vector<std::string>& arguments);
int BisectCommand(const std::vector<std::string>& arguments);
int McpCommand(const std::vector<std::string>& arguments);
int VerifyCommand(const std::vector<std::string>& arguments);
int ExportCommand(const std::vector<std::string>& arguments);
int SqlCommand(const std::vector<std::string>& arguments);
int MergeCommand(const std::vector<std::string>& arguments);
int CompletionCommand(const std::vector<std::string>& arguments);

}  // namespace ranktap::collector
