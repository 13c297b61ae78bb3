// The arguments of one command: flags that the command declares, everything else refused.
#ifndef NESTOR_TOOLS_ARGUMENTS_H_
#define NESTOR_TOOLS_ARGUMENTS_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace nestor {

struct FlagSpec {
  std::string name;   // "--output"
  std::string value;  // the word for its value in the usage, "DIR"; "" for a switch
  std::string alias;  // "-o"; "" where there is none
};

class Arguments {
 public:
  // Reads `--flag value`, `--flag=value`, switches and words; after `--` everything is a word. A misuse
  // (IsMisuse) where a flag is unknown, given twice, without its value, or a switch with one.
  static absl::StatusOr<Arguments> Parse(absl::Span<const std::string> arguments,
                                         absl::Span<const FlagSpec> flags);

  const std::vector<std::string>& words() const { return words_; }
  bool Has(std::string_view flag) const { return values_.contains(flag); }
  std::optional<std::string> Value(std::string_view flag) const;
  // A finite number, 0 or more.
  absl::StatusOr<double> Number(std::string_view flag, double fallback) const;

 private:
  std::vector<std::string> words_;
  std::map<std::string, std::string, std::less<>> values_;  // by the flag's long name
};

// The command was called wrongly, as opposed to having failed.
absl::Status Misuse(std::string_view message);
bool IsMisuse(const absl::Status& status);

}  // namespace nestor

#endif  // NESTOR_TOOLS_ARGUMENTS_H_
