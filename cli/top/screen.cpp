// See forms.h: the screen, on ncurses. One thread; everything that the terminal sends comes through getch(), which also
// waits for the next look. ncurses has macros for common words, so its header comes last.
#include <langinfo.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdlib>

#include "cli/console.h"
#include "cli/pages.h"
#include "cli/top/forms.h"
#include "config/text.h"

#define NCURSES_NOMACROS
#include <ncurses.h>

namespace gpupool::cli {
namespace {

constexpr std::chrono::milliseconds kTrimPatience{3000};
constexpr const char* kHelp = "q quit  arrows choose  s,S sort  r reverse  / filter  t trim  p pause";

std::uint64_t now_ms() {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count());
}

/// As many columns of it as there are; of what is no ASCII each character takes one.
std::string cut(const std::string& text, int columns) {
  std::size_t end = 0;
  for (int seen = 0; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xc0) != 0x80;
    if (begins && seen++ == columns) break;
  }
  return text.substr(0, end);
}

// SIGINT and SIGTERM end the screen as q does: getch() returns for them.
constexpr int kRequests[] = {SIGINT, SIGTERM};
volatile std::sig_atomic_t asked_to_end = 0;

void ask_to_end(int) { asked_to_end = 1; }

// What ends the process without unwinding leaves the terminal as it found it, too.
termios terminal_before;
constexpr int kCrashes[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

void restore_and_crash(int number) {
  constexpr char kLeave[] = "\033[?1049l\033[?25h\033[0m\r\n";
  static_cast<void>(!write(STDOUT_FILENO, kLeave, sizeof kLeave - 1));
  tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
  signal(number, SIG_DFL);
  raise(number);
}

/// The terminal belongs to it from beginning to end, whatever throws between; if it can be drawn on.
class Terminal {
 public:
  Terminal() {
    tcgetattr(STDIN_FILENO, &terminal_before);
    struct sigaction request {};  // without SA_RESTART; ncurses replaces no handler
    request.sa_handler = ask_to_end;
    for (const int number : kRequests) sigaction(number, &request, nullptr);
    if (newterm(nullptr, stdout, stdin) == nullptr) return;
    drawable_ = true;
    for (const int number : kCrashes) signal(number, restore_and_crash);
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    curs_set(0);
    ESCDELAY = 50;
  }
  ~Terminal() {
    for (const int number : kRequests) signal(number, SIG_DFL);
    if (!drawable_) return;
    endwin();
    for (const int number : kCrashes) signal(number, SIG_DFL);
  }
  bool drawable() const { return drawable_; }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

 private:
  bool drawable_ = false;
};

class Screen {
 public:
  Screen(std::string folder, unsigned interval_ms, Letters letters)
      : folder_(std::move(folder)), interval_ms_(interval_ms), letters_(letters) {}

  void run() {
    look();
    for (;;) {
      draw();
      const std::uint64_t now = now_ms();
      const std::uint64_t due = last_look_ms_ + interval_ms_;
      timeout(static_cast<int>(due > now ? due - now : 0));
      const int key = getch();
      if ((key == 'q' && !typing_) || key == 3 || asked_to_end != 0) return;
      if (key == ERR) {
        if (isatty(STDIN_FILENO) != 1) return;
        if (!paused_) look();
        last_look_ms_ = now_ms();
      } else if (key != KEY_RESIZE) {
        message_.clear();
        typing_ ? type(key) : act(key);
        arrange();
      }
    }
  }

 private:
  void look() {
    PagesFound found = find_pages(folder_);
    TopRows top = top_rows(found.pages, before_, now_ms());
    before_ = std::move(top.look);
    rows_ = std::move(top.rows);
    problem_ = found.problems.empty() ? "" : escaped(found.problems.front(), found.problems.front().size());
    last_look_ms_ = now_ms();
    arrange();
  }

  void arrange() {
    shown_.clear();
    for (const TopRow& row : rows_) {
      const bool matches = filter_.empty() || row.executable.find(filter_) != std::string::npos ||
                           std::to_string(row.pid).find(filter_) != std::string::npos;
      if (matches) shown_.push_back(row);
    }
    std::ranges::stable_sort(shown_, top_columns()[sort_].before);
    if (reversed_) std::ranges::reverse(shown_);
    chosen_ = std::min(chosen_, shown_.empty() ? 0 : shown_.size() - 1);
  }

  void choose(int down) {
    const auto wanted = static_cast<std::ptrdiff_t>(chosen_) + down;
    chosen_ = static_cast<std::size_t>(std::max<std::ptrdiff_t>(wanted, 0));
  }

  void act(int key) {
    const int page = std::max(1, LINES / 2);
    const std::size_t columns = top_columns().size();
    switch (key) {
      case KEY_UP:
      case 'k':
        choose(-1);
        break;
      case KEY_DOWN:
      case 'j':
        choose(1);
        break;
      case KEY_PPAGE:
        choose(-page);
        break;
      case KEY_NPAGE:
        choose(page);
        break;
      case KEY_HOME:
        chosen_ = 0;
        break;
      case KEY_END:
        chosen_ = shown_.size();
        break;
      case 's':
        sort_ = (sort_ + 1) % columns;
        break;
      case 'S':
        sort_ = (sort_ + columns - 1) % columns;
        break;
      case 'r':
        reversed_ = !reversed_;
        break;
      case 'p':
        paused_ = !paused_;
        break;
      case 't':
        trim();
        break;
      case '/':
        typing_ = true;
        filter_.clear();
        break;
      default:
        break;
    }
  }

  /// A key while the filter is being typed; Escape leaves none.
  void type(int key) {
    constexpr int kEscape = 27;
    constexpr std::size_t kLongestFilter = 63;
    if (key == kEscape) filter_.clear();
    if (key == kEscape || key == '\n' || key == '\r' || key == KEY_ENTER) typing_ = false;
    if ((key == KEY_BACKSPACE || key == 127 || key == 8) && !filter_.empty()) filter_.pop_back();
    if (key >= ' ' && key <= '~' && filter_.size() < kLongestFilter) filter_ += static_cast<char>(key);
  }

  void trim() {
    if (shown_.empty()) return;
    const TopRow& row = shown_[chosen_];
    message_ = "asking process " + std::to_string(row.pid);
    draw();
    const Answer answer = ask_for_memory(folder_ + "/" + row.page, {}, kTrimPatience);
    message_ = "process " + std::to_string(row.pid) + " " + reply_text(answer);
    look();
  }

  void put(int line, const std::string& text, attr_t attributes = A_NORMAL) const {
    if (line >= LINES) return;
    attrset(attributes);
    mvaddstr(line, 0, cut(text, COLS).c_str());
    attrset(A_NORMAL);
  }

  void draw() const {
    erase();
    put(0, "gpupool top  " + std::to_string(shown_.size()) + " of " + std::to_string(rows_.size()) + " pools" +
               (filter_.empty() || typing_ ? "" : "  filter " + in_quotes(filter_)) + (paused_ ? "  paused" : ""));
    put(1, table_heads(&top_columns()[sort_]), A_BOLD);
    const std::vector<std::string> cards = card_lines(rows_);
    const int room = std::max(1, LINES - 3 - static_cast<int>(cards.size()) - (problem_.empty() ? 0 : 1));
    const std::size_t first = chosen_ >= std::size_t(room) ? chosen_ - std::size_t(room) + 1 : 0;
    int line = 2;
    for (std::size_t i = first; i < shown_.size() && line < room + 2; ++i)
      put(line++, table_line(shown_[i], letters_), i == chosen_ ? A_REVERSE : A_NORMAL);
    for (const std::string& card : cards) put(line++, card);
    if (!problem_.empty()) put(LINES - 2, problem_);
    put(LINES - 1, typing_ ? "filter: " + filter_ : message_.empty() ? kHelp : message_, typing_ ? A_NORMAL : A_DIM);
    curs_set(typing_ ? 1 : 0);
    refresh();
  }

  const std::string folder_;
  const unsigned interval_ms_;
  const Letters letters_;
  std::vector<TopRow> rows_;
  std::vector<TopRow> shown_;  // filtered and sorted
  Look before_;
  std::uint64_t last_look_ms_ = 0;
  std::size_t chosen_ = 0;
  std::size_t sort_ = 0;
  bool reversed_ = false;
  bool paused_ = false;
  bool typing_ = false;  // the filter; keys are its letters
  std::string filter_;
  std::string message_;
  std::string problem_;  // of a page that could not be read, or not all of it
};

}  // namespace

bool top_screen(const std::string& folder, unsigned interval_ms) {
  std::setlocale(LC_ALL, "");
  const bool unicode = std::string_view{nl_langinfo(CODESET)} == "UTF-8";
  const Terminal terminal;
  if (!terminal.drawable()) {
    note("this terminal cannot be drawn on; here is the table, once");
    return false;
  }
  Screen(folder, interval_ms, unicode ? Letters::unicode : Letters::ascii).run();
  return true;
}

}  // namespace gpupool::cli
