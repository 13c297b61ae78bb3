#include "server/raw_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/base/error_detail.h"
#include "grpcpp/support/slice.h"
#include "nestor/v1/generation_service.pb.h"

namespace nestor {
namespace {

using ::testing::HasSubstr;

grpc::ByteBuffer Bytes(const std::vector<std::string>& slices) {
  std::vector<grpc::Slice> parts(slices.begin(), slices.end());
  return grpc::ByteBuffer(parts.data(), parts.size());
}

absl::StatusOr<v1::Generation> Read(const std::string& bytes) {
  return ReadGeneration<v1::GenerateRequest>(Bytes({bytes}));
}

// A request whose generation is `generation` and then more bytes.
std::string RequestWith(const v1::Generation& generation, const std::string& more) {
  const std::string inner = generation.SerializeAsString() + more;
  EXPECT_LT(inner.size(), 128u);
  return std::string{'\x0a', static_cast<char>(inner.size())} + inner;
}

// Replaces the word "BAD" by as many bytes that are not UTF-8.
std::string Spoil(const v1::Generation& generation) {
  v1::GenerateRequest request;
  *request.mutable_generation() = generation;
  std::string bytes = request.SerializeAsString();
  return bytes.replace(bytes.find("BAD"), 3, "a\xff\x80");
}

TEST(RawMessage, WhatIsWrittenIsReadAlsoInPieces) {
  v1::GenerateRequest request;
  request.mutable_generation()->set_text("grüße");
  (*request.mutable_generation()->mutable_sampling()->mutable_logit_bias())[7] = 0.5f;
  const auto read = ReadGeneration<v1::GenerateRequest>(WriteMessage(request));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), request.generation().SerializeAsString());
  const std::string bytes = request.SerializeAsString();
  const auto pieces = ReadGeneration<v1::GenerateStreamRequest>(Bytes({bytes.substr(0, 5), bytes.substr(5)}));
  EXPECT_EQ(pieces->text(), "grüße");
}

TEST(RawMessage, StringsThatAreNotUtf8AreNamed) {
  v1::Generation generation;
  generation.set_text("BAD");
  EXPECT_EQ(FieldOf(Read(Spoil(generation)).status()), "generation.text");

  generation.Clear();
  generation.mutable_chat()->add_messages()->set_content("good");
  generation.mutable_chat()->add_messages()->add_tool_calls()->set_name("BAD");
  const absl::Status nested = Read(Spoil(generation)).status();
  EXPECT_EQ(nested.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(nested), "generation.chat.messages[1].tool_calls[0].name");

  generation.Clear();
  generation.add_stop_strings("good");
  generation.add_stop_strings("BAD");
  EXPECT_EQ(FieldOf(Read(Spoil(generation)).status()), "generation.stop_strings[1]");
}

TEST(RawMessage, BytesThatAreNoMessageAreRefusedWithoutAField) {
  for (const std::string& bytes : {std::string("\xff\xff\xff"), std::string("\x0a\x7f")}) {
    const absl::Status status = Read(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(FieldOf(status), std::nullopt);
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected a nestor.v1.GenerateRequest, found"));
  }
}

TEST(RawMessage, FieldsOfNewerClientsAreNotIgnored) {
  const std::string unknown_field_99("\x98\x06\x01", 3);
  v1::Generation generation;
  generation.set_text("x");
  EXPECT_EQ(FieldOf(Read(RequestWith(generation, unknown_field_99)).status()), "generation.99");
  generation.mutable_budget()
      ->GetReflection()
      ->MutableUnknownFields(generation.mutable_budget())
      ->AddVarint(9, 1);
  const absl::Status nested = Read(RequestWith(generation, "")).status();
  EXPECT_EQ(nested.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(nested), "generation.budget.9");
}

}  // namespace
}  // namespace nestor
