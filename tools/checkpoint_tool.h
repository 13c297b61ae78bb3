// `nestor-checkpoint`: looks at checkpoints, checks and cuts them.
#ifndef NESTOR_TOOLS_CHECKPOINT_TOOL_H_
#define NESTOR_TOOLS_CHECKPOINT_TOOL_H_

#include <ostream>
#include <string>
#include <vector>

namespace nestor {

// Runs one command line, without the program's name. The exit code: 0 done, 1 failed, 2 called wrongly.
int RunCheckpointTool(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace nestor

#endif  // NESTOR_TOOLS_CHECKPOINT_TOOL_H_
