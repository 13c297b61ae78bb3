#include "tests/engine/text/test_tokenizer.h"

namespace nestor {
namespace {

const std::string& TokenizerPath() {
  static const std::string path = NESTOR_SOURCE_DIR "/models/abacus/tokenizer.json";
  return path;
}

}  // namespace

const Json& AbacusTokenizerJson() {
  static const Json json = ReadJsonFile(TokenizerPath()).value();
  return json;
}

const Tokenizer& AbacusTokenizer() {
  static const Tokenizer tokenizer = Tokenizer::Load(TokenizerPath()).value();
  return tokenizer;
}

absl::StatusOr<Tokenizer> ParseTokenizer(const Json& json) { return Tokenizer::Parse(json.dump(), "t.json"); }

Json PatchedTokenizerJson(const std::string& patch) {
  Json json = AbacusTokenizerJson();
  json.merge_patch(Json::parse(patch));
  return json;
}

}  // namespace nestor
