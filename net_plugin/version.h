// The release, as it appears in logs and handshakes.
#pragma once

namespace weft {

inline constexpr const char kVersion[] = WEFT_VERSION;  // from CMakeLists.txt

}  // namespace weft
