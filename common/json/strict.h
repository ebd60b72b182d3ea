// Strict reading of JSON files that people write: every field has a type and a range, unknown fields are errors with
// the nearest known name, and all problems of a file are reported together, each with its JSON path.
//
//   json::Problems problems;
//   json::Fields fields(document, "scenario.json", problems);
//   host.name = fields.text("name", json::required);
//   host.nics = fields.integer("nics", 1, {.low = 1, .high = 16});
//   for (json::Fields& nic : fields.objects("nic")) …
//   fields.done();                       // names what was not asked for
//   if (auto error = problems.error()) return *error;
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result/result.h"

namespace weft::json {

// Reads and parses a file; a syntax error names file, line and column. Duplicate keys of one object are an error.
Result<nlohmann::json> read_file(const std::string& path);
Result<nlohmann::json> parse(std::string_view text, const std::string& name);

// The problems of one document, in the order met.
class Problems {
 public:
  void add(std::string path, std::string what, std::string hint = {});
  bool empty() const { return lines_.empty(); }
  const std::vector<std::string>& lines() const { return lines_; }
  // All lines as one Error, nothing where there is none.
  std::optional<Error> error() const;

 private:
  std::vector<std::string> lines_;
};

struct Required {};
inline constexpr Required required{};

// Inclusive bounds and the unit for the message.
template <class T>
struct Range {
  T low = std::numeric_limits<T>::lowest();
  T high = std::numeric_limits<T>::max();
  std::string_view unit = {};
};

// One JSON object being read. A field that is missing or wrong yields a problem and a harmless value (the default, or
// zero/empty for a required one), so that reading goes on and finds the other problems as well.
class Fields {
 public:
  // `path` is how messages name this object, for example "scenario.json: hosts[0]".
  Fields(const nlohmann::json& value, std::string path, Problems& problems);

  bool has(std::string_view key) const;

  std::string text(std::string_view key, Required);
  std::string text(std::string_view key, std::string fallback);
  std::int64_t integer(std::string_view key, Required, const Range<std::int64_t>& range = {});
  std::int64_t integer(std::string_view key, std::int64_t fallback, const Range<std::int64_t>& range = {});
  double number(std::string_view key, Required, const Range<double>& range = {});
  double number(std::string_view key, double fallback, const Range<double>& range = {});
  bool boolean(std::string_view key, Required);
  bool boolean(std::string_view key, bool fallback);
  // One of a closed list of words.
  std::string word(std::string_view key, Required, const std::vector<std::string>& allowed);
  std::string word(std::string_view key, std::string fallback, const std::vector<std::string>& allowed);

  std::vector<std::string> texts(std::string_view key);  // array of strings, empty where absent
  std::vector<std::int64_t> integers(std::string_view key, const Range<std::int64_t>& range = {});
  std::vector<Fields> objects(std::string_view key);   // array of objects, empty where absent
  std::optional<Fields> object(std::string_view key);  // an object, nothing where absent
  const nlohmann::json* raw(std::string_view key);     // any value, marked as known; null where absent
  std::vector<std::string> keys() const;               // the keys present, in file order

  // A problem with a field of this object that only the caller can see.
  void problem(std::string_view key, std::string what, std::string hint = {});
  const std::string& path() const { return path_; }

  // Call last: every field present that was never asked for becomes a problem.
  void done();

 private:
  const nlohmann::json* find(std::string_view key, bool must);
  template <class T, class Check, class Get>
  T scalar(std::string_view key, const std::optional<T>& fallback, std::string_view type, Check check, Get get);
  std::string child(std::string_view key) const;

  const nlohmann::json* value_;
  std::string path_;
  Problems* problems_;
  std::vector<std::string> asked_;
};

}  // namespace weft::json
