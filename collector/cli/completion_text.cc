#include "collector/cli/completion_text.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include "collector/cli/command.h"
#include "collector/cli/known_words.h"

namespace ranktap::collector {
namespace {

// In single quotes of a shell; of fish too, where a backslash would be one.
std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char byte : text) {
    if (byte == '\'')
      quoted += "\"";
    else if (byte == '\\')
      quoted += "/";
    else
      quoted += byte;
  }
  return quoted + "'";
}

std::string OptionNames(const CompletedVerb& verb) {
  std::string names;
  for (const Arguments::Description& option : verb.options) {
    for (const std::string& name : option.names) names += (names.empty() ? "" : " ") + name;
  }
  return names;
}

std::string VerbNames(const std::vector<CompletedVerb>& verbs) {
  std::string names;
  for (const CompletedVerb& verb : verbs) names += verb.name + " ";
  return names + "--help --version --color --quiet";
}

// "verb:option" of each option that takes a word, and what the word may be; "" is a file. The
// pattern of a `case` of bash and zsh.
std::string ValueCases(const std::vector<CompletedVerb>& verbs) {
  std::string cases;
  for (const CompletedVerb& verb : verbs) {
    for (const Arguments::Description& option : verb.options) {
      if (!option.takes_word) continue;
      std::string pattern;
      for (const std::string& name : option.names) {
        pattern += fmt::format("{}{}:{}", pattern.empty() ? "" : "|", verb.name, name);
      }
      cases += fmt::format("    {}) values={}; files={} ;;\n", pattern,
                           Quoted(fmt::format("{}", fmt::join(option.values, " "))),
                           option.values.empty() ? 1 : 0);
    }
  }
  return cases;
}

// `words`: the variable for what may follow; zsh has one of this name already.
std::string WordCases(const std::vector<CompletedVerb>& verbs, std::string_view words) {
  std::string cases;
  for (const CompletedVerb& verb : verbs) {
    cases += fmt::format("    {}) options={}; {}={} ;;\n", verb.name, Quoted(OptionNames(verb)),
                         words, Quoted(fmt::format("{}", fmt::join(verb.words, " "))));
  }
  return cases;
}

}  // namespace

std::vector<CompletedVerb> CompletedVerbs() {
  std::vector<CompletedVerb> verbs;
  for (const Command& command : AllCommands()) {
    CompletedVerb& verb = verbs.emplace_back();
    verb.name = command.name;
    verb.help = command.help;
    Arguments::DescribeInto(&verb.options);
    command.run({});
    Arguments::DescribeInto(nullptr);
    if (verb.name == "completion") verb.words = {"bash", "zsh", "fish"};
    if (verb.name != "report") continue;
    for (const std::string_view name : ReportNames()) verb.words.emplace_back(name);
  }
  return verbs;
}

std::string BashCompletion(const std::vector<CompletedVerb>& verbs) {
  return fmt::format(R"sh(# bash completion for ranktap: eval "$(ranktap completion bash)"
_ranktap() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local verb='' values='' options='' words='' files=-1 i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "${{COMP_WORDS[i]}}" in --color) ((++i)) ;; -*) ;; *) verb="${{COMP_WORDS[i]}}"; break ;; esac
  done
  if [ -z "$verb" ]; then
    COMPREPLY=($(compgen -W '{}' -- "$current"))
    return
  fi
  # The command of `run` is completed as a command line of its own.
  if [ "$verb" = run ]; then
    for ((++i; i < COMP_CWORD; ++i)); do
      if [ "${{COMP_WORDS[i]}}" = -- ]; then
        COMPREPLY=($(compgen -c -f -- "$current"))
        return
      fi
    done
  fi
  case "$verb:$before" in
{}  esac
  if [ "$files" != -1 ]; then
    COMPREPLY=($(compgen -W "$values" -- "$current"))
    [ "$files" = 0 ] || COMPREPLY=($(compgen -f -- "$current"))
    return
  fi
  case "$verb" in
{}  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current")) ;;
  esac
}}
complete -o filenames -F _ranktap ranktap
)sh",
                     VerbNames(verbs), ValueCases(verbs), WordCases(verbs, "words"));
}

std::string ZshCompletion(const std::vector<CompletedVerb>& verbs) {
  return fmt::format(R"sh(#compdef ranktap
# zsh completion for ranktap: source <(ranktap completion zsh), or a file _ranktap in $fpath
_ranktap() {{
  local verb='' values='' options='' names='' files=-1 i
  local before="${{words[CURRENT-1]}}"
  for ((i = 2; i < CURRENT; ++i)); do
    case "${{words[i]}}" in --color) ((++i)) ;; -*) ;; *) verb="${{words[i]}}"; break ;; esac
  done
  if [[ -z "$verb" ]]; then
    names='{}'
    compadd -- ${{=names}}
    return
  fi
  if [[ "$verb" == run && ${{words[(i)--]}} -lt CURRENT ]]; then
    _files
    _command_names
    return
  fi
  case "$verb:$before" in
{}  esac
  if [[ $files == 1 ]]; then _files; return; fi
  if [[ $files == 0 ]]; then compadd -- ${{=values}}; return; fi
  case "$verb" in
{}  esac
  if [[ "$PREFIX" == -* ]]; then
    compadd -- ${{=options}}
  else
    compadd -- ${{=names}}
    _files
  fi
}}
if [[ "$funcstack[1]" == _ranktap ]]; then _ranktap "$@"; else compdef _ranktap ranktap; fi
)sh",
                     VerbNames(verbs), ValueCases(verbs), WordCases(verbs, "names"));
}

std::string FishCompletion(const std::vector<CompletedVerb>& verbs) {
  std::string text = "# fish completion for ranktap: ranktap completion fish | source\n";
  for (const CompletedVerb& verb : verbs) {
    text += fmt::format("complete -c ranktap -n __fish_use_subcommand -f -a {} -d {}\n", verb.name,
                        Quoted(verb.help));
    const std::string when = fmt::format("-n '__fish_seen_subcommand_from {}'", verb.name);
    for (const Arguments::Description& option : verb.options) {
      text += fmt::format("complete -c ranktap {}", when);
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.takes_word && option.values.empty()) text += " -r -F";
      if (option.takes_word && !option.values.empty()) {
        text += fmt::format(" -x -a {}", Quoted(fmt::format("{}", fmt::join(option.values, " "))));
      }
      text += fmt::format(" -d {}\n", Quoted(option.help));
    }
    if (verb.words.empty()) continue;
    text += fmt::format("complete -c ranktap {} -a {}\n", when,
                        Quoted(fmt::format("{}", fmt::join(verb.words, " "))));
  }
  return text;
}

}  // namespace ranktap::collector
