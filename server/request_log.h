// One line in the log for each request. Never what was asked or answered.
#ifndef NESTOR_SERVER_REQUEST_LOG_H_
#define NESTOR_SERVER_REQUEST_LOG_H_

#include <string>

#include "absl/status/status.h"
#include "engine/serve/request.h"

namespace nestor {

// A request that did not reach the engine. `request_id`: the client's; empty where it gave none or could not
// be read, which shows as "-".
void LogRefusal(const std::string& request_id, const absl::Status& status);

// A request that did.
void LogOutcome(const std::string& request_id, const Outcome& outcome);

}  // namespace nestor

#endif  // NESTOR_SERVER_REQUEST_LOG_H_
