/* incast, flood: many ranks that send to rank 0, which names none of them, over MPI. Each message says who sends it and
 * its number, which rank 0 checks: those of a sender come in order. Receives are calls or, with --by window, begun 64 at
 * a time. With _share or _growth behind the name the figure is another one: the rate of the slowest sender over the mean
 * of all; and by how much the memory of rank 0 grew. */

enum { FLOW_MESSAGES = 100000, FLOW_LEAST = 50, TAG_FLOW = 12, RECEIVES = 64 };

/* A repetition has fewer messages if it would take longer. */
#define FLOW_NS_MAX 5e8

struct flow {
    uint64_t *words;           /* what is sent; or one message for each receive that is begun */
    uint64_t *next;            /* the number of the next message of each rank */
    size_t bytes;
    bool by_window, sleeps;
    long before_kib;           /* the memory of this rank before the first message */
    double messages_per_s, slowest_share;
};

/* The most memory that this process has had, in KiB. */
static long peak_kib(void) {
    char line[128];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    if (!status) fail("/proc/self/status", "cannot be read");
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1) break;
    fclose(status);
    return kib;
}

/* Begins a new peak at what this process has now. */
static void reset_peak(void) {
    FILE *refs = fopen("/proc/self/clear_refs", "w");
    if (!refs) return;
    fputs("5", refs);
    fclose(refs);
}

static struct flow new_flow(const struct options *o) {
    struct flow f = {.bytes = o->bytes, .by_window = asks_for(o, "window")};
    f.sleeps = !strncmp(o->name, "flood", 5);
    f.words = own_memory(o->bytes * RECEIVES);
    f.next = own_memory((size_t)ranks_all * sizeof *f.next);
    memset(f.words, 1, o->bytes * RECEIVES); /* the program's own memory is not what grows */
    reset_peak();
    f.before_kib = peak_kib();
    return f;
}

static uint64_t flow_value(int rank, uint64_t number) { return number << 16 | (uint64_t)rank; }

static void send_flow(struct flow *f, long count) {
    for (long i = 0; i < count; i++) {
        f->words[0] = f->words[f->bytes / 8 - 1] = flow_value(rank_here, f->next[rank_here]++);
        MPI_Send(f->words, (int)f->bytes, MPI_BYTE, 0, TAG_FLOW, MPI_COMM_WORLD);
    }
}

static void check_flow(struct flow *f, const uint64_t *words, const MPI_Status *status) {
    int rank = status->MPI_SOURCE;
    uint64_t value = flow_value(rank, f->next[rank]++);
    check_word(words[0], value, "incast");
    check_word(words[f->bytes / 8 - 1], value, "incast");
}

static void receive_flow(struct flow *f, long count) {
    MPI_Status status;
    MPI_Request begun[RECEIVES];
    long posted = 0;
    for (long i = 0; i < count; i++) {
        for (; f->by_window && posted < count && posted < i + RECEIVES; posted++)
            MPI_Irecv(f->words + posted % RECEIVES * (long)(f->bytes / 8), (int)f->bytes, MPI_BYTE, MPI_ANY_SOURCE,
                      TAG_FLOW, MPI_COMM_WORLD, &begun[posted % RECEIVES]);
        uint64_t *words = f->words + (f->by_window ? i % RECEIVES * (long)(f->bytes / 8) : 0);
        if (f->by_window) MPI_Wait(&begun[i % RECEIVES], &status);
        else MPI_Recv(words, (int)f->bytes, MPI_BYTE, MPI_ANY_SOURCE, TAG_FLOW, MPI_COMM_WORLD, &status);
        check_flow(f, words, &status);
    }
}

/* Each other rank sends that number of messages. */
static void measure_flow(struct flow *f, long count, double nap_s) {
    int senders = ranks_all - 1;
    struct timespec nap = {.tv_sec = (time_t)nap_s, .tv_nsec = (long)(nap_s * 1e9) % 1000000000};
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_here == 0) nanosleep(&nap, NULL);
    double start = now_ns();
    if (rank_here == 0) receive_flow(f, count * senders);
    else send_flow(f, count);
    double ns = now_ns() - start, rate = rank_here ? (double)count / ns : 1e300, slowest = 0, sum = 0;
    MPI_Allreduce(&rate, &slowest, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    rate = rank_here ? rate : 0;
    MPI_Allreduce(&rate, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    f->messages_per_s = (double)(count * senders) / ns * 1e9;
    f->slowest_share = slowest / (sum / senders);
}

/* Messages of each sender that there is time for, given the rate of the last ones. Rank 0 decides for all. */
static long affordable_messages(const struct flow *f, long count) {
    double affordable = FLOW_NS_MAX / 1e9 * f->messages_per_s / (ranks_all - 1);
    if (count > affordable) count = (long)affordable;
    if (count < FLOW_LEAST) count = FLOW_LEAST;
    MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return count;
}

/* With --iterations each sender sends that many, and rank 0 of a flood sleeps for two seconds. */
static double flow_value_of(struct flow *f, const struct options *o) {
    long usual = FLOW_MESSAGES / (ranks_all - 1), few = usual / 50 > FLOW_LEAST ? usual / 50 : FLOW_LEAST;
    f->bytes = o->bytes;
    if (!f->sleeps) {
        measure_flow(f, few, 0);
        measure_flow(f, affordable_messages(f, iterations(o, usual)), 0);
    } else measure_flow(f, iterations(o, usual), o->iterations ? 2 : 0.2);
    if (strstr(o->name, "_share")) return f->slowest_share;
    double grown = (double)(peak_kib() - f->before_kib) * 1024;
    if (strstr(o->name, "_growth")) return grown > 0 ? grown : 1;
    return f->messages_per_s;
}

static const struct figure FLOWS[] = {
    {"incast", "", "rate_per_s"},
    {"incast_share", "slowest_share", "share"},
    {"incast_growth", "receiver_growth_bytes", "bytes"},
    {"flood", "", "rate_per_s"},
    {"flood_share", "slowest_share", "share"},
    {"flood_growth", "receiver_growth_bytes", "bytes"},
};

/* The figure of that name; NULL if it is none. */
static const struct figure *flow_of(const char *name) {
    for (size_t i = 0; i < sizeof FLOWS / sizeof *FLOWS; i++)
        if (!strcmp(FLOWS[i].name, name)) return &FLOWS[i];
    return NULL;
}
