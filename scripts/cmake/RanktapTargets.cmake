# What every target of ours shares. Flags are set per target, never globally.

# Warnings are errors; sanitizers come from RANKTAP_SANITIZE.
function(ranktap_compile_options target)
  # Designated initialisers leave the rest zero on purpose.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror -Wno-missing-field-initializers)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 finds these in its own headers, in correct code (GCC bugs 105329, 105651, 107852).
    target_compile_options(
      ${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds -Wno-stringop-overflow
                        -Wno-stringop-overread -Wno-restrict>)
  endif()
  target_include_directories(${target} PUBLIC "${CMAKE_SOURCE_DIR}")
  if(RANKTAP_SANITIZE STREQUAL "address")
    set(flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  elseif(RANKTAP_SANITIZE STREQUAL "thread")
    set(flags -fsanitize=thread -fno-omit-frame-pointer)
  else()
    return()
  endif()
  if(RANKTAP_FUZZ)
    list(APPEND flags -fsanitize=fuzzer-no-link)
  endif()
  target_compile_options(${target} PRIVATE ${flags})
  target_link_options(${target} PUBLIC ${flags})
endfunction()

# ranktap_library(NAME SOURCES... [PUBLIC libs...]): a static library, fit for a shared object too.
function(ranktap_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  ranktap_compile_options(${name})
  target_link_libraries(${name} PUBLIC ${arg_LINK})
endfunction()

# ranktap_test(NAME SOURCES... LINK libs... LABELS labels...): one GoogleTest program. Label
# `sanitize` puts it into the asan and tsan presets.
function(ranktap_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  ranktap_compile_options(${name})
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()
