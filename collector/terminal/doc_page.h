// Pages of docs/ in a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

// The folder `docs` of what is installed, or of the tree that was built; empty: it is not there.
std::string DocsFolder();
// "page", "tutorials/first-run", ...: the pages below `folder` for who uses ranktap.
std::vector<std::string> DocTopics(const std::string& folder);
// Markdown as lines of at most `width`: links keep their text, tables become lists where they are
// wider.
std::string PlainMarkdown(std::string_view markdown, size_t width);

}  // namespace ranktap::collector
