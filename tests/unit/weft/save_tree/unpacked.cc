#include "tests/unit/weft/save_tree/unpacked.h"

#include <archive.h>
#include <archive_entry.h>

#include <memory>

namespace weft::save_tree {

Unpacked::Unpacked(const std::string& file) : folder_(process::TemporaryFolder::create().take()) {
  const std::unique_ptr<archive, decltype(&archive_read_free)> in(archive_read_new(), &archive_read_free);
  archive_read_support_format_tar(in.get());
  constexpr std::size_t kBlock = 10240;
  if (archive_read_open_filename(in.get(), file.c_str(), kBlock) != ARCHIVE_OK)
    trouble_ = archive_error_string(in.get());
  archive_entry* entry = nullptr;
  while (trouble_.empty() && archive_read_next_header(in.get(), &entry) == ARCHIVE_OK) {
    const std::string name = archive_entry_pathname(entry);
    members_.push_back(name);
    if (name.empty() || name[0] == '/') trouble_ = name + ": not relative";
    archive_entry_set_pathname(entry, (root() + "/" + name).c_str());
    if (archive_read_extract(in.get(), entry, ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT) !=
        ARCHIVE_OK)
      trouble_ = name + ": " + archive_error_string(in.get());
  }
}

}  // namespace weft::save_tree
