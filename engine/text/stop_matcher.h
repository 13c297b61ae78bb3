// Finds stop strings in text that comes in pieces.
#ifndef NESTOR_ENGINE_TEXT_STOP_MATCHER_H_
#define NESTOR_ENGINE_TEXT_STOP_MATCHER_H_

#include <string>
#include <string_view>
#include <vector>

namespace nestor {

// One generation's text, on one thread. The match is the one that is complete first; of several that end at
// the same byte, the longest. So it does not depend on how the text was cut into pieces.
class StopMatcher {
 public:
  // `stops`: valid UTF-8, none empty. So what is let go always ends between two characters.
  explicit StopMatcher(std::vector<std::string> stops);

  // The text that can be let go: no stop string can begin in it any more. Ends before a match; empty after
  // one.
  std::string Push(std::string_view text);
  // At the end: the text held back.
  std::string Flush();

  // The stop string that was found; empty: none so far.
  const std::string& matched() const { return matched_; }

 private:
  // Length of the longest end of `held_` that is a proper beginning of a stop string.
  size_t PossibleBeginning() const;
  // The longest stop string that ends at `end` of `held_`; nullptr for none.
  const std::string* MatchEndingAt(size_t end) const;

  const std::vector<std::string> stops_;  // none empty
  std::string held_;
  std::string matched_;
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_TEXT_STOP_MATCHER_H_
