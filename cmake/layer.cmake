# dibs_layer(NAME sources...): one layer as an object library.
function(dibs_layer name)
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
endfunction()

# dibs_embed(OUT FILE SYMBOL): turns a text file into a C string constant, so
# that SQL and scripts are kept as files and shipped inside the library.
function(dibs_embed out file symbol)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DIN=${file} -DOUT=${out} -DSYMBOL=${symbol}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
endfunction()

# dibs_embed_table(OUT FOLDER): a table of all files of a folder, for serve/web.h.
# Without gzip, which every Debian has, the files are served as they are.
find_program(GZIP gzip)
function(dibs_embed_table out folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${folder}/*)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DOUT=${out}
            "-DGZIP=$<$<BOOL:${GZIP}>:${GZIP}>"
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_table.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed_table.cmake)
endfunction()

# dibs_embed_all(LIST PATTERN OUT SYMBOL): the same for every file that fits the
# pattern, now and later: NAME.x becomes OUTNAME.c with SYMBOLNAME. Adds to LIST.
function(dibs_embed_all list_name pattern out symbol)
  set(embedded ${${list_name}})
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${pattern})
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WE)
    dibs_embed(${CMAKE_CURRENT_BINARY_DIR}/${out}${name}.c ${file}
               ${symbol}${name})
    list(APPEND embedded ${CMAKE_CURRENT_BINARY_DIR}/${out}${name}.c)
  endforeach()
  set(${list_name} ${embedded} PARENT_SCOPE)
endfunction()
