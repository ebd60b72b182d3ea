// A private place for an emulated fabric: own mount, network, PID and, for an ordinary user, user namespace. Everything
// that is made inside (network namespaces, links, mounts, processes) goes with the last process, however it ends;
// nothing is left on the machine.
#pragma once

#include <functional>
#include <string>

#include "common/result/result.h"

namespace weft::fabric {

// Runs `work` in a process that is process 1 of new namespaces and dies when the caller dies. Returns the number of the
// caller's child that stands for it: ending that child ends everything. What the machine lacks is said on stderr and is
// exit status 3.
Result<int> start_isolated(const std::function<int()>& work);
// Work's result, 128 + N when signal N ended it.
Result<int> await_isolated(int child);

// Makes a network namespace that `ip -n NAME` and enter_network() know.
Result<void> make_network(const std::string& name);
// Moves the calling thread into it.
Result<void> enter_network(const std::string& name);
// A private mount namespace in which /sys shows the network namespace entered before.
Result<void> remount_sysfs();

// Moves the calling process into the namespaces of an isolated process (setns(2)); children will be in its PID
// namespace.
Result<void> join_isolated(int process);

}  // namespace weft::fabric
