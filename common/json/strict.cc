#include "common/json/strict.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>

#include "common/text/format.h"
#include "common/text/nearest.h"

namespace weft::json {
namespace {

using Value = nlohmann::json;

std::string type_name(const Value& value) {
  if (value.is_number_integer()) return "an integer";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  if (value.is_boolean()) return "true or false";
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  return "null";
}

template <class T>
std::string range_text(const Range<T>& range) {
  const bool low = range.low != std::numeric_limits<T>::lowest();
  const bool high = range.high != std::numeric_limits<T>::max();
  const std::string unit = range.unit.empty() ? "" : text::format(" {}", range.unit);
  if (low && high) return text::format("allowed: {} to {}{}", range.low, range.high, unit);
  if (low) return text::format("allowed: {} or more{}", range.low, unit);
  if (high) return text::format("allowed: up to {}{}", range.high, unit);
  return {};
}

// nlohmann keeps the last of two equal keys; a person who wrote both wants to know.
class DuplicateKeys {
 public:
  bool operator()(int, Value::parse_event_t event, Value& parsed) {
    if (event == Value::parse_event_t::object_start) open_.emplace_back();
    if (event == Value::parse_event_t::object_end) open_.pop_back();
    if (event == Value::parse_event_t::key && !open_.back().insert(parsed.get<std::string>()).second && first.empty()) {
      first = parsed.get<std::string>();
    }
    return true;
  }
  std::string first;

 private:
  std::vector<std::set<std::string>> open_;
};

std::string position(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte > 0 ? byte - 1 : 0, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n');
  const auto column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return text::format("{}:{}", line, column);
}

}  // namespace

Result<Value> parse(std::string_view text, const std::string& name) {
  DuplicateKeys duplicates;
  Value value;
  try {
    value = Value::parse(text, std::ref(duplicates));
  } catch (const Value::parse_error& failure) {
    return Error{"not valid JSON", text::format("{}:{}", name, position(text, failure.byte)), 0,
                 "the text up to this place is not JSON: look for a missing comma, quote or bracket"};
  }
  if (!duplicates.first.empty()) {
    return Error{text::format("the field \"{}\" stands twice in one object", duplicates.first), name, 0, "remove one"};
  }
  return value;
}

Result<Value> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return system_error("cannot open", errno, path);
  std::ostringstream content;
  content << file.rdbuf();
  if (file.bad()) return system_error("cannot read", errno, path);
  return parse(content.str(), path);
}

void Problems::add(std::string path, std::string what, std::string hint) {
  lines_.push_back(Error{std::move(what), std::move(path), 0, std::move(hint)}.text());
}

std::optional<Error> Problems::error() const {
  if (lines_.empty()) return std::nullopt;
  return Error{text::join(lines_, "\n"), {}, 0, {}};
}

Fields::Fields(const Value& value, std::string path, Problems& problems)
    : value_(&value), path_(std::move(path)), problems_(&problems) {
  if (!value.is_object()) {
    static const Value nothing = Value::object();
    problems.add(path_, text::format("is {}", type_name(value)), "an object { … } is expected here");
    value_ = &nothing;
  }
}

std::string Fields::child(std::string_view key) const {
  return path_.empty() ? std::string(key) : text::format("{}.{}", path_, key);
}

bool Fields::has(std::string_view key) const {
  return value_->contains(key);
}

const Value* Fields::find(std::string_view key, bool must) {
  asked_.emplace_back(key);
  const auto found = value_->find(key);
  if (found != value_->end()) return &*found;
  if (must) problems_->add(path_, text::format("the field \"{}\" is missing", key), "it has no default");
  return nullptr;
}

template <class T, class Check, class Get>
T Fields::scalar(std::string_view key, const std::optional<T>& fallback, std::string_view type, Check check, Get get) {
  const T otherwise = fallback.value_or(T{});
  const Value* found = find(key, !fallback);
  if (!found) return otherwise;
  if (!check(*found)) {
    problems_->add(child(key), text::format("is {} ({})", type_name(*found), found->dump()),
                   text::format("{} is expected", type));
    return otherwise;
  }
  return get(*found, otherwise);
}

namespace {

struct IsText {
  bool operator()(const Value& value) const { return value.is_string(); }
};
struct IsInteger {
  bool operator()(const Value& value) const { return value.is_number_integer(); }
};
struct IsNumber {
  bool operator()(const Value& value) const { return value.is_number(); }
};
struct IsBoolean {
  bool operator()(const Value& value) const { return value.is_boolean(); }
};

// Reads a number and keeps it inside its range.
template <class T>
auto in_range(const Range<T>& range, Problems& problems, std::string path) {
  return [&range, &problems, path = std::move(path)](const Value& value, T otherwise) {
    const bool too_large = value.is_number_unsigned() &&
                           value.get<std::uint64_t>() > std::uint64_t(std::numeric_limits<std::int64_t>::max());
    const T number = value.get<T>();
    if (too_large || number < range.low || number > range.high) {
      problems.add(path, text::format("{} is out of range", value.dump()), range_text(range));
      return otherwise;
    }
    return number;
  };
}

std::string get_text(const Value& value, const std::string&) {
  return value.get<std::string>();
}
bool get_boolean(const Value& value, bool) {
  return value.get<bool>();
}

}  // namespace

