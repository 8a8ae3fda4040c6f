/* barrier, bcast, reduce, allreduce, gather, allgather, fuzzy, fuzzy_hidden over MPI: calls back to back, the root
 * another rank in each, a word of the result checked in each. A rank's time is the mean of its calls, of fuzzy_hidden
 * their median; the figure is the slowest rank's. */

enum { CALLS = 1000, WARM_UP_CALLS = 20, CALLS_MIN = 20 };

/* A library that spins with more ranks than processors takes 12 ms for a call: no figure needs 1,000 of them. */
#define CALLS_NS_MAX 2e9

/* Work beside a barrier. */
#define WORK_NS 20e3
enum { WORK_PIECES = 20 };

struct group {
    int rank, ranks;
    size_t words;
    uint64_t call;             /* counts on through all repetitions, so that no value comes twice */
    uint64_t *given, *result;
    double clock_ns;           /* what looking at the clock costs */
    bool by_test;              /* barriers that go on beside are looked at again and again, instead of waited for */
    double own_ns, all_ns;     /* of the last calls: what those count that time themselves; everything */
    double each_ns[CALLS];     /* of those whose median counts */
    long timed;
};

typedef void (*collective)(struct group *g);

static struct group new_group(const struct options *o, int rank, int ranks) {
    struct group g = {.rank = rank, .ranks = ranks, .words = o->bytes / sizeof(uint64_t)};
    g.clock_ns = clock_cost_ns();
    g.by_test = asks_for(o, "test");
    g.given = own_memory(o->bytes);
    g.result = own_memory(o->bytes * (size_t)ranks);
    return g;
}

static int root_of(const struct group *g) { return (int)(g->call % (uint64_t)g->ranks); }

/* What a rank gives in this call. */
static uint64_t value_of(const struct group *g, int rank) { return g->call * 1024 + (uint64_t)rank; }

static uint64_t sum_of_all(const struct group *g) {
    uint64_t n = (uint64_t)g->ranks;
    return g->call * 1024 * n + n * (n - 1) / 2;
}

static void give(struct group *g, uint64_t *to, uint64_t value) { to[0] = to[g->words - 1] = value; }

static void expect_words(const struct group *g, const uint64_t *got, uint64_t value) {
    check_word(got[0], value, "collective");
    check_word(got[g->words - 1], value, "collective");
}

/* One of the gathered blocks, another in each call. */
static void expect_gathered(const struct group *g) {
    int rank = (int)((g->call / (uint64_t)g->ranks) % (uint64_t)g->ranks);
    expect_words(g, g->result + (size_t)rank * g->words, value_of(g, rank));
}

