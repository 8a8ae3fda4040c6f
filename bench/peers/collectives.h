/* barrier, bcast, reduce, allreduce, gather, allgather, alltoall, scatter, reduce_scatter, fuzzy, fuzzy_hidden over
 * MPI: calls back to back, the root another rank in each, the first and last word of a block given and checked in each. A
 * rank's time is the mean of its calls, of fuzzy_hidden their median; the figure is the slowest rank's. bcast_init and
 * those like it are the same by persistent requests, made beforehand for each root, started and waited for. */

enum { CALLS = 1000, WARM_UP_CALLS = 20, CALLS_MIN = 20, CALLS_LEAST = 2 };

/* A library that spins with more ranks than processors takes 12 ms for a call, long blocks take one: no figure needs
 * 1,000 of them. */
#define CALLS_NS_MAX 3e8
/* Nor even CALLS_MIN where a call takes a quarter of a second, as long blocks of such a library do. */
#define CALLS_MIN_NS_MAX 2e9

/* Work beside a barrier. */
#define WORK_NS 20e3
enum { WORK_PIECES = 20 };

struct group {
    int rank, ranks;
    size_t words;
    uint64_t call;             /* counts on through all repetitions, so that no value comes twice */
    uint64_t *given, *result;  /* room for a block of each rank */
    MPI_Request *plans;        /* persistent requests, one for each root; NULL where calls are made */
    double clock_ns;           /* what looking at the clock costs */
    bool by_test;              /* barriers that go on beside are looked at again and again, instead of waited for */
    double own_ns, all_ns;     /* of the last calls: what those count that time themselves; everything */
    double each_ns[CALLS];     /* of those whose median counts */
    long timed;
};

typedef void (*collective_call)(struct group *g);
/* Makes the persistent request for a root. */
typedef void (*collective_init)(struct group *g, int root, MPI_Request *plan);

struct collective {
    const char *name;
    collective_call call;
    collective_init init;      /* NULL: nothing persistent */
    bool is_rooted;
};

