// A terminal that is drawn anew and gives single keys, and is as it was at the end: also where a
// signal is that end, while the process is stopped, and after abort().
#pragma once

#include <string>

namespace ranktap::collector {

// One at a time. Needs a terminal at standard input and output.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  struct Size {
    size_t rows = 24, columns = 80;
  };
  static Size size();

  // What the whole screen shows from now on; lines that do not fit are cut.
  void Draw(const std::string& text) const;

  // The next key, at most so long; 0: none came, or the terminal has another size now. An arrow is
  // j or k.
  char NextKey(int timeout_ms);
};

}  // namespace ranktap::collector
