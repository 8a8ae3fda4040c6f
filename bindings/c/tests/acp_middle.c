/* The middle layer of ACP on any number of ranks: memory of any rank, channels, segmented buffers, collectives. Ends with a
 * line if all is right. */
#include <acp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG 1000003
#define MANY 200

static int rank, procs, next, previous;

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: rank %d: %s: %s\n", __FILE__, __LINE__, rank, #what, \
                    tasuki_error_string(tasuki_error_code())); \
            exit(3); \
        } \
    } while (0)

static void says(int is_failure, int code, const char *text, int line) {
    const char *said = tasuki_error_string(tasuki_error_code());
    if (is_failure && strstr(said, text) && tasuki_error_code() == code) return;
    fprintf(stderr, "line %d, rank %d: %s: %d, %s\n", line, rank, is_failure ? "failed otherwise" : "did not fail",
            tasuki_error_code(), said);
    exit(5);
}
enum { MISUSE = 1, DISAGREEMENT = 2, FULL = 5, NO_MEMORY = 6, INIT = 10 };
#define FAILS(call, code, text) says((call), (code), (text), __LINE__)
#define FAILED ((size_t)-1)

static const size_t sizes[] = {0, 1, 8, 1000, LONG};
#define SIZES (sizeof sizes / sizeof sizes[0])

static unsigned char byte_of(size_t i, int from, int round) {
    return (unsigned char)(i * 7 + i / 251 + (size_t)from * 31 + (size_t)round * 13 + 1);
}

static void fill(unsigned char *at, size_t size, int from, int round) {
    for (size_t i = 0; i < size; i++) at[i] = byte_of(i, from, round);
}

static int is_filled(const unsigned char *at, size_t size, int from, int round) {
    for (size_t i = 0; i < size; i++)
        if (at[i] != byte_of(i, from, round)) return 0;
    return 1;
}

static unsigned char *room(size_t size) {
    unsigned char *at = malloc(size ? size : 1);
    CHECK(at);
    memset(at, 0xee, size ? size : 1);
    return at;
}

static void outside(int code, const char *text) {
    int group[] = {0};
    char array[8];
    FAILS(acp_malloc(8, 0) == ACP_GA_NULL, code, text);
    FAILS(acp_free(8) == -1, code, text);
    FAILS(acp_create_ch(0, 1) == ACP_CH_NULL, code, text);
    FAILS(acp_free_ch(ACP_CH_NULL) == -1, code, text);
    FAILS(acp_wait_ch(ACP_REQUEST_NULL) == FAILED, code, text);
    FAILS(acp_create_src_segbuf(0, array, 4, 2) == ACP_SEGBUF_NULL, code, text);
    FAILS(acp_query_segbuf_head(ACP_SEGBUF_NULL) == -1, code, text);
    FAILS(acp_create_bcast_direct(group, 1, array, 8) == ACP_BCAST_NULL, code, text);
    FAILS(acp_send_bcast_direct(ACP_BCAST_NULL, 0, 8) == ACP_HANDLE_NULL, code, text);
    FAILS(acp_create_allgather_buffered(group, 1, 8) == ACP_ALLGATHER_NULL, code, text);
    FAILS(acp_free_allgather_buffered(ACP_ALLGATHER_NULL) == -1, code, text);
}

/* Memory of any rank. */

