#include "client/cli/interrupt.h"

#include <csignal>
#include <utility>

namespace nestor {

InterruptWatch::InterruptWatch(std::function<void()> handler)
    : handler_(std::move(handler)), signals_(context_, SIGINT) {
  Await();
  thread_ = std::thread([this] { context_.run(); });
}

InterruptWatch::~InterruptWatch() {
  context_.stop();
  thread_.join();
}

void InterruptWatch::Await() {
  signals_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    interrupted_ = true;
    handler_();
    Await();
  });
}

}  // namespace nestor
