/* dynlib.c - driver libraries, loaded when they are first needed.
 *
 * Owns nothing: what is loaded stays until the process ends. Callable from any
 * thread; two threads filling the same slots is the caller's to prevent. */
/* SPDX-License-Identifier: MIT */
#include "base/dynlib.h"
#include "base/fail.h"
#include <dlfcn.h>

static dibs_status
missing(dibs_error *err, const char *soname, const char *package)
{
    const char *why = dlerror();

    return dibsx_fail_at(err, DIBS_UNAVAIL, "dlopen",
                         "%s cannot be used; install the package %s (%s)",
                         soname, package, why ? why : "no reason given");
}

dibs_status
dibsx_dynlib_load(const char *soname, const char *package,
                  const dibsx_dynlib_call *calls, size_t count, dibs_error *err)
{
    void *lib = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (!lib)
        return missing(err, soname, package);
    for (size_t i = 0; i < count; i++) {
        *calls[i].slot = dlsym(lib, calls[i].symbol);
        if (!*calls[i].slot)
            return missing(err, soname, package);
    }
    return DIBS_OK;
}
