# device_kernels.cu, compiled for each architecture that device_kernels.cc lists; the cubins become part of the tool.
find_program(RANKTAP_NVCC nvcc HINTS "${RANKTAP_CUDA_HOME}/bin" DOC "CUDA compiler: calibrate's kernels, the workloads")
if(RANKTAP_NVCC)
  set(cubins "${CMAKE_CURRENT_BINARY_DIR}/cubins")
  set(device_kernels "${CMAKE_CURRENT_SOURCE_DIR}/calibrate/device_kernels.cu")
  file(MAKE_DIRECTORY "${cubins}")
  set(cubin_files)
  foreach(architecture sm_80 sm_90a sm_100 sm_120)
    add_custom_command(OUTPUT "${cubins}/${architecture}.cubin"
      COMMAND ${RANKTAP_NVCC} -ccbin ${CMAKE_CXX_COMPILER} -std=c++17 -O2 -cubin -arch=${architecture}
              -o "${cubins}/${architecture}.cubin" "${device_kernels}"
      DEPENDS "${device_kernels}"
      COMMENT "Compiling calibrate's kernels for ${architecture}" VERBATIM)
    list(APPEND cubin_files "${cubins}/${architecture}.cubin")
  endforeach()
  set_source_files_properties(calibrate/device_kernels.cc PROPERTIES
    OBJECT_DEPENDS "${cubin_files}" COMPILE_DEFINITIONS "RANKTAP_CUBINS=\"${cubins}\"")
else()
  message(STATUS "ranktap: calibrate measures no GPU: nvcc not found (set RANKTAP_CUDA_HOME)")
endif()
