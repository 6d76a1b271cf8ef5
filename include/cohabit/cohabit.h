// Cohabit for other programs: the C ABI, and the only header that is installed.
#ifndef COHABIT_COHABIT_H
#define COHABIT_COHABIT_H

#define COHABIT_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// "0.1.0"
COHABIT_API const char* cohabit_version(void);

// What the command does: `argv` as main() gets it, e.g. {"cohabit", "doctor", "--format", "json",
// "/env", NULL}. The report goes to stdout, messages to stderr. Returns the exit status: 0 nothing
// at or above --fail-on, 1 findings, 2 Cohabit could not do its job.
COHABIT_API int cohabit_main(int argc, char** argv);

#ifdef __cplusplus
}
#endif

#endif
