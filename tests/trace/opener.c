/* The traced program of the tests: does what its arguments say, one operation each.
 *   open=NAME,FLAGS      dlopen, flags in hexadecimal; "@" for NULL. The handle is kept
 *   mopen=NS,NAME,FLAGS  dlmopen; NS "new" or a number
 *   close=N              dlclose of the Nth handle; close=twice: of the last one, two times
 *   via=FLAGS,NAME       the function call_open of the last object opened opens NAME
 *   viam=FLAGS,NAME      its function call_mopen opens NAME in a new namespace
 *   dlvsym=VERSION,NAME  opens NAME through dlvsym(RTLD_DEFAULT, "dlopen", VERSION)
 *   user=NAME            getpwnam, for which libc opens NSS modules
 *   charset=NAME         iconv_open, for which libc opens a gconv module
 *   fork=NAME            a forked child opens NAME
 *   spawn=PROGRAM,ARGS   a child runs PROGRAM with the ","-separated arguments
 *   exec=PROGRAM,ARGS    this process runs it
 *   threads=NAME,NAME    two threads open one of them each, 200 times
 *   cd=DIRECTORY, unlimited descriptors closed: closefrom; crash, kill, _exit=N, exit=N, errno, fds
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <iconv.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void* handles[64];
static int count;

static void keep(void* handle, const char* name) {
  const char* error = handle ? NULL : dlerror();
  printf("%s: %s\n", name, handle ? "opened" : error ? error : "no error message");
  if (handle) handles[count++] = handle;
}

static void split(char* text, char** parts, int most) {
  for (int i = 0; i < most; ++i) parts[i] = NULL;
  parts[0] = text;
  for (int i = 1; i < most && text && (text = strchr(text, ',')); ++i) {
    *text++ = '\0';
    parts[i] = text;
  }
}

static void* open_often(void* name) {
  for (int i = 0; i < 200; ++i) {
    void* handle = dlopen(name, RTLD_NOW);
    if (handle) dlclose(handle);
  }
  return NULL;
}

static void run(const char* operation, char* value) {
  char* part[16];
  split(value, part, 16);
  int flags = part[1] ? (int)strtol(part[1], NULL, 16) : 0;
  if (!strcmp(operation, "open")) {
    keep(dlopen(strcmp(part[0], "@") ? part[0] : NULL, flags), part[0]);
  } else if (!strcmp(operation, "mopen")) {
    Lmid_t ns = strcmp(part[0], "new") ? atoi(part[0]) : LM_ID_NEWLM;
    keep(dlmopen(ns, part[1], (int)strtol(part[2], NULL, 16)), part[1]);
  } else if (!strcmp(operation, "close")) {
    int twice = !strcmp(part[0], "twice");
    void* handle = handles[twice ? count - 1 : atoi(part[0])];
    printf("close: %d\n", dlclose(handle));
    if (twice) printf("close: %d\n", dlclose(handle));
  } else if (!strcmp(operation, "via") || !strcmp(operation, "viam")) {
    const char* function = operation[3] ? "call_mopen" : "call_open";
    void* (*call_open)(const char*, int) =
        (void* (*)(const char*, int))dlsym(handles[count - 1], function);
    keep(call_open(part[1], (int)strtol(part[0], NULL, 16)), part[1]);
  } else if (!strcmp(operation, "dlvsym")) {
    void* (*open_it)(const char*, int) =
        (void* (*)(const char*, int))dlvsym(RTLD_DEFAULT, "dlopen", part[0]);
    keep(open_it(part[1], RTLD_NOW), part[1]);
  } else if (!strcmp(operation, "user")) {
    printf("user: %d\n", getpwnam(part[0]) != NULL);
  } else if (!strcmp(operation, "charset")) {
    printf("charset: %d\n", iconv_open("UTF-8", part[0]) != (iconv_t)-1);
  } else if (!strcmp(operation, "fork")) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(dlopen(part[0], RTLD_NOW) ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    printf("fork: %d\n", status);
  } else if (!strcmp(operation, "spawn") || !strcmp(operation, "exec")) {
    fflush(stdout);
    pid_t child = *operation == 's' ? fork() : 0;
    if (child == 0) {
      execv(part[0], part);
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("spawn: %d\n", status);
  } else if (!strcmp(operation, "threads")) {
    pthread_t first, second;
    pthread_create(&first, NULL, open_often, part[0]);
    pthread_create(&second, NULL, open_often, part[1]);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
  } else if (!strcmp(operation, "cd")) {
    if (chdir(part[0]) != 0) perror("chdir");
  } else if (!strcmp(operation, "write3")) {
    /* As `exec 3>FILE` in a shell. */
    int file = open(part[0], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (int i = 3; i < 250; ++i) dup2(file, i);
  } else if (!strcmp(operation, "closefrom")) {
    for (int i = 3; i < 2000; ++i) close(i);
    for (int i = 0; i < 8; ++i) open(part[0], O_WRONLY | O_CREAT | O_APPEND, 0600);
  } else if (!strcmp(operation, "crash")) {
    fflush(stdout);
    *(volatile int*)8 = 1;
  } else if (!strcmp(operation, "kill")) {
    fflush(stdout);
    raise(atoi(part[0]));
  } else if (!strcmp(operation, "_exit")) {
    fflush(stdout);
    _exit(atoi(part[0]));
  } else if (!strcmp(operation, "exit")) {
    exit(atoi(part[0]));
  } else if (!strcmp(operation, "errno")) {
    errno = 77;
    dlopen(NULL, RTLD_NOW);
    printf("errno: %d\n", errno);
  } else if (!strcmp(operation, "fds")) {
    for (int i = 0; i < 200; ++i)
      if (fcntl(i, F_GETFD) >= 0) printf("fd %d\n", i);
  } else {
    fprintf(stderr, "opener: what is %s?\n", operation);
    exit(3);
  }
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    char* equals = strchr(argv[i], '=');
    static char nothing[] = "";
    if (equals) *equals = '\0';
    run(argv[i], equals ? equals + 1 : nothing);
  }
  return 0;
}
