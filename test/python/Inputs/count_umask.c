/* Preloaded: counts calls of umask, which changes what every thread of the
   process creates meanwhile. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>

int umask_calls;

mode_t umask(mode_t mask) {
  ++umask_calls;
  mode_t (*real)(mode_t) = (mode_t (*)(mode_t))dlsym(RTLD_NEXT, "umask");
  return real(mask);
}
