// The screen of `ranktap top`: what it shows, and its keys.
#pragma once

#include <string>
#include <vector>

#include "collector/cli/top_watch.h"
#include "collector/terminal/live_screen.h"

namespace ranktap::collector {

// UTF-8, by the locale's variables.
bool SpeaksUtf8();

struct TopView {
  size_t first = 0;  // of the rows that are scrolled away
  bool is_utf8 = true, is_colored = false;
  std::string said;  // in the place of the keys; empty: those
};
// As many lines as the size has, at most: the rows from view.first on, the sentences, the keys.
std::string TopScreen(const Table& table, LiveScreen::Size size, const TopView& view);
// How many steps a screen of this width draws.
size_t TopSpark(size_t columns);

// Until the user, or the job, ends it. An exit status.
int ShowTop(TopWatch* watch);

}  // namespace ranktap::collector
