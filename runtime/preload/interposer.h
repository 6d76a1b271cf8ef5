/* What our interposers share: a little text, the definition that follows ours in the process, and
 * what the entries (entry.inc) hand over. Nothing is linked, not even libc: why is told in trace.c.
 */
#ifndef COHABIT_PRELOAD_INTERPOSER_H
#define COHABIT_PRELOAD_INTERPOSER_H

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

#define WEAK __attribute__((weak))
#define HIDDEN __attribute__((visibility("hidden")))

extern WEAK struct r_debug _r_debug;
extern HIDDEN ElfW(Dyn) _DYNAMIC[];

enum { kLongestString = 65535 };

/* Arguments and return address of a call, where the entry has put them on the stack; arguments that
 * are changed here reach the real function changed. */
struct saved_call {
  uintptr_t arguments[3];
  const void* return_address;
};

static inline size_t length_of(const char* s) {
  size_t n = 0;
  while (n < kLongestString && s[n]) ++n;
  return n;
}

static const char* after_prefix(const char* s, const char* prefix) {
  for (; *prefix; ++s, ++prefix)
    if (*s != *prefix) return NULL;
  return s;
}

static const char* find_variable(char** list, const char* name) {
  for (; list && *list; ++list) {
    const char* value = after_prefix(*list, name);
    if (value) return value;
  }
  return NULL;
}

struct symbols {
  const ElfW(Sym) * table;
  const char* strings;
  const uint32_t* gnu_hash;
  const uint32_t* hash;
  const uint16_t* versions;
};

/* glibc has made these pointers absolute, but for the vDSO. */
static const void* table_at(const struct link_map* map, ElfW(Addr) value) {
  return (const void*)(value < map->l_addr ? value + map->l_addr : value);
}

static struct symbols read_symbols(const struct link_map* map) {
  struct symbols symbols = {NULL, NULL, NULL, NULL, NULL};
  for (const ElfW(Dyn)* entry = map->l_ld; entry && entry->d_tag != DT_NULL; ++entry) {
    const void* at = table_at(map, entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) symbols.table = at;
    if (entry->d_tag == DT_STRTAB) symbols.strings = at;
    if (entry->d_tag == DT_GNU_HASH) symbols.gnu_hash = at;
    if (entry->d_tag == DT_HASH) symbols.hash = at;
    if (entry->d_tag == DT_VERSYM) symbols.versions = at;
  }
  return symbols;
}

static int defines(const struct symbols* symbols, uint32_t index, const char* name) {
  const ElfW(Sym)* symbol = &symbols->table[index];
  const char* rest = after_prefix(symbols->strings + symbol->st_name, name);
  return rest && !*rest && symbol->st_shndx != SHN_UNDEF;
}

/* Of several versions the default one; index 0 is no symbol. */
static int is_default(const struct symbols* symbols, uint32_t index) {
  return !symbols->versions || !(symbols->versions[index] & 0x8000);
}

static uint32_t find_by_gnu_hash(const struct symbols* symbols, const char* name) {
  uint32_t wanted = 5381, found = 0;
  for (const char* s = name; *s; ++s) wanted = wanted * 33 + (unsigned char)*s;
  const uint32_t* head = symbols->gnu_hash; /* buckets, first symbol, words of the filter, shift */
  const uint32_t* buckets = (const uint32_t*)((const ElfW(Addr)*)(head + 4) + head[2]);
  const uint32_t* chain = buckets + head[0];
  uint32_t index = head[0] ? buckets[wanted % head[0]] : 0;
  if (index < head[1]) return 0;
  for (;; ++index) {
    uint32_t hash = chain[index - head[1]];
    if ((hash | 1) == (wanted | 1) && defines(symbols, index, name)) {
      found = index;
      if (is_default(symbols, index)) return found;
    }
    if (hash & 1) return found;
  }
}

static uint32_t find_by_count(const struct symbols* symbols, const char* name) {
  uint32_t found = 0;
  for (uint32_t index = 1; index < symbols->hash[1]; ++index)
    if (defines(symbols, index, name)) {
      found = index;
      if (is_default(symbols, index)) break;
    }
  return found;
}

static void* find_in(const struct link_map* map, const char* name) {
  struct symbols symbols = read_symbols(map);
  uint32_t index = 0;
  if (!symbols.table || !symbols.strings) return NULL;
  if (symbols.gnu_hash)
    index = find_by_gnu_hash(&symbols, name);
  else if (symbols.hash)
    index = find_by_count(&symbols, name);
  return index ? (void*)(map->l_addr + symbols.table[index].st_value) : NULL;
}

/* The next definition after ours, as dlsym(RTLD_NEXT) finds it. Not dlsym itself: that is in libdl
 * before glibc 2.34, which may be loaded late, privately or never; and it would bind a lazy symbol
 * of libc earlier than the program does. */
static void* next_function(const char* name) {
  void* function = NULL;
  if (!&_r_debug) return NULL;
  const struct link_map* map = _r_debug.r_map;
  while (map && map->l_ld != _DYNAMIC) map = map->l_next;
  while (map && !function)
    if ((map = map->l_next)) function = find_in(map, name);
  return function;
}

#endif
