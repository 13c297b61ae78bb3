// The CPU backend.
#ifndef NESTOR_ENGINE_BACKEND_CPU_CPU_EXECUTOR_H_
#define NESTOR_ENGINE_BACKEND_CPU_CPU_EXECUTOR_H_

#include <memory>

#include "engine/model/executor.h"
#include "engine/model/model.h"

namespace nestor {

// The model (and the checkpoint behind it) must outlive the executor.
std::unique_ptr<Executor> CreateCpuExecutor(const Model& model, const ExecutorLimits& limits);

}  // namespace nestor

#endif  // NESTOR_ENGINE_BACKEND_CPU_CPU_EXECUTOR_H_
