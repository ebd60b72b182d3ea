#include "tests/rig/fabric/command.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "common/text/format.h"
#include "common/text/nearest.h"

namespace weft::fabric {
namespace {

// A file without a name that holds the child's input or takes its output: no pipe that could fill up.
class Scratch {
 public:
  Scratch() : file_(memfd_create("rig", MFD_CLOEXEC)) {}
  ~Scratch() {
    if (file_ >= 0) close(file_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  int get() const { return file_; }
  bool fill(const std::string& text) const {
    return file_ >= 0 && write(file_, text.data(), text.size()) == ssize_t(text.size()) &&
           lseek(file_, 0, SEEK_SET) == 0;
  }
  std::string content() const {
    std::string text(std::size_t(lseek(file_, 0, SEEK_END)), '\0');
    if (pread(file_, text.data(), text.size(), 0) < 0) text.clear();
    return text;
  }

 private:
  int file_;
};

}  // namespace

Result<Output> run_command(const std::vector<std::string>& arguments, const std::string& input) {
  const Scratch in, out;
  if (!in.fill(input) || out.get() < 0) return system_error("memfd_create failed", errno, arguments[0]);
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return system_error("fork failed", errno, arguments[0]);
  if (child == 0) {
    dup2(in.get(), 0);
    dup2(out.get(), 1);
    dup2(out.get(), 2);
    // ip and tc are in sbin, which an ordinary user's PATH may lack.
    const char* path = getenv("PATH");
    setenv("PATH", (std::string(path ? path : "/usr/bin:/bin") + ":/usr/sbin:/sbin").c_str(), 1);
    execvp(words[0], words.data());
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return system_error("waitpid failed", errno, arguments[0]);
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 127 && out.content().empty()) {
    return Error{"cannot be started", arguments[0], 0, "install iproute2"};
  }
  return Output{code, out.content()};
}

Result<std::string> must_run(const std::vector<std::string>& arguments, const std::string& input) {
  auto output = run_command(arguments, input);
  if (!output) return output.take_error();
  if (output->code == 0) return std::move(output->text);
  return Error{text::format("exit status {}: {}", output->code, output->text), text::join(arguments, " "), 0, {}};
}

}  // namespace weft::fabric
