#include "server/raw_message.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/base/error_detail.h"
#include "engine/base/str_cat.h"
#include "engine/text/utf8.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"
#include "grpcpp/support/slice.h"

namespace nestor {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

std::string Join(const std::string& path, std::string_view name) {
  return StrCat(path, path.empty() ? "" : ".", name);
}

std::string PathOf(const std::string& path, const FieldDescriptor& field, int index) {
  const std::string joined = Join(path, field.name());
  return field.is_repeated() ? StrCat(joined, "[", index, "]") : joined;
}

// Path of the first string that is not UTF-8 in the bytes of a message; nullopt where there is none.
std::optional<std::string> FindInvalidString(const Descriptor& descriptor, const std::string& bytes,
                                             const std::string& path) {
  UnknownFieldSet values;  // a message as what was sent: numbers and bytes
  if (!values.ParseFromString(bytes)) return std::nullopt;
  absl::flat_hash_map<int, int> counts;  // of values by field number
  for (int i = 0; i < values.field_count(); ++i) {
    const UnknownField& value = values.field(i);
    const FieldDescriptor* const field = descriptor.FindFieldByNumber(value.number());
    if (field == nullptr || value.type() != UnknownField::TYPE_LENGTH_DELIMITED) continue;
    const std::string value_path = PathOf(path, *field, counts[value.number()]++);
    if (field->type() == FieldDescriptor::TYPE_STRING && FirstInvalidUtf8(value.length_delimited())) {
      return value_path;
    }
    if (field->type() != FieldDescriptor::TYPE_MESSAGE) continue;
    auto found = FindInvalidString(*field->message_type(), value.length_delimited(), value_path);
    if (found) return found;
  }
  return std::nullopt;
}

// Path of a field that is not in the descriptor, with its number for a name; nullopt where there is none.
std::optional<std::string> FindUnknownField(const Message& message, const std::string& path) {
  const Reflection& reflection = *message.GetReflection();
  const UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) return Join(path, StrCat(unknown.field(0).number()));
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->type() != FieldDescriptor::TYPE_MESSAGE || field->is_map()) continue;
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const Message& value = field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                                  : reflection.GetMessage(message, field);
      auto found = FindUnknownField(value, PathOf(path, *field, i));
      if (found) return found;
    }
  }
  return std::nullopt;
}

// Why the bytes could not be parsed.
absl::Status Unreadable(const Descriptor& descriptor, const std::string& bytes) {
  if (const auto path = FindInvalidString(descriptor, bytes, "")) {
    return InvalidField(*path, "expected UTF-8, found other bytes");
  }
  return absl::InvalidArgumentError(
      StrCat("expected a ", descriptor.full_name(), ", found ", bytes.size(), " bytes that are none"));
}

}  // namespace

absl::Status ReadMessage(const grpc::ByteBuffer& bytes, Message& message) {
  std::vector<grpc::Slice> slices;
  if (!bytes.Dump(&slices).ok()) return absl::InvalidArgumentError("the compressed request cannot be read");
  std::string flat;
  flat.reserve(bytes.Length());
  for (const grpc::Slice& slice : slices) {
    flat.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  if (!message.ParseFromString(flat)) return Unreadable(*message.GetDescriptor(), flat);
  if (const auto path = FindUnknownField(message, "")) {
    return InvalidField(*path, "expected fields that this server knows, found one that it does not");
  }
  return absl::OkStatus();
}

grpc::ByteBuffer WriteMessage(const Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace nestor
