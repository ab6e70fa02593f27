# Writes OUT: every file of FOLDER, byte by byte, and the table of them that
# serve/web.h declares. A file's tag is a part of its hash. With GZIP, the path of
# that program, the table has each file packed too, without comments that have lines
# of their own or end one, blank lines and indents, an eighth of what is sent, and without the spaces
# and ends of lines that CSS has for its readers. A licence is left alone, also as a comment (`/*!`).
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

# The bytes of a file as the elements of an array.
function(hex_array out file)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  set(${out} "${bytes}" PARENT_SCOPE)
endfunction()

foreach(path IN LISTS paths)
  string(REGEX REPLACE ".*\\." "" ending ${path})
  if(NOT DEFINED type_${ending})
    message(FATAL_ERROR "${path}: cmake/embed_table.cmake knows no type for it")
  endif()
  file(SHA256 ${FOLDER}/${path} hash)
  string(SUBSTRING ${hash} 0 16 tag)
  hex_array(bytes ${FOLDER}/${path})
  string(APPEND arrays "static const unsigned char file_${count}[] = {\n    ${bytes}};\n")
  set(packed "NULL, 0")
  if(GZIP)
    set(squeeze -e "/^ *\\/\\* .*\\*\\/$/d" -e "/^ *\\/\\* /,/\\*\\/$/d" -e "/^ *\\/\\/ /d" -e "/^$/d" -e "s/^ *//")
    set(joined cat)
    if(ending STREQUAL "css")
      list(APPEND squeeze -e "s/ { /{/g" -e "s/ }/}/g" -e "s/: /:/g" -e "s/, /,/g" -e "s/\\; /\\;/g" -e "s/ > />/g")
      set(joined tr -d "\\n")
    elseif(ending STREQUAL "js")
      list(APPEND squeeze -e "s/  *\\/\\/ .*//")
    elseif(ending STREQUAL "LICENSE")
      set(squeeze -e "s/^//")
    endif()
    # Without its name and time, so that the same file is always the same bytes.
    execute_process(COMMAND sed ${squeeze} ${FOLDER}/${path}
                    COMMAND ${joined}
                    COMMAND ${GZIP} -9nc
                    OUTPUT_FILE ${OUT}.gz COMMAND_ERROR_IS_FATAL ANY)
    hex_array(bytes ${OUT}.gz)
    string(APPEND arrays "static const unsigned char packed_${count}[] = {\n    ${bytes}};\n")
    set(packed "packed_${count}, sizeof(packed_${count})")
  endif()
  string(APPEND rows "    {\"${path}\", \"${type_${ending}}\", \"\\\"${tag}\\\"\", file_${count},\n     sizeof(file_${count}), \"\\\"${tag}-gzip\\\"\", ${packed}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(REMOVE ${OUT}.gz)
file(WRITE ${OUT} "/* Made from the files of the dashboard. */
#include \"serve/web.h\"

${arrays}
const dibs__serve_file dibs__serve_files[] = {
${rows}};
const size_t dibs__serve_file_count = ${count};
")
