// Collects what is wrong with a request, so that one answer names all of it.
#ifndef NESTOR_SERVER_VIOLATIONS_H_
#define NESTOR_SERVER_VIOLATIONS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "google/rpc/error_details.pb.h"

namespace nestor {

class Violations {
 public:
  // `field`: its path; `message`: what was expected and what was found. The first ten are kept: an answer has
  // to fit into the 8 KiB of metadata that clients accept.
  void Add(std::string_view field, std::string_view message);

  // OK where nothing was added; else INVALID_ARGUMENT with a google.rpc.BadRequest (see status_details.h).
  absl::Status ToStatus() const;

 private:
  google::rpc::BadRequest bad_request_;
};

// Text from a request as an error message may repeat it: at most 60 bytes, whole characters.
std::string Excerpt(std::string_view text);

}  // namespace nestor

#endif  // NESTOR_SERVER_VIOLATIONS_H_
