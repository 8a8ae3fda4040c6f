/* The basic layer of ACP on any number of ranks. Ends with a line if all is right. */
#include <acp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 8
#define LONG (200 * 1000)

static int rank, procs, next, previous;

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: rank %d: %s: %s\n", __FILE__, __LINE__, rank, #what, \
                    tasuki_error_string(tasuki_error_code())); \
            exit(3); \
        } \
    } while (0)

static void says(int is_failure, const char *text, int line) {
    const char *said = tasuki_error_string(tasuki_error_code());
    if (is_failure && strstr(said, text)) return;
    fprintf(stderr, "line %d, rank %d: %s: %s\n", line, rank, is_failure ? "failed otherwise" : "did not fail", said);
    exit(5);
}
#define FAILS(call, text) says((call), (text), __LINE__)

static void before_init(void) {
    CHECK(tasuki_error_code() == 0);
    FAILS(acp_rank() == -1, "acp_init was not called");
    FAILS(acp_sync() == -1, "acp_init");
    FAILS(acp_query_starter_ga(0) == ACP_GA_NULL, "acp_init");
    FAILS(acp_copy(8, 8, 8, ACP_HANDLE_NULL) == ACP_HANDLE_NULL, "acp_init");
    FAILS(acp_finalize() == -1, "acp_init");
}

static uint64_t *starter(void) {
    uint64_t *own = acp_query_address(acp_query_starter_ga(rank));
    CHECK(own);
    return own;
}

static void misuse(void) {
    int here;
    acp_ga_t mine = acp_query_starter_ga(rank);
    FAILS(acp_init(NULL, NULL) == -1, "before");
    FAILS(acp_query_starter_ga(procs) == ACP_GA_NULL, "does not exist");
    FAILS(acp_query_starter_ga(-1) == ACP_GA_NULL, "rank -1");
    FAILS(acp_register_memory(NULL, 8, 0) == ACP_ATKEY_NULL, "no memory");
    FAILS(acp_register_memory(&here, sizeof here, acp_colors()) == ACP_ATKEY_NULL, "color");
    FAILS(acp_unregister_memory(77) == -1, "no registration");
    FAILS(acp_query_ga(77, &here) == ACP_GA_NULL, "no registration");
    FAILS(!acp_query_address(ACP_GA_NULL), "no address of this rank");
    if (procs > 1) FAILS(!acp_query_address(acp_query_starter_ga(next)), "no address of this rank");
    FAILS(acp_query_rank(ACP_GA_NULL) == -1, "no address");
    FAILS(acp_query_color(ACP_GA_NULL) == -1, "null");
    FAILS(acp_add8(ACP_GA_NULL, mine, 1, ACP_HANDLE_NULL) == ACP_HANDLE_NULL, "dst is null");
    FAILS(acp_add8(mine, mine + 4, 1, ACP_HANDLE_NULL) == ACP_HANDLE_NULL || acp_complete(ACP_HANDLE_ALL) == -1, "align");
    FAILS(acp_copy(mine, mine + ACP_STARTER_BYTES - 8, 16, ACP_HANDLE_NULL) == ACP_HANDLE_NULL
              || acp_complete(ACP_HANDLE_ALL) == -1,
          "16 bytes");
    CHECK(acp_complete(ACP_HANDLE_NULL) == 0 && acp_complete(1u << 30) == 0 && acp_inquire(1u << 30) == 0);
}

/* Addresses travel through starter memory; copies go between any two ranks. */
static void copies(void) {
    unsigned char *own = malloc(LONG), *room = malloc(LONG);
    CHECK(own && room);
    for (int i = 0; i < LONG; i++) own[i] = (unsigned char)(i * 3 + rank);
    memset(room, 0, LONG);
    acp_atkey_t key = acp_register_memory(own, LONG, 0), to = acp_register_memory(room, LONG, 0);
    CHECK(key && to && key != to);
    acp_ga_t mine = acp_query_ga(key, own), here = acp_query_ga(to, room);
    CHECK(mine && acp_query_rank(mine) == rank && acp_query_color(mine) == 0);
    CHECK(acp_query_address(mine + 100) == own + 100 && acp_query_ga(key, own + 7) == mine + 7);
    FAILS(acp_query_ga(key, own + LONG) == ACP_GA_NULL, "registered");
    starter()[0] = mine;
    CHECK(acp_sync() == 0);
    acp_handle_t got = acp_copy(acp_query_starter_ga(rank) + 8, acp_query_starter_ga(next), 8, ACP_HANDLE_NULL);
    CHECK(got && acp_complete(got) == 0 && acp_inquire(got) == 0);
    acp_ga_t theirs = starter()[1];
    CHECK(acp_query_rank(theirs) == next);
    /* The second copy starts after the first, the third after all. */
    acp_handle_t first = acp_copy(here, theirs, LONG, ACP_HANDLE_NULL);
    acp_handle_t second = acp_copy(here + 10, mine, 10, first);
    CHECK(acp_copy(here + 15, theirs, 2, ACP_HANDLE_ALL) && acp_copy(here + 16, theirs, 1, ACP_HANDLE_CONT));
    CHECK(first && second && acp_complete(ACP_HANDLE_ALL) == 0 && acp_inquire(ACP_HANDLE_ALL) == 0);
    for (int i = 0; i < LONG; i++) {
        int at = i >= 10 && i < 20 ? i - 10 : i, of = i >= 10 && i < 20 ? rank : next;
        if (i == 15 || i == 16) continue;
        CHECK(room[i] == (unsigned char)(at * 3 + of));
    }
    CHECK(room[15] == (unsigned char)next && room[16] == (unsigned char)next);
    CHECK(acp_sync() == 0);
    /* A rank that is neither end. */
    if (rank == 0) {
        acp_ga_t last = acp_query_starter_ga(procs - 1), one = acp_query_starter_ga(1 % procs);
        CHECK(acp_complete(acp_copy(last + 80, one, 8, ACP_HANDLE_NULL)) == 0);
    }
    CHECK(acp_sync() == 0);
    if (rank == procs - 1) CHECK(acp_query_rank(starter()[10]) == 1 % procs);
    CHECK(acp_sync() == 0 && acp_unregister_memory(key) == 0 && acp_unregister_memory(to) == 0);
    CHECK(acp_sync() == 0);
    FAILS(!acp_copy(acp_query_starter_ga(rank), theirs, 8, ACP_HANDLE_NULL) || acp_complete(ACP_HANDLE_ALL) == -1, "");
    CHECK(acp_sync() == 0);
    free(own);
    free(room);
}

