/* The peer UCX: cases of two ranks by UCP's tagged messages, blocks also by its puts, handlers by its active messages.
 *
 *   peer_ucx CASE [--size BYTES] [--state hot|cold] [--fresh] [--by WAY] [--repetitions N]
 *                 [--iterations N] [--processors A,B,..] [--on-line]
 *
 * The program is both ranks: it forks before it calls UCX. Rank 0 is the parent, which prints and is spoken to as
 * mpi.c says. Addresses, keys and commands go through a socket pair, which costs nobody a processor while idle. */

#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "loop.h"

typedef void *pending;

static int rank_here, other_end;
static volatile sig_atomic_t is_ending;
static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h endpoint;
static ucp_mem_h job_memory;
static ucp_rkey_h other_key;
static uint64_t other_address;

static void expect_ok(ucs_status_t status, const char *what) {
    if (status != UCS_OK) fail(what, ucs_status_string(status));
}

static inline bool is_lead(void) { return rank_here == 0; }

static inline void await(pending *p) {
    if (__builtin_expect(UCS_PTR_IS_ERR(*p), 0)) fail("operation", ucs_status_string(UCS_PTR_STATUS(*p)));
    if (!*p) return;
    ucs_status_t status;
    while ((status = ucp_request_check_status(*p)) == UCS_INPROGRESS) ucp_worker_progress(worker);
    if (__builtin_expect(status != UCS_OK, 0)) fail("operation", ucs_status_string(status));
    ucp_request_free(*p);
}

static inline void await_all(pending *p, int count) {
    for (int i = 0; i < count; i++) await(&p[i]);
}

static inline void receive_start(void *to, size_t bytes, int tag, pending *p) {
    static const ucp_request_param_t plain = {0};
    *p = ucp_tag_recv_nbx(worker, to, bytes, (ucp_tag_t)tag, UINT64_MAX, &plain);
}

static inline void send_start(const void *from, size_t bytes, int tag, pending *p) {
    static const ucp_request_param_t plain = {0};
    *p = ucp_tag_send_nbx(endpoint, from, bytes, (ucp_tag_t)tag, &plain);
}

static inline void send_now(const void *from, size_t bytes, int tag) {
    pending p;
    send_start(from, bytes, tag, &p);
    await(&p);
}

/* Tags name no source. */
static inline void receive_from_any(void) {}

static inline void receive_now(void *to, size_t bytes, int tag) {
    pending p;
    receive_start(to, bytes, tag, &p);
    await(&p);
}

static inline void put_now(const void *from, size_t offset, size_t bytes) {
    static const ucp_request_param_t plain = {0};
    pending p = ucp_put_nbx(endpoint, from, bytes, other_address + offset, other_key, &plain);
    await(&p);
    p = ucp_ep_flush_nbx(endpoint, &plain);
    await(&p);
}

/* The notification is a message behind the flush: what it follows is visible with it. */
static inline void put_arrived(void) {}

/* Sends bytes to the other process and receives as many, outside of UCX. */
static void swap_bytes(const void *mine, void *theirs, size_t bytes) {
    if (write(other_end, mine, bytes) != (ssize_t)bytes) fail("socket pair", "the other rank is gone");
    if (recv(other_end, theirs, bytes, MSG_WAITALL) != (ssize_t)bytes) fail("socket pair", "the other rank is gone");
}

/* The same for a piece of memory whose length the other process does not know; to be freed. */
static void *swap_piece(const void *mine, size_t bytes) {
    size_t theirs;
    swap_bytes(&bytes, &theirs, sizeof bytes);
    void *piece = malloc(theirs);
    if (!piece) fail("memory", "none");
    if (write(other_end, mine, bytes) != (ssize_t)bytes) fail("socket pair", "the other rank is gone");
    if (recv(other_end, piece, theirs, MSG_WAITALL) != (ssize_t)theirs) fail("socket pair", "the other rank is gone");
    return piece;
}

static void connect_ranks(uint64_t features) {
    ucp_params_t of_context = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG | features};
    ucp_worker_params_t of_worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                     .thread_mode = UCS_THREAD_MODE_SINGLE};
    expect_ok(ucp_init(&of_context, NULL, &context), "ucp_init");
    expect_ok(ucp_worker_create(context, &of_worker, &worker), "ucp_worker_create");
    ucp_address_t *address;
    size_t bytes;
    expect_ok(ucp_worker_get_address(worker, &address, &bytes), "ucp_worker_get_address");
    void *theirs = swap_piece(address, bytes);
    ucp_worker_release_address(worker, address);
    ucp_ep_params_t of_endpoint = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = theirs};
    expect_ok(ucp_ep_create(worker, &of_endpoint, &endpoint), "ucp_ep_create");
    free(theirs);
}

