// Ctrl-C as an event.
#ifndef NESTOR_CLIENT_CLI_INTERRUPT_H_
#define NESTOR_CLIENT_CLI_INTERRUPT_H_

#include <atomic>
#include <functional>
#include <thread>

#include "boost/asio/io_context.hpp"
#include "boost/asio/signal_set.hpp"

namespace nestor {

// While it lives, SIGINT calls the handler (on a thread of its own) in place of ending the process.
class InterruptWatch {
 public:
  explicit InterruptWatch(std::function<void()> handler);
  ~InterruptWatch();

  bool interrupted() const { return interrupted_; }

 private:
  void Await();

  const std::function<void()> handler_;
  std::atomic<bool> interrupted_ = false;
  boost::asio::io_context context_;
  boost::asio::signal_set signals_;
  std::thread thread_;
};

}  // namespace nestor

#endif  // NESTOR_CLIENT_CLI_INTERRUPT_H_
