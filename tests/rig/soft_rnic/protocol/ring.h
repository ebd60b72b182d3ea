// A first-in-first-out queue of fixed capacity whose elements stay in place and are reused, so that queueing allocates
// nothing.
#pragma once

#include <cstddef>
#include <vector>

namespace weft::soft_rnic {

template <class T>
class Ring {
 public:
  explicit Ring(std::size_t capacity) : slots_(capacity) {}

  std::size_t capacity() const { return slots_.size(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == slots_.size(); }

  // The index counts from the oldest element.
  T& operator[](std::size_t index) { return slots_[place(index)]; }
  const T& operator[](std::size_t index) const { return slots_[place(index)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }

  // The slot that push() will append; holds whatever it held before. Only while not full.
  T& next() { return slots_[place(size_)]; }
  void push() { ++size_; }
  void push(T value) {
    next() = std::move(value);
    push();
  }
  void pop() {
    oldest_ = place(1);
    --size_;
  }
  void clear() { size_ = 0; }

 private:
  std::size_t place(std::size_t index) const {
    const std::size_t sum = oldest_ + index;
    return sum < slots_.size() ? sum : sum - slots_.size();
  }

  std::vector<T> slots_;
  std::size_t oldest_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weft::soft_rnic
