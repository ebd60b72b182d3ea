#include "bench/weft/save_tree/substitutes.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "bench/weft/save_tree/hexadecimal.h"
#include "net_plugin/devices/gid.h"

namespace weft::save_tree {
namespace {

constexpr int kIdentifier = 64;  // first bit of an IPv6 address's interface identifier
constexpr std::size_t kMacDigits = 12, kGuidDigits = 16;
// A shorter name is replaced only where it stands alone: "a" is in every other word.
constexpr std::size_t kShortName = 4;

// Ranges that mean something: an address in one keeps the range's bits, and no other address comes to lie in it.
const std::vector<devices::AddressRange>& special_ranges() {
  static const std::vector<devices::AddressRange> ranges = [] {
    std::vector<devices::AddressRange> out;
    for (const char* range :
         {"::/128", "::1/128", "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
          "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/4", "fe80::/64", "fc00::/7", "ff00::/8"}) {
      out.push_back(devices::parse_range(range).take());
    }
    return out;
  }();
  return ranges;
}

bool bit(const Address& address, int place) {
  return (address[std::size_t(place / 8)] >> (7 - place % 8) & 1) != 0;
}

void set_bit(Address& address, int place, bool value) {
  if (value) address[std::size_t(place / 8)] |= std::uint8_t(0x80 >> place % 8);
}

bool same_bits(const Address& left, const Address& right, int begin, int end) {
  for (int place = begin; place < end; place++) {
    if (bit(left, place) != bit(right, place)) return false;
  }
  return true;
}

bool leads_to_special_range(const Address& address, int place) {
  return std::any_of(special_ranges().begin(), special_ranges().end(), [&](const devices::AddressRange& range) {
    return place < range.length && same_bits(address, range.prefix, 0, place);
  });
}

// The universal/local and the group bit of an identifier, and ff:fe in the middle of one that was made from a MAC
// address (RFC 4291, appendix A).
bool is_form_of_identifier(const Address& address, int place) {
  constexpr int kLocal = kIdentifier + 6, kGroup = kIdentifier + 7, kMiddle = kIdentifier + 24;
  constexpr Address kMark = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe};
  if (place == kLocal || place == kGroup) return true;
  return place >= kMiddle && place < kMiddle + 16 && same_bits(address, kMark, kMiddle, place);
}

// The digits of "aa:bb:cc:…", of groups of this length; empty where the word is not of this form.
std::string digits_of_groups(const std::string& word, char separator, std::size_t length, std::size_t count) {
  if (word.size() != (length + 1) * count - 1) return {};
  std::string digits;
  for (std::size_t i = 0; i < word.size(); i++) {
    if (i % (length + 1) != length)
      digits += word[i];
    else if (word[i] != separator)
      return {};
  }
  return is_hexadecimal(digits) ? digits : std::string();
}

std::string grouped(const std::string& digits, char separator, std::size_t length) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); i++) {
    if (i != 0 && i % length == 0) out += separator;
    out += digits[i];
  }
  return out;
}

// What follows one of these in a name; empty where the name is not made so.
std::string digits_after(const std::string& name, const std::vector<std::string>& beginnings, std::size_t most) {
  for (const std::string& beginning : beginnings) {
    if (name.rfind(beginning, 0) != 0) continue;
    const std::string rest = name.substr(beginning.size());
    if (rest.size() <= most && is_hexadecimal(rest)) return rest;
  }
  return {};
}

void replace_name(std::string& text, const std::string& name, const std::string& by) {
  const auto is_part_of_word = [&](std::size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at]));
  };
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;) {
    const bool alone = (at == 0 || !is_part_of_word(at - 1)) && !is_part_of_word(at + name.size());
    if (name.size() >= kShortName || alone) text.replace(at, name.size(), by);
    at += name.size() >= kShortName || alone ? by.size() : 1;
  }
}

bool is_of_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) || std::strchr(":._-", letter) != nullptr;
}

}  // namespace

Substitutes::Substitutes(Words words, std::function<bool()> random_bit)
    : words_(std::move(words)), random_bit_(std::move(random_bit)) {
  std::erase_if(words_, [](const auto& word) { return word.first.empty(); });
  if (!random_bit_) random_bit_ = [source = std::make_shared<std::random_device>()] { return ((*source)() & 1) != 0; };
}

bool Substitutes::flips(const std::string& key) {
  const auto known = flips_.find(key);
  return known != flips_.end() ? known->second : flips_.emplace(key, random_bit_()).first->second;
}

// A bit is turned over or not by the bits before it alone: whatever shares them goes the same way up to the first bit
// that differs. An identifier goes by its own bits, so that it is the same under every prefix.
Address Substitutes::address(const Address& original) {
  Address out{};
  const bool with_identifier = !same_bits(original, Address{}, 0, kIdentifier);
  std::string key = "address ";
  for (int place = 0; place < 128; place++) {
    const bool in_identifier = with_identifier && place >= kIdentifier;
    if (in_identifier && place == kIdentifier) key = "identifier ";
    const bool kept =
        leads_to_special_range(original, place) || (in_identifier && is_form_of_identifier(original, place));
    set_bit(out, place, bit(original, place) != (!kept && flips(key)));
    key += bit(original, place) ? '1' : '0';
  }
  return out;
}

