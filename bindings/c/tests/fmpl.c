/* Messages, communicators and collective calls of FMPL on any number of ranks. Ends with a line if all is right. */
#include <fmpl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #what); \
            exit(3); \
        } \
    } while (0)

static void ok_at(int code, int line) {
    if (code == FMPL_SUCCESS) return;
    fprintf(stderr, "line %d, rank %d: code %d: %s\n", line, rank, code, tasuki_error_string(code));
    exit(4);
}
#define OK(call) ok_at((call), __LINE__)

static void says(int code, int expected, const char *text, int line) {
    const char *said = tasuki_error_string(code);
    if (code == expected && strstr(said, text)) return;
    fprintf(stderr, "line %d, rank %d: code %d (not %d): %s\n", line, rank, code, expected, said);
    exit(5);
}
#define FAILS(call, code, text) says((call), (code), (text), __LINE__)

static void before_init(void) {
    int n;
    FAILS(fmpl_barrier(FMPL_COMM_WORLD), FMPL_ERR_INIT, "fmpl_init was not called");
    FAILS(fmpl_comm_rank(0, &n), FMPL_ERR_INIT, "fmpl_init");
    FAILS(fmpl_sendbuf_check(&n, &n), FMPL_ERR_INIT, "fmpl_init");
    FAILS(fmpl_finalize(), FMPL_ERR_INIT, "fmpl_init");
    FAILS(fmpl_init(NULL, NULL, 0), FMPL_ERR_MISUSE, "count is 0");
    CHECK(!strcmp(tasuki_error_string(FMPL_SUCCESS), "success"));
    CHECK(!strcmp(tasuki_error_string(77), "no such code"));
}