static void allocation(void) {
    acp_ga_t mine = acp_query_starter_ga(rank);
    uint64_t *word = acp_query_address(mine);
    for (size_t s = 1; s < SIZES; s++) {
        size_t size = sizes[s];
        unsigned char *bytes = room(size), *back = room(size);
        acp_atkey_t give = acp_register_memory(bytes, size, 0), take = acp_register_memory(back, size, 0);
        CHECK(give && take);
        /* Each rank allocates on the next one, fills the memory from here, and reads it again. */
        acp_ga_t there = acp_malloc(size, next);
        CHECK(there && acp_query_rank(there) == next);
        fill(bytes, size, rank, (int)s);
        acp_handle_t put = acp_copy(there, acp_query_ga(give, bytes), size, ACP_HANDLE_NULL);
        CHECK(acp_complete(acp_copy(acp_query_ga(take, back), there, size, put)) == 0);
        CHECK(is_filled(back, size, rank, (int)s));
        /* The owner finds it by its address, and the rank after that frees it. */
        word[0] = there;
        CHECK(acp_sync() == 0);
        CHECK(acp_complete(acp_copy(mine + 8, acp_query_starter_ga(previous), 8, 0)) == 0);
        CHECK(acp_query_rank(word[1]) == rank && is_filled(acp_query_address(word[1]), size, previous, (int)s));
        CHECK((uintptr_t)acp_query_address(word[1]) % 4096 == 0);
        CHECK(acp_sync() == 0);
        CHECK(acp_complete(acp_copy(mine + 8, acp_query_starter_ga(next), 8, 0)) == 0);
        CHECK(acp_free(word[1]) == 0);
        FAILS(acp_free(word[1]) == -1, MISUSE, "not returned by acp_malloc");
        CHECK(acp_sync() == 0);
        FAILS(!acp_copy(mine + 16, there, 1, 0) || acp_complete(ACP_HANDLE_ALL) == -1, MISUSE, "");
        CHECK(acp_unregister_memory(give) == 0 && acp_unregister_memory(take) == 0);
        free(bytes);
        free(back);
    }
    /* Many at a time, on all ranks, zero at first. */
    static acp_ga_t all[MANY];
    for (int i = 0; i < MANY; i++) CHECK((all[i] = acp_malloc(16, (rank + i) % procs)));
    for (int i = 0; i < MANY; i++) {
        CHECK(acp_add8(mine + 24, all[i] + 8, 5, ACP_HANDLE_NULL) && acp_complete(ACP_HANDLE_ALL) == 0 && word[3] == 0);
        for (int j = 0; j < i; j++) CHECK(all[j] != all[i]);
    }
    for (int i = 0; i < MANY; i++) CHECK(acp_free(all[i]) == 0);
    FAILS(acp_malloc(0, rank) == ACP_GA_NULL, MISUSE, "at least one byte");
    FAILS(acp_malloc(FAILED, next) == ACP_GA_NULL, MISUSE, "at least one byte");
    FAILS(acp_malloc((size_t)1 << 60, rank) == ACP_GA_NULL, NO_MEMORY, "");
    FAILS(acp_malloc((size_t)1 << 60, next) == ACP_GA_NULL, NO_MEMORY, "");
    FAILS(acp_malloc(8, procs) == ACP_GA_NULL, MISUSE, "does not exist");
    FAILS(acp_malloc(8, -1) == ACP_GA_NULL, MISUSE, "does not exist");
    FAILS(acp_free(ACP_GA_NULL) == -1, MISUSE, "not returned");
    FAILS(acp_free(mine) == -1, MISUSE, "not returned");
    FAILS(acp_free(UINT64_C(0xffffffffffff0000)) == -1, MISUSE, "not returned");
    CHECK(acp_sync() == 0);
}

/* Channels. */

static void channel_misuse(void) {
    FAILS(acp_create_ch(rank, rank) == ACP_CH_NULL, MISUSE, "the sender and the receiver");
    FAILS(acp_create_ch(rank, procs) == ACP_CH_NULL, MISUSE, "does not exist");
    if (procs > 2) FAILS(acp_create_ch(next, previous) == ACP_CH_NULL, MISUSE, "neither");
    FAILS(acp_nbsend_ch(ACP_CH_NULL, NULL, 0) == ACP_REQUEST_NULL, MISUSE, "no such channel");
    FAILS(acp_nbfree_ch((acp_ch_t)(uintptr_t)77777) == ACP_REQUEST_NULL, MISUSE, "no such channel");
    FAILS(acp_wait_ch(ACP_REQUEST_NULL) == FAILED, MISUSE, "no such request");
    FAILS(acp_waitall_ch(NULL, 1, NULL) == -1, MISUSE, "null");
    FAILS(acp_waitall_ch(NULL, -1, NULL) == -1, MISUSE, "-1 requests");
    CHECK(acp_waitall_ch(NULL, 0, NULL) == 0);
}

