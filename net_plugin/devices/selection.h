// NCCL_IB_HCA: which ports the user wants. Pure. Grammar as NCCL's: [^][=]name[:port],…
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/result/result.h"

namespace weft::devices {

struct SelectionToken {
  std::string name;
  int port = -1;  // -1: every port
};

struct Selection {
  bool exclude = false;
  bool whole_names = false;  // else prefixes
  std::vector<SelectionToken> tokens;

  // An empty selection takes everything.
  bool takes(const std::string& device, int port) const;
};

Result<Selection> parse_selection(const std::string& text);

struct PortName {
  std::string device;
  int port = 1;
};

// Remarks for the user: a prefix that matched more devices than its own name (F15).
std::vector<std::string> surprises(const Selection& selection, const std::vector<PortName>& ports);
// A token that matches nothing is a mistake, unless it excludes.
std::optional<Error> unmatched(const Selection& selection, const std::vector<PortName>& ports);

}  // namespace weft::devices
