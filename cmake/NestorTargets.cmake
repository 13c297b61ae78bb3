# One target a folder. Sources are globbed: a new file in a folder belongs to the folder's target, a new *_test.cc is a
# test that runs; no list to forget.

# nestor_library(<name> DEPS <targets...>): every .cc of the current folder except main.cc.
function(nestor_library name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "*.cc")
  list(FILTER sources EXCLUDE REGEX "main\\.cc$")
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE nestor_flags)
    target_include_directories(${name} PUBLIC "${CMAKE_SOURCE_DIR}")
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${ARG_DEPS})
    target_include_directories(${name} INTERFACE "${CMAKE_SOURCE_DIR}")
  endif()
endfunction()

# nestor_binary(<name> DEPS <targets...>): the main.cc of the current folder; lands in <build>/bin.
function(nestor_binary name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name} main.cc)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} nestor_flags)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
endfunction()

# nestor_test(<folder> DEPS <targets...>): one GoogleTest binary of every *.cc below tests/<folder>.
function(nestor_test folder)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cc")
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" name "${folder}_test")
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main nestor_flags)
  target_compile_definitions(${name} PRIVATE
    NESTOR_TEST_DATA_DIR="${CMAKE_SOURCE_DIR}/tests/data" NESTOR_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  include(GoogleTest)
  set(timeout_seconds 300)
  if(NOT NESTOR_SANITIZER STREQUAL "")
    set(timeout_seconds 1200)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT ${timeout_seconds})
endfunction()
