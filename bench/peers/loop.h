/* What the programs of all peers share and no library sees: options, clock, blocks of memory, figures printed,
 * repetitions counted or, with --on-line, asked for on standard input.
 *
 * Each program includes this file once, so its functions are static. */

#ifndef TASUKI_PEERS_LOOP_H
#define TASUKI_PEERS_LOOP_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

enum {
    LINE_WORDS = 8,        /* words of a cache line */
    PAGE_BYTES = 4096,
    PROCESSORS_MAX = 256,
    COMMAND_MAX = 64,
};

/* Bytes through which a cold case rotates: more than caches hold. */
#define COLD_BYTES ((size_t)128 << 20)
/* Bytes that a repetition of a bandwidth moves in each direction, in no more blocks than these. */
#define MOVED_BYTES ((size_t)256 << 20)
#define BLOCKS_MAX 4096L

/* The command line. */
struct options {
    const char *name;      /* the case */
    const char *by;        /* which of several calls carries the bytes; NULL: the usual one */
    size_t bytes;
    bool cold, fresh, on_line;
    long repetitions, iterations; /* iterations: 0 for the case's own number */
    int processors[PROCESSORS_MAX];
    int processor_count;   /* 0: not bound */
};

static const char USAGE[] =
    "usage: CASE [--size BYTES] [--state hot|cold] [--fresh] [--by WAY] [--repetitions N] [--iterations N]\n"
    "            [--processors A,B,..] [--on-line]\n";

static inline _Noreturn void fail(const char *what, const char *detail) {
    fprintf(stderr, "%s: %s\n", what, detail);
    fflush(stderr);
    /* Not exit: handlers of a library may wait for ranks that will never come. The launcher ends the others. */
    _Exit(1);
}

/* A wrong value is a fault of the program or of the library: no figure may come of it. */
static inline void check(bool right, const char *what) {
    if (!right) fail(what, "received a value that was not the one expected");
}

static inline void check_word(uint64_t got, uint64_t expected, const char *what) {
    if (__builtin_expect(got != expected, 0)) check(false, what);
}

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* What two looks at the clock with nothing between them show: to be taken off many short times that are added. */
static double clock_cost_ns(void) {
    double least = 1e9;
    for (int i = 0; i < 1000; i++) {
        double start = now_ns(), took = now_ns() - start;
        if (took < least) least = took;
    }
    return least;
}

static long parse_number(const char *option, const char *text, long least) {
    char *end = NULL;
    long value = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || value < least) fail(option, "needs a number");
    return value;
}

static void parse_processors(struct options *o, const char *text) {
    for (const char *at = text; at && *at && o->processor_count < PROCESSORS_MAX;) {
        char *end;
        o->processors[o->processor_count++] = (int)strtol(at, &end, 10);
        if (end == at || (*end && *end != ',')) fail("--processors", "needs numbers with commas between them");
        at = *end ? end + 1 : end;
    }
}

static struct options parse_options(int count, char **words) {
    struct options o = {.bytes = 8, .repetitions = 5};
    for (int i = 1; i < count; i++) {
        const char *word = words[i], *value = i + 1 < count ? words[i + 1] : NULL;
        bool takes_value = true;
        if (!strcmp(word, "--size")) o.bytes = (size_t)parse_number(word, value, 8);
        else if (!strcmp(word, "--repetitions")) o.repetitions = parse_number(word, value, 1);
        else if (!strcmp(word, "--iterations")) o.iterations = parse_number(word, value, 1);
        else if (!strcmp(word, "--by")) o.by = value;
        else if (!strcmp(word, "--processors")) parse_processors(&o, value);
        else if (!strcmp(word, "--state") && value && !strcmp(value, "cold")) o.cold = true;
        else if (!strcmp(word, "--state") && value && !strcmp(value, "hot")) o.cold = false;
        else takes_value = false;
        if (takes_value) { i++; continue; }
        if (!strcmp(word, "--fresh")) o.fresh = true;
        else if (!strcmp(word, "--on-line")) o.on_line = true;
        else if (word[0] != '-' && !o.name) o.name = word;
        else fail(word, USAGE);
    }
    if (!o.name) fail("no case", USAGE);
    if (o.bytes % 8) fail("--size", "is a multiple of 8");
    return o;
}