/* To the next rank, and from the previous one. */
static void channels(void) {
    channel_misuse();
    if (procs == 1) return;
    acp_ch_t to = acp_create_ch(rank, next), from = acp_create_ch(previous, rank);
    CHECK(to && from);
    for (size_t s = 0; s < SIZES; s++) {
        unsigned char *give = room(sizes[s]), *take = room(sizes[s] + 1);
        fill(give, sizes[s], rank, (int)s);
        acp_request_t sent = acp_nbsend_ch(to, give, sizes[s]), got = acp_nbrecv_ch(from, take, sizes[s] + 1);
        CHECK(sent && got && acp_wait_ch(got) == sizes[s] && acp_wait_ch(sent) == sizes[s]);
        CHECK(is_filled(take, sizes[s], previous, (int)s) && take[sizes[s]] == 0xee);
        FAILS(acp_wait_ch(got) == FAILED, MISUSE, "was waited for");
        /* The rest of a message that is too long is gone; the next one is whole. A barrier moves the messages on, too. */
        size_t half = sizes[s] / 2;
        unsigned char *part = room(half + 1);
        acp_request_t both[4] = {acp_nbsend_ch(to, give, sizes[s]), acp_nbsend_ch(to, give, sizes[s]),
                                 acp_nbrecv_ch(from, part, half), acp_nbrecv_ch(from, take, sizes[s])};
        size_t lengths[4];
        CHECK(acp_sync() == 0);
        CHECK(acp_waitall_ch(both, 4, lengths) == 0);
        CHECK(lengths[0] == sizes[s] && lengths[2] == half && lengths[3] == sizes[s]);
        CHECK(is_filled(part, half, previous, (int)s) && part[half] == 0xee && is_filled(take, sizes[s], previous, (int)s));
        free(give);
        free(take);
        free(part);
    }
    /* Many in a row, of which the last is waited for first. */
    static unsigned char give[MANY][1000], take[MANY][1000];
    acp_request_t sends[MANY], receives[MANY];
    for (int i = 0; i < MANY; i++) {
        fill(give[i], 1000, rank, i);
        CHECK((sends[i] = acp_nbsend_ch(to, give[i], (size_t)i * 5)) && (receives[i] = acp_nbrecv_ch(from, take[i], 1000)));
    }
    for (int i = MANY - 1; i >= 0; i--) {
        CHECK(acp_wait_ch(receives[i]) == (size_t)i * 5 && acp_wait_ch(sends[i]) == (size_t)i * 5);
        CHECK(is_filled(take[i], (size_t)i * 5, previous, i));
    }
    FAILS(acp_nbrecv_ch(to, take, 1) == ACP_REQUEST_NULL, MISUSE, "the sender of the channel");
    FAILS(acp_nbsend_ch(from, give, 1) == ACP_REQUEST_NULL, MISUSE, "the receiver of the channel");
    FAILS(acp_nbsend_ch(to, NULL, 1) == ACP_REQUEST_NULL, MISUSE, "null");
    FAILS(acp_nbsend_ch(to, give, FAILED) == ACP_REQUEST_NULL, MISUSE, "size is -1");
    /* A sender that frees: what it has sent still comes, and then the receives fail. */
    acp_request_t last = acp_nbsend_ch(to, give[3], 15), freed = acp_nbfree_ch(to);
    CHECK(last && freed);
    FAILS(acp_nbsend_ch(to, give, 1) == ACP_REQUEST_NULL, MISUSE, "freed");
    CHECK(acp_wait_ch(freed) == 0 && acp_wait_ch(last) == 15);
    FAILS(acp_free_ch(to) == -1, MISUSE, "no such channel");
    acp_request_t two[2] = {acp_nbrecv_ch(from, take[0], 1000), acp_nbrecv_ch(from, take[1], 1000)};
    size_t lengths[2];
    FAILS(acp_waitall_ch(two, 2, lengths) == -1, MISUSE, "has freed the channel");
    CHECK(lengths[0] == 15 && lengths[1] == FAILED && is_filled(take[0], 15, previous, 3));
    CHECK(acp_free_ch(from) == 0);
    CHECK(acp_sync() == 0);
    /* Channels are created and freed again and again, more than there are slots; several at a time; some never used. */
    for (int i = 0; i < 150; i++) {
        acp_ch_t outs[2] = {acp_create_ch(rank, next), acp_create_ch(rank, next)};
        acp_ch_t ins[2] = {acp_create_ch(previous, rank), acp_create_ch(previous, rank)};
        CHECK(outs[0] && outs[1] && ins[0] && ins[1]);
        int numbers[2] = {i, -i}, got[2];
        acp_request_t all[4];
        for (int c = 0; c < 2; c++) {
            all[c] = acp_nbsend_ch(outs[1 - c], &numbers[1 - c], sizeof(int));
            all[2 + c] = acp_nbrecv_ch(ins[c], &got[c], sizeof(int));
        }
        CHECK(acp_waitall_ch(all, 4, NULL) == 0 && got[0] == i && got[1] == -i);
        for (int c = 0; c < 2; c++) CHECK(acp_free_ch(outs[c]) == 0 && acp_free_ch(ins[c]) == 0);
    }
    CHECK(acp_sync() == 0);
}

