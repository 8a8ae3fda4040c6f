/* BLACS and ScaLAPACK: one program, which runs on the BLACS that its ScaLAPACK brings, over an MPI, and unchanged on
 * that of Tasuki, which `tasuki run --blacs` loads before it.
 *
 *   mpirun -n N peer_blacs CASE [--size BYTES] [--iterations N] [--repetitions N]
 *
 *   contiguous, submatrix, trapezoid   one way of a message of BYTES between two processes, in ns
 *   bcast, sum                         a call of all processes, in ns; the root of bcast goes round
 *   grids                              making and freeing a grid of all processes, in ns
 *   solve                              pdgesv of BYTES / 8 unknowns, in ns
 *
 * Process 0 prints one JSON object a line for each repetition. */

#define _GNU_SOURCE
/* This program takes no turns with others: each repetition is a job. */
#pragma GCC diagnostic ignored "-Wunused-function"
#include "loop.h"

#include <math.h>

extern void Cblacs_pinfo(int *me, int *all);
extern void Cblacs_get(int context, int what, int *value);
extern void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
extern void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
extern void Cblacs_gridexit(int context);
extern void Cblacs_barrier(int context, const char *scope);
extern void Cblacs_exit(int goes_on);
extern void Cdgesd2d(int context, int m, int n, const double *a, int lda, int row, int column);
extern void Cdgerv2d(int context, int m, int n, double *a, int lda, int row, int column);
extern void Cdtrsd2d(int context, const char *uplo, const char *diag, int m, int n, const double *a, int lda, int row,
                     int column);
extern void Cdtrrv2d(int context, const char *uplo, const char *diag, int m, int n, double *a, int lda, int row,
                     int column);
extern void Cdgebs2d(int context, const char *scope, const char *top, int m, int n, const double *a, int lda);
extern void Cdgebr2d(int context, const char *scope, const char *top, int m, int n, double *a, int lda, int row,
                     int column);
extern void Cdgsum2d(int context, const char *scope, const char *top, int m, int n, double *a, int lda, int row,
                     int column);
extern int numroc_(const int *n, const int *nb, const int *me, const int *first, const int *all);
extern void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb, const int *row,
                      const int *column, const int *context, const int *lld, int *info);
extern void pdgesv_(const int *n, const int *nrhs, double *a, const int *ia, const int *ja, const int *desc_a,
                    int *pivots, double *b, const int *ib, const int *jb, const int *desc_b, int *info);

static int me, all, context, rows, columns, row, column;

/* A matrix of that many bytes, about square. */
struct matrix {
    int m, n, lda;
    double *at;
};

static struct matrix matrix_of(size_t bytes, bool is_part) {
    struct matrix a = {.m = 1};
    long count = (long)(bytes / sizeof(double));
    while ((long)a.m * a.m * 4 <= count) a.m *= 2;
    a.n = (int)(count / a.m);
    a.lda = is_part ? 2 * a.m : a.m;
    a.at = own_memory(sizeof(double) * (size_t)a.lda * (size_t)a.n);
    for (size_t at = 0; at < (size_t)a.lda * (size_t)a.n; at++) a.at[at] = 0.0; /* so sums stay what they are */
    return a;
}

/* The last value that a general matrix and an upper trapezoid have: in the last column, in the first row. */
static double *last_of(const struct matrix *a) { return a->at + (size_t)(a->n - 1) * (size_t)a->lda; }

static void message(const struct options *o, const struct matrix *a, bool sends) {
    int other = 1 - me;
    bool is_trapezoid = !strcmp(o->name, "trapezoid");
    if (sends && is_trapezoid) Cdtrsd2d(context, "U", "N", a->m, a->n, a->at, a->lda, 0, other);
    else if (sends) Cdgesd2d(context, a->m, a->n, a->at, a->lda, 0, other);
    else if (is_trapezoid) Cdtrrv2d(context, "U", "N", a->m, a->n, a->at, a->lda, 0, other);
    else Cdgerv2d(context, a->m, a->n, a->at, a->lda, 0, other);
}

static double ping_pong(const struct options *o) {
    struct matrix a = matrix_of(o->bytes, strcmp(o->name, "contiguous") != 0);
    long count = iterations(o, o->bytes <= 1024 ? 5000 : 1 + (long)(MOVED_BYTES / 2 / o->bytes));
    double start = now_ns();
    for (long i = 1; i <= count; i++) {
        if (me == 0) *last_of(&a) = (double)i;
        message(o, &a, me == 0);
        if (me != 0) check(*last_of(&a) == (double)i, o->name);
        message(o, &a, me != 0);
    }
    return (now_ns() - start) / (double)(2 * count);
}

