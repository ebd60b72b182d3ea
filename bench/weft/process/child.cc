#include "bench/weft/process/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace weft::process {
namespace {

constexpr std::size_t kKept = 64 << 10;

// As a shell does while a program runs in the foreground.
class LeaveInterruptsToTheChild {
 public:
  LeaveInterruptsToTheChild() : before_(signal(SIGINT, SIG_IGN)) {}
  ~LeaveInterruptsToTheChild() { signal(SIGINT, before_); }

 private:
  void (*before_)(int);
};

std::string read_all(int file) {
  std::string out, part(4096, '\0');
  while (true) {
    const ssize_t got = read(file, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return out;
    out.append(part, 0, std::size_t(got));
    if (out.size() > 2 * kKept) out.erase(0, out.size() - kKept);
  }
}

}  // namespace

Result<Background> Background::start(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe failed", errno);
  std::vector<char*> arguments;
  for (const std::string& word : words)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGINT, SIG_DFL);
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  const int problem = errno;
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return system_error("cannot start", problem, words[0]);
  }
  return Background(child, ends[0]);
}

Background::Background(Background&& other) noexcept
    : process_(std::exchange(other.process_, -1)), output_(std::exchange(other.output_, -1)) {}

Background::~Background() {
  if (process_ < 0) return;
  kill(process_, SIGTERM);
  wait();
}

Ended Background::wait() {
  Ended out;
  out.output = read_all(output_);
  close(output_);
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  out.interrupted = out.code == 128 + SIGINT;
  return out;
}

Result<Ended> run(const std::vector<std::string>& words) {
  const LeaveInterruptsToTheChild quiet;
  auto child = Background::start(words);
  if (!child) return child.take_error();
  return child->wait();
}

std::string own_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

Result<TemporaryFolder> TemporaryFolder::create() {
  std::error_code problem;
  std::string path = (std::filesystem::temp_directory_path(problem) / "weft.XXXXXX").string();
  if (problem || !mkdtemp(path.data())) return system_error("cannot make a folder for temporary files", errno, path);
  return TemporaryFolder(path);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace weft::process
