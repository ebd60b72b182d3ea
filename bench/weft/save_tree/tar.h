// Writes a tree as a tar archive, through libarchive.
#pragma once

#include <string>

#include "bench/weft/save_tree/file_record.h"
#include "common/result/result.h"

namespace weft::save_tree {

// A file that is there is not overwritten (EEXIST); one that can't be written to its end is removed again. Owners,
// times and modes of the archive's members say nothing.
Result<void> write_tar(const Entries& entries, const std::string& file);

}  // namespace weft::save_tree
