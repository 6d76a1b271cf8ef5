/* An extension module whose code imports in several ways; it is read by test_initial_code.cc, never
   loaded. The structs are those of CPython (Include/moduleobject.h), as far as they matter.
   AS_RUST: as PyO3 does; AS_BUILT: PyInit makes the definition's slots; AS_BOUND: as nanobind does,
   which is given a module's functions in records. */
#include <stddef.h>
#include <stdlib.h>

void* PyImport_ImportModule(const char* name);
void* PyCapsule_Import(const char* name, int no_block);
void* PyImport_Import(void* name);
void* PyUnicode_FromStringAndSize(const char* text, ptrdiff_t size);
void* PyObject_GetAttrString(void* object, const char* name);
int PyModuleDef_Init(void* definition);
void* PyUnicode_FromString(const char* text);
void* PyImport_ImportModuleLevelObject(void* name, void*, void*, void*, int level);
int PyObject_IsTrue(void* object);
void* PyRun_StringFlags(const char* source, int start, void* globals, void* locals, void* flags);
int PyRun_SimpleStringFlags(const char* source, void* flags);
void __once_proxy(void);
int pthread_once(int* flag, void (*function)(void));

int kept; /* so that no call is a jump */

struct method {
  const char* name;
  void (*function)(void);
};
struct slot {
  size_t kind;
  int (*function)(void*);
};
struct definition {
  size_t base[5];
  const char *name, *doc;
  ptrdiff_t size;
  struct method* methods;
  struct slot* slots;
  void* more[3];
};

/* An import function of its own. */
__attribute__((noinline)) static void import(const char* name) {
  kept += PyImport_ImportModule(name) != NULL;
}

/* Two names: that of a module and that of something in it. */
__attribute__((noinline)) static void take(const char* module, const char* name) {
  kept += PyObject_GetAttrString(PyImport_ImportModule(module), name) != NULL;
}

/* Names with a length and no end. */
static const char texts[] = "by_textnever_at_once";
__attribute__((noinline)) static void import_object(void* name) {
  kept += PyImport_Import(name) != NULL;
}
/* Kept for when it is needed; it is only looked at here. */
__attribute__((noinline)) static void keep(void) {
  kept += PyImport_Import(PyUnicode_FromStringAndSize(texts + 7, 13)) != NULL;
}

/* Of a name with an end, and source. */
__attribute__((noinline)) static void by_object(void) {
  void* name = PyUnicode_FromString("by_object");
  if (!PyObject_IsTrue(name)) return;
  kept += PyImport_ImportModuleLevelObject(name, NULL, NULL, NULL, 0) != NULL;
  kept += PyImport_Import(PyUnicode_FromString("by_another")) != NULL;
  kept += PyObject_IsTrue(PyUnicode_FromString("no_module"));
}
__attribute__((noinline)) static void by_source(void) {
  kept += PyRun_StringFlags(
              "import by_source, source.below as name\ntry:\n    from source import x\n"
              "except ImportError: pass\n",
              257, NULL, NULL, NULL) != NULL;
  kept += PyRun_SimpleStringFlags("not python", NULL);
}

/* What std::call_once makes of its function, which nothing calls directly. */
extern _Thread_local void (*once_call)(void);
static int once_flag;
static void look_once(void) {
  kept += PyImport_ImportModule("by_once") != NULL;
}
__attribute__((noinline)) static void call_once(void) {
  once_call = look_once;
  kept += pthread_once(&once_flag, __once_proxy);
}

/* A chain of calls, each behind a condition: what is at the end of a long one is hardly ever run.
 */
#define LINK(name, next)                             \
  __attribute__((noinline)) static void name(void) { \
    if (kept > 0) next();                            \
    kept++;                                          \
  }
static void far_away(void) {
  kept += PyImport_ImportModule("far.away") != NULL;
}
LINK(link14, far_away)
LINK(link13, link14)
LINK(link12, link13)
LINK(link11, link12)
LINK(link10, link11)
LINK(link9, link10)
LINK(link8, link9)
LINK(link7, link8)
LINK(link6, link7)
LINK(link5, link6)
LINK(link4, link5)
LINK(link3, link4)
LINK(link2, link3)
LINK(link1, link2)

__attribute__((noinline)) static void prepare(void) {
  import("through.helper");
  take("home", "attribute");
  take("other_home", "other");
  import_object(PyUnicode_FromStringAndSize(texts, 7));
  if (kept < 0) keep();
  by_object();
  by_source();
  call_once();
  link1();
  kept++;
}

/* Somebody has to call it first. */
static void method(void) {
  kept += PyImport_ImportModule("only_later") != NULL;
  import("only.later");
}

static int execute(void* module) {
  kept += PyImport_ImportModule("plain") != NULL;
  kept += PyCapsule_Import("package.module._C_API", 0) != NULL;
  prepare();
  return module == NULL;
}

static struct method methods[] = {{"method", method}, {NULL, NULL}};
#ifdef AS_RUST
/* PyO3: the definition has other fields before it, and what runs it is given a function. */
int make_module(void* whole);
int run_guarded(int (*function)(void*), void* module);
static int trampoline(void* module) {
  return run_guarded(execute, module) + kept;
}
static struct slot slots[] = {{2, trampoline}, {0, NULL}};
static struct {
  size_t before[2];
  struct definition definition;
} whole = {{0}, {{1}, "sample", NULL, 0, methods, slots, {NULL}}};

int PyInit_sample(void) {
  return make_module(&whole) + kept;
}
#elif defined(AS_BUILT)
static struct definition definition = {{1}, "sample", NULL, 0, methods, NULL, {NULL}};
__attribute__((visibility("default"))) int sample_execute(void* module) {
  return execute(module) + kept;
}

int PyInit_sample(void) {
  struct slot* slots = malloc(2 * sizeof *slots);
  slots[0] = (struct slot){2, sample_execute};
  slots[1] = (struct slot){0, NULL};
  definition.slots = slots;
  return PyModuleDef_Init(&definition) + kept;
}
#elif defined(AS_BOUND)
struct record {
  void (*held)(void);
  size_t more[3];
  void (*function)(void);
  const char* name;
};
void add_function(const struct record* record);
static void another_method(void) {
  kept += PyImport_ImportModule("much_later") != NULL;
}

int PyInit_sample(void) {
  add_function(&(struct record){method, {0}, another_method, "method"});
  return execute(NULL) + kept;
}
#else
static struct slot slots[] = {{1, NULL}, {2, execute}, {0, NULL}};
static struct definition definition = {{1}, "sample", NULL, 0, methods, slots, {NULL}};

int PyInit_sample(void) {
  return PyModuleDef_Init(&definition) + kept;
}
#endif

/* What mypyc makes of two modules: one that the library loads itself, one that goes by its file. */
int CPyInitOnly_package___sub____leaf(void) {
  return 1;
}
int CPyInitOnly_package___a___3_b(void) {
  return 2;
}
int CPyInit_package___other(void) {
  return 3;
}
