// A verb's options: CLI11 behind one file of ours, which alone pays for compiling it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

// What ParseArguments fills lives as long as the Arguments do. One thread.
class Arguments {
 public:
  // What may follow Add(); each returns the option again.
  class Option {
   public:
    Option& Required();
    Option& ShowsDefault();                     // in --help: what the value is now
    Option& Group(const std::string& heading);  // in --help
    Option& Excludes(const Option& other);      // both: wrong usage
    Option& OneOf(std::vector<std::string> values);
    Option& From(int64_t least, int64_t most);
    Option& Positive();
    Option& Repeatable();  // --x A --x B; takes no second word by itself
    Option& CommaSeparated();
    // For completion: words that it may have among others.
    Option& Suggests(const std::vector<std::string_view>& values);
    Option& Says(const std::string& value);  // in --help, for the value: "DIR"

   private:
    friend class Arguments;
    Option(void* option, void* parser) : option_(option), parser_(parser) {}
    void* option_;  // a CLI::Option
    void* parser_;  // the Parser
  };

  // An option, as completion sees it.
  struct Description {
    std::vector<std::string> names;  // "-o", "--output"
    bool takes_word = false;
    std::vector<std::string> values;  // known ones; a file or anything else where empty
    std::string help;
  };
  // While `all` is not null, Parse() fills it and says that the verb is done. One thread.
  static void DescribeInto(std::vector<Description>* all);

  // `name` as a person types it: "ranktap report". --color and --quiet are every verb's.
  Arguments(const std::string& description, const std::string& name);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  // `names`: "-o,--output", or "RUN" for a word without a dash.
  Option Add(const std::string& names, std::string* value, const std::string& help);
  Option Add(const std::string& names, int* value, const std::string& help);
  Option Add(const std::string& names, uint32_t* value, const std::string& help);
  Option Add(const std::string& names, int64_t* value, const std::string& help);
  Option Add(const std::string& names, uint64_t* value, const std::string& help);
  Option Add(const std::string& names, double* value, const std::string& help);
  Option Add(const std::string& names, std::optional<int64_t>* value, const std::string& help);
  Option Add(const std::string& names, std::vector<std::string>* values, const std::string& help);
  Option Add(const std::string& names, std::vector<uint32_t>* values, const std::string& help);
  // True where it was given; "--x,!--no-x" for one that can be taken back.
  Option AddFlag(const std::string& names, bool* given, const std::string& help);
  // "--x" is `plain` in `value`, "--x=WORD" the word; takes no second word.
  Option AddFlag(const std::string& name, const std::string& plain, std::string* value,
                 const std::string& help);
  // In --help, instead of a line made from the options.
  void SetUsage(const std::string& usage);
  // Below the options in --help.
  void AddFooter(const std::string& text);

  // True where `name` is an option that takes the word after it.
  bool TakesWord(const std::string& name) const;

  // An exit status where the verb is done already: help was asked for, or the usage is wrong.
  std::optional<int> Parse(std::vector<std::string> arguments);

 private:
  template <typename T>
  Option AddOption(const std::string& names, T* value, const std::string& help);

  Option MakeOption(void* option);
  void Describe(std::vector<Description>* all) const;

  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace ranktap::collector
