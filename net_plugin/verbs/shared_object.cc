#include "net_plugin/verbs/shared_object.h"

#include <dlfcn.h>

namespace weft::verbs {

SharedObject::SharedObject(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}

SharedObject::~SharedObject() {
  if (handle_) dlclose(handle_);
}

void* SharedObject::address(const char* name, const char* version) const {
  return handle_ ? dlvsym(handle_, name, version) : nullptr;
}

}  // namespace weft::verbs
