/* All calls of NICAM on any number of ranks, some by several threads. Ends with a line if all is right. */
#include <nicam.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG (300 * 1000)

static int self, nodes, next, previous;

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: node %d: %s\n", __FILE__, __LINE__, self, #what); \
            exit(3); \
        } \
    } while (0)

static void ok_at(int code, int line) {
    if (code == NICAM_SUCCESS) return;
    fprintf(stderr, "line %d, node %d: code %d: %s\n", line, self, code, tasuki_error_string(code));
    exit(4);
}
#define OK(call) ok_at((call), __LINE__)

static void says(int code, int expected, const char *text, int line) {
    const char *said = tasuki_error_string(code);
    if (code == expected && strstr(said, text)) return;
    fprintf(stderr, "line %d, node %d: code %d (not %d): %s\n", line, self, code, expected, said);
    exit(5);
}
#define FAILS(call, code, text) says((call), (code), (text), __LINE__)

/* Memory that corresponds on all nodes. */
struct shared {
    nicam_flag arrived, counted, broadcast, by_key, word, of_thread[4];
    unsigned char *give, *take;
};
static struct shared *at;

static void meet(void) {
    nicam_flag flag = {0, {0, 0, 0}};
    OK(nicam_barrier(&flag));
    OK(nicam_wait(&flag, 1));
}

static void before_init(void) {
    nicam_flag flag = {0, {0, 0, 0}};
    int n;
    void *memory;
    FAILS(nicam_self(&n), NICAM_ERR_INIT, "nicam_init was not called");
    FAILS(nicam_barrier(&flag), NICAM_ERR_INIT, "nicam_init");
    FAILS(nicam_alloc(&memory, 8), NICAM_ERR_INIT, "nicam_init");
    FAILS(nicam_bcopy(0, &n, 0, &n, 4), NICAM_ERR_INIT, "nicam_init");
    FAILS(nicam_wait(&flag, 0), NICAM_ERR_INIT, "nicam_init");
    FAILS(nicam_finalize(), NICAM_ERR_INIT, "nicam_init");
}

static void misuse(void) {
    int n;
    char mine[64];
    nicam_flag flag = {0, {0, 0, 0}};
    FAILS(nicam_init(), NICAM_ERR_MISUSE, "before");
    FAILS(nicam_self(NULL), NICAM_ERR_MISUSE, "node is null");
    FAILS(nicam_alloc(NULL, 8), NICAM_ERR_MISUSE, "memory is null");
    FAILS(nicam_free(mine), NICAM_ERR_MISUSE, "was not allocated");
    FAILS(nicam_lock_memory(NULL, 8), NICAM_ERR_MISUSE, "no memory");
    FAILS(nicam_unlock_memory(mine), NICAM_ERR_MISUSE, "is locked");
    FAILS(nicam_bcopy(self, mine, next, at->take, 8), NICAM_ERR_MISUSE, "neither in memory of nicam_alloc");
    FAILS(nicam_bcopy(self, at->give, next, mine, 8), NICAM_ERR_MISUSE, "neither in memory of nicam_alloc");
    FAILS(nicam_bcopy(self, at->give, next, at->take, 2 * LONG), NICAM_ERR_MISUSE, "neither");
    FAILS(nicam_bcopy(self, at->give, nodes, at->take, 8), NICAM_ERR_MISUSE, "does not exist");
    FAILS(nicam_bcopy(-1, at->give, self, at->take, 8), NICAM_ERR_MISUSE, "node -1");
    FAILS(nicam_write1(next, &flag, 1), NICAM_ERR_MISUSE, "neither");
    FAILS(nicam_write1(next, NULL, 1), NICAM_ERR_MISUSE, "neither");
    FAILS(nicam_barrier(NULL), NICAM_ERR_MISUSE, "null");
    FAILS(nicam_sync((nicam_flag *)(void *)(mine + 1)), NICAM_ERR_MISUSE, "aligned");
    FAILS(nicam_wait(NULL, 1), NICAM_ERR_MISUSE, "null");
    FAILS(nicam_test(&flag, 1, NULL), NICAM_ERR_MISUSE, "is_set is null");
    FAILS(nicam_set_counter(&at->counted, 0), NICAM_ERR_MISUSE, "0 arrivals");
    OK(nicam_test(&flag, 1, &n));
    CHECK(n == 0);
}

