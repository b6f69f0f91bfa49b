# Run by cpack on what it has staged: adds what is no part of a build tree, and gives every file one time.
set(stage "${CPACK_TEMPORARY_DIRECTORY}")
set(prefix "${stage}")
if(CPACK_GENERATOR STREQUAL "DEB")
  set(prefix "${stage}/opt/ranktap")
endif()
execute_process(
  COMMAND "${CPACK_RANKTAP_SOURCE}/scripts/packaging/complete" "${CPACK_GENERATOR}" "${stage}" "${prefix}"
    "${CPACK_RANKTAP_BUILD}"
  COMMAND_ERROR_IS_FATAL ANY)
