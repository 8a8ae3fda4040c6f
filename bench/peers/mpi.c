/* The peers that are MPI libraries: all cases, one program for each library, compiled by its own mpicc.
 *
 *   mpiexec -n 2 peer_mpi CASE [--size BYTES] [--state hot|cold] [--fresh] [--by WAY] [--repetitions N]
 *                              [--iterations N] [--processors A,B,..] [--on-line]
 *
 * Rank 0 prints one JSON object a line for each repetition. With --on-line it says that it is ready, then measures
 * once for each line "go" on its standard input, until "end" or the end of input. */

#define _GNU_SOURCE
#include <mpi.h>

#include "loop.h"

typedef MPI_Request pending;

static int rank_here, ranks_all, other;
static MPI_Win job_window = MPI_WIN_NULL;
static MPI_Aint other_pad;     /* from the base of the other rank's window to its first page */

static inline bool is_lead(void) { return rank_here == 0; }

/* Where messages come from; MPI_ANY_SOURCE for anysource. */
static int source;

static inline void receive_from_any(void) { source = MPI_ANY_SOURCE; }

static inline void receive_start(void *to, size_t bytes, int tag, pending *p) {
    MPI_Irecv(to, (int)bytes, MPI_BYTE, source, tag, MPI_COMM_WORLD, p);
}

static inline void send_start(const void *from, size_t bytes, int tag, pending *p) {
    MPI_Isend(from, (int)bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, p);
}

static inline void send_now(const void *from, size_t bytes, int tag) {
    MPI_Send(from, (int)bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD);
}

static inline void receive_now(void *to, size_t bytes, int tag) {
    MPI_Recv(to, (int)bytes, MPI_BYTE, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static inline void await(pending *p) { MPI_Wait(p, MPI_STATUS_IGNORE); }

static inline void await_all(pending *p, int count) { MPI_Waitall(count, p, MPI_STATUSES_IGNORE); }

static inline void put_now(const void *from, size_t offset, size_t bytes) {
    MPI_Put(from, (int)bytes, MPI_BYTE, other, other_pad + (MPI_Aint)offset, (int)bytes, MPI_BYTE, job_window);
    MPI_Win_flush(other, job_window);
}

static inline void put_arrived(void) { MPI_Win_sync(job_window); }

enum { TAG_COMMAND = 10, TAG_PAD = 11 };

/* Memory as the library itself gives it for puts, from its first page on: windows may begin anywhere. */
static void *window_memory(size_t bytes) {
    char *base = NULL;
    MPI_Win_allocate((MPI_Aint)(bytes + PAGE_BYTES), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &job_window);
    MPI_Aint pad = (MPI_Aint)(-(uintptr_t)base % PAGE_BYTES);
    MPI_Sendrecv(&pad, 1, MPI_AINT, other, TAG_PAD, &other_pad, 1, MPI_AINT, other, TAG_PAD, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, job_window);
    return base + pad;
}

#include "words.h"
#include "blocks.h"
#include "two.h"
#include "collectives.h"
#include "incast.h"

/* Time in which a rank that waits for the next repetition lets others have its processor between two looks: a dozen
 * programs may do so while another one is measured. */
static void doze(void) {
    struct timespec t = {.tv_nsec = 20000000};
    nanosleep(&t, NULL);
}

/* Rank 0 hears what is wanted and tells the others, who let go of their processors meanwhile: a broadcast by the
 * library would have them spin while somebody else is measured. */
static bool agree(const struct options *begun, struct options *o, long done) {
    struct shape shape = {0};
    int words = sizeof shape / sizeof(long);
    if (rank_here == 0) {
        shape = wanted(begun, done);
        for (int rank = 1; rank < ranks_all; rank++)
            MPI_Send(&shape, words, MPI_LONG, rank, TAG_COMMAND, MPI_COMM_WORLD);
    } else {
        MPI_Request command;
        MPI_Irecv(&shape, words, MPI_LONG, 0, TAG_COMMAND, MPI_COMM_WORLD, &command);
        for (int here = 0; MPI_Test(&command, &here, MPI_STATUS_IGNORE), !here;)
            if (o->on_line) doze();
    }
    if (shape.go) reshape(o, &shape);
    return shape.go;
}

/* Measures for as long as somebody wants more. */
static void run_collective(const struct options *begun, const struct collective *c) {
    struct options now = *begun, *o = &now;
    struct figure figure = {o->name, "", "time_ns"};
    if (o->by && !(asks_for(o, "test") && goes_on_beside(c))) fail(o->name, "is not played by what --by says");
    struct group group = new_group(o, rank_here, ranks_all);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_here == 0) print_ready(o);
    for (long done = 0; agree(begun, o, done); done++) {
        prepare(&group, c, o->bytes / sizeof(uint64_t));
        double value = measure_collective(&group, c->call, iterations(o, CALLS));
        if (rank_here == 0) print_figure(&figure, o, ranks_all, value);
    }
    release(&group, c);
}

static void run_flow(const struct options *begun, const struct figure *figure) {
    struct options now = *begun, *o = &now;
    if (ranks_all < 2) fail(o->name, "is a case for two ranks or more");
    MPI_Barrier(MPI_COMM_WORLD);
    struct flow flow = new_flow(o);
    if (rank_here == 0) print_ready(o);
    for (long done = 0; agree(begun, o, done); done++) {
        double value = flow_value_of(&flow, o);
        if (rank_here == 0) print_figure(figure, o, ranks_all, value);
    }
}

static void run_two(const struct options *begun) {
    struct options now = *begun, *o = &now;
    if (ranks_all != 2) fail(o->name, "is a case for two ranks");
    struct two two = begin_two(o);
    if (rank_here == 0) print_ready(o);
    for (long done = 0; agree(begun, o, done); done++) {
        double value = measure_two(&two, o);
        if (rank_here == 0) print_figure(&two.figure, o, ranks_all, value);
    }
    end_two(&two);
    if (job_window != MPI_WIN_NULL) {
        MPI_Win_unlock_all(job_window);
        MPI_Win_free(&job_window);
    }
}

int main(int count, char **words) {
    struct options o = parse_options(count, words);
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_here);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_all);
    source = other = 1 - rank_here;
    end_with_parent();
    bind_rank(&o, rank_here);
    const struct collective *c = collective_of(o.name);
    const struct figure *flow = flow_of(o.name);
    if (c) run_collective(&o, c);
    else if (flow) run_flow(&o, flow);
    else run_two(&o);
    MPI_Finalize();
    return 0;
}
