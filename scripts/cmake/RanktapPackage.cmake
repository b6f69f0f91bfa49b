# What is installed, and packages of it (cpack; scripts/package calls it). scripts/install puts the same
# files into a version's folder; test_packages compares the two.
# Building is its caller's affair, and of two targets only.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
install(TARGETS ranktap RUNTIME DESTINATION bin)
install(TARGETS ranktap_stub ranktap_agent LIBRARY DESTINATION lib)
if(TARGET ranktap_twin32)
  install(DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/preload" DESTINATION lib)
endif()
install(FILES "${CMAKE_SOURCE_DIR}/scripts/systemd/ranktap-collector.service" DESTINATION share)
# `ranktap help TOPIC` shows them.
install(DIRECTORY "${CMAKE_SOURCE_DIR}/docs/" DESTINATION docs FILES_MATCHING PATTERN "*.md")

find_program(RANKTAP_LOWDOWN lowdown)
if(RANKTAP_LOWDOWN)
  set(man "${CMAKE_BINARY_DIR}/man")
  file(GLOB pages CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/docs/commands/*.md")
  add_custom_command(OUTPUT "${man}/ranktap.1"
    COMMAND "${CMAKE_SOURCE_DIR}/scripts/gen_man" "${man}" "${PROJECT_VERSION}"
    DEPENDS "${CMAKE_SOURCE_DIR}/scripts/gen_man" "${CMAKE_SOURCE_DIR}/README.md"
            "${CMAKE_SOURCE_DIR}/collector/cli/registry.cc" ${pages} VERBATIM)
  add_custom_target(ranktap_man ALL DEPENDS "${man}/ranktap.1")
  install(DIRECTORY "${man}/" DESTINATION share/man/man1 OPTIONAL)
else()
  message(STATUS "ranktap: no manual pages: lowdown is not there (scripts/setup)")
endif()

set(CPACK_PACKAGE_NAME ranktap)
set(CPACK_PACKAGE_VENDOR ranktap)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Profiler for deep-learning training jobs")
set(CPACK_PACKAGE_CONTACT "The ranktap authors <ranktap@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE "${CMAKE_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_THREADS 1)
set(CPACK_PACKAGE_FILE_NAME "ranktap-${PROJECT_VERSION}-linux-x86_64")
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_SOURCE_DIR}/scripts/cmake/complete_package.cmake")
set(CPACK_PROJECT_CONFIG_FILE "${CMAKE_SOURCE_DIR}/scripts/cmake/package_prefix.cmake")
set(CPACK_RANKTAP_SOURCE "${CMAKE_SOURCE_DIR}")
set(CPACK_RANKTAP_BUILD "${CMAKE_BINARY_DIR}")
set(CPACK_DEBIAN_FILE_NAME "ranktap_${PROJECT_VERSION}_amd64.deb")
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
# By hand: dpkg-shlibdeps would ask for this machine's glibc.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.28), libgcc-s1 | libgcc1")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  "${CMAKE_SOURCE_DIR}/scripts/packaging/prerm;${CMAKE_SOURCE_DIR}/scripts/packaging/postinst")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INCLUDE_TOPLEVEL_DIRECTORY ON)
include(CPack)