/* The threads of a rank use channels of their own. */
static void *of_thread(void *argument) {
    acp_ch_t *ends = argument;
    unsigned char give[3000], take[3000];
    for (int i = 0; i < 100; i++) {
        fill(give, sizeof give, rank, i);
        acp_request_t got = acp_nbrecv_ch(ends[1], take, sizeof take), sent = acp_nbsend_ch(ends[0], give, sizeof give);
        CHECK(acp_wait_ch(got) == sizeof take && acp_wait_ch(sent) == sizeof give);
        CHECK(is_filled(take, sizeof take, previous, i));
    }
    return NULL;
}

static void threads(void) {
    if (procs == 1) return;
    enum { THREADS = 3 };
    pthread_t all[THREADS];
    acp_ch_t ends[THREADS][2];
    for (int i = 0; i < THREADS; i++)
        CHECK((ends[i][0] = acp_create_ch(rank, next)) && (ends[i][1] = acp_create_ch(previous, rank)));
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&all[i], NULL, of_thread, ends[i]));
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(all[i], NULL));
    for (int i = 0; i < THREADS; i++) CHECK(acp_free_ch(ends[i][0]) == 0 && acp_free_ch(ends[i][1]) == 0);
    CHECK(acp_sync() == 0);
}

/* Segmented buffers, to the next rank and from the previous one. */
static void segmented_ring(size_t segment, size_t count, int rounds) {
    unsigned char *give = room(segment * count), *take = room(segment * count);
    acp_segbuf_t out = acp_create_src_segbuf(next, give, segment, count);
    acp_segbuf_t in = acp_create_dst_segbuf(previous, take, segment, count);
    CHECK(out && in && acp_isconnected_segbuf(out) == 1);
    FAILS(acp_ack_segbuf(out) == -1, MISUSE, "not connected");
    FAILS(acp_isready_segbuf(out) == -1, MISUSE, "not connected");
    FAILS(acp_query_segbuf_tail(out) == -1, MISUSE, "not connected");
    FAILS(acp_disconnect_segbuf(in) == -1, MISUSE, "not connected");
    /* Each connection waits for the other end, so neighbours begin with different ends. */
    acp_segbuf_t first = rank % 2 ? in : out, second = rank % 2 ? out : in;
    CHECK(acp_connect_segbuf(first) == 0 && acp_connect_segbuf(second) == 0);
    CHECK(acp_isconnected_segbuf(out) == 0 && acp_isconnected_segbuf(in) == 0);
    FAILS(acp_connect_segbuf(in) == -1, MISUSE, "before");
    FAILS(acp_ready_segbuf(out) == -1, MISUSE, "the source");
    FAILS(acp_ack_segbuf(in) == -1, MISUSE, "the destination");
    FAILS(acp_query_segbuf_sent(in) == -1, MISUSE, "the destination");
    FAILS(acp_free_segbuf(in) == -1, MISUSE, "disconnect it");
    int given = 0, taken = 0;
    while (given < rounds || taken < rounds) {
        if (given < rounds && acp_isready_segbuf(out) == 0) {
            CHECK(acp_query_segbuf_tail(out) == given);
            fill(give + (size_t)given % count * segment, segment, rank, given);
            CHECK(acp_ack_segbuf(out) == 0 && acp_query_segbuf_tail(out) == ++given);
            CHECK(acp_query_segbuf_sent(out) <= given && acp_query_segbuf_head(out) <= acp_query_segbuf_sent(out));
        }
        if (taken < rounds && acp_isacked_segbuf(in) == 0) {
            CHECK(acp_query_segbuf_head(in) == taken && acp_query_segbuf_tail(in) > taken);
            CHECK(is_filled(take + (size_t)taken % count * segment, segment, previous, taken));
            CHECK(acp_ready_segbuf(in) == 0 && acp_query_segbuf_head(in) == ++taken);
        }
    }
    FAILS(acp_ready_segbuf(in) == -1, MISUSE, "no segment has come");
    CHECK(acp_isacked_segbuf(in) == 1 && acp_sync() == 0);
    /* A ring that nobody reads is full, and disconnects nevertheless. */
    for (size_t i = 0; i < count; i++) CHECK(acp_isready_segbuf(out) == 0 && acp_ack_segbuf(out) == 0);
    CHECK(acp_isready_segbuf(out) == 1);
    FAILS(acp_ack_segbuf(out) == -1, FULL, "none of the");
    CHECK(acp_disconnect_segbuf(first) == 0 && acp_disconnect_segbuf(second) == 0);
    CHECK(acp_isconnected_segbuf(out) == 1 && acp_query_segbuf_sent(out) == acp_query_segbuf_tail(out));
    FAILS(acp_disconnect_segbuf(out) == -1, MISUSE, "not connected");
    FAILS(acp_ack_segbuf(out) == -1, MISUSE, "not connected");
    CHECK(acp_free_segbuf(out) == 0 && acp_free_segbuf(in) == 0);
    FAILS(acp_free_segbuf(in) == -1, MISUSE, "no such segmented buffer");
    free(give);
    free(take);
}

