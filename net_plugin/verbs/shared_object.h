// A library that is opened at run time and closed when its last user has gone.
#pragma once

namespace weft::verbs {

class SharedObject {
 public:
  // Test it: false where it can't be opened; dlerror(3) then says why.
  explicit SharedObject(const char* name);
  SharedObject(SharedObject&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  SharedObject& operator=(SharedObject&&) = delete;
  ~SharedObject();
  explicit operator bool() const { return handle_ != nullptr; }

  // Null, and false, where the library lacks the symbol in this version.
  template <class Function>
  bool find(Function& function, const char* name, const char* version) const {
    function = reinterpret_cast<Function>(address(name, version));
    return function != nullptr;
  }

 private:
  void* address(const char* name, const char* version) const;

  void* handle_;
};

// Looks up what a library must have, each name under the version node that rdma-core exports it with; the first one
// that is missing is reported.
class Required {
 public:
  Required(const SharedObject& library, const char* version) : library_(library), version_(version) {}
  template <class Function>
  void find(Function& function, const char* name) {
    if (!library_.find(function, name, version_) && !missing_) missing_ = name;
  }
  // Null: nothing is missing.
  const char* missing() const { return missing_; }

 private:
  const SharedObject& library_;
  const char* version_;
  const char* missing_ = nullptr;
};

}  // namespace weft::verbs
