// `nestor-checkpoint` in the test's own process.
#ifndef NESTOR_TESTS_TOOLS_RUN_TOOL_H_
#define NESTOR_TESTS_TOOLS_RUN_TOOL_H_

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tools/checkpoint_tool.h"

namespace nestor {

struct ToolOutcome {
  int exit_code = 0;
  std::string out;
  std::string err;
};

// Runs one command line, without the program's name.
inline ToolOutcome RunTool(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = RunCheckpointTool(arguments, out, err);
  return {exit_code, out.str(), err.str()};
}

// A name for a parameterised test of a folder: letters and digits of its last part.
inline std::string FolderTestName(const testing::TestParamInfo<std::string>& folder) {
  std::string name = std::filesystem::path(folder.param).filename();
  std::erase(name, '-');
  return name;
}

}  // namespace nestor

#endif  // NESTOR_TESTS_TOOLS_RUN_TOOL_H_
