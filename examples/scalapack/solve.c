/* Solves A x = b by LU factorisation (pdgesv).
 *
 *     tasuki run -n 4 --blacs ./solve [FILE | --generate N] [--grid P Q]
 *
 * A is read from a Matrix Market file, or is that of convection and diffusion on N x N points (10 x 10 by default).
 * The residual is computed from the entries as they were read, without ScaLAPACK.
 */
#include "scalapack.h"
#include "start.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tasuki_blacs.h>

static const int one = 1;

/* The right-hand side, row by row. */
static double b_of(int row) { return 1.0 + row % 10; }

/* The vector x, of which the first column of the grid has the blocks, as a whole on every process. */
static double *whole(const struct grid *grid, const double *x, int n) {
    double *all = zeros((size_t)n, sizeof *all);
    if (grid->mycol == 0) {
        for (int i = 0; i < local_rows(grid, n); i++) all[global_row(grid, i) - 1] = x[i];
    }
    Cdgsum2d(grid->context, "All", " ", n, 1, all, n, -1, -1);
    return all;
}

/* Returns norm(A x - b) / (norm(A) norm(x) n epsilon). */
static double residual(const struct entries *a, const double *x) {
    int n = a->rows;
    double *r = zeros((size_t)n, sizeof *r), of_r = 0, of_a = 0, of_x = 0; /* sums of squares */
    for (int i = 0; i < n; i++) r[i] = -b_of(i + 1);
    for (int k = 0; k < a->count; k++) {
        r[a->row[k] - 1] += a->value[k] * x[a->column[k] - 1];
        of_a += a->value[k] * a->value[k];
    }
    for (int i = 0; i < n; i++) {
        of_r += r[i] * r[i];
        of_x += x[i] * x[i];
    }
    free(r);
    return sqrt(of_r) / (sqrt(of_a) * sqrt(of_x) * n * DBL_EPSILON);
}

int main(int argc, char **argv) {
    struct options options;
    struct grid grid;
    start(argc, argv, 10, &options, &grid);
    struct entries matrix = load(&options, &grid, 0.4);
    int n = matrix.rows, desc_a[DLEN], desc_b[DLEN], info;
    double *a = distribute(&grid, &matrix, desc_a), *b = distributed_zeros(&grid, n, 1, desc_b);
    for (int row = 1; row <= n; row++) {
        double value = b_of(row);
        pdelset_(b, &row, &one, desc_b, &value);
    }

    int *pivots = zeros((size_t)local_rows(&grid, n) + BLOCK, sizeof *pivots);
    double began = Cdwalltime00();
    pdgesv_(&n, &one, a, &one, &one, desc_a, pivots, b, &one, &one, desc_b, &info);
    double seconds = Cdwalltime00() - began;
    /* b is x now. */
    double *x = whole(&grid, b, n), of_x = residual(&matrix, x);
    int right = info == 0 && of_x < 10; /* not if it is a NaN */
    if (grid.myrow == 0 && grid.mycol == 0) {
        if (info != 0) printf("pdgesv: info %d\n", info);
        printf("n %d on %d x %d: %.4f s, residual %.1e (below 10 is right)\n", n, grid.nprow, grid.npcol, seconds,
               of_x);
    }
    free(a);
    free(b);
    free(x);
    free(pivots);
    entries_free(&matrix);
    return end(&grid, right);
}
