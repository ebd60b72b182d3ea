# Where things go, which warnings are on, and the few helpers that every folder uses.

# The contract of the build folder: scripts, CI and every later check rely on these places.
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/archive")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(WEFT_RIG_DIRECTORY "${CMAKE_BINARY_DIR}/rig")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(WEFT_WARNINGS_AS_ERRORS "Fail the build on a warning" ON)
set(WEFT_SANITIZE "" CACHE STRING "Sanitizers for everything built here: address, thread or empty")

add_library(weft_options INTERFACE)
target_include_directories(weft_options INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(weft_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wundef -Wvla)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees overlapping copies in std::string's operator+ that are not there (GCC bug 105651).
  target_compile_options(weft_options INTERFACE -Wno-restrict)
endif()
if(WEFT_WARNINGS_AS_ERRORS)
  target_compile_options(weft_options INTERFACE -Werror)
endif()
if(WEFT_SANITIZE STREQUAL "address")
  target_compile_options(weft_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(weft_options INTERFACE -fsanitize=address,undefined)
elseif(WEFT_SANITIZE STREQUAL "thread")
  target_compile_options(weft_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(weft_options INTERFACE -fsanitize=thread)
elseif(NOT WEFT_SANITIZE STREQUAL "")
  message(FATAL_ERROR "WEFT_SANITIZE=${WEFT_SANITIZE} is not known; use address, thread or leave it empty")
endif()

# Third-party headers are used header-only so that the plugins need nothing but libc and libstdc++ at run time.
add_library(weft_text_format INTERFACE)
# Its include folder alone: what is compiled of it is compiled once, in common/text/format.cc.
target_include_directories(weft_text_format SYSTEM INTERFACE $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
add_library(weft_json_library INTERFACE)
target_link_libraries(weft_json_library INTERFACE nlohmann_json::nlohmann_json)

# Headers that nearly every file includes, parsed once for each way of compiling: parsing them takes several times longer than a file's own code. Every
# file includes what it uses all the same; CI's clang build, without precompiled headers, would say so.
# nlohmann/json and CLI11 stay out: most of their cost is code that every file would then make, whether it uses it or not (CLI11: 4 s a file).
# A precompiled header is only good for the options that it was made with: one way of making position-independent code.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
set(WEFT_COMMON_HEADERS
  <algorithm> <array> <atomic> <chrono> <filesystem> <fstream> <functional> <map> <memory> <mutex> <optional> <set> <span> <sstream> <string> <thread>
  <vector> <fmt/core.h>)

# weft_precompile(NAME name HEADERS … [LINK …] [OPTIONS …])
function(weft_precompile)
  cmake_parse_arguments(ARG "" "NAME" "HEADERS;LINK;OPTIONS" ${ARGN})
  add_library(${ARG_NAME} OBJECT EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/cmake/precompiled/nothing.cc")
  target_compile_options(${ARG_NAME} PRIVATE ${ARG_OPTIONS})
  target_link_libraries(${ARG_NAME} PRIVATE weft_options weft_text_format ${ARG_LINK})
  target_precompile_headers(${ARG_NAME} PRIVATE ${ARG_HEADERS})
endfunction()

weft_precompile(NAME weft_headers HEADERS ${WEFT_COMMON_HEADERS})
weft_precompile(NAME weft_startup_headers OPTIONS -O1 -g1 HEADERS ${WEFT_COMMON_HEADERS})
weft_precompile(NAME weft_unoptimised_headers OPTIONS -O0 -g1 HEADERS ${WEFT_COMMON_HEADERS})
# What a plugin does for every message is spread over files of one subject each, and optimised as if it were one. The objects hold ordinary code as well:
# tests link that. Not in debug builds, and with gcc alone: clang's needs a linker that a bare machine does not have.
set(WEFT_LINK_TIME_OPTIONS "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND WEFT_SANITIZE STREQUAL "" AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(WEFT_LINK_TIME_OPTIONS -O3 -flto=auto -ffat-lto-objects)
  weft_precompile(NAME weft_data_path_headers OPTIONS ${WEFT_LINK_TIME_OPTIONS} HEADERS ${WEFT_COMMON_HEADERS})
endif()

# weft_compiled(TARGET): what every target of ours is compiled with.
function(weft_compiled target)
  target_link_libraries(${target} PRIVATE weft_options)
  target_precompile_headers(${target} REUSE_FROM weft_headers)
  add_dependencies(${target} weft_startup_headers weft_unoptimised_headers)
  if(WEFT_LINK_TIME_OPTIONS)
    add_dependencies(${target} weft_data_path_headers)
  endif()
endfunction()

# weft_compile_files(HEADERS OPTIONS FILE …): files of a target that are compiled another way than the rest, with the precompiled headers made for it.
function(weft_compile_files headers options)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    list(APPEND options -Winvalid-pch "-include${PROJECT_BINARY_DIR}/CMakeFiles/${headers}.dir/cmake_pch.hxx")
  endif()
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${options}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# weft_library(NAME name SOURCES … [LINK …]): a static part of the product or of the rig.
function(weft_library)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;LINK" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PUBLIC weft_options ${ARG_LINK})
  weft_compiled(${ARG_NAME})
endfunction()

# weft_plugin(NAME name EXPORTS file SOURCES … [LINK …]): a shared object that shows NCCL's symbols and no other.
# EXPORTS is a linker version script.
function(weft_plugin)
  cmake_parse_arguments(ARG "" "NAME;EXPORTS" "SOURCES;LINK" ${ARGN})
  add_library(${ARG_NAME} MODULE ${ARG_SOURCES})
  weft_compiled(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_LINK} Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(${ARG_NAME} PRIVATE "-Wl,--version-script=${ARG_EXPORTS}" -Wl,--exclude-libs,ALL)
  if(WEFT_LINK_TIME_OPTIONS)
    target_link_options(${ARG_NAME} PRIVATE ${WEFT_LINK_TIME_OPTIONS})
  endif()
  if(WEFT_SANITIZE STREQUAL "")
    target_link_options(${ARG_NAME} PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(${ARG_NAME} PROPERTIES PREFIX lib LINK_DEPENDS "${ARG_EXPORTS}")
  install(TARGETS ${ARG_NAME} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# What every test includes, as WEFT_COMMON_HEADERS; JSON too, which most tests read.
function(weft_precompiled_for_tests)
  if(NOT TARGET weft_test_headers)
    weft_precompile(NAME weft_test_headers OPTIONS -O0 -g1 HEADERS ${WEFT_COMMON_HEADERS} <random> <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>
      LINK weft_json_library GTest::gmock GTest::gtest)
  endif()
endfunction()

# weft_test(NAME name SOURCES … [LINK …] [LABELS …] [TIMEOUT seconds] [ENVIRONMENT NAME=value]): a GoogleTest program, each test known to ctest by name.
function(weft_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT;ENVIRONMENT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT WEFT_TESTS)
    return()
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  if(WEFT_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 5")
  endif()
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  # As weft_unoptimised: GoogleTest's assertions.
  target_compile_options(${ARG_NAME} PRIVATE -O0 -g1)
  weft_precompiled_for_tests()
  target_precompile_headers(${ARG_NAME} REUSE_FROM weft_test_headers)
  target_link_libraries(${ARG_NAME} PRIVATE weft_options ${ARG_LINK} GTest::gmock GTest::gtest GTest::gtest_main)
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  include(GoogleTest)
  gtest_discover_tests(${ARG_NAME} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()

# weft_benchmark(NAME name SOURCES … [LINK …]): a Google Benchmark program; never a test.
function(weft_benchmark)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;LINK" ${ARGN})
  if(NOT WEFT_BENCHMARKS)
    return()
  endif()
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  weft_compiled(${ARG_NAME})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_LINK} benchmark::benchmark benchmark::benchmark_main)
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/benchmarks")
endfunction()

# weft_unoptimised(FILE …): files that read and write JSON or command lines beside the measurements. The headers of nlohmann/json and CLI11
# take several times longer to optimise than to compile, and the whole must build in minutes on two cores.
function(weft_unoptimised)
  weft_compile_files(weft_unoptimised_headers "-O0;-g1" ${ARGN})
endfunction()

# weft_startup_code(FILE …): code of the product that runs when a plugin is loaded or a connection is made, never per message. Full optimisation of
# <filesystem>, {fmt} and JSON headers costs the build more than all it could save.
function(weft_startup_code)
  weft_compile_files(weft_startup_headers "-O1;-g1" ${ARGN})
endfunction()

# weft_data_path(FILE …): code of the product that runs for every message.
function(weft_data_path)
  if(WEFT_LINK_TIME_OPTIONS)
    weft_compile_files(weft_data_path_headers "${WEFT_LINK_TIME_OPTIONS}" ${ARGN})
  endif()
endfunction()
