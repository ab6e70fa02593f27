# Writes OUT: every file of FOLDER, byte by byte, and the table of them that
# serve/web.h declares. A file's tag is a part of its hash.
file(GLOB_RECURSE paths RELATIVE ${FOLDER} ${FOLDER}/*)
list(SORT paths)
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")
set(type_LICENSE "text/plain; charset=utf-8")
set(arrays "")
set(rows "")
set(count 0)
foreach(path IN LISTS paths)
  string(REGEX REPLACE ".*\\." "" ending ${path})
  if(NOT DEFINED type_${ending})
    message(FATAL_ERROR "${path}: cmake/embed_table.cmake knows no type for it")
  endif()
  file(SHA256 ${FOLDER}/${path} hash)
  string(SUBSTRING ${hash} 0 16 tag)
  file(READ ${FOLDER}/${path} bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const unsigned char file_${count}[] = {\n    ${bytes}};\n")
  string(APPEND rows "    {\"${path}\", \"${type_${ending}}\", \"\\\"${tag}\\\"\", file_${count},\n     sizeof(file_${count})},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUT} "/* Made from the files of the dashboard. */
#include \"serve/web.h\"

${arrays}
const dibs__serve_file dibs__serve_files[] = {
${rows}};
const size_t dibs__serve_file_count = ${count};
")
