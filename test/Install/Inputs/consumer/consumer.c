/* A program on the C API alone. */
#include "kvbuffer-c/Compiler.h"
#include <stdio.h>

int main(void) {
  printf("kvbuf %s\n", kvbufCompilerVersion());
  return 0;
}