static void segmented_buffers(void) {
    unsigned char bytes[8];
    FAILS(acp_create_src_segbuf(rank, bytes, 4, 2) == ACP_SEGBUF_NULL, MISUSE, "this rank");
    FAILS(acp_create_src_segbuf(procs, bytes, 4, 2) == ACP_SEGBUF_NULL, MISUSE, "does not exist");
    FAILS(acp_connect_segbuf(ACP_SEGBUF_NULL) == -1, MISUSE, "no such segmented buffer");
    FAILS(acp_free_segbuf((acp_segbuf_t)(uintptr_t)9999) == -1, MISUSE, "no such segmented buffer");
    if (procs == 1) return;
    FAILS(acp_create_dst_segbuf(next, NULL, 4, 2) == ACP_SEGBUF_NULL, MISUSE, "there are no");
    FAILS(acp_create_dst_segbuf(next, bytes, 4, 0) == ACP_SEGBUF_NULL, MISUSE, "there are no");
    FAILS(acp_create_dst_segbuf(next, bytes, (size_t)1 << 40, (size_t)1 << 40) == ACP_SEGBUF_NULL, MISUSE, "there are no");
    acp_segbuf_t unused = acp_create_dst_segbuf(next, bytes, 4, 2);
    CHECK(unused && acp_free_segbuf(unused) == 0);
    FAILS(acp_isconnected_segbuf(unused) == -1, MISUSE, "no such segmented buffer");
    segmented_ring(8, 1, 100);
    segmented_ring(1, 5, 300);
    segmented_ring(1000, 4, 200);
    segmented_ring(LONG, 3, 10);
}

/* Collectives. */

/* The groups: all ranks in order, and from a middle one downwards; the odd ones; one that all ranks know. */
static int members_of(int kind, int *group) {
    int count = 0;
    for (int i = 0; i < procs; i++) {
        int of[] = {i, (procs / 2 + procs - i) % procs, 2 * i + 1, procs - 1};
        if (kind == 3 && i > 0) break;
        if (of[kind] < procs) group[count++] = of[kind];
    }
    return count;
}

static int place_in(const int *group, int count) {
    for (int i = 0; i < count; i++)
        if (group[i] == rank) return i;
    return -1;
}

