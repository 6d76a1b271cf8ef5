/* An extension module that imports as those of Cython do; it is read by test_initial_code.cc, never
   loaded. TABLE tells how its strings are kept: 0 in entries with the variable (Cython 0.29), 1 in
   such entries, made by a function in its frame (3.0), 2 in entries without (3.1), 3 the same in a
   state that functions return, 4 the same with the function that imports in another module (3.2).
 */
#include <stddef.h>

/* By which such modules are known. */
__attribute__((visibility("default"))) const char runtime[] = "cython_runtime";

typedef struct object object;
object* PyImport_ImportModuleLevelObject(object* name, object* globals, object* locals,
                                         object* names, int level);
object* PyImport_ImportModule(const char* name);
object* PyUnicode_InternFromString(const char* text);
object* PyList_New(ptrdiff_t size);
object* PyObject_GetAttr(object* module, object* name);
int PyObject_SetAttr(object* module, object* name, object* value);
int PyModuleDef_Init(void* definition);
void* PyModule_GetState(void* module);
object* PyImport_AddModule(const char* name);
void* PyCapsule_GetPointer(object* capsule, const char* name);

int kept; /* so that no call is a jump */

struct slot {
  size_t kind;
  int (*function)(object*);
};
struct definition {
  size_t base[5];
  const char *name, *doc;
  ptrdiff_t size;
  void* methods;
  struct slot* slots;
  void* more[3];
};

static struct state {
  object *globals, *list;
  object* strings[10];
} state;
#if TABLE == 3
__attribute__((noinline)) static struct state* state_of(void) {
  kept++;
  return PyModule_GetState(NULL);
}
#define STRING(index) state_of()->strings[index]
#else
#define STRING(index) state.strings[index]
#endif
enum { kMain, kName, kTest, kLater, kNeighbour, kPackage, kPart, kPlain, kSys, kText };
#define TEXTS(X)             \
  X(kMain, "__main__")       \
  X(kName, "__name__")       \
  X(kTest, "__test__")       \
  X(kLater, "only_later")    \
  X(kNeighbour, "neighbour") \
  X(kPackage, "package") X(kPart, "part") X(kPlain, "plain") X(kSys, "sys") X(kText, "a text")

#if TABLE < 2
struct entry {
  object** variable;
  const char* text;
  ptrdiff_t size;
  const char* encoding;
  char flags[3];
};
#define ENTRY(index, text) {&state.strings[index], text, sizeof text, NULL, {1, 0, 1}},
__attribute__((noinline)) static void make(const struct entry* entry) {
  for (; entry->variable; entry++) *entry->variable = PyUnicode_InternFromString(entry->text);
}
#else
struct entry {
  const char* text;
  unsigned short size;
  unsigned char flags;
};
#define ENTRY(index, text) {text, sizeof text, 1},
#endif

#if TABLE == 1
__attribute__((noinline)) static void make_strings(void) {
  struct entry entries[11];
#define STORE(index, words)                        \
  entries[index].variable = &state.strings[index]; \
  entries[index].text = words;                     \
  entries[index].size = sizeof words;              \
  entries[index].encoding = NULL;                  \
  entries[index].flags[0] = 1;
  TEXTS(STORE)
  entries[10].variable = NULL;
  make(entries);
}
#else
static const struct entry entries[] = {TEXTS(ENTRY){NULL}};
__attribute__((noinline)) static void make_strings(void) {
#if TABLE == 0
  make(entries);
#else
  object** string = &STRING(0);
  const struct entry* entry = entries;
  __asm__("" : "+r"(entry)); /* real tables are too long to be unrolled */
  for (; entry->text; entry++) *string++ = PyUnicode_InternFromString(entry->text);
#endif
}
#endif

#if TABLE == 4
static object* (*shared)(object* name, object* names, ptrdiff_t count, object* package,
                         object* globals, int level);
#define import(name, names, level) shared(name, names, 1, NULL, NULL, level)
#else
/* __Pyx_Import */
__attribute__((noinline)) static object* import(object* name, object* names, int level) {
  kept++;
  return PyImport_ImportModuleLevelObject(name, state.globals, state.list, names, level);
}
#endif

/* Two names go through a vector register into the list, as compilers do it since GCC 12. */
#if defined __x86_64__ && (TABLE == 0 || TABLE == 2)
#define VECTOR(list, low, high)                                       \
  __asm__("movq %1, %%xmm0\n\tmovhps %2, %%xmm0\n\tmovups %%xmm0, %0" \
          : "=m"(*(object * (*)[2])(list))                            \
          : "m"(STRING(low)), "m"(STRING(high))                       \
          : "xmm0");
#endif
#if defined VECTOR && TABLE == 0
#define STORE_TWO(list, one, other) VECTOR(list, one, other)
#elif defined VECTOR
#define STORE_TWO(list, one, other) VECTOR(list, other, one)
#else
#define STORE_TWO(list, one, other) \
  list[0] = STRING(one);            \
  list[1] = STRING(other);
#endif

/* Somebody has to call it first. */
static int method(object* module) {
  kept += import(STRING(kLater), NULL, 0) != module;
  return kept;
}

static int execute(object* module) {
  make_strings();
#if TABLE == 4
  shared = PyCapsule_GetPointer(PyImport_AddModule("cython_runtime"), "import");
#endif
  kept += PyObject_SetAttr(module, STRING(kName), STRING(kMain));
  kept += PyImport_ImportModule("types_of") != NULL;
  kept += import(STRING(kPlain), NULL, 0) != NULL;
  object** list = (object**)PyList_New(2);
  STORE_TWO(list, kPart, kPlain)
  object* package = import(STRING(kPackage), (object*)list, 0);
  kept += PyObject_SetAttr(module, STRING(kPart), PyObject_GetAttr(package, STRING(kPart)));
  kept += import(STRING(kNeighbour), NULL, 1) != NULL;
  kept += import(STRING(kSys), NULL, 0) != NULL;
  return PyObject_SetAttr(module, STRING(kTest), STRING(kText));
}

static struct slot methods[] = {{0, method}};
static struct slot slots[] = {{1, NULL}, {2, execute}, {0, NULL}};
static struct definition definition = {{1}, "sample", NULL, 0, methods, slots, {NULL}};

int PyInit_sample(void) {
  return PyModuleDef_Init(&definition) + kept;
}
