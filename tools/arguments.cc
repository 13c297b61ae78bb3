#include "tools/arguments.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "engine/base/error_detail.h"
#include "engine/base/status_macros.h"
#include "engine/base/str_cat.h"

namespace nestor {
namespace {

constexpr std::string_view kMisuse = "MISUSE";

absl::StatusOr<const FlagSpec*> FindFlag(std::string_view name, absl::Span<const FlagSpec> flags) {
  const auto found = std::find_if(flags.begin(), flags.end(), [&](const FlagSpec& flag) {
    return name == flag.name || (!flag.alias.empty() && name == flag.alias);
  });
  if (found == flags.end()) return Misuse(StrCat("unknown flag ", name));
  return &*found;
}

bool IsFlag(std::string_view argument) { return argument.size() > 1 && argument.front() == '-'; }

}  // namespace

absl::StatusOr<Arguments> Arguments::Parse(absl::Span<const std::string> arguments,
                                           absl::Span<const FlagSpec> flags) {
  Arguments parsed;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--") {
      parsed.words_.insert(parsed.words_.end(), arguments.begin() + i + 1, arguments.end());
      break;
    }
    if (!IsFlag(argument)) {
      parsed.words_.emplace_back(argument);
      continue;
    }
    const size_t equals = argument.find('=');
    NESTOR_ASSIGN_OR_RETURN(const FlagSpec* const flag, FindFlag(argument.substr(0, equals), flags));
    std::string value;
    if (flag->value.empty() && equals != argument.npos) return Misuse(StrCat(flag->name, " takes no value"));
    if (equals != argument.npos) {
      value = argument.substr(equals + 1);
    } else if (!flag->value.empty()) {
      if (i + 1 == arguments.size()) return Misuse(StrCat(flag->name, " needs a value, ", flag->value));
      value = arguments[++i];
    }
    if (!parsed.values_.emplace(flag->name, value).second) return Misuse(StrCat(flag->name, " given twice"));
  }
  return parsed;
}

std::optional<std::string> Arguments::Value(std::string_view flag) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

absl::StatusOr<double> Arguments::Number(std::string_view flag, double fallback) const {
  const std::optional<std::string> text = Value(flag);
  if (!text) return fallback;
  double number = 0;
  if (!absl::SimpleAtod(*text, &number) || !std::isfinite(number) || number < 0) {
    return Misuse(StrCat(flag, ": expected a number, 0 or more, found '", *text, "'"));
  }
  return number;
}

absl::Status Misuse(std::string_view message) {
  return WithReason(absl::InvalidArgumentError(ToAbsl(message)), kMisuse);
}

bool IsMisuse(const absl::Status& status) { return ReasonOf(status) == kMisuse; }

}  // namespace nestor