/* Memory as the library itself gives it for puts; the other rank gets its address and key. */
static void *window_memory(size_t bytes) {
    ucp_mem_map_params_t of_memory = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length = bytes + PAGE_BYTES,
        .flags = UCP_MEM_MAP_ALLOCATE,
    };
    expect_ok(ucp_mem_map(context, &of_memory, &job_memory), "ucp_mem_map");
    ucp_mem_attr_t attributes = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    expect_ok(ucp_mem_query(job_memory, &attributes), "ucp_mem_query");
    uint64_t first = ((uint64_t)attributes.address + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    swap_bytes(&first, &other_address, sizeof first);
    void *key;
    size_t key_bytes;
    expect_ok(ucp_rkey_pack(context, job_memory, &key, &key_bytes), "ucp_rkey_pack");
    void *theirs = swap_piece(key, key_bytes);
    ucp_rkey_buffer_release(key);
    expect_ok(ucp_ep_rkey_unpack(endpoint, theirs, &other_key), "ucp_ep_rkey_unpack");
    free(theirs);
    return (void *)first;
}

#include "words.h"
#include "blocks.h"
#include "two.h"
#include "handler.h"

/* Rank 0 hears what is wanted and tells rank 1, which sleeps until then. */
static bool agree(const struct options *begun, struct options *o, long done) {
    struct shape shape = {0};
    ssize_t bytes = sizeof shape;
    if (rank_here == 0) {
        shape = wanted(begun, done);
        if (write(other_end, &shape, sizeof shape) != bytes) fail("socket pair", "the other rank is gone");
    } else if (recv(other_end, &shape, sizeof shape, MSG_WAITALL) != bytes) {
        fail("socket pair", "the other rank is gone");
    }
    if (shape.go) reshape(o, &shape);
    return shape.go;
}

/* Nobody leaves before both have sent and received all. */
static void leave(void) {
    static const ucp_request_param_t plain = {0};
    pending p = ucp_ep_flush_nbx(endpoint, &plain);
    await(&p);
    char mine = 0, theirs;
    swap_bytes(&mine, &theirs, 1);
    if (other_key) ucp_rkey_destroy(other_key);
    p = ucp_ep_close_nbx(endpoint, &plain);
    while (p && !UCS_PTR_IS_ERR(p) && ucp_request_check_status(p) == UCS_INPROGRESS) ucp_worker_progress(worker);
    if (job_memory) ucp_mem_unmap(context, job_memory);
}

/* Rank 1 died with a message of its own; rank 0 would wait for it for ever. */
static void child_ended(int signal) {
    (void)signal;
    if (!is_ending) _exit(1);
}

static void split(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) fail("socketpair", "refused");
    signal(SIGCHLD, child_ended);
    pid_t child = fork();
    if (child < 0) fail("fork", "refused");
    rank_here = child == 0;
    other_end = ends[rank_here];
    close(ends[1 - rank_here]);
    /* Rank 0 ends with its input; its own parent may be a thread that ends before. */
    if (rank_here == 1) end_with_parent();
}

static void run_handler(const struct options *begun) {
    static const struct figure figure = {"handler", "", "time_ns"};
    struct options now = *begun, *o = &now;
    uint64_t number = 0;
    begin_handler(o);
    if (rank_here == 0) print_ready(o);
    for (long done = 0; agree(begun, o, done); done++) {
        double value = measure_handler(&number, iterations(o, HANDLER_CALLS));
        if (rank_here == 0) print_figure(&figure, o, 2, value);
    }
    is_ending = 1;
}

static void run_two(const struct options *begun) {
    struct options now = *begun, *o = &now;
    struct two two = begin_two(o);
    if (rank_here == 0) print_ready(o);
    for (long done = 0; agree(begun, o, done); done++) {
        double value = measure_two(&two, o);
        if (rank_here == 0) print_figure(&two.figure, o, 2, value);
    }
    is_ending = 1;
    end_two(&two);
}

int main(int count, char **words) {
    struct options o = parse_options(count, words);
    bool is_handler = !strcmp(o.name, "handler");
    split();
    bind_rank(&o, rank_here);
    connect_ranks(is_handler ? UCP_FEATURE_AM : UCP_FEATURE_RMA);
    if (is_handler) run_handler(&o);
    else run_two(&o);
    leave();
    if (rank_here == 0) wait(NULL);
    return 0;
}
