/* The entry of the rules' library: cohabit_preload_call changes the flags and finds the real dlopen. */
#include "preload/entry.inc"

  .text
  .hidden cohabit_preload_call
  ENTRY(dlopen, BASE, 0, cohabit_preload_call)
