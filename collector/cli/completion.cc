// `ranktap completion bash|zsh|fish`: the script that teaches a shell our words.
#include <cstdio>

#include "collector/cli/command.h"
#include "collector/cli/completion_text.h"
#include "collector/terminal/arguments.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {

int CompletionCommand(const std::vector<std::string>& arguments) {
  std::string shell;
  Arguments app("Prints the script with which a shell completes our commands, options and names.",
                "ranktap completion");
  app.Add("SHELL", &shell, "bash, zsh or fish").Required().OneOf({"bash", "zsh", "fish"});
  if (const auto status = app.Parse(arguments)) return *status;
  const std::vector<CompletedVerb> verbs = CompletedVerbs();
  const std::string text = shell == "bash"  ? BashCompletion(verbs)
                           : shell == "zsh" ? ZshCompletion(verbs)
                                            : FishCompletion(verbs);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? kSuccess : kFailure;
}

}  // namespace ranktap::collector
