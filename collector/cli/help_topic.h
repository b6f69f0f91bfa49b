// `ranktap help TOPIC`: a page of docs/ in the terminal.
#pragma once

#include <string>

namespace ranktap::collector {

// The exit status. "page" is docs/page.md, "first-run" docs/tutorials/first-run.md; "topics" lists
// all.
int PrintTopic(const std::string& topic);

}  // namespace ranktap::collector
