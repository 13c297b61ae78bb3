#include <iostream>

#include "tools/checkpoint_tool.h"

int main(int argc, char** argv) {
  return nestor::RunCheckpointTool({argv + 1, argv + argc}, std::cout, std::cerr);
}