std::string Fields::text(std::string_view key, Required) {
  return scalar<std::string>(key, std::nullopt, "a string", IsText{}, get_text);
}
std::string Fields::text(std::string_view key, std::string fallback) {
  return scalar<std::string>(key, std::optional(std::move(fallback)), "a string", IsText{}, get_text);
}
std::int64_t Fields::integer(std::string_view key, Required, const Range<std::int64_t>& range) {
  return scalar<std::int64_t>(key, std::nullopt, "an integer", IsInteger{}, in_range(range, *problems_, child(key)));
}
std::int64_t Fields::integer(std::string_view key, std::int64_t fallback, const Range<std::int64_t>& range) {
  return scalar<std::int64_t>(key, fallback, "an integer", IsInteger{}, in_range(range, *problems_, child(key)));
}
double Fields::number(std::string_view key, Required, const Range<double>& range) {
  return scalar<double>(key, std::nullopt, "a number", IsNumber{}, in_range(range, *problems_, child(key)));
}
double Fields::number(std::string_view key, double fallback, const Range<double>& range) {
  return scalar<double>(key, fallback, "a number", IsNumber{}, in_range(range, *problems_, child(key)));
}
bool Fields::boolean(std::string_view key, Required) {
  return scalar<bool>(key, std::nullopt, "true or false", IsBoolean{}, get_boolean);
}
bool Fields::boolean(std::string_view key, bool fallback) {
  return scalar<bool>(key, fallback, "true or false", IsBoolean{}, get_boolean);
}

namespace {

std::string allowed_words(const std::string& given, const std::vector<std::string>& allowed) {
  std::string hint = "allowed: " + text::join(allowed);
  if (const auto close = text::nearest(given, allowed)) hint += text::format("; did you mean \"{}\"?", *close);
  return hint;
}

}  // namespace

std::string Fields::word(std::string_view key, Required, const std::vector<std::string>& allowed) {
  const std::string given = text(key, required);
  if (given.empty() && !has(key)) return given;
  if (std::find(allowed.begin(), allowed.end(), given) == allowed.end() && (*value_)[std::string(key)].is_string()) {
    problems_->add(child(key), text::format("\"{}\" is not known", given), allowed_words(given, allowed));
  }
  return given;
}

std::string Fields::word(std::string_view key, std::string fallback, const std::vector<std::string>& allowed) {
  if (!has(key)) {
    asked_.emplace_back(key);
    return fallback;
  }
  return word(key, required, allowed);
}

std::vector<std::string> Fields::texts(std::string_view key) {
  std::vector<std::string> out;
  const Value* found = find(key, false);
  if (!found) return out;
  if (!found->is_array()) {
    problems_->add(child(key), text::format("is {}", type_name(*found)), "an array of strings is expected");
    return out;
  }
  for (std::size_t i = 0; i < found->size(); i++) {
    if ((*found)[i].is_string()) {
      out.push_back((*found)[i].get<std::string>());
    } else {
      problems_->add(text::format("{}[{}]", child(key), i), text::format("is {}", type_name((*found)[i])),
                     "a string is expected");
    }
  }
  return out;
}

std::vector<std::int64_t> Fields::integers(std::string_view key, const Range<std::int64_t>& range) {
  std::vector<std::int64_t> out;
  const Value* found = find(key, false);
  if (!found) return out;
  if (!found->is_array()) {
    problems_->add(child(key), text::format("is {}", type_name(*found)), "an array of integers is expected");
    return out;
  }
  for (std::size_t i = 0; i < found->size(); i++) {
    const std::string place = text::format("{}[{}]", child(key), i);
    if ((*found)[i].is_number_integer()) {
      out.push_back(in_range(range, *problems_, place)((*found)[i], 0));
    } else {
      problems_->add(place, text::format("is {}", type_name((*found)[i])), "an integer is expected");
    }
  }
  return out;
}

std::vector<Fields> Fields::objects(std::string_view key) {
  std::vector<Fields> out;
  const Value* found = find(key, false);
  if (!found) return out;
  if (!found->is_array()) {
    problems_->add(child(key), text::format("is {}", type_name(*found)), "an array of objects is expected");
    return out;
  }
  for (std::size_t i = 0; i < found->size(); i++) {
    out.emplace_back((*found)[i], text::format("{}[{}]", child(key), i), *problems_);
  }
  return out;
}

std::optional<Fields> Fields::object(std::string_view key) {
  const Value* found = find(key, false);
  if (!found) return std::nullopt;
  return Fields(*found, child(key), *problems_);
}

const Value* Fields::raw(std::string_view key) {
  return find(key, false);
}

std::vector<std::string> Fields::keys() const {
  std::vector<std::string> out;
  for (const auto& item : value_->items())
    out.push_back(item.key());
  return out;
}

void Fields::problem(std::string_view key, std::string what, std::string hint) {
  problems_->add(key.empty() ? path_ : child(key), std::move(what), std::move(hint));
}

void Fields::done() {
  for (const std::string& key : keys()) {
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    std::vector<std::string> known = asked_;
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    std::string hint = "known fields: " + text::join(known);
    if (const auto close = text::nearest(key, known)) hint = text::format("did you mean \"{}\"? {}", *close, hint);
    problems_->add(path_, text::format("the field \"{}\" is not known", key), hint);
  }
}

}  // namespace weft::json