std::string Substitutes::guid(const std::string& digits) {
  if (digits.find_first_not_of('0') == std::string::npos) return digits;
  std::string out, key = "guid ";
  for (const char digit : digits) {
    std::uint8_t nibble = 0;
    for (int place = 3; place >= 0; place--) {
      const bool set = (value_of(digit) >> place & 1) != 0;
      nibble = std::uint8_t(nibble << 1 | (set != flips(key)));
      key += set ? '1' : '0';
    }
    out += to_hexadecimal({&nibble, 1})[1];
  }
  return out;
}

std::string Substitutes::mac(const std::string& digits) {
  std::array<std::uint8_t, 6> bytes{};
  for (std::size_t i = 0; i < digits.size(); i++)
    bytes[i / 2] |= std::uint8_t(value_of(digits[i]) << (i % 2 == 0 ? 4 : 0));
  // As the interface identifier that it makes, so that the two stay of one card.
  constexpr std::uint8_t kLocal = 2;
  const Address made = address({0xfe, 0x80, 0, 0, 0, 0, 0, 0, std::uint8_t(bytes[0] ^ kLocal), bytes[1], bytes[2], 0xff,
                                0xfe, bytes[3], bytes[4], bytes[5]});
  bytes = {std::uint8_t(made[8] ^ kLocal), made[9], made[10], made[13], made[14], made[15]};
  return to_hexadecimal(bytes).substr(0, digits.size());
}

std::string Substitutes::text(const std::string& original) {
  std::string named = original;
  for (const auto& [name, by] : words_)
    replace_name(named, name, by);
  std::string out;
  for (std::size_t at = 0; at < named.size();) {
    std::size_t end = at;
    while (end < named.size() && is_of_word(named[end]))
      end++;
    if (end == at) {
      out += named[at++];
      continue;
    }
    const bool range =
        end + 1 < named.size() && named[end] == '/' && std::isdigit(static_cast<unsigned char>(named[end + 1]));
    out += word(named.substr(at, end - at), range ? std::atoi(named.c_str() + end + 1) : -1);
    at = end;
  }
  return out;
}

// `range_length`: what follows after a slash; -1 where nothing does.
std::string Substitutes::word(const std::string& original, int range_length) {
  for (const char separator : {':', '-'}) {
    const std::string digits = digits_of_groups(original, separator, 2, 6);
    if (!digits.empty()) return grouped(mac(digits), separator, 2);
  }
  const std::string digits = digits_of_groups(original, ':', 4, 4);
  if (!digits.empty()) return grouped(guid(digits), ':', 4);
  if (auto made = as_address(original, range_length)) return *made;
  if (original.size() > 1 && (original.back() == ':' || original.back() == '.')) {
    return word(original.substr(0, original.size() - 1), -1) + original.back();
  }
  const std::size_t colon = original.find(':');
  if (colon == std::string::npos) return name(original);
  return name(original.substr(0, colon)) + original.substr(colon);
}

std::optional<std::string> Substitutes::as_address(const std::string& word, int range_length) {
  const bool ipv4 = word.find(':') == std::string::npos;
  constexpr int kIpv4At = 12, kIpv4Bits = 96;
  Address parsed = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (inet_pton(ipv4 ? AF_INET : AF_INET6, word.c_str(), parsed.data() + (ipv4 ? kIpv4At : 0)) != 1)
    return std::nullopt;
  Address made = address(parsed);
  // Of a range, the bits behind it say nothing.
  for (int place = range_length < 0 ? 128 : range_length + (ipv4 ? kIpv4Bits : 0); place < 128; place++)
    made[std::size_t(place / 8)] &= std::uint8_t(~(0x80 >> place % 8));
  char out[INET6_ADDRSTRLEN];
  inet_ntop(ipv4 ? AF_INET : AF_INET6, made.data() + (ipv4 ? kIpv4At : 0), out, sizeof out);
  return out;
}

// "enx…" and their like have a MAC address in them, "rocex…" a GUID (udev's net_id and rdma-core's rdma_rename).
std::string Substitutes::name(const std::string& word) {
  std::string digits = digits_after(word, {"enx", "wlx", "wwx", "slx"}, kMacDigits);
  if (!digits.empty()) return word.substr(0, word.size() - digits.size()) + mac(digits);
  digits = digits_after(word, {"rocex", "ibx", "iwx", "opax", "usnicx"}, kGuidDigits);
  if (!digits.empty()) return word.substr(0, word.size() - digits.size()) + guid(digits);
  return word;
}

}  // namespace weft::save_tree
