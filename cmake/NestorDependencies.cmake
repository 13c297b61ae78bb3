# Libraries from the distribution; scripts/setup.sh installs them and says why each is needed.

find_package(Threads REQUIRED)
find_package(Protobuf REQUIRED)
find_package(absl REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(spdlog REQUIRED)
set(NESTOR_SPDLOG spdlog::spdlog)
if(NESTOR_SANITIZER STREQUAL "thread")
  set(NESTOR_SPDLOG spdlog::spdlog_header_only)  # its locks then are compiled with the sanitizer, which sees them
endif()
find_package(nlohmann_json REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS program_options)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
if(NESTOR_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