/* All ranks change words of rank 0. */
static void atomics(void) {
    uint64_t *own = starter();
    acp_ga_t mine = acp_query_starter_ga(rank), there = acp_query_starter_ga(0);
    memset(own, 0, 64 * 8);
    CHECK(acp_sync() == 0);
    for (int i = 0; i < 100; i++) CHECK(acp_add8(mine + 256, there, 3, ACP_HANDLE_NULL));
    CHECK(acp_add4(mine + 264, there + 8, 0x80000000u, ACP_HANDLE_ALL));
    CHECK(acp_or8(mine + 272, there + 16, UINT64_C(1) << rank, ACP_HANDLE_ALL));
    CHECK(acp_xor4(mine + 280, there + 24, 1u << rank, ACP_HANDLE_ALL));
    CHECK(acp_complete(ACP_HANDLE_ALL) == 0);
    CHECK(own[32] % 3 == 0 && own[32] < 300u * (unsigned)procs);
    CHECK(acp_sync() == 0);
    if (rank == 0) {
        uint64_t all = (UINT64_C(1) << procs) - 1;
        CHECK(own[0] == 300u * (unsigned)procs && own[1] == (procs % 2 ? 0x80000000u : 0));
        CHECK(own[2] == all && own[3] == all);
        acp_handle_t swapped = acp_swap8(mine + 256, there, 5, ACP_HANDLE_NULL);
        acp_handle_t changed = acp_cas8(mine + 264, there, 5, 6, swapped);
        acp_handle_t kept = acp_cas4(mine + 272, there, 5, 7, changed);
        CHECK(acp_and8(mine + 280, there, 3, kept) && acp_complete(ACP_HANDLE_ALL) == 0);
        CHECK(own[32] == 300u * (unsigned)procs && own[33] == 5 && (uint32_t)own[34] == 6);
        CHECK(own[35] == 6 && own[0] == 2);
        CHECK(acp_swap4(mine + 256, there + 4, 9, ACP_HANDLE_NULL) && acp_or4(mine + 264, there, 1, ACP_HANDLE_ALL));
        CHECK(acp_and4(mine + 272, there + 4, 8, ACP_HANDLE_ALL) && acp_xor8(mine + 280, there, 1, ACP_HANDLE_ALL));
        CHECK(acp_complete(ACP_HANDLE_ALL) == 0 && own[0] == ((UINT64_C(8) << 32) | 2));
    }
    CHECK(acp_sync() == 0);
}

/* The ranks get their numbers in reverse. */
static void reset(void) {
    if (procs > 1) FAILS(acp_reset(0) == -1, "each of 0 to");
    CHECK(acp_rank() == rank);
    starter()[0] = 77;
    int number = procs - 1 - rank;
    CHECK(acp_reset(number) == 0 && acp_rank() == number);
    rank = number;
    CHECK(starter()[0] == 0 && acp_query_rank(acp_query_starter_ga(0)) == 0);
    starter()[0] = 1000u + (unsigned)rank;
    CHECK(acp_sync() == 0);
    next = (rank + 1) % procs;
    CHECK(acp_complete(acp_copy(acp_query_starter_ga(rank) + 8, acp_query_starter_ga(next), 8, 0)) == 0);
    CHECK(starter()[1] == 1000u + (unsigned)next);
    CHECK(acp_sync() == 0);
}

int main(int argc, char **argv) {
    before_init();
    CHECK(acp_init(&argc, &argv) == 0);
    rank = acp_rank();
    procs = acp_procs();
    next = (rank + 1) % procs;
    previous = (rank + procs - 1) % procs;
    CHECK(rank >= 0 && rank < procs && starter()[0] == 0);
    misuse();
    CHECK(acp_sync() == 0);
    memset(starter(), 0, ACP_STARTER_BYTES);
    copies();
    atomics();
    reset();
    CHECK(acp_finalize() == 0);
    FAILS(acp_finalize() == -1, "acp_finalize was");
    FAILS(acp_init(NULL, NULL) == -1, "again");
    printf("rank %d is right\n", rank);
    return 0;
}
