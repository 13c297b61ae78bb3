#ifndef NESTOR_ENGINE_BASE_HANDOFF_H_
#define NESTOR_ENGINE_BASE_HANDOFF_H_

namespace nestor {

// How state passes between submodels at a phase change.
enum class Handoff {
  kRecompute,   // the answering submodel prefills everything again
  kTransplant,  // it goes on with the thinking submodel's caches; needs equal state shapes
};

}  // namespace nestor

#endif  // NESTOR_ENGINE_BASE_HANDOFF_H_
