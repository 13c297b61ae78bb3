// From the engine's plans and events to nestor.v1.
#ifndef NESTOR_SERVER_RESPONSE_CONVERSION_H_
#define NESTOR_SERVER_RESPONSE_CONVERSION_H_

#include <string>

#include "engine/route/router.h"
#include "engine/serve/engine.h"
#include "engine/serve/request.h"
#include "nestor/v1/generation.pb.h"
#include "nestor/v1/model_service.pb.h"

namespace nestor {

v1::GenerationStart ToProto(const GenerationRequest& request, const std::string& model_name,
                            const ModelFacts& facts);

// `with_tokens`: the client asked for token ids or logprobs.
v1::GenerationDelta ToProto(const Delta& delta, bool with_tokens);

v1::GenerationEnd ToProto(const Outcome& outcome, bool thinks, const ModelFacts& facts);

v1::Model DescribeModel(const Engine& engine, const std::string& model_name);

}  // namespace nestor

#endif  // NESTOR_SERVER_RESPONSE_CONVERSION_H_
