/* The tracer's entries: cohabit_trace_call logs the call and finds the real function. */
#include "preload/entry.inc"

  .text
  .hidden cohabit_trace_call
  ENTRY(dlopen, BASE, 0, cohabit_trace_call)
  ENTRY(dlmopen, BASE_DLMOPEN, 1, cohabit_trace_call)
  ENTRY(dlclose, BASE, 2, cohabit_trace_call)
