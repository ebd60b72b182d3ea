// Errors as values. A failing function says what failed, where, with which errno, and what to do about it; the text is
// made once, at the boundary that shows it to a person (a log line, a command's error).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace weft {

struct Error {
  std::string what;   // what failed, with the offending value: "cannot open /x/y", "NCCL_IB_TC=300"
  std::string where;  // object it failed on: a file and line, a JSON path, "mlx5_0:1 -> 192.0.2.11"; may be empty
  int code = 0;       // errno, 0 where none applies
  std::string hint;   // allowed values or the remedy; may be empty

  // "where: what: errno text (errno N); hint" with the empty parts left out.
  std::string text() const;
};

// Error with the errno of the call that has just failed.
Error system_error(std::string what, int code, std::string where = {}, std::string hint = {});

// errno as its symbolic name ("ENOENT"), "errno 4711" for one without.
std::string errno_name(int code);

// Either a value or an Error. Not assignable from both sides by accident: an Error converts, a T converts.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Only where ok(); undefined otherwise.
  T& value() { return *std::get_if<0>(&state_); }
  const T& value() const { return *std::get_if<0>(&state_); }
  T take() { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }

  // Only where !ok().
  const Error& error() const { return *std::get_if<1>(&state_); }
  Error take_error() { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return error_; }
  Error take_error() { return std::move(error_); }

 private:
  Error error_;
  bool failed_ = false;
};

}  // namespace weft
