# Read by cpack once for each generator: a .deb's files lie where the collector's unit expects them.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_PACKAGING_INSTALL_PREFIX "/opt/ranktap")
endif()
