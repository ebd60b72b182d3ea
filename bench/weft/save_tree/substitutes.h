// Stand-ins for what tells a host or its owner: IP addresses and GIDs, MAC addresses, GUIDs, names. The same value gets
// the same stand-in for the life of an object; another object gives others, and nothing leads back.
//
// What a choice of NICs goes by stays: two addresses share as many leading bits as before, so they are in one subnet or
// range exactly where they were; IPv4-mapped, private, shared (100.64/10), link-local, loopback, multicast and unique
// local addresses stay what they are; an interface identifier made from a MAC address is made from its stand-in.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft::save_tree {

using Address = std::array<std::uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d

class Substitutes {
 public:
  using Words = std::vector<std::pair<std::string, std::string>>;

  // `words`: what stands for names wherever they occur, the first one first. `random_bit`: the system's, where empty.
  explicit Substitutes(Words words, std::function<bool()> random_bit = {});

  Address address(const Address& original);
  // 16 hexadecimal digits or the first few of them; all zeros stay.
  std::string guid(const std::string& digits);
  // 12 hexadecimal digits or the first few of them.
  std::string mac(const std::string& digits);
  // All of these in a text, in the ways they are written, the names that udev makes of MAC addresses and GUIDs too.
  std::string text(const std::string& original);

 private:
  bool flips(const std::string& key);
  std::string word(const std::string& original, int range_length);
  std::optional<std::string> as_address(const std::string& word, int range_length);
  std::string name(const std::string& word);

  Words words_;
  std::function<bool()> random_bit_;
  std::map<std::string, bool> flips_;  // by the kind of value and the bits before this one
};

}  // namespace weft::save_tree