static void fill(unsigned char *to, size_t size, int seed) {
    for (size_t i = 0; i < size; i++) to[i] = (unsigned char)(i * 7 + (size_t)seed);
}

static int is_filled(const unsigned char *from, size_t size, int seed) {
    for (size_t i = 0; i < size; i++)
        if (from[i] != (unsigned char)(i * 7 + (size_t)seed)) return 0;
    return 1;
}

/* A copy is there when its flag is, and when sync says so; the barrier keeps the rounds apart. */
static void copies(void) {
    static const size_t sizes[] = {0, 1, 8, 4096, LONG};
    for (int round = 1; round <= 5; round++) {
        size_t size = sizes[round - 1];
        fill(at->give, size, self + round);
        OK(nicam_bcopy_notify(self, at->give, next, at->take, size, &at->arrived, (uint64_t)round));
        OK(nicam_wait(&at->arrived, (uint64_t)round));
        CHECK(is_filled(at->take, size, previous + round));
        meet();
        /* From the previous node's memory into one's own, and from there on by a third party. */
        nicam_flag done;
        OK(nicam_bcopy(previous, at->give, self, at->take, size));
        OK(nicam_sync(&done));
        OK(nicam_wait(&done, 1));
        CHECK(is_filled(at->take, size, previous + round));
        meet();
        if (self == 0) {
            OK(nicam_bcopy(next, at->give, previous, at->take, size));
            OK(nicam_sync(&done));
            while (!done.value) {
                int is_set;
                OK(nicam_test(&done, 1, &is_set));
            }
        }
        meet();
        if (self == (nodes - 1)) CHECK(is_filled(at->take, size, 1 % nodes + round));
        meet();
    }
}

static void counters(void) {
    for (int round = 0; round < 3; round++) {
        at->counted.value = 0;
        OK(nicam_set_counter(&at->counted, (uint64_t)nodes));
        FAILS(nicam_set_counter(&at->word, 1), NICAM_ERR_MISUSE, "armed");
        for (int to = 0; to < nodes; to++)
            OK(nicam_bcopy_countup(self, at->give, to, at->take + 16 * (size_t)self, 16));
        OK(nicam_wait(&at->counted, 1));
        meet();
    }
    OK(nicam_write1(next, &at->word, (uint64_t)(100 + self)));
    OK(nicam_wait(&at->word, (uint64_t)(100 + previous)));
    meet();
}

static void broadcasts(void) {
    for (int root = 0; root < nodes; root++) {
        if (self == root) {
            fill(at->give, 1000, root);
            OK(nicam_bcast(root, at->give, at->take, 1000, &at->broadcast, (uint64_t)root + 1));
        }
        OK(nicam_wait(&at->broadcast, (uint64_t)root + 1));
        CHECK(is_filled(at->take, 1000, root));
        meet();
    }
    OK(nicam_bcast_discard(self == nodes - 1));
    meet();
    if (self == 0) OK(nicam_bcast(0, at->give, at->take, 1000, &at->broadcast, 77));
    if (self != nodes - 1) OK(nicam_wait(&at->broadcast, 77));
    meet();
    if (self == nodes - 1) CHECK(at->broadcast.value != 77);
    OK(nicam_bcast_discard(0));
    meet();
}

static void by_key(void) {
    memset(&at->by_key, 0, sizeof at->by_key);
    memset(&at->word, 0, sizeof at->word);
    fill(at->give, 500, self + 50);
    memset(at->take, 0, 500);
    meet();
    OK(nicam_bcopy_src(9, next, at->give, 500, &at->by_key, 5));
    OK(nicam_bcopy_dst(9, previous, at->take, 500, &at->word, 6));
    OK(nicam_wait(&at->by_key, 5));
    OK(nicam_wait(&at->word, 6));
    CHECK(is_filled(at->take, 500, previous + 50));
    meet();
    /* The side that comes first hears of other sizes in its wait. */
    OK(nicam_bcopy_src(3, self, at->give, 8, &at->by_key, 7));
    FAILS(nicam_bcopy_dst(3, self, at->take, 9, &at->word, 7), NICAM_ERR_DISAGREEMENT, "key 3");
    FAILS(nicam_wait(&at->by_key, 7), NICAM_ERR_DISAGREEMENT, "key 3");
    meet();
}

