# The flags that every target is compiled with.
add_compile_definitions(_GNU_SOURCE)
add_compile_options(
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wvla
  -Wmissing-prototypes -Wundef -Wpointer-arith -Wwrite-strings -Wformat=2
  -fno-common -fstack-protector-strong)
if(DIBS_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_BUILD_TYPE MATCHES "Rel" AND NOT DIBS_SANITIZE)
  # Not for a build type where nothing is optimised: glibc warns about it there.
  add_compile_options(-D_FORTIFY_SOURCE=2)
endif()
add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
if(DIBS_SANITIZE)
  add_compile_options(-fsanitize=${DIBS_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DIBS_SANITIZE})
endif()
if(DIBS_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()
