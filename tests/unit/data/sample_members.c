// Copies of one library for test_members.cc, by VARIANT. PLAIN has the layout that all but FRONT
// and END have; those behind END do something in sample_3 besides.
#define PLAIN 0
#define SAME 1
#define FRONT 2
#define END 3
#define KEPT 4
#define HELPER 5
#define TABLE 6
#define THREAD 7
#define OTHER 8
#define HIDDEN_BYTES 9

struct sample {
#if VARIANT == FRONT
  long added;
#endif
  long a;
  int b, c;
  char name[20];
  short d;
  double e;
  long f, g;
  char h, i;
  int j;
#if VARIANT == END
  long more[4];
#endif
};

static long counter, others[3];
static __thread long of_thread;
static long* const table[3] = {&others[0], &others[1], &others[2]};
long* sample_counter(void) {
  return &counter;
}
__attribute__((noinline)) static void helper(void) {
  counter++;
  __asm__ volatile("");
}

#if VARIANT == PLAIN || VARIANT == SAME || VARIANT == FRONT || VARIANT == END
#define DO(sample)
#elif VARIANT == KEPT
#define DO(sample) counter++
#elif VARIANT == HELPER
#define DO(sample) helper()
#elif VARIANT == TABLE
#define DO(sample) ++*table[(sample)->c & 1]
#elif VARIANT == THREAD
#define DO(sample) of_thread++
#elif VARIANT == OTHER
#define DO(sample) ++*sample_counter()
#elif defined(__x86_64__)
#define DO(sample) __asm__ volatile("jmp 1f\n.byte 6, 6\n1:")
#else
#define DO(sample)
#endif

void sample_reset(struct sample* s) {
  s->a = 1, s->b = 2, s->d = 3, s->e = 4.0, s->f = 5, s->j = 6;
#if VARIANT == END
  s->more[3] = 7;
#endif
}
long sample_1(struct sample* s) {
  return s->a + s->b * s->f + s->j;
}
long sample_2(struct sample* s) {
  return s->c - s->f * s->g + s->h;
}
long sample_3(struct sample* s) {
  DO(s);
  return s->d + s->g * s->a - s->i;
}
double sample_4(struct sample* s) {
  return s->e * s->b + (double)s->f - s->j;
}
void sample_5(struct sample* s) {
  s->g = s->f, s->h = s->i, s->c = s->j;
}
void sample_6(struct sample* s) {
  s->a = s->g, s->d = (short)s->c, s->j = s->b;
}
long sample_7(struct sample* s) {
  return s->name[3] + s->name[7] * s->d + s->h + s->j;
}
long sample_8(struct sample* s) {
  return s->f ? s->a + s->c : s->b + s->j;
}
long sample_one(struct sample* s) {
  return s->f;
}
short sample_two(struct sample* s) {
  return (short)(s->d + s->i);
}
