/* Grids, messages and combines of BLACS on any number of processes. Ends with a line if all is right. */
#define _POSIX_C_SOURCE 199309L /* nanosleep */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tasuki_blacs.h>
#include <time.h>

static int me, all;

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: process %d: %s\n", __FILE__, __LINE__, me, #what); \
            exit(3); \
        } \
    } while (0)

static int grid_of(const char *order, int rows, int columns) {
    int context;
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, order, rows, columns);
    return context;
}

/* A grid of two columns where there are that many processes. */
static void shape(int *rows, int *columns) {
    *columns = all > 1 ? 2 : 1;
    *rows = all / *columns;
}

static void grids(void) {
    int rows, columns, r, c, p, q, handle;
    shape(&rows, &columns);
    int by_rows = grid_of("Row", rows, columns), by_columns = grid_of("c", rows, columns);
    if (me >= rows * columns) {
        CHECK(by_rows == -1 && by_columns == -1);
        Cblacs_gridinfo(by_rows, &p, &q, &r, &c);
        CHECK(p == -1 && q == -1 && r == -1 && c == -1);
        return;
    }
    CHECK(by_rows == 0 && by_columns == 1);
    Cblacs_gridinfo(by_rows, &p, &q, &r, &c);
    CHECK(p == rows && q == columns && r == me / columns && c == me % columns);
    Cblacs_gridinfo(by_columns, &p, &q, &r, &c);
    CHECK(r == me % rows && c == me / rows);
    CHECK(Cblacs_pnum(by_columns, r, c) == r * columns + c && Cblacs_pnum(by_columns, rows, 0) == -1);
    Cblacs_pcoord(by_columns, r * columns + c, &p, &q);
    CHECK(p == r && q == c);
    Cblacs_pcoord(by_columns, rows * columns, &p, &q);
    CHECK(p == -1 && q == -1);

    /* Each row of the second grid as a grid of its own: by the handle of the context, and by the context itself. */
    for (int way = 0; way < 2; way++) {
        int *map = malloc((size_t)columns * sizeof *map), row_grid;
        for (int k = 0; k < columns; k++) map[k] = Cblacs_pnum(by_columns, r, k);
        if (way) handle = by_columns;
        else Cblacs_get(by_columns, 10, &handle);
        row_grid = handle;
        Cblacs_gridmap(&row_grid, map, 1, 1, columns);
        Cblacs_gridinfo(row_grid, &p, &q, &p, &q); /* the places alias */
        CHECK(p == 0 && q == c);
        int sum = me;
        Cigsum2d(row_grid, "All", " ", 1, 1, &sum, 1, -1, -1);
        int expected = 0;
        for (int k = 0; k < columns; k++) expected += k * rows + r;
        CHECK(sum == expected);
        Cblacs_gridexit(row_grid);
        free(map);
    }
    int rings = 77;
    Cblacs_get(by_rows, 11, &rings);
    CHECK(rings == 1);
    rings = -3;
    Cblacs_set(by_rows, 11, &rings);
    Cblacs_get(by_columns, 11, &rings);
    CHECK(rings == 1);
    Cblacs_get(by_rows, 11, &rings);
    CHECK(rings == -3);
    Cblacs_gridexit(by_columns);
    Cblacs_gridexit(by_rows);
    for (int k = 0; k < 2000; k++) {
        int one = grid_of("r", rows, columns), two = k % 3 ? -1 : grid_of("r", rows, columns), sum = 1;
        CHECK(one == 0 && (two == 1 || k % 3));
        if (k % 100 == 0) Cigsum2d(one, "a", "h", 1, 1, &sum, 1, 0, 0);
        if (two >= 0) Cblacs_gridexit(two);
        Cblacs_gridexit(one);
    }
}

/* The number that element (i, j) of message k of a process has. */
static double element(int from, int k, int i, int j) { return from * 1e6 + k * 1e4 + i * 100 + j; }

static void messages(int context, int p, int q, int r, int c) {
    enum { LDA = 9, ROWS = 7, COLUMNS = 5, MESSAGES = 6 };
    double a[LDA * COLUMNS], b[LDA * COLUMNS];
    int from = (r + p - 1) % p * q + c, own = r * q + c;
    /* Many messages of several shapes before any receive, to the process below, which may be this one. */
    for (int k = 0; k < MESSAGES; k++) {
        for (int i = 0; i < LDA * COLUMNS; i++) a[i] = element(own, k, i % LDA, i / LDA);
        if (k % 3 == 0) Cdgesd2d(context, ROWS, COLUMNS, a, LDA, (r + 1) % p, c);
        if (k % 3 == 1) Cdtrsd2d(context, "U", "U", ROWS, COLUMNS, a, LDA, (r + 1) % p, c);
        if (k % 3 == 2) Cdgesd2d(context, 0, COLUMNS, a, LDA, (r + 1) % p, c);
        memset(a, 0, sizeof a);
    }
    for (int k = 0; k < MESSAGES; k++) {
        for (int i = 0; i < LDA * COLUMNS; i++) b[i] = -1;
        if (k % 3 == 0) Cdgerv2d(context, ROWS, COLUMNS, b, LDA, (r + p - 1) % p, c);
        if (k % 3 == 1) Cdtrrv2d(context, "u", "u", ROWS, COLUMNS, b, LDA, (r + p - 1) % p, c);
        if (k % 3 == 2) Cdgerv2d(context, 0, COLUMNS, NULL, LDA, (r + p - 1) % p, c);
        for (int i = 0; i < LDA; i++)
            for (int j = 0; j < COLUMNS; j++) {
                int sent = k % 3 == 0 ? i < ROWS : k % 3 == 1 ? i < j + ROWS - COLUMNS : 0;
                CHECK(b[i + j * LDA] == (sent ? element(from, k, i, j) : -1));
            }
    }
    /* Three megabytes to each process before any receive, as a row, received as a column. */
    enum { MUCH = 400000 };
    double *much = malloc(MUCH * sizeof *much), *got = malloc(MUCH * sizeof *got);
    for (int to = 0; to < p * q; to++) {
        for (int i = 0; i < MUCH; i++) much[i] = own * 1e7 + to * 1e6 + i;
        Cdgesd2d(context, 1, MUCH, much, 1, to / q, to % q);
    }
    for (int of = 0; of < p * q; of++) {
        Cdgerv2d(context, MUCH, 1, got, MUCH, of / q, of % q);
        for (int i = 0; i < MUCH; i++) CHECK(got[i] == of * 1e7 + own * 1e6 + i);
    }
    free(much);
    free(got);
}

