/* How fast C = A B is (pdgemm), with matrices of N x N values (500 x 500 by default).
 *
 *     tasuki run -n 4 --blacs ./gemm [--generate N] [--grid P Q]
 *
 * The product is checked by a vector: C v must be A (B v).
 */
#include "scalapack.h"
#include "start.h"
#include <float.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tasuki_blacs.h>

enum { REPEATS = 5 };

static const int one = 1;
static const double plus_one = 1.0, minus_one = -1.0, none = 0.0;

/* A number from -0.5 to 0.5, which depends on the place in the matrix only, not on the grid. */
static double random_at(uint64_t seed, int row, int column) {
    uint64_t bits = (seed << 60 | (uint64_t)row << 30 | (uint64_t)column) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 31) * 0xbf58476d1ce4e5b9u; /* the mixing of SplitMix64 */
    return (double)(bits >> 11) * 0x1p-53 - 0.5;
}

static double *random_matrix(const struct grid *grid, uint64_t seed, int n, int columns, int *desc) {
    double *a = distributed_zeros(grid, n, columns, desc);
    int rows = local_rows(grid, n);
    for (int j = 0; j < local_columns(grid, columns); j++) {
        for (int i = 0; i < rows; i++)
            a[i + (size_t)j * (size_t)rows] = random_at(seed, global_row(grid, i), global_column(grid, j));
    }
    return a;
}

/* The Frobenius norm. */
static double norm(const double *a, int n, int columns, const int *desc) {
    return pdlange_("Frobenius", &n, &columns, a, &one, &one, desc, NULL, 1);
}

/* y = alpha A x + beta y */
static void multiply_vector(int n, double alpha, const double *a, const int *desc, const double *x, double beta,
                            double *y, const int *desc_v) {
    pdgemv_("No", &n, &n, &alpha, a, &one, &one, desc, x, &one, &one, desc_v, &one, &beta, y, &one, &one, desc_v,
            &one);
}

int main(int argc, char **argv) {
    struct options options;
    struct grid grid;
    start(argc, argv, 500, &options, &grid);
    if (options.file != NULL) wrong("gemm takes no FILE");
    int n = options.generate, desc[DLEN], desc_v[DLEN];
    double *a = random_matrix(&grid, 1, n, n, desc), *b = random_matrix(&grid, 2, n, n, desc);
    double *c = distributed_zeros(&grid, n, n, desc), shortest = 0;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        Cblacs_barrier(grid.context, "All");
        double began = Cdwalltime00();
        pdgemm_("No", "No", &n, &n, &n, &plus_one, a, &one, &one, desc, b, &one, &one, desc, &none, c, &one, &one,
                desc);
        Cblacs_barrier(grid.context, "All");
        double seconds = Cdwalltime00() - began;
        if (repeat == 0 || seconds < shortest) shortest = seconds;
    }

    double *v = random_matrix(&grid, 3, n, 1, desc_v), *bv = distributed_zeros(&grid, n, 1, desc_v);
    double *r = distributed_zeros(&grid, n, 1, desc_v);
    multiply_vector(n, plus_one, b, desc, v, none, bv, desc_v);
    multiply_vector(n, plus_one, a, desc, bv, none, r, desc_v);
    multiply_vector(n, plus_one, c, desc, v, minus_one, r, desc_v);
    double norms = norm(a, n, n, desc) * norm(b, n, n, desc) * norm(v, n, 1, desc_v);
    double residual = norm(r, n, 1, desc_v) / (norms * n * DBL_EPSILON);
    if (grid.myrow == 0 && grid.mycol == 0) {
        printf("n %d on %d x %d: %.2f GFlop/s, shortest of %d %.4f s, residual %.1e (below 10 is right)\n", n,
               grid.nprow, grid.npcol, 2.0 * n * n * n / shortest * 1e-9, REPEATS, shortest, residual);
    }
    double *matrices[] = {a, b, c, v, bv, r};
    for (int i = 0; i < 6; i++) free(matrices[i]);
    return end(&grid, residual < 10);
}
