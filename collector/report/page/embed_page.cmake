# The page's script is its modules, joined into one; page_assets.cc holds it and d3.
set(page_dir "${CMAKE_CURRENT_SOURCE_DIR}/report/page")
set(page_modules begin view_state units dom tables verdict figures heatmap waits lanes names comm memory modules roofline
    kernels insights flame environment diff keys page)
list(TRANSFORM page_modules PREPEND "${page_dir}/js/")
list(TRANSFORM page_modules APPEND ".js")
set(page_script "${CMAKE_CURRENT_BINARY_DIR}/page.js")
find_file(RANKTAP_D3 d3.min.js PATHS /usr/share/nodejs/d3/dist NO_DEFAULT_PATH REQUIRED)
add_custom_command(OUTPUT "${page_script}" COMMAND sed -f "${page_dir}/js/join.sed" ${page_modules} > "${page_script}"
  DEPENDS ${page_modules} "${page_dir}/js/join.sed" VERBATIM)
set_source_files_properties(report/page/page_assets.cc PROPERTIES
  OBJECT_DEPENDS "${page_script};${page_dir}/page.css;${page_dir}/d3-licence.txt;${RANKTAP_D3}"
  COMPILE_DEFINITIONS "RANKTAP_PAGE_SCRIPT=\"${page_script}\";RANKTAP_PAGE_STYLE=\"${page_dir}/page.css\";RANKTAP_D3_SCRIPT=\"${RANKTAP_D3}\";RANKTAP_D3_LICENCE=\"${page_dir}/d3-licence.txt\"")
