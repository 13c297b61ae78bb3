// Messages of the generation methods as bytes. gRPC answers a request that it cannot read with a bare
// UNIMPLEMENTED; read here, it gets an error that names the field.
#ifndef NESTOR_SERVER_RAW_MESSAGE_H_
#define NESTOR_SERVER_RAW_MESSAGE_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"
#include "nestor/v1/generation.pb.h"

namespace nestor {

// INVALID_ARGUMENT with the path of a string that is not UTF-8, or of a field that this server does not know:
// a newer client asks for something, and ignoring it would answer another question. Without a path where the
// bytes are no such message at all.
absl::Status ReadMessage(const grpc::ByteBuffer& bytes, google::protobuf::Message& message);

grpc::ByteBuffer WriteMessage(const google::protobuf::Message& message);

// The generation of a GenerateRequest or GenerateStreamRequest.
template <typename Request>
absl::StatusOr<v1::Generation> ReadGeneration(const grpc::ByteBuffer& bytes) {
  Request request;
  NESTOR_RETURN_IF_ERROR(ReadMessage(bytes, request));
  return std::move(*request.mutable_generation());
}

}  // namespace nestor

#endif  // NESTOR_SERVER_RAW_MESSAGE_H_
