# What every target of ours shares. Flags are set per target, never globally.

# No path of this machine in what is built: the same commit is the same bytes in any folder. For gdb the
# sources lie below the folder it is started in: the repository.
function(ranktap_map_paths target)
  target_compile_options(${target} PRIVATE "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=."
                                           "-ffile-prefix-map=${CMAKE_BINARY_DIR}=./build")
endfunction()

# Warnings are errors; sanitizers come from RANKTAP_SANITIZE.
function(ranktap_compile_options target)
  ranktap_map_paths(${target})
  # Designated initialisers leave the rest zero on purpose.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror -Wno-missing-field-initializers)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 finds these in its own headers, in correct code (GCC bugs 105329, 105651, 107852).
    target_compile_options(
      ${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds -Wno-stringop-overflow
                        -Wno-stringop-overread -Wno-restrict>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # From 128 MB on GCC collects its garbage over and over, an eighth of a room's time. The largest room takes
    # 1.4 GB so, 1.15 GB before, and its code is the same.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:C,CXX>:--param=ggc-min-heapsize=1000000>)
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

# ranktap_headers(NAME [LINK libs...] [HEADERS headers...]): a header that is precompiled once, for every
# target of the same flags that names NAME as PRECOMPILED_BY. It holds standard headers, which cost a file
# half its time; of ours only such as every file behind the same layering rules may include.
function(ranktap_headers name)
  cmake_parse_arguments(arg "" "" "LINK;HEADERS" ${ARGN})
  add_library(${name} STATIC "${CMAKE_SOURCE_DIR}/scripts/cmake/empty.cc")
  ranktap_compile_options(${name})
  target_link_libraries(${name} PUBLIC ${arg_LINK})
  target_precompile_headers(${name} PRIVATE
    <algorithm> <array> <atomic> <charconv> <cstdint> <cstring> <filesystem> <functional> <map> <memory>
    <numeric> <optional> <set> <span> <string> <string_view> <thread> <tuple> <unordered_map> <utility>
    <variant> <vector> ${arg_HEADERS})
endfunction()

# ranktap_library(NAME SOURCES... [LINK libs...] [PRECOMPILED_BY headers]): a static library, fit for a
# shared object too.
function(ranktap_library name)
  cmake_parse_arguments(arg "" "PRECOMPILED_BY" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  ranktap_compile_options(${name})
  target_link_libraries(${name} PUBLIC ${arg_LINK})
  if(arg_PRECOMPILED_BY)
    target_precompile_headers(${name} REUSE_FROM ${arg_PRECOMPILED_BY})
  endif()
endfunction()

# ranktap_compile_rooms(NAME [TOGETHER [ALONE rooms...]] [EXCEPT sources...]): the files of a folder are one unit for the
# compiler (each twenty-four of them, where there are more), which takes 0.6 of its time for the collector and half for the
# tests. TOGETHER makes units of all files in their order, whatever their folder but those of the rooms ALONE: each unit makes
# the templates of its files again, so that three small rooms take 0.8 of their time as one. Left out
# are generated files, and files whose private names another file of their unit has, too: a build that ends with
# "redefinition" wants another name, or one more EXCEPT. So does a private overload of a public function, though nothing says
# so: the files behind it in the unit would call it. Preset dev compiles file by file: there an edit costs one file.
function(ranktap_compile_rooms name)
  if(CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT RANKTAP_SANITIZE)
    return()
  endif()
  cmake_parse_arguments(arg "TOGETHER" "" "ALONE;EXCEPT" ${ARGN})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${name} SOURCES)
  foreach(source ${sources})
    get_filename_component(room ${source} DIRECTORY)
    if(source IN_LIST arg_EXCEPT OR IS_ABSOLUTE ${source})
      continue()
    endif()
    if(arg_TOGETHER AND NOT room IN_LIST arg_ALONE)
      set(room all)
    endif()
    string(MAKE_C_IDENTIFIER "${room}" group)
    math(EXPR count_${group} "0${count_${group}} + 1")
    math(EXPR part "(${count_${group}} - 1) / 24")
    string(REPLACE "_0" "" part "_${part}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}${part})
  endforeach()
endfunction()

# For the tests alone: lld links a program four times as quickly as the usual linker, gold (of binutils) twice.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  include(CheckLinkerFlag)
  foreach(linker lld gold)
    check_linker_flag(CXX "-fuse-ld=${linker}" RANKTAP_HAS_${linker})
    if(RANKTAP_HAS_${linker})
      set(RANKTAP_QUICK_LINKER "-fuse-ld=${linker}")
      break()
    endif()
  endforeach()
endif()

# What is built to be run a few times: optimising it costs more than it saves.
function(ranktap_compile_quickly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
endfunction()

# ranktap_test_library(NAME SOURCES... LINK libs...): what several tests share.
function(ranktap_test_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  ranktap_compile_options(${name})
  ranktap_compile_quickly(${name})
  target_precompile_headers(${name} REUSE_FROM ranktap_test_headers)
  target_link_libraries(${name} PUBLIC ${arg_LINK} GTest::gmock)
endfunction()

# ranktap_test(NAME SOURCES... LINK libs... LABELS labels... [COST seconds]): one GoogleTest program;
# that of the largest cost starts first. Label `sanitize` puts it into the target `sanitized`, which the
# presets fuzz and asan build, and `threads` into `threaded`, which the preset tsan builds.
function(ranktap_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;COST" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  ranktap_compile_options(${name})
  ranktap_compile_quickly(${name})
  target_precompile_headers(${name} REUSE_FROM ranktap_test_headers)
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gmock GTest::gtest_main)
  target_link_options(${name} PRIVATE ${RANKTAP_QUICK_LINKER})
  if("sanitize" IN_LIST arg_LABELS)
    add_dependencies(sanitized ${name})
  endif()
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(threaded ${name})
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} COST ${arg_COST})
endfunction()

# ranktap_ship(TARGET): what users get. With RANKTAP_OLD_GLIBC it is linked against stubs that offer no
# symbol newer than glibc 2.17's (docs/decisions/0009-packages-link-against-stubs-of-an-old-glibc.md).
function(ranktap_ship target)
  if(NOT RANKTAP_OLD_GLIBC)
    return()
  endif()
  set(tools "${CMAKE_SOURCE_DIR}/scripts/glibc_floor")
  set(stubs "${CMAKE_BINARY_DIR}/glibc_floor")
  if(NOT TARGET ranktap_glibc_floor)
    add_custom_command(OUTPUT "${stubs}/libgcc_s.so"
      COMMAND "${tools}/stubs" "${CMAKE_C_COMPILER}" "${stubs}"
      DEPENDS "${tools}/stubs" "${tools}/shims.c" "${tools}/start.c" VERBATIM)
    add_custom_target(ranktap_glibc_floor DEPENDS "${stubs}/libgcc_s.so")
  endif()
  add_dependencies(${target} ranktap_glibc_floor)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${stubs}/libgcc_s.so")
  target_link_options(${target} PRIVATE "-L${stubs}")
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_link_options(${target} PRIVATE -Wl,--wrap=__libc_start_main "${stubs}/start.o")
  endif()
endfunction()