static void broadcasts(int context, int p, int q, int r, int c) {
    const char *tops = " idshmtf19", *scopes = "RCA";
    for (int round = 0; round < 2; round++)
        for (const char *scope = scopes; *scope; scope++)
            for (const char *top = tops; *top; top++)
                for (int root = 0; root < p * q; root++) {
                    int rr = root / q, rc = root % q;
                    if ((*scope == 'R' && rr != r) || (*scope == 'C' && rc != c)) continue;
                    int is_root = rr == r && rc == c, size = *scope == 'R' ? q : *scope == 'C' ? p : p * q;
                    float a[4] = {-1, -1, -1, -1};
                    if (is_root) a[0] = (float)root, a[1] = 2, a[2] = (float)*top, a[3] = 9;
                    if (is_root) Csgebs2d(context, scope, top, 1, 2, a, 2);
                    else Csgebr2d(context, scope, top, 1, 2, a, 2, rr, rc);
                    CHECK(a[0] == (float)root && a[2] == (float)*top);
                    CHECK(is_root || size == 1 || (a[1] == -1 && a[3] == -1));
                }
}

static void combines(int context, int p, int q, int r, int c) {
    int n = p * q, own = r * q + c;
    for (int dest = -1; dest < n; dest++) {
        tasuki_double_complex z[2] = {{own, 1}, {-own, own}};
        Czgsum2d(context, "a", "1", 2, 1, z, 2, dest < 0 ? -1 : dest / q, dest < 0 ? c : dest % q);
        int has = dest < 0 || dest == own, total = n * (n - 1) / 2;
        CHECK(has ? z[0].re == total && z[0].im == n && z[1].re == -total && z[1].im == total
                  : z[0].re == own && z[1].im == own);
        /* Ties: the process next to the destination, upwards, wins with its sign. */
        double d = own % 2 ? 5 : -5;
        int row = -7, column = -7, to = dest < 0 ? 0 : dest;
        Cdgamx2d(context, "a", " ", 1, 1, &d, 1, &row, &column, 1, dest < 0 ? -1 : dest / q, dest < 0 ? -1 : dest % q);
        if (has) CHECK(row == to / q && column == to % q && d == (to % 2 ? 5 : -5));
        else CHECK(d == (own % 2 ? 5 : -5));
        int i = own == n - 1 ? 1 : -4 - own;
        Cigamn2d(context, "a", " ", 1, 1, &i, 1, NULL, NULL, -1, -1, -1);
        CHECK(i == 1);
    }
    int row_sum = 1, column_sum = 1;
    Cigsum2d(context, "row", "i", 1, 1, &row_sum, 1, -1, c);
    Cigsum2d(context, "col", "d", 1, 1, &column_sum, 1, r, -1);
    CHECK(row_sum == q && column_sum == p);
    Cblacs_barrier(context, "R");
    Cblacs_barrier(context, "c");
    Cblacs_barrier(context, "nothing");
    Cblacs_barrier(context, "A");
}

int main(void) {
    int p, q, r, c, rows, columns;
    Cblacs_pinfo(&me, &all);
    grids();
    shape(&rows, &columns);
    int context = grid_of("r", rows, columns), other = grid_of("c", rows, columns);
    Cblacs_gridinfo(context, &p, &q, &r, &c);
    if (context >= 0) {
        messages(context, p, q, r, c);
        broadcasts(context, p, q, r, c);
        /* Two contexts of the same processes do not mix. */
        double one = 1, two = 2;
        Cblacs_gridinfo(other, &p, &q, &r, &c);
        Cdgesd2d(other, 1, 1, &two, 1, r, c);
        Cblacs_gridinfo(context, &p, &q, &r, &c);
        Cdgesd2d(context, 1, 1, &one, 1, r, c);
        Cdgerv2d(context, 1, 1, &two, 1, r, c);
        CHECK(two == 1);
        Cblacs_gridinfo(other, &p, &q, &r, &c);
        Cdgerv2d(other, 1, 1, &one, 1, r, c);
        CHECK(one == 2);
        combines(other, p, q, r, c);
        Cblacs_gridexit(other);
        Cblacs_gridexit(context);
    }
    /* No process leaves before the last one comes. */
    double began = Cdwalltime00();
    int everybody = grid_of("r", 1, all);
    Cblacs_barrier(everybody, "A");
    if (me == all - 1) nanosleep(&(struct timespec){.tv_nsec = 50 * 1000 * 1000}, NULL);
    Cblacs_exit(0);
    CHECK(Cdwalltime00() - began >= 0.05);
    printf("process %d of %d is right\n", me, all);
    return 0;
}