static void call_barrier(struct group *g) {
    (void)g;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void call_bcast(struct group *g) {
    int root = root_of(g);
    if (g->rank == root) give(g, g->result, value_of(g, root));
    MPI_Bcast(g->result, (int)g->words, MPI_UINT64_T, root, MPI_COMM_WORLD);
    expect_words(g, g->result, value_of(g, root));
}

static void call_reduce(struct group *g) {
    int root = root_of(g);
    give(g, g->given, value_of(g, g->rank));
    MPI_Reduce(g->given, g->result, (int)g->words, MPI_UINT64_T, MPI_SUM, root, MPI_COMM_WORLD);
    if (g->rank == root) expect_words(g, g->result, sum_of_all(g));
}

static void call_allreduce(struct group *g) {
    give(g, g->given, value_of(g, g->rank));
    MPI_Allreduce(g->given, g->result, (int)g->words, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    expect_words(g, g->result, sum_of_all(g));
}

static void call_gather(struct group *g) {
    int root = root_of(g), words = (int)g->words;
    give(g, g->given, value_of(g, g->rank));
    MPI_Gather(g->given, words, MPI_UINT64_T, g->result, words, MPI_UINT64_T, root, MPI_COMM_WORLD);
    if (g->rank == root) expect_gathered(g);
}

static void call_allgather(struct group *g) {
    int words = (int)g->words;
    give(g, g->given, value_of(g, g->rank));
    MPI_Allgather(g->given, words, MPI_UINT64_T, g->result, words, MPI_UINT64_T, MPI_COMM_WORLD);
    expect_gathered(g);
}

static void finish_barrier(const struct group *g, MPI_Request *barrier) {
    if (!g->by_test) MPI_Wait(barrier, MPI_STATUS_IGNORE);
    else for (int over = 0; MPI_Test(barrier, &over, MPI_STATUS_IGNORE), !over;);
}

/* A nonblocking barrier of the rank that comes last, from its start until it is found over. */
static void call_fuzzy(struct group *g) {
    MPI_Request barrier;
    if (g->rank) MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    MPI_Barrier(MPI_COMM_WORLD);
    if (g->rank) {
        MPI_Wait(&barrier, MPI_STATUS_IGNORE);
        return;
    }
    double start = now_ns();
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    finish_barrier(g, &barrier);
    g->own_ns += now_ns() - start - g->clock_ns;
}

/* Works for so long; how long it was. */
static double work(double ns) {
    double start = now_ns(), now = start;
    while (now - start < ns) now = now_ns();
    return now - start;
}

/* One beside 20 us of work, without that work. By looking, each of 20 pieces of work is followed by a look, without
 * which some libraries let nothing go on. */
static void call_fuzzy_hidden(struct group *g) {
    MPI_Request barrier;
    int over = 0, pieces = g->by_test ? WORK_PIECES : 1;
    double worked = 0, start = now_ns();
    MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
    for (int i = 0; i < pieces; i++) {
        worked += work(WORK_NS / pieces);
        if (g->by_test && !over) MPI_Test(&barrier, &over, MPI_STATUS_IGNORE);
    }
    if (!over) finish_barrier(g, &barrier);
    g->each_ns[g->timed++] = now_ns() - start - worked - (pieces + 1) * g->clock_ns;
}

static const struct {
    const char *name;
    collective call;
} COLLECTIVES[] = {
    {"barrier", call_barrier},     {"bcast", call_bcast},   {"reduce", call_reduce},
    {"allreduce", call_allreduce}, {"gather", call_gather}, {"allgather", call_allgather},
    {"fuzzy", call_fuzzy},         {"fuzzy_hidden", call_fuzzy_hidden},
};

/* The collective of that name; NULL if it is none. */
static collective collective_of(const char *name) {
    for (size_t i = 0; i < sizeof COLLECTIVES / sizeof *COLLECTIVES; i++)
        if (!strcmp(COLLECTIVES[i].name, name)) return COLLECTIVES[i].call;
    return NULL;
}

static bool goes_on_beside(collective call) { return call == call_fuzzy || call == call_fuzzy_hidden; }

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, long count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static double time_calls(struct group *g, collective call, long count) {
    MPI_Barrier(MPI_COMM_WORLD);
    g->own_ns = 0;
    g->timed = 0;
    double start = now_ns();
    for (long i = 0; i < count; i++) {
        g->call++;
        call(g);
    }
    g->all_ns = now_ns() - start;
    if (g->timed) return median(g->each_ns, g->timed);
    return (call == call_fuzzy ? g->own_ns : g->all_ns) / (double)count;
}

/* How many calls to time: as many as wanted, fewer where they would take too long. Rank 0 decides for all. */
static long affordable_calls(double mean_ns, long count) {
    long affordable = (long)(CALLS_NS_MAX / mean_ns);
    if (affordable < CALLS_MIN) affordable = CALLS_MIN;
    if (count > affordable) count = affordable;
    if (count > CALLS) count = CALLS;
    MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return count;
}

/* The slowest rank's mean time of a call in ns; has a meaning on rank 0. */
static double measure_collective(struct group *g, collective call, long count) {
    time_calls(g, call, WARM_UP_CALLS);
    double warm_up = g->all_ns / WARM_UP_CALLS;
    double mine = time_calls(g, call, affordable_calls(warm_up, count)), slowest = 0;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest;
}