static void broadcasts(const int *group, int count) {
    int place = place_in(group, count), round = 0;
    unsigned char *array = room(LONG + 10);
    acp_bcast_t direct = acp_create_bcast_direct(group, count, array, LONG + 10);
    CHECK(direct);
    for (size_t s = 0; s < SIZES; s++, round++) {
        memset(array, 0xee, LONG + 10);
        if (place == 0) fill(array + s, sizes[s], group[0], round);
        acp_handle_t sent = acp_send_bcast_direct(direct, s, sizes[s]);
        CHECK(sent && acp_complete(sent) == 0 && acp_inquire(sent) == 0);
        CHECK(is_filled(array + s, sizes[s], group[0], round) && array[s + sizes[s]] == 0xee && (!s || array[s - 1] == 0xee));
    }
    FAILS(acp_send_bcast_direct(direct, 11, LONG) == ACP_HANDLE_NULL, MISUSE, "exceed the array");
    FAILS(acp_send_bcast_direct(direct, FAILED, FAILED) == ACP_HANDLE_NULL, MISUSE, "exceed the array");
    FAILS(acp_send_bcast_buffered(direct, array, 1) == ACP_HANDLE_NULL, MISUSE, "not buffered");
    /* Many starts, of which the last is waited for: parts of the array, one behind the other. */
    if (place == 0)
        for (int i = 0; i < MANY; i++) fill(array + i * 100, 100, i, round);
    else
        memset(array, 0, LONG);
    acp_handle_t all[MANY];
    for (int i = 0; i < MANY; i++) CHECK((all[i] = acp_send_bcast_direct(direct, (size_t)i * 100, 100)));
    CHECK(acp_complete(all[MANY - 1]) == 0 && acp_inquire(all[3]) == 0 && acp_complete(ACP_HANDLE_ALL) == 0);
    for (int i = 0; i < MANY; i++) CHECK(is_filled(array + i * 100, 100, i, round));
    /* The same place again and again. A rank that is late does not lose what it has not read. */
    for (int i = 0; i < 50; i++) {
        if (place == 0) fill(array, 300, i, 77);
        CHECK(acp_complete(acp_send_bcast_direct(direct, 0, 300)) == 0);
        if (place % 3 == 1)
            for (volatile int spin = 0; spin < 20000; spin++) {}
        CHECK(is_filled(array, 300, i, 77));
    }
    /* Pieces of 1000 bytes, and of 7. */
    for (size_t buffer = 7; buffer <= 1000; buffer += 993) {
        acp_bcast_t buffered = acp_create_bcast_buffered(group, count, buffer);
        CHECK(buffered);
        for (size_t s = 0; s < SIZES; s++, round++) {
            size_t size = buffer == 7 && sizes[s] == LONG ? 5003 : sizes[s];
            unsigned char *other = room(size + 1);
            if (place == 0) fill(other, size, group[0], round);
            acp_handle_t sent = acp_send_bcast_buffered(buffered, size ? other : NULL, size);
            CHECK(sent && acp_complete(sent) == 0 && is_filled(other, size, group[0], round) && other[size] == 0xee);
            free(other);
        }
        FAILS(acp_send_bcast_buffered(buffered, NULL, 1) == ACP_HANDLE_NULL, MISUSE, "no array");
        FAILS(acp_send_bcast_direct(buffered, 0, 1) == ACP_HANDLE_NULL, MISUSE, "is buffered");
        for (int i = 0; i < 20; i++) {
            if (place == 0) fill(array + i * 2500, 2500, i, round);
            CHECK(acp_send_bcast_buffered(buffered, array + i * 2500, 2500));
        }
        CHECK(acp_free_bcast_buffered(buffered) == 0); /* waits for them */
        for (int i = 0; i < 20; i++) CHECK(is_filled(array + i * 2500, 2500, i, round));
        FAILS(acp_free_bcast_buffered(buffered) == -1, MISUSE, "no such collective");
    }
    FAILS(acp_free_allgather_direct((acp_allgather_t)(uintptr_t)direct) == -1, MISUSE, "no such collective");
    CHECK(acp_free_bcast_direct(direct) == 0 && acp_complete(all[0]) == 0 && acp_inquire(all[0]) == 0);
    FAILS(acp_send_bcast_direct(direct, 0, 1) == ACP_HANDLE_NULL, MISUSE, "no such collective");
    free(array);
}

