// SHA-256 (FIPS 180-4), for the digest that proves all ranks read the same profile.
#pragma once

#include <string>
#include <string_view>

namespace weft::profile {

// 64 lower-case hexadecimal digits.
std::string sha256(std::string_view data);

}  // namespace weft::profile
