// What an errno of a verbs call usually means, and what to do. Pure; every errno of a call that is known to have a
// cause of its own has a text of its own (field reports F34, F52, R03, R24).
#pragma once

#include <string>

namespace weft::setup {

// RESET -> INIT.
std::string initialise_hint(int code);
// INIT -> RTR; the addresses of both ends.
std::string ready_to_receive_hint(int code, const std::string& from, const std::string& to);
// RTR -> RTS.
std::string ready_to_send_hint(int code);
// Creating something of which the device has `most`: "queue pairs".
std::string create_hint(int code, const char* kind, long most);
enum class MemoryKind { host, peer_memory, dmabuf };
// Registering memory; looks at this process's limit.
std::string register_hint(int code, MemoryKind kind);
std::string open_hint(int code);

}  // namespace weft::setup