static void allgathers(const int *group, int count) {
    size_t n = (size_t)count, most = LONG / 4;
    int place = place_in(group, count), round = 1000;
    unsigned char *array = room(n * most + 10);
    acp_allgather_t direct = acp_create_allgather_direct(group, count, array, n * most + 10);
    acp_allgather_t buffered = acp_create_allgather_buffered(group, count, 997 * n);
    acp_allgather_t tiny = acp_create_allgather_buffered(group, count, n);
    CHECK(direct && buffered && tiny);
    for (size_t s = 0; s < SIZES; s++)
        for (int way = 0; way < 3; way++, round++) {
            size_t size = sizes[s] == LONG ? (way == 2 ? 100 : most) : sizes[s], first = way ? 0 : s;
            memset(array, 0xee, n * most + 10);
            fill(array + first + (size_t)place * size, size, rank, round);
            acp_handle_t sent = way == 0 ? acp_send_allgather_direct(direct, first, size)
                                         : acp_send_allgather_buffered(way == 1 ? buffered : tiny, array, size);
            CHECK(sent && acp_complete(sent) == 0);
            for (int i = 0; i < count; i++) CHECK(is_filled(array + first + (size_t)i * size, size, group[i], round));
            CHECK(array[first + n * size] == 0xee);
        }
    FAILS(acp_send_allgather_direct(direct, 11, most) == ACP_HANDLE_NULL, MISUSE, "exceed the array");
    FAILS(acp_send_allgather_direct(direct, 0, FAILED / 2 + 2) == ACP_HANDLE_NULL, MISUSE, "exceed the array");
    FAILS(acp_send_bcast_direct((acp_bcast_t)(uintptr_t)direct, 0, 1) == ACP_HANDLE_NULL, MISUSE, "no such collective");
    /* Many starts at once, of several collectives. */
    for (int i = 0; i < 50; i++) {
        size_t from = (size_t)i * 2 * n * 40;
        fill(array + from + (size_t)place * 40, 40, rank, i);
        fill(array + from + n * 40 + (size_t)place * 40, 40, rank, i + 1);
        CHECK(acp_send_allgather_direct(direct, from, 40));
        CHECK(acp_send_allgather_buffered(tiny, array + from + n * 40, 40));
    }
    CHECK(acp_sync() == 0 || count < procs);
    CHECK(acp_complete(ACP_HANDLE_ALL) == 0);
    for (int i = 0; i < 50; i++)
        for (int k = 0; k < 2 * count; k++)
            CHECK(is_filled(array + ((size_t)i * 2 * n + (size_t)k) * 40, 40, group[k % count], i + k / count));
    CHECK(acp_free_allgather_direct(direct) == 0 && acp_free_allgather_buffered(tiny) == 0);
    CHECK(acp_free_allgather_buffered(buffered) == 0);
    free(array);
}

static void collective_misuse(void) {
    char array[64];
    int group[] = {rank, rank}, none[] = {next}, absent[] = {rank, procs};
    FAILS(acp_create_bcast_direct(NULL, 1, array, 8) == ACP_BCAST_NULL, MISUSE, "group is null");
    FAILS(acp_create_bcast_direct(group, 0, array, 8) == ACP_BCAST_NULL, MISUSE, "no members");
    FAILS(acp_create_bcast_direct(group, -1, array, 8) == ACP_BCAST_NULL, MISUSE, "no members");
    FAILS(acp_create_bcast_buffered(group, 2, 8) == ACP_BCAST_NULL, MISUSE, "in the group twice");
    FAILS(acp_create_bcast_buffered(absent, 2, 8) == ACP_BCAST_NULL, MISUSE, "does not exist");
    if (procs > 1) FAILS(acp_create_bcast_buffered(none, 1, 8) == ACP_BCAST_NULL, MISUSE, "not in the group");
    FAILS(acp_create_bcast_direct(group, 1, NULL, 8) == ACP_BCAST_NULL, MISUSE, "no array");
    FAILS(acp_create_bcast_direct(group, 1, array, 0) == ACP_BCAST_NULL, MISUSE, "no array");
    FAILS(acp_create_bcast_buffered(group, 1, 0) == ACP_BCAST_NULL, MISUSE, "no buffer");
    FAILS(acp_free_bcast_direct(ACP_BCAST_NULL) == -1, MISUSE, "no such collective");
    FAILS(acp_send_allgather_direct((acp_allgather_t)(uintptr_t)12345, 0, 0) == ACP_HANDLE_NULL, MISUSE, "no such");
    CHECK(acp_complete(UINT64_C(0x8000123400000001)) == 0 && acp_inquire(UINT64_C(0x8000123400000001)) == 0);
    acp_bcast_t alone = acp_create_bcast_direct(group, 1, array, sizeof array);
    acp_handle_t sent = acp_send_bcast_direct(alone, 0, 64);
    CHECK(alone && sent);
    FAILS(acp_copy(acp_query_starter_ga(rank), acp_query_starter_ga(rank), 8, sent) == 0, MISUSE, "acp_complete");
    CHECK(acp_complete(sent) == 0 && acp_free_bcast_direct(alone) == 0);
    if (procs == 1) return;
    /* Members that differ all learn of it, and go on. */
    int all[64];
    int count = members_of(0, all);
    FAILS(acp_create_bcast_direct(all, count, array, rank == 1 ? 63 : 64) == ACP_BCAST_NULL, DISAGREEMENT, "differ");
    if (rank == 0)
        FAILS(acp_create_bcast_buffered(all, count, 64) == ACP_BCAST_NULL, DISAGREEMENT, "differ");
    else
        FAILS(acp_create_allgather_buffered(all, count, 64) == ACP_ALLGATHER_NULL, DISAGREEMENT, "differ");
    if (rank == procs - 1)
        FAILS(acp_create_bcast_direct(all, count, NULL, 64) == ACP_BCAST_NULL, MISUSE, "no array");
    else
        FAILS(acp_create_bcast_direct(all, count, array, 64) == ACP_BCAST_NULL, NO_MEMORY, "a member could not");
}

