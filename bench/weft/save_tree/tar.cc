#include "bench/weft/save_tree/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "common/text/format.h"

namespace weft::save_tree {
namespace {

constexpr mode_t kFileMode = 0644, kFolderMode = 0755, kLinkMode = 0777;

// A file that is being made: closed and removed unless it was kept.
class NewFile {
 public:
  explicit NewFile(const std::string& path)
      : path_(path), descriptor_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {}
  ~NewFile() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    unlink(path_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int descriptor() const { return descriptor_; }
  // errno, 0 for success: some file systems say only now that there was no room.
  int keep() {
    if (fsync(descriptor_) != 0 && errno != EINVAL) return errno;
    if (close(descriptor_) != 0) {
      descriptor_ = -1;
      const int problem = errno;
      unlink(path_.c_str());
      return problem;
    }
    descriptor_ = -1;
    return 0;
  }

 private:
  std::string path_;
  int descriptor_;
};

using Archive = std::unique_ptr<archive, decltype(&archive_write_free)>;
using ArchiveEntry = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

// What libarchive says went wrong; of some things it has no errno.
Error problem_of(archive* out, const std::string& where) {
  const int code = archive_errno(out);
  if (code > 0) return system_error("cannot write", code, where);
  const char* message = archive_error_string(out);
  return Error{message ? message : "cannot write", where, 0, {}};
}

Result<void> add(archive* out, const std::string& path, const Entry& entry) {
  const ArchiveEntry header(archive_entry_new(), &archive_entry_free);
  archive_entry_set_pathname(header.get(), path.c_str());
  archive_entry_set_mtime(header.get(), 0, 0);
  if (entry.kind == Entry::Kind::folder) {
    archive_entry_set_filetype(header.get(), AE_IFDIR);
    archive_entry_set_perm(header.get(), kFolderMode);
  } else if (entry.kind == Entry::Kind::link) {
    archive_entry_set_filetype(header.get(), AE_IFLNK);
    archive_entry_set_perm(header.get(), kLinkMode);
    archive_entry_set_symlink(header.get(), entry.content.c_str());
  } else {
    archive_entry_set_filetype(header.get(), AE_IFREG);
    archive_entry_set_perm(header.get(), kFileMode);
    archive_entry_set_size(header.get(), la_int64_t(entry.content.size()));
  }
  if (archive_write_header(out, header.get()) != ARCHIVE_OK) return problem_of(out, path);
  if (entry.kind == Entry::Kind::file &&
      archive_write_data(out, entry.content.data(), entry.content.size()) != la_ssize_t(entry.content.size()))
    return problem_of(out, path);
  return {};
}

Result<void> write_entries(archive* out, const Entries& entries, int descriptor) {
  archive_write_set_format_pax_restricted(out);
  if (archive_write_open_fd(out, descriptor) != ARCHIVE_OK) return problem_of(out, {});
  for (const auto& [path, entry] : entries) {
    if (auto added = add(out, path, entry); !added) return added;
  }
  if (archive_write_close(out) != ARCHIVE_OK) return problem_of(out, {});
  return {};
}

}  // namespace

Result<void> write_tar(const Entries& entries, const std::string& file) {
  NewFile made(file);
  if (made.descriptor() < 0) {
    const int problem = errno;
    return system_error("cannot be made", problem, file,
                        problem == EEXIST ? "what is there is not overwritten: remove it or name another file"
                                          : "name a file in a folder that is there and can be written");
  }
  const Archive out(archive_write_new(), &archive_write_free);
  auto written = write_entries(out.get(), entries, made.descriptor());
  if (written) {
    const int problem = made.keep();
    if (problem == 0) return {};
    written = system_error("cannot write", problem);
  }
  return Error{text::format("not written to its end, and removed again: {}", written.error().text()), file, 0,
               "is there room on this file system (df), and no limit of the file's size (ulimit -f)?"};
}

}  // namespace weft::save_tree
