// NESTOR_CHECK(condition) << "what is broken": for invariants of our own code, in every build. Never for
// input.
#ifndef NESTOR_ENGINE_BASE_CHECK_H_
#define NESTOR_ENGINE_BASE_CHECK_H_

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace nestor::check_internal {

// Collects the message and aborts when it goes out of scope.
class Failure {
 public:
  Failure(const char* file, int line, const char* condition) {
    message_ << file << ":" << line << ": broken invariant: " << condition << ": ";
  }
  [[noreturn]] ~Failure() {
    std::cerr << message_.str() << std::endl;
    std::abort();
  }
  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

}  // namespace nestor::check_internal

#define NESTOR_CHECK(condition) \
  if (condition) {              \
  } else                        \
    ::nestor::check_internal::Failure(__FILE__, __LINE__, #condition).stream()

#endif  // NESTOR_ENGINE_BASE_CHECK_H_
