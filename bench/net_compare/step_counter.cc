#include "bench/net_compare/step_counter.h"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "common/text/format.h"

namespace weft::net_compare {
namespace {

// Where the child is. `link`: what leads to the return address of the function whose first instruction that is, the
// stack pointer on x86-64 and the link register on arm64.
struct Position {
  std::uint64_t at = 0;
  std::uint64_t link = 0;
};

bool position(pid_t child, Position& out) {
  user_regs_struct registers{};
  iovec into{&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &into) != 0) return false;
#if defined(__x86_64__)
  out.at = registers.rip;
  out.link = registers.rsp;
#else
  out.at = registers.pc;
  out.link = registers.regs[30];
#endif
  return true;
}

std::uint64_t return_address(pid_t child, const Position& here) {
#if defined(__x86_64__)
  return std::uint64_t(ptrace(PTRACE_PEEKDATA, child, here.link, nullptr));
#else
  (void)child;
  return here.link;
#endif
}

struct Range {
  std::uint64_t begin = 0, end = 0;
  bool holds(std::uint64_t address) const { return address >= begin && address < end; }
};

// Where the code of a library lies in the child.
Range code_of(pid_t child, const std::string& library) {
  std::ifstream maps(text::format("/proc/{}/maps", child));
  Range range;
  for (std::string line; std::getline(maps, line);) {
    const bool ours =
        line.size() >= library.size() && line.compare(line.size() - library.size(), library.size(), library) == 0;
    if (!ours || line.find(" r-xp ") == std::string::npos) continue;
    std::istringstream words(line);
    char dash = 0;
    words >> std::hex >> range.begin >> dash >> range.end;
  }
  return range;
}

// What stands in the child's way between stops: its signals but those of the trace.
int passed_on(int signal) {
  return signal == SIGTRAP || signal == SIGSTOP ? 0 : signal;
}

// The child has come to a marker: whether by raise(3), not by a step.
bool at_marker(pid_t child) {
  siginfo_t info{};
  return ptrace(PTRACE_GETSIGINFO, child, nullptr, &info) == 0 && info.si_signo == SIGTRAP && info.si_code == SI_TKILL;
}

class Stepper {
 public:
  Stepper(pid_t child, const Range& excluded) : child_(child), excluded_(excluded) {}

  // From a begin marker to the next end marker. False when the child is gone.
  bool count(std::uint64_t& instructions) {
    instructions = 0;
    int signal = 0;
    while (true) {
      if (ptrace(PTRACE_SINGLESTEP, child_, nullptr, signal) != 0) return false;
      int status = 0;
      if (waitpid(child_, &status, 0) != child_ || !WIFSTOPPED(status)) return false;
      signal = passed_on(WSTOPSIG(status));
      if (WSTOPSIG(status) == SIGTRAP && at_marker(child_)) return true;
      Position here;
      if (!position(child_, here)) return false;
      look(here, instructions);
    }
  }

 private:
  void look(const Position& here, std::uint64_t& instructions) {
    if (outside_at_ != 0) {
      if (here.at != outside_at_) return;
      outside_at_ = 0;
    } else if (excluded_.holds(here.at)) {
      outside_at_ = return_address(child_, here);
      return;
    }
    instructions++;
  }

  pid_t child_;
  Range excluded_;
  std::uint64_t outside_at_ = 0;  // in the library since a call that returns there; 0: not in it
};

[[noreturn]] void become(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  std::vector<char*> arguments, variables;
  for (const std::string& word : command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  for (const std::string& variable : environment)
    variables.push_back(const_cast<char*>(variable.c_str()));
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0) execve(arguments[0], arguments.data(), variables.data());
  _exit(127);
}

Error ended(int status) {
  if (WIFSIGNALED(status)) return Error{text::format("ended by signal {}", WTERMSIG(status)), "traced program", 0, {}};
  if (WEXITSTATUS(status) == 127)
    return Error{"cannot be traced or started", "traced program", 0,
                 "is ptrace(2) allowed here? (containers: --cap-add=SYS_PTRACE)"};
  return Error{text::format("exit status {}", WEXITSTATUS(status)), "traced program", 0, "its own message is above"};
}

}  // namespace

void begin_counting() {
  raise(SIGTRAP);
}

void end_counting() {
  raise(SIGTRAP);
}

Result<std::vector<std::uint64_t>> count_instructions(const std::vector<std::string>& command,
                                                      const std::vector<std::string>& environment,
                                                      const std::string& excluded) {
  const pid_t child = fork();
  if (child < 0) return system_error("fork failed", errno);
  if (child == 0) become(command, environment);
  std::vector<std::uint64_t> counts;
  int status = 0, signal = 0;
  bool started = false;
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    signal = passed_on(WSTOPSIG(status));
    if (started && WSTOPSIG(status) == SIGTRAP && at_marker(child)) {
      std::uint64_t instructions = 0;
      Stepper stepper(child, code_of(child, excluded));
      if (stepper.count(instructions)) counts.push_back(instructions);
    }
    started = true;  // the first stop is execve's
    if (ptrace(PTRACE_CONT, child, nullptr, signal) != 0) break;
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return ended(status);
  return counts;
}

}  // namespace weft::net_compare
