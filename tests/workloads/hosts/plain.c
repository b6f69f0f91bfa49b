// A program with neither CUDA nor NVTX: the many processes that inherit an environment.
// usage: plain [EXIT_STATUS]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  char* text = malloc(64);
  strcpy(text, "counts launches=0 ranges=0");
  puts(text);
  free(text);
  return argc > 1 ? atoi(argv[1]) : 0;
}
