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