static void misuse(void) {
    int n;
    char b[8];
    FAILS(fmpl_init(NULL, NULL, 4), FMPL_ERR_MISUSE, "before");
    FAILS(fmpl_send(NULL, 8, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_MISUSE, "null");
    FAILS(fmpl_send(b, 8, size, 0, FMPL_COMM_WORLD), FMPL_ERR_MISUSE, "is not in the communicator");
    FAILS(fmpl_send(b, 8, -1, 0, FMPL_COMM_WORLD), FMPL_ERR_MISUSE, "rank -1");
    FAILS(fmpl_send(b, 8, 0, 64, FMPL_COMM_WORLD), FMPL_ERR_MISUSE, "mai is 64");
    FAILS(fmpl_send(b, 8, 0, FMPL_TAG_ANY, FMPL_COMM_WORLD), FMPL_ERR_MISUSE, "mai is -1");
    FAILS(fmpl_send(b, (size_t)-5, 0, 0, FMPL_COMM_WORLD), FMPL_ERR_MISUSE, "size is -5");
    FAILS(fmpl_send(b, 8, 0, 0, 5), FMPL_ERR_MISUSE, "comm is 5");
    FAILS(fmpl_send(b, 8, 0, 0, FMPL_COMM_NULL), FMPL_ERR_MISUSE, "comm is -1");
    FAILS(fmpl_isend_wait(0, 0, FMPL_COMM_WORLD), FMPL_ERR_MISUSE, "no fmpl_isend");
    FAILS(fmpl_irecv_wait(0, 0, FMPL_COMM_WORLD), FMPL_ERR_MISUSE, "no fmpl_irecv");
    FAILS(fmpl_comm_rank(0, NULL), FMPL_ERR_MISUSE, "rank is null");
    FAILS(fmpl_comm_create(NULL, 1), FMPL_ERR_MISUSE, "comm is null");
    FAILS(fmpl_comm_free(NULL), FMPL_ERR_MISUSE, "comm is null");
    n = FMPL_COMM_WORLD;
    FAILS(fmpl_comm_free(&n), FMPL_ERR_MISUSE, "fmpl_finalize");
    FAILS(fmpl_allreduce(b, 1, NULL, FMPL_COMM_WORLD, NULL), FMPL_ERR_MISUSE, "func is null");
    FAILS(fmpl_allreduce(b, -1, fmpl_isum, FMPL_COMM_WORLD, NULL), FMPL_ERR_MISUSE, "count is -1");
    FAILS(fmpl_op_create(NULL, 8, 1, NULL), FMPL_ERR_MISUSE, "op is null");
    FAILS(fmpl_bcast(b, 8, size, FMPL_COMM_WORLD), FMPL_ERR_MISUSE, "rank");
}

/* Ring: each rank sends to the next, in all the ways. */
static void ring(int comm) {
    int me, n;
    OK(fmpl_comm_rank(comm, &me));
    OK(fmpl_comm_size(comm, &n));
    int to = (me + 1) % n, from = (me + n - 1) % n;
    static double sent[100000], got[100000];
    size_t lengths[] = {0, 1, 6, 7, 1000, 100000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t count = lengths[i];
        for (size_t k = 0; k < count; k++) sent[k] = me * 1e6 + (double)k, got[k] = -1;
        OK(fmpl_irecv(got, count * sizeof *got, from, 5, comm));
        FAILS(fmpl_irecv(got, 8, from, 5, comm), FMPL_ERR_MISUSE, "was begun and not waited for");
        OK(fmpl_isend(sent, count * sizeof *sent, to, 5, comm));
        FAILS(fmpl_isend(sent, 8, to, 5, comm), FMPL_ERR_MISUSE, "was begun and not waited for");
        OK(fmpl_isend_wait(to, 5, comm));
        OK(fmpl_irecv_wait(from, 5, comm));
        for (size_t k = 0; k < count; k++) CHECK(got[k] == from * 1e6 + (double)k);

        memset(got, 0, count * sizeof *got);
        OK(fmpl_irecv(got, sizeof got, from, FMPL_TAG_ANY, comm));
        OK(fmpl_send(sent, count * sizeof *sent, to, (int)i, comm));
        OK(fmpl_irecv_wait(from, FMPL_TAG_ANY, comm));
        for (size_t k = 0; k < count; k++) CHECK(got[k] == from * 1e6 + (double)k);
    }
    for (int k = 0; k < 10; k++) {
        int value = 10 * me + k, any = -1;
        OK(fmpl_send_any(&value, sizeof value, to, k % 4, comm));
        OK(fmpl_recv_any(&any, sizeof any, k % 2 ? FMPL_TAG_ANY : k % 4, comm));
        CHECK(any == 10 * from + k);
    }
}

static void send_buffer(void) {
    int nsend, nspool, got[3] = {0}, value = 7;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    OK(fmpl_sendbuf_set(NULL, 64 + 3 * FMPL_SENDBUF_OVERHEAD, 0));
    for (int mai = 0; mai < 3; mai++) {
        value = 100 * rank + mai;
        OK(fmpl_send(&value, sizeof value, to, mai, FMPL_COMM_WORLD)); /* its receive comes later */
        value = -1;
    }
    char much[100];
    FAILS(fmpl_send(memset(much, 0, sizeof much), sizeof much, to, 3, FMPL_COMM_WORLD), FMPL_ERR_FULL, "");
    OK(fmpl_sendbuf_check(&nsend, &nspool));
    CHECK(nsend + nspool <= 3);
    for (int mai = 2; mai >= 0; mai--) OK(fmpl_recv(&got[mai], sizeof *got, from, mai, FMPL_COMM_WORLD));
    for (int mai = 0; mai < 3; mai++) CHECK(got[mai] == 100 * from + mai);
    OK(fmpl_barrier(FMPL_COMM_WORLD));
    OK(fmpl_sendbuf_set(NULL, 0, -1));
}

/* Composition of maps x -> a x + b, which does not commute. */
struct map { double a, b, unused; };
static void compose(void *inout, const void *in, const int *count) {
    struct map *left = inout;
    const struct map *right = in;
    for (int i = 0; i < *count; i++) {
        left[i].b = right[i].a * left[i].b + right[i].b;
        left[i].a *= right[i].a;
    }
}

static void collectives(int comm) {
    int me, n;
    OK(fmpl_comm_rank(comm, &me));
    OK(fmpl_comm_size(comm, &n));
    for (int root = 0; root < n; root++) {
        double value[3] = {me + 0.5, -me, 3};
        OK(fmpl_bcast(value, sizeof value, root, comm));
        CHECK(value[0] == root + 0.5 && value[1] == -root && value[2] == 3);
        int numbers[2] = {me + 1, me == 1 ? -50 : 3};
        OK(fmpl_reduce(numbers, 2, fmpl_isum, root, comm, NULL));
        CHECK(me == root ? numbers[0] == n * (n + 1) / 2 : numbers[0] == me + 1);
        float z[4] = {1, (float)me, (float)-me, 0}; /* two complex numbers */
        OK(fmpl_allreduce(z, 2, fmpl_csum, comm, NULL));
        CHECK(z[0] == (float)n && z[1] == (float)(n * (n - 1) / 2) && z[2] == -z[1] && z[3] == 0);
    }
    double extreme[2] = {me == 0 ? -5 : 3, me == 0 ? -5 : 3};
    OK(fmpl_allreduce(extreme, 1, fmpl_dmax, comm, NULL));
    OK(fmpl_allreduce(extreme + 1, 1, fmpl_dmin, comm, NULL));
    CHECK(extreme[0] == -5 && extreme[1] == (n == 1 ? -5 : 3));
    OK(fmpl_allreduce(NULL, 0, fmpl_dsum, comm, NULL));

    fmpl_op op = NULL;
    FAILS(fmpl_allreduce(extreme, 1, compose, comm, NULL), FMPL_ERR_MISUSE, "fmpl_op_create");
    OK(fmpl_op_create(compose, sizeof(struct map), 0, &op));
    for (int count = 1; count < 3000; count = 3 * count + 1) {
        struct map *maps = malloc((size_t)count * sizeof *maps);
        for (int i = 0; i < count; i++) maps[i] = (struct map){2, me + i, 7};
        double a = 1, b = 0;
        for (int r = 0; r < n; r++) b = 2 * b + r + count - 1, a *= 2;
        OK(fmpl_allreduce(maps, count, op, comm, NULL));
        CHECK(maps[count - 1].a == a && maps[count - 1].b == b && maps[count - 1].unused == 7);
        maps[0] = (struct map){2, me, 7};
        OK(fmpl_reduce(maps, 1, op, n - 1, comm, NULL));
        b = 0;
        for (int r = 0; r < n; r++) b = 2 * b + r;
        if (me == n - 1) CHECK(maps[0].b == b);
        else CHECK(maps[0].b == me);
        free(maps);
    }
    fmpl_op_create(compose, sizeof(struct map), 0, &op);
    OK(fmpl_barrier(comm));
}

int main(int argc, char **argv) {
    int ma[64], fa[64], odd = -7;
    before_init();
    OK(fmpl_init(ma, fa, 64));
    OK(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    OK(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    misuse();
    ring(FMPL_COMM_WORLD);
    send_buffer();
    collectives(FMPL_COMM_WORLD);
    for (int k = 0; k < 30; k++) {
        OK(fmpl_comm_create(&odd, rank % 2 == k % 2));
        CHECK((odd == FMPL_COMM_NULL) == (rank % 2 != k % 2));
        if (odd == FMPL_COMM_NULL) continue;
        CHECK(odd == 1);
        if (k % 10 == 0) ring(odd);
        OK(fmpl_barrier(odd));
        OK(fmpl_comm_free(&odd));
        CHECK(odd == FMPL_COMM_NULL);
    }
    if (argc > 1 && !strcmp(argv[1], "leave")) { /* without fmpl_finalize */
        printf("rank %d of %d ends\n", rank, size);
        return 0;
    }
    OK(fmpl_finalize());
    FAILS(fmpl_finalize(), FMPL_ERR_INIT, "fmpl_finalize was");
    FAILS(fmpl_init(ma, fa, 64), FMPL_ERR_INIT, "cannot join one again");
    printf("rank %d of %d is right\n", rank, size);
    return 0;
}