static struct group new_group(const struct options *o, int rank, int ranks) {
    struct group g = {.rank = rank, .ranks = ranks, .words = o->bytes / sizeof(uint64_t)};
    g.clock_ns = clock_cost_ns();
    g.by_test = asks_for(o, "test");
    g.given = own_memory(o->bytes * (size_t)ranks);
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

/* What a rank gives for one other. */
static uint64_t value_for(const struct group *g, int from, int to) { return value_of(g, from) + ((uint64_t)to << 40); }

/* Block number `at` of a buffer. */
static uint64_t *block_of(const struct group *g, uint64_t *all, int at) { return all + (size_t)at * g->words; }

static void give(const struct group *g, uint64_t *to, uint64_t value) { to[0] = to[g->words - 1] = value; }

static void give_each(const struct group *g) {
    for (int to = 0; to < g->ranks; to++) give(g, block_of(g, g->given, to), value_for(g, g->rank, to));
}

static void expect_words(const struct group *g, const uint64_t *got, uint64_t value) {
    check_word(got[0], value, "collective");
    check_word(got[g->words - 1], value, "collective");
}

/* Whose block is looked at: another in each call. */
static int looked_at(const struct group *g) { return (int)((g->call / (uint64_t)g->ranks) % (uint64_t)g->ranks); }

static void expect_gathered(const struct group *g) {
    int rank = looked_at(g);
    expect_words(g, block_of(g, g->result, rank), value_of(g, rank));
}

/* Starts the persistent request for a root and waits for it, where there are any. */
static bool runs_plan(struct group *g, int root) {
    if (!g->plans) return false;
    MPI_Start(&g->plans[root]);
    MPI_Wait(&g->plans[root], MPI_STATUS_IGNORE);
    return true;
}

/* What calls and requests of all kinds name. */
#define WORDS(g) (int)(g)->words, MPI_UINT64_T
#define BLOCKS(g) (g)->given, WORDS(g), (g)->result, WORDS(g)
#define SUMS(g) (g)->given, (g)->result, WORDS(g), MPI_SUM
#define ALL MPI_COMM_WORLD

static void call_barrier(struct group *g) {
    if (!runs_plan(g, 0)) MPI_Barrier(ALL);
}

static void call_bcast(struct group *g) {
    int root = root_of(g);
    if (g->rank == root) give(g, g->result, value_of(g, root));
    if (!runs_plan(g, root)) MPI_Bcast(g->result, WORDS(g), root, ALL);
    expect_words(g, g->result, value_of(g, root));
}

static void call_reduce(struct group *g) {
    int root = root_of(g);
    give(g, g->given, value_of(g, g->rank));
    if (!runs_plan(g, root)) MPI_Reduce(SUMS(g), root, ALL);
    if (g->rank == root) expect_words(g, g->result, sum_of_all(g));
}

static void call_allreduce(struct group *g) {
    give(g, g->given, value_of(g, g->rank));
    if (!runs_plan(g, 0)) MPI_Allreduce(SUMS(g), ALL);
    expect_words(g, g->result, sum_of_all(g));
}

static void call_gather(struct group *g) {
    int root = root_of(g);
    give(g, g->given, value_of(g, g->rank));
    MPI_Gather(BLOCKS(g), root, ALL);
    if (g->rank == root) expect_gathered(g);
}

static void call_allgather(struct group *g) {
    give(g, g->given, value_of(g, g->rank));
    if (!runs_plan(g, 0)) MPI_Allgather(BLOCKS(g), ALL);
    expect_gathered(g);
}

static void call_alltoall(struct group *g) {
    int from = looked_at(g);
    give_each(g);
    if (!runs_plan(g, 0)) MPI_Alltoall(BLOCKS(g), ALL);
    expect_words(g, block_of(g, g->result, from), value_for(g, from, g->rank));
}

static void call_scatter(struct group *g) {
    int root = root_of(g);
    if (g->rank == root) give_each(g);
    MPI_Scatter(BLOCKS(g), root, ALL);
    expect_words(g, g->result, value_for(g, root, g->rank));
}

static void call_reduce_scatter(struct group *g) {
    give_each(g);
    MPI_Reduce_scatter_block(SUMS(g), ALL);
    expect_words(g, g->result, sum_of_all(g) + (uint64_t)g->ranks * ((uint64_t)g->rank << 40));
}

static void init_barrier(struct group *g, int root, MPI_Request *plan) {
    (void)g, (void)root;
    MPI_Barrier_init(ALL, MPI_INFO_NULL, plan);
}

static void init_bcast(struct group *g, int root, MPI_Request *plan) {
    MPI_Bcast_init(g->result, WORDS(g), root, ALL, MPI_INFO_NULL, plan);
}

static void init_reduce(struct group *g, int root, MPI_Request *plan) {
    MPI_Reduce_init(SUMS(g), root, ALL, MPI_INFO_NULL, plan);
}

static void init_allreduce(struct group *g, int root, MPI_Request *plan) {
    (void)root;
    MPI_Allreduce_init(SUMS(g), ALL, MPI_INFO_NULL, plan);
}

static void init_allgather(struct group *g, int root, MPI_Request *plan) {
    (void)root;
    MPI_Allgather_init(BLOCKS(g), ALL, MPI_INFO_NULL, plan);
}

static void init_alltoall(struct group *g, int root, MPI_Request *plan) {
    (void)root;
    MPI_Alltoall_init(BLOCKS(g), ALL, MPI_INFO_NULL, plan);
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

static const struct collective COLLECTIVES[] = {
    {"barrier", call_barrier, NULL, false},
    {"bcast", call_bcast, NULL, true},
    {"reduce", call_reduce, NULL, true},
    {"allreduce", call_allreduce, NULL, false},
    {"gather", call_gather, NULL, true},
    {"allgather", call_allgather, NULL, false},
    {"alltoall", call_alltoall, NULL, false},
    {"scatter", call_scatter, NULL, true},
    {"reduce_scatter", call_reduce_scatter, NULL, false},
    {"barrier_init", call_barrier, init_barrier, false},
    {"bcast_init", call_bcast, init_bcast, true},
    {"reduce_init", call_reduce, init_reduce, true},
    {"allreduce_init", call_allreduce, init_allreduce, false},
    {"allgather_init", call_allgather, init_allgather, false},
    {"alltoall_init", call_alltoall, init_alltoall, false},
    {"fuzzy", call_fuzzy, NULL, false},
    {"fuzzy_hidden", call_fuzzy_hidden, NULL, false},
};

/* The collective of that name; NULL if it is none. */
static const struct collective *collective_of(const char *name) {
    for (size_t i = 0; i < sizeof COLLECTIVES / sizeof *COLLECTIVES; i++)
        if (!strcmp(COLLECTIVES[i].name, name)) return &COLLECTIVES[i];
    return NULL;
}

static bool goes_on_beside(const struct collective *c) { return c->call == call_fuzzy || c->call == call_fuzzy_hidden; }

/* Makes what is persistent for blocks of `words` words, instead of what there is. */
static void prepare(struct group *g, const struct collective *c, size_t words) {
    int plans = c->is_rooted ? g->ranks : 1;
    if (!c->init || (g->plans && g->words == words)) {
        g->words = words;
        return;
    }
    for (int root = 0; g->plans && root < plans; root++) MPI_Request_free(&g->plans[root]);
    if (!g->plans) g->plans = own_memory((size_t)plans * sizeof *g->plans);
    g->words = words;
    for (int root = 0; root < plans; root++) c->init(g, root, &g->plans[root]);
}

static void release(struct group *g, const struct collective *c) {
    int plans = c->is_rooted ? g->ranks : 1;
    for (int root = 0; g->plans && root < plans; root++) MPI_Request_free(&g->plans[root]);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, long count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static double time_calls(struct group *g, collective_call call, long count) {
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
    if ((double)affordable * mean_ns > CALLS_MIN_NS_MAX) affordable = (long)(CALLS_MIN_NS_MAX / mean_ns);
    if (affordable < CALLS_LEAST) affordable = CALLS_LEAST;
    if (count > affordable) count = affordable;
    if (count > CALLS) count = CALLS;
    MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return count;
}

/* The slowest rank's mean time of a call in ns; has a meaning on rank 0. */
static double measure_collective(struct group *g, collective_call call, long count) {
    time_calls(g, call, 1);
    long warm_up_calls = affordable_calls(g->all_ns, WARM_UP_CALLS);
    time_calls(g, call, warm_up_calls);
    double warm_up = g->all_ns / (double)warm_up_calls;
    double mine = time_calls(g, call, affordable_calls(warm_up, count)), slowest = 0;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest;
}
