#include "engine/text/bpe.h"

#include <limits>
#include <queue>
#include <utility>

#include "engine/base/str_cat.h"

namespace nestor {
namespace {

// Up to this many bytes a plain search for the best merge is faster than a queue.
constexpr size_t kShortPiece = 48;

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

absl::StatusOr<Bpe> Bpe::Create(Vocabulary vocabulary, const std::vector<Merge>& merges, bool ignore_merges,
                                std::string_view source) {
  Bpe bpe;
  bpe.vocabulary_ = std::move(vocabulary);
  bpe.ignore_merges_ = ignore_merges;
  for (int byte = 0; byte < 256; ++byte) {
    const auto token = bpe.vocabulary_.find(std::string(1, static_cast<char>(byte)));
    if (token == bpe.vocabulary_.end()) {
      return absl::InvalidArgumentError(StrCat(
          source, ": key 'model.vocab': expected a token for each of 256 bytes, found none for byte ", byte));
    }
    bpe.byte_tokens_[byte] = token->second;
  }
  bpe.rules_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto [left, right, result] = merges[rank];
    bpe.rules_.insert_or_assign(PairKey(left, right), MergeRule{static_cast<int32_t>(rank), result});
  }
  return bpe;
}

const Bpe::MergeRule* Bpe::FindRule(int32_t left, int32_t right) const {
  const auto rule = rules_.find(PairKey(left, right));
  return rule == rules_.end() ? nullptr : &rule->second;
}

void Bpe::Encode(std::string_view piece, std::vector<int32_t>& ids) const {
  if (ignore_merges_ && piece.size() > 1) {
    const auto whole = vocabulary_.find(ToAbsl(piece));
    if (whole != vocabulary_.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  piece.size() <= kShortPiece ? EncodeShort(piece, ids) : EncodeLong(piece, ids);
}

// Applies the best merge, the leftmost of equal ones, until none is left.
void Bpe::EncodeShort(std::string_view piece, std::vector<int32_t>& ids) const {
  std::array<int32_t, kShortPiece> tokens;
  std::array<const MergeRule*, kShortPiece> rules;  // of a token with the next one
  size_t count = piece.size();
  for (size_t i = 0; i < count; ++i) tokens[i] = byte_tokens_[static_cast<uint8_t>(piece[i])];
  for (size_t i = 0; i + 1 < count; ++i) rules[i] = FindRule(tokens[i], tokens[i + 1]);
  while (count > 1) {
    size_t best = count;
    int32_t best_rank = std::numeric_limits<int32_t>::max();
    for (size_t i = 0; i + 1 < count; ++i) {
      if (rules[i] != nullptr && rules[i]->rank < best_rank) best = i, best_rank = rules[i]->rank;
    }
    if (best == count) break;
    tokens[best] = rules[best]->result;
    for (size_t i = best + 1; i + 1 < count; ++i) tokens[i] = tokens[i + 1], rules[i] = rules[i + 1];
    --count;
    if (best + 1 < count) rules[best] = FindRule(tokens[best], tokens[best + 1]);
    if (best > 0) rules[best - 1] = FindRule(tokens[best - 1], tokens[best]);
  }
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + count);
}

// The same with a queue over a linked list of tokens.
void Bpe::EncodeLong(std::string_view piece, std::vector<int32_t>& ids) const {
  struct Node {
    int32_t token;
    int previous;
    int next;
  };
  struct Candidate {
    int32_t rank;
    int left;
    int32_t left_token;
    int32_t right_token;
    bool operator>(const Candidate& other) const {
      return std::pair(rank, left) > std::pair(other.rank, other.left);
    }
  };
  const int count = static_cast<int>(piece.size());
  std::vector<Node> nodes(count);
  for (int i = 0; i < count; ++i) {
    nodes[i] = {byte_tokens_[static_cast<uint8_t>(piece[i])], i - 1, i + 1 < count ? i + 1 : -1};
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto push = [&](int left) {
    if (left < 0 || nodes[left].next < 0) return;
    const int32_t left_token = nodes[left].token, right_token = nodes[nodes[left].next].token;
    const MergeRule* const rule = FindRule(left_token, right_token);
    if (rule != nullptr) queue.push({rule->rank, left, left_token, right_token});
  };
  for (int i = 0; i + 1 < count; ++i) push(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Node& left = nodes[best.left];
    // Stale where one side was merged since: a merged node's token is -1 or has changed.
    if (left.token != best.left_token || left.next < 0 || nodes[left.next].token != best.right_token)
      continue;
    Node& right = nodes[left.next];
    left.token = FindRule(best.left_token, best.right_token)->result;
    left.next = right.next;
    right.token = -1;
    if (left.next >= 0) nodes[left.next].previous = best.left;
    push(best.left);
    push(left.previous);
  }
  for (int i = 0; i >= 0; i = nodes[i].next) ids.push_back(nodes[i].token);
}

}  // namespace nestor