static double call_of_all(const struct options *o) {
    struct matrix a = matrix_of(o->bytes, false);
    bool is_sum = !strcmp(o->name, "sum");
    long count = iterations(o, o->bytes <= 1024 ? 2000 : o->bytes <= 64 * 1024 ? 500 : 30);
    Cblacs_barrier(context, "A");
    double start = now_ns();
    for (long i = 1; i <= count; i++) {
        int root = (int)(i % all), root_row = root / columns, root_column = root % columns;
        if (is_sum) {
            *last_of(&a) = (double)(i + me);
            Cdgsum2d(context, "A", " ", a.m, a.n, a.at, a.lda, -1, 0);
            check(*last_of(&a) == (double)i * all + all * (all - 1) / 2, "sum");
        } else if (root_row == row && root_column == column) {
            *last_of(&a) = (double)i;
            Cdgebs2d(context, "A", " ", a.m, a.n, a.at, a.lda);
        } else {
            Cdgebr2d(context, "A", " ", a.m, a.n, a.at, a.lda, root_row, root_column);
            check(*last_of(&a) == (double)i, "bcast");
        }
    }
    return (now_ns() - start) / (double)count;
}

static double grids(const struct options *o) {
    long count = iterations(o, 1000);
    Cblacs_barrier(context, "A");
    double start = now_ns();
    for (long i = 0; i < count; i++) {
        int one;
        Cblacs_get(-1, 0, &one);
        Cblacs_gridinit(&one, "R", rows, columns);
        Cblacs_gridexit(one);
    }
    return (now_ns() - start) / (double)count;
}

/* Solves A x = b with x of ones: A is random with a heavy diagonal. */
static double solve(const struct options *o) {
    const int n = (int)(o->bytes / 8), nb = 64, zero = 0, one = 1;
    int m_here = numroc_(&n, &nb, &row, &zero, &rows), n_here = numroc_(&n, &nb, &column, &zero, &columns), info;
    int lld = m_here > 1 ? m_here : 1, desc_a[9], desc_b[9];
    descinit_(desc_a, &n, &n, &nb, &nb, &zero, &zero, &context, &lld, &info);
    descinit_(desc_b, &n, &one, &nb, &nb, &zero, &zero, &context, &lld, &info);
    double *a = own_memory(sizeof(double) * (size_t)(lld * (long)n_here + 1)), *b = own_memory(sizeof(double) * (size_t)lld);
    int *pivots = own_memory(sizeof(int) * (size_t)(m_here + nb));
    for (int j = 0; j < n_here; j++) {
        for (int i = 0; i < m_here; i++) {
            int at_i = ((i / nb) * rows + row) * nb + i % nb, at_j = ((j / nb) * columns + column) * nb + j % nb;
            uint64_t bits = ((uint64_t)at_i * (uint64_t)n + (uint64_t)at_j + 1) * 0x9e3779b97f4a7c15u;
            double value = at_i == at_j ? n : (double)(bits >> 40) / (double)(1 << 24) - 0.5;
            a[i + (size_t)j * (size_t)lld] = value;
            b[i] += value;
        }
    }
    Cdgsum2d(context, "R", " ", m_here, 1, b, lld, -1, 0);
    Cblacs_barrier(context, "A");
    double start = now_ns();
    pdgesv_(&n, &one, a, &one, &one, desc_a, pivots, b, &one, &one, desc_b, &info);
    Cblacs_barrier(context, "A");
    double took = now_ns() - start;
    for (int i = 0; column == 0 && i < m_here; i++) check(info == 0 && fabs(b[i] - 1.0) < 1e-9, "solve");
    munmap(a, sizeof(double) * (size_t)(lld * (long)n_here + 1));
    return took;
}

int main(int count, char **words) {
    end_with_parent();
    struct options o = parse_options(count, words);
    Cblacs_pinfo(&me, &all);
    rows = all > 2 ? all / 2 : 1;
    columns = all / rows;
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "R", rows, columns);
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);
    bool is_message = !strcmp(o.name, "contiguous") || !strcmp(o.name, "submatrix") || !strcmp(o.name, "trapezoid");
    if (is_message && all != 2) fail(o.name, "is of two processes");
    for (long i = 0; i < o.repetitions; i++) {
        double took;
        if (is_message) took = ping_pong(&o);
        else if (!strcmp(o.name, "bcast") || !strcmp(o.name, "sum")) took = call_of_all(&o);
        else if (!strcmp(o.name, "grids")) took = grids(&o);
        else if (!strcmp(o.name, "solve")) took = solve(&o);
        else fail(o.name, "no such case");
        if (me == 0) print_figure(&(struct figure){"blacs", o.name, "time_ns"}, &o, all, took);
    }
    Cblacs_exit(0);
    return 0;
}
