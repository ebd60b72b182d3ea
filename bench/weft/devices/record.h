// A look at a host that is written down: the tree that gives the same choice elsewhere.
#pragma once

#include "bench/weft/devices/look.h"
#include "bench/weft/save_tree/file_record.h"
#include "bench/weft/save_tree/substitutes.h"

namespace weft::devices_command {

struct Recorded {
  Report report;
  save_tree::Entries tree;
};

// The tree has been tried: an error where the choice made from it is another one.
Result<Recorded> record(Host host, save_tree::Substitutes& substitutes);

// Names of this host and its user, which a tree must not have in it.
save_tree::Substitutes::Words names_of_this_host();

}  // namespace weft::devices_command
