// A tar archive, unpacked into a folder of its own as a careful program unpacks it.
#pragma once

#include <string>
#include <vector>

#include "bench/weft/process/child.h"

namespace weft::save_tree {

class Unpacked {
 public:
  explicit Unpacked(const std::string& file);

  const std::string& root() const { return folder_.path(); }
  const std::vector<std::string>& members() const { return members_; }
  // Empty where all went well; members that go through a link, begin at the root or have ".." in them do not.
  const std::string& trouble() const { return trouble_; }

 private:
  process::TemporaryFolder folder_;
  std::vector<std::string> members_;
  std::string trouble_;
};

}  // namespace weft::save_tree