/* Memory of the program, which the next node writes to by the address that it has here. */
static void locked(void) {
    static unsigned char own[256];
    memset(own, 0, sizeof own);
    OK(nicam_lock_memory(own, sizeof own));
    meet();
    void *address = own;
    memcpy(at->give, &address, sizeof address);
    meet();
    nicam_flag done;
    OK(nicam_bcopy(next, at->give, self, at->take, sizeof address));
    OK(nicam_sync(&done));
    OK(nicam_wait(&done, 1));
    memcpy(&address, at->take, sizeof address);
    fill(at->take + 64, 100, self);
    OK(nicam_bcopy(self, at->take + 64, next, (char *)address + 10, 100));
    OK(nicam_sync(&done));
    OK(nicam_wait(&done, 1));
    meet();
    CHECK(own[9] == 0 && own[110] == 0 && is_filled(own + 10, 100, previous));
    OK(nicam_unlock_memory(own));
    meet();
    FAILS(nicam_bcopy(self, at->take, next, (char *)address + 200, 100), NICAM_ERR_MISUSE, "locked by node");
    void *many[64];
    for (int i = 0; i < 64; i++) OK(nicam_lock_memory(many[i] = own + i, 1));
    FAILS(nicam_lock_memory(own + 100, 1), NICAM_ERR_FULL, "64 areas");
    for (int i = 0; i < 64; i++) OK(nicam_unlock_memory(many[i]));
    meet();
}

static void *of_thread(void *argument) {
    size_t thread = *(size_t *)argument;
    for (uint64_t round = 1; round <= 200; round++) {
        unsigned char *from = at->give + 1024 * thread, *to = at->take + 1024 * thread;
        OK(nicam_bcopy_notify(self, from, next, to, 64, &at->of_thread[thread], round));
        OK(nicam_wait(&at->of_thread[thread], round));
        /* The next round may not come before this one was seen. */
        OK(nicam_write1(previous, (nicam_flag *)(void *)(at->give + 8192 + 64 * thread), round));
        OK(nicam_wait((nicam_flag *)(void *)(at->give + 8192 + 64 * thread), round));
    }
    return NULL;
}

static void threads(void) {
    pthread_t all[4];
    size_t numbers[4];
    memset(at->give + 8192, 0, 256);
    meet();
    for (size_t i = 0; i < 4; i++) {
        numbers[i] = i;
        CHECK(!pthread_create(&all[i], NULL, of_thread, &numbers[i]));
    }
    for (size_t i = 0; i < 4; i++) CHECK(!pthread_join(all[i], NULL));
    meet();
}

/* Several barriers under way, complete in order. */
static void barriers(void) {
    nicam_flag flags[20];
    for (int i = 0; i < 20; i++) OK(nicam_barrier(&flags[i]));
    OK(nicam_wait(&flags[19], 1));
    for (int i = 0; i < 20; i++) CHECK(flags[i].value == 1);
}

int main(void) {
    before_init();
    OK(nicam_init());
    OK(nicam_self(&self));
    OK(nicam_nodes(&nodes));
    next = (self + 1) % nodes;
    previous = (self + nodes - 1) % nodes;
    void *memory;
    OK(nicam_alloc(&memory, sizeof *at));
    at = memory;
    OK(nicam_alloc(&memory, LONG));
    at->give = memory;
    OK(nicam_alloc(&memory, LONG));
    at->take = memory;
    misuse();
    copies();
    counters();
    broadcasts();
    by_key();
    locked();
    threads();
    barriers();
    void *take = at->take;
    meet();
    OK(nicam_free(take));
    FAILS(nicam_free(take), NICAM_ERR_MISUSE, "was not allocated");
    OK(nicam_finalize());
    FAILS(nicam_finalize(), NICAM_ERR_INIT, "nicam_finalize was");
    FAILS(nicam_barrier(&at->arrived), NICAM_ERR_INIT, "nicam_finalize");
    FAILS(nicam_init(), NICAM_ERR_INIT, "again");
    printf("node %d is right\n", self);
    return 0;
}
