#include "collector/terminal/live_screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <string_view>

namespace ranktap::collector {
namespace {

// Another buffer, no cursor, no wrapping; and back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr int kEnds[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE};

// For the signal handlers.
termios g_before, g_raw;

void Write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void Enter() {
  (void)::tcsetattr(STDIN_FILENO, TCSANOW, &g_raw);
  Write(kEnter);
}
void Leave() {
  Write(kLeave);
  (void)::tcsetattr(STDIN_FILENO, TCSANOW, &g_before);
}

// Async-signal-safe, all of it.
void EndBy(int number) {
  Leave();
  (void)::signal(number, SIG_DFL);
  (void)::raise(number);
}
void Stop(int) {
  Leave();
  (void)::raise(SIGSTOP);
  Enter();
}
void Ignore(int) {}

void Handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  (void)::sigaction(number, &action, nullptr);
}

}  // namespace

LiveScreen::LiveScreen() {
  (void)::tcgetattr(STDIN_FILENO, &g_before);
  g_raw = g_before;
  g_raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  g_raw.c_cc[VMIN] = 0;
  g_raw.c_cc[VTIME] = 0;
  for (const int number : kEnds) Handle(number, &EndBy);
  Handle(SIGTSTP, &Stop);
  Handle(SIGWINCH, &Ignore);  // it ends poll()
  Enter();
}

LiveScreen::~LiveScreen() {
  for (const int number : kEnds) Handle(number, SIG_DFL);
  Handle(SIGTSTP, SIG_DFL);
  Handle(SIGWINCH, SIG_DFL);
  Leave();
}

LiveScreen::Size LiveScreen::size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return {};
  return {.rows = size.ws_row, .columns = size.ws_col};
}

void LiveScreen::Draw(const std::string& text) const {
  std::string out = "\x1b[H";
  std::string_view rest = text;
  for (size_t row = size().rows; row > 0; --row) {
    const size_t end = rest.find('\n');
    // Before it: behind a line of the full width it would take the last letter.
    out += "\x1b[K";
    out += rest.substr(0, end);
    out += "\x1b[0m";
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    if (row > 1) out += "\r\n";
  }
  Write(out);
}

char LiveScreen::NextKey(int timeout_ms) {
  pollfd wanted{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (::poll(&wanted, 1, timeout_ms) <= 0) return 0;
  char key = 0;
  // A terminal that has gone away would be readable for ever.
  if (::read(STDIN_FILENO, &key, 1) != 1) return 'q';
  char rest[2] = {};
  if (key != '\x1b' || ::read(STDIN_FILENO, rest, sizeof(rest)) != sizeof(rest)) return key;
  // What comes behind an escape at once is one key: "\x1b[A" is the arrow up.
  return rest[1] == 'A' ? 'k' : rest[1] == 'B' ? 'j' : '\0';
}

}  // namespace ranktap::collector
