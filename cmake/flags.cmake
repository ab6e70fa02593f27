# The flags that every target is compiled with.
add_compile_definitions(_GNU_SOURCE)
add_compile_options(
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wvla
  -Wmissing-prototypes -Wundef -Wpointer-arith -Wwrite-strings -Wformat=2
  -fno-common -fstack-protector-strong -fstack-clash-protection)
if(DIBS_WERROR)
  add_compile_options(-Werror)
endif()
# Only to the beginnings of functions may be jumped, where the processor can tell.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|i[3-6]86")
  add_compile_options(-fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  add_compile_options(-mbranch-protection=standard)
endif()
if(CMAKE_BUILD_TYPE MATCHES "Rel" AND NOT DIBS_SANITIZE)
  # Not for a build type where nothing is optimised: glibc warns about it there.
  # A compiler that has no level 3 takes it as 2.
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()
# Programs are position independent too: to compile for it is not to link for it.
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
                 -Wl,-z,separate-code)
# One run of all tests links a thousand programs, for which LLVM's linker takes half the
# time. What is installed is linked as the compiler does it.
find_program(DIBS_LLD ld.lld)
if(DIBS_LLD AND DIBS_TESTS AND CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_link_options(-fuse-ld=lld)
endif()
if(DIBS_SANITIZE)
  # Lines are what a report shows; more costs a fifth of the time to compile.
  set(CMAKE_C_FLAGS_DEBUG "-g1")
  add_compile_options(-fsanitize=${DIBS_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DIBS_SANITIZE})
endif()
if(DIBS_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()
