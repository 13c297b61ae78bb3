# Flags of our own targets (generated code is exempt), sanitizers, compiler cache and linker.

add_library(nestor_flags INTERFACE)
target_compile_options(nestor_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror)
target_include_directories(nestor_flags INTERFACE "${CMAKE_SOURCE_DIR}")

if(NESTOR_SANITIZER STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(NESTOR_SANITIZER STREQUAL "thread")
  # Boost.Asio has fences, which ThreadSanitizer does not follow; g++ warns of each.
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer -Wno-tsan)
  add_link_options(-fsanitize=thread)
elseif(NOT NESTOR_SANITIZER STREQUAL "")
  message(FATAL_ERROR "NESTOR_SANITIZER: expected empty, address or thread, found '${NESTOR_SANITIZER}'")
endif()

find_program(NESTOR_CCACHE ccache)
if(NESTOR_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${NESTOR_CCACHE}")
endif()
find_program(NESTOR_MOLD mold)
if(NESTOR_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