static long iterations(const struct options *o, long usual) { return o->iterations ? o->iterations : usual; }

/* Whether the option --by asks for this way of carrying the bytes. */
static bool asks_for(const struct options *o, const char *way) { return o->by && !strcmp(o->by, way); }

/* Binds the calling thread as `tasuki run --bind` binds a rank, by the kernel's call instead of the launcher's
 * options: so all peers, and our own ranks, are bound alike. */
static void bind_rank(const struct options *o, int rank) {
    if (!o->processor_count) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(o->processors[rank % o->processor_count], &set);
    if (sched_setaffinity(0, sizeof set, &set)) fail("--processors", "the kernel refuses them");
}

/* A rank whose launcher was killed must not stay and spin. */
static void end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); }

/* What the next repetition is of. Ranks other than 0 are told by it, so it is plain numbers. */
struct shape {
    long go, bytes, cold, fresh;
};

/* Asks for the next repetition: rank 0 of a program --on-line blocks here without using its processor. A line says
 * "go" or "go BYTES hot|cold reused|fresh", with no more bytes than the program was started with. */
static struct shape wanted_on_line(const struct options *o) {
    char line[COMMAND_MAX], temperature[8] = "", buffers[8] = "";
    struct shape s = {.go = 1, .bytes = (long)o->bytes, .cold = o->cold, .fresh = o->fresh};
    if (!fgets(line, sizeof line, stdin) || !strcmp(line, "end\n")) return (struct shape){0};
    if (!strcmp(line, "go\n")) return s;
    if (sscanf(line, "go %ld %7s %7s", &s.bytes, temperature, buffers) != 3)
        fail("standard input", "expected the lines go or end");
    if (s.bytes < 8 || s.bytes % 8 || (size_t)s.bytes > o->bytes) fail("standard input", "no such size");
    s.cold = !strcmp(temperature, "cold");
    s.fresh = !strcmp(buffers, "fresh");
    return s;
}

static struct shape wanted(const struct options *o, long done) {
    if (o->on_line) return wanted_on_line(o);
    return (struct shape){.go = done < o->repetitions, .bytes = (long)o->bytes, .cold = o->cold, .fresh = o->fresh};
}

/* The options of a repetition of that shape. */
static void reshape(struct options *o, const struct shape *s) {
    o->bytes = (size_t)s->bytes;
    o->cold = s->cold;
    o->fresh = s->fresh;
}

/* A figure's name as its rows have it. */
struct figure {
    const char *name, *variant, *metric;
};

static void print_figure(const struct figure *f, const struct options *o, int ranks, double value) {
    printf("{\"case\":\"%s\",\"variant\":\"%s\",\"by\":\"%s\",\"bytes\":%zu,\"ranks\":%d,\"metric\":\"%s\","
           "\"value\":%.6g}\n",
           f->name, f->variant, o->by ? o->by : "", o->bytes, ranks, f->metric, value);
    fflush(stdout);
}

/* Tells who started the program on line that start-up is over, so that it disturbs nobody's measurement. */
static void print_ready(const struct options *o) {
    if (o->on_line) {
        printf("{\"ready\":\"%s\"}\n", o->name);
        fflush(stdout);
    }
}

static const char *state_name(const struct options *o) {
    if (o->cold) return o->fresh ? "cold_fresh" : "cold_reused";
    return o->fresh ? "hot_fresh" : "hot_reused";
}

/* Buffers of a size through which a state rotates, as many as our own bench takes. */
static size_t slots_of(const struct options *o) {
    size_t slots = COLD_BYTES / o->bytes;
    return !o->cold ? 1 : slots < 2 ? 2 : slots;
}

/* Memory that the program merely owns. Mapped, so that it begins on a page. */
static void *own_memory(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("memory", "the kernel has none");
    return memory;
}

#endif