static void collectives(void) {
    collective_misuse();
    int group[64];
    for (int kind = 0; kind < 4; kind++) {
        int count = members_of(kind, group);
        if (place_in(group, count) >= 0) {
            broadcasts(group, count);
            if (kind < 2) allgathers(group, count);
        }
        CHECK(acp_sync() == 0);
    }
    /* Signals and memory are used again. */
    int count = members_of(1, group), number = 0;
    for (int i = 0; i < 300; i++) {
        acp_bcast_t bcast = acp_create_bcast_direct(group, count, &number, sizeof number);
        if (rank == group[0]) number = i;
        CHECK(bcast && acp_send_bcast_direct(bcast, 0, sizeof number) && acp_free_bcast_direct(bcast) == 0 && number == i);
    }
}

/* All that is left at a reset ends. */
static void reset(void) {
    int group[64], count = members_of(0, group);
    unsigned char array[64];
    acp_ga_t memory = acp_malloc(64, next);
    acp_bcast_t bcast = acp_create_bcast_direct(group, count, array, sizeof array);
    CHECK(memory && bcast && acp_complete(acp_send_bcast_direct(bcast, 0, 64)) == 0);
    acp_ch_t out = ACP_CH_NULL, in = ACP_CH_NULL;
    if (procs > 1) CHECK((out = acp_create_ch(rank, next)) && (in = acp_create_ch(previous, rank)));
    int number = procs - 1 - rank;
    CHECK(acp_reset(number) == 0);
    rank = number;
    next = (rank + 1) % procs;
    previous = (rank + procs - 1) % procs;
    FAILS(acp_free_bcast_direct(bcast) == -1, MISUSE, "no such collective");
    FAILS(acp_free(memory) == -1, MISUSE, "not returned");
    FAILS(acp_free_ch(out) == -1, MISUSE, "no such channel");
    if (procs > 1) FAILS(acp_nbrecv_ch(in, array, 1) == ACP_REQUEST_NULL, MISUSE, "no such channel");
    allocation();
    channels();
    broadcasts(group, count);
}

int main(int argc, char **argv) {
    outside(INIT, "acp_init was not called");
    CHECK(acp_init(&argc, &argv) == 0);
    rank = acp_rank();
    procs = acp_procs();
    next = (rank + 1) % procs;
    previous = (rank + procs - 1) % procs;
    allocation();
    channels();
    threads();
    segmented_buffers();
    collectives();
    reset();
    /* Something of each is left. */
    int group[64], count = members_of(0, group);
    static unsigned char array[64];
    CHECK(acp_malloc(64, next) && acp_create_allgather_direct(group, count, array, sizeof array));
    if (procs > 1) CHECK(acp_create_ch(rank, next) && acp_create_dst_segbuf(next, array, 8, 8));
    CHECK(acp_finalize() == 0);
    outside(INIT, "acp_finalize was");
    printf("rank %d is right\n", rank);
    return 0;
}
