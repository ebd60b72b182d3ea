// Running another program to its end.
#pragma once

#include <string>
#include <vector>

#include "common/result/result.h"

namespace weft::process {

struct Ended {
  int code = 0;              // exit status; 128 + signal number where a signal ended it
  bool interrupted = false;  // by Ctrl-C
  std::string output;        // what it wrote to standard output and error, together; the last 64 KiB
};

// Ctrl-C goes to the program, which cleans up after itself; this process waits for it and goes on. An error only where
// the program could not be started.
Result<Ended> run(const std::vector<std::string>& words);

// Starts a program in the background and reads its output when waited for.
class Background {
 public:
  static Result<Background> start(const std::vector<std::string>& words);
  Background(Background&& other) noexcept;
  Background& operator=(Background&&) = delete;
  ~Background();  // ends a program that is still running

  Ended wait();

 private:
  Background(int process, int output) : process_(process), output_(output) {}

  int process_;
  int output_;
};

// The folder of this program's file.
std::string own_folder();

// A fresh folder that goes with the object.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace weft::process
