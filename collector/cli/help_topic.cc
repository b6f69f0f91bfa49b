#include "collector/cli/help_topic.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

#include "collector/cli/known_words.h"
#include "collector/file/owned_file.h"
#include "collector/report/nearest_name.h"
#include "collector/terminal/complain.h"
#include "collector/terminal/doc_page.h"
#include "collector/terminal/pager.h"

namespace ranktap::collector {
namespace {

// A line that is longer is hard to read.
constexpr size_t kWidest = 100, kNarrowest = 40, kInPipe = 80;
constexpr size_t kMostHelpBytes = 10 << 20;

std::string_view LastPart(std::string_view topic) {
  return topic.substr(topic.find_last_of('/') + 1);
}

}  // namespace

int PrintTopic(const std::string& topic) {
  const std::string folder = DocsFolder();
  if (folder.empty()) {
    return Complained("the documentation is not installed beside ranktap: no folder docs/",
                      kFailure);
  }
  const std::vector<std::string> topics = DocTopics(folder);
  if (topic == "topics") {
    for (const std::string& one : topics) std::printf("  %s\n", one.c_str());
    return kSuccess;
  }
  const auto found = std::ranges::find_if(
      topics, [&](const std::string& one) { return one == topic || LastPart(one) == topic; });
  if (found == topics.end()) {
    std::vector<std::string_view> known = CommandNames();
    for (const std::string& one : topics) known.push_back(LastPart(one));
    return Complained(fmt::format("no command and no page '{}'{}; ranktap help topics lists them",
                                  topic, DidYouMean(topic, known)),
                      kWrongUsage);
  }
  const Result<std::string> markdown =
      ReadRegularFile(folder + "/" + *found + ".md", kMostHelpBytes);
  if (!markdown) return Complained(markdown.message(), kFailure);
  const Pager pager;
  const size_t screen = ScreenWidth() == 0 ? kInPipe : ScreenWidth();
  const std::string text = PlainMarkdown(*markdown, std::clamp(screen, kNarrowest, kWidest));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? kSuccess : kFailure;
}

}  // namespace ranktap::collector
