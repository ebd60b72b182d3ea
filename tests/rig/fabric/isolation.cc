#include "tests/rig/fabric/isolation.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "common/text/format.h"
#include "tests/rig/fabric/command.h"

namespace weft::fabric {
namespace {

constexpr const char* kNetworks = "/run/netns";

Error lacking(const char* what, int code) {
  return system_error(what, code, "namespaces",
                      geteuid() == 0
                          ? "this system does not let root make namespaces (a container without CAP_SYS_ADMIN?)"
                          : "run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1 "
                            "(Debian), kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu)");
}

bool write_file(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return bool(file);
}

// In a user namespace of our own the caller is root.
Result<void> become_root_inside(uid_t user, gid_t group) {
  if (!write_file("/proc/self/setgroups", "deny") || !write_file("/proc/self/uid_map", text::format("0 {} 1", user)) ||
      !write_file("/proc/self/gid_map", text::format("0 {} 1", group))) {
    return lacking("cannot map the user into a user namespace", errno);
  }
  return {};
}

Result<void> prepare_mounts() {
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return lacking("cannot make mounts private", errno);
  if (mount("proc", "/proc", "proc", 0, nullptr) != 0) return lacking("cannot mount /proc", errno);
  if (mount("rig", "/run", "tmpfs", 0, "mode=755") != 0) return lacking("cannot mount /run", errno);
  if (mkdir(kNetworks, 0755) != 0) return lacking("cannot make /run/netns", errno);
  return {};
}

// From here on this process dies with its parent. Where the parent has died already, `life` (a pipe whose other end it
// alone had) is at its end.
bool tie_to_parent(int life) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pollfd look{life, POLLIN, 0};
  return poll(&look, 1, 0) == 0;
}

int first_process(const std::function<int()>& work) {
  if (auto ready = prepare_mounts(); !ready) {
    std::fprintf(stderr, "rig: %s\n", ready.error().text().c_str());
    return 3;
  }
  return work();
}

}  // namespace

Result<int> start_isolated(const std::function<int()>& work) {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  const int flags = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | (user == 0 ? 0 : CLONE_NEWUSER);
  int life[2];
  if (pipe2(life, O_CLOEXEC) != 0) return system_error("pipe failed", errno);
  // An intermediate process, so that the caller's own namespaces stay as they are.
  std::fflush(nullptr);
  const pid_t middle = fork();
  if (middle < 0) return system_error("fork failed", errno);
  if (middle == 0) {
    close(life[1]);
    int own_life[2];
    if (!tie_to_parent(life[0]) || pipe2(own_life, O_CLOEXEC) != 0) _exit(3);
    if (unshare(flags) != 0) {
      std::fprintf(stderr, "rig: %s\n", lacking("cannot make namespaces", errno).text().c_str());
      _exit(3);
    }
    if (user != 0) {
      if (auto mapped = become_root_inside(user, group); !mapped) {
        std::fprintf(stderr, "rig: %s\n", mapped.error().text().c_str());
        _exit(3);
      }
    }
    const pid_t first = fork();
    if (first < 0) _exit(3);
    if (first == 0) {
      close(own_life[1]);
      const int code = tie_to_parent(own_life[0]) ? first_process(work) : 3;
      std::fflush(nullptr);
      _exit(code);
    }
    int status = 0;
    while (waitpid(first, &status, 0) < 0 && errno == EINTR) {
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  close(life[0]);  // the other end stays open as long as the caller lives
  return int(middle);
}

Result<int> await_isolated(int child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return system_error("waitpid failed", errno);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<void> make_network(const std::string& name) {
  auto made = must_run({"ip", "netns", "add", name});
  if (!made) return made.take_error();
  return {};
}

Result<void> enter_network(const std::string& name) {
  const std::string path = text::format("{}/{}", kNetworks, name);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return system_error("no such host, leaf or spine", errno, path);
  const int failed = setns(file, CLONE_NEWNET) != 0 ? errno : 0;
  close(file);
  if (failed) return system_error("setns failed", failed, path);
  return {};
}

Result<void> remount_sysfs() {
  if (unshare(CLONE_NEWNS) != 0) return lacking("cannot make a mount namespace", errno);
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return lacking("cannot make mounts private", errno);
  if (mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0) return lacking("cannot mount /sys", errno);
  return {};
}

Result<void> join_isolated(int process) {
  struct Namespace {
    const char* kind;
    int file;
  };
  // All are opened before the first is joined: /proc is another one afterwards.
  Namespace all[] = {{"user", -1}, {"mnt", -1}, {"net", -1}, {"pid_for_children", -1}};
  for (Namespace& one : all) {
    const std::string path = text::format("/proc/{}/ns/{}", process, one.kind);
    one.file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (one.file < 0) return system_error("the standing rig has gone", errno, path, "rig up");
  }
  for (const Namespace& one : all) {
    const int failed = setns(one.file, 0) != 0 ? errno : 0;
    close(one.file);
    // Joining the user namespace that one is in already is refused; for root there is none to join.
    if (failed && std::string(one.kind) != "user") return system_error("setns failed", failed, one.kind);
  }
  return {};
}

}  // namespace weft::fabric
