/* All eigenvalues and eigenvectors of a symmetric matrix, by divide and conquer (pdsyevd).
 *
 *     tasuki run -n 4 --blacs ./eigen [FILE | --generate N] [--grid P Q]
 *
 * The matrix is read from a Matrix Market file, or is the Laplacian on N x N points (10 x 10 by default).
 */
#include "scalapack.h"
#include "start.h"
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <tasuki_blacs.h>

static const int one = 1;
static const double plus_one = 1.0, minus_one = -1.0, none = 0.0;

/* The eigenvalues w, on all processes, and the eigenvectors z, which are distributed. Returns pdsyevd's info. If n is
 * small, pdsyevd asks for less work space than pdormtr needs, to which it gives all but 4 n values. */
static int eigenvectors(const struct grid *grid, int n, double *a, const int *desc, double *w, double *z) {
    int query = -1, iwork_size, info;
    double work_size;
    pdsyevd_("Vectors", "Lower", &n, a, &one, &one, desc, w, z, &one, &one, desc, &work_size, &query, &iwork_size,
             &query, &info, 1, 1);
    int of_pdormtr = (local_rows(grid, n) + local_columns(grid, n) + 2 * BLOCK) * BLOCK;
    int lwork = work_size > 4 * n + of_pdormtr ? (int)work_size : 4 * n + of_pdormtr;
    double *work = zeros((size_t)lwork, sizeof *work);
    int *iwork = zeros((size_t)iwork_size, sizeof *iwork);
    pdsyevd_("Vectors", "Lower", &n, a, &one, &one, desc, w, z, &one, &one, desc, work, &lwork, iwork, &iwork_size,
             &info, 1, 1);
    free(work);
    free(iwork);
    return info;
}

/* The Frobenius norm. */
static double norm(int n, const double *a, const int *desc) {
    return pdlange_("Frobenius", &n, &n, a, &one, &one, desc, NULL, 1);
}

int main(int argc, char **argv) {
    struct options options;
    struct grid grid;
    start(argc, argv, 10, &options, &grid);
    struct entries matrix = load(&options, &grid, 0.0);
    if (!matrix.symmetric) wrong("eigen takes a symmetric matrix");
    int n = matrix.rows, desc[DLEN];
    double *a = distribute(&grid, &matrix, desc), *z = distributed_zeros(&grid, n, n, desc);
    double *r = distributed_zeros(&grid, n, n, desc), *w = zeros((size_t)n, sizeof *w);

    double began = Cdwalltime00();
    int info = eigenvectors(&grid, n, a, desc, w, z);
    double seconds = Cdwalltime00() - began;

    /* A Z - Z W; pdsyevd has overwritten A. */
    free(a);
    a = distribute(&grid, &matrix, desc);
    int rows = local_rows(&grid, n), columns = local_columns(&grid, n), lld = rows > 1 ? rows : 1;
    for (int j = 0; j < columns; j++) {
        double *r_j = r + (size_t)j * (size_t)lld, *z_j = z + (size_t)j * (size_t)lld;
        for (int i = 0; i < rows; i++) r_j[i] = z_j[i] * w[global_column(&grid, j) - 1];
    }
    pdsymm_("Left", "Lower", &n, &n, &plus_one, a, &one, &one, desc, z, &one, &one, desc, &minus_one, r, &one, &one,
            desc);
    double residual = norm(n, r, desc) / (norm(n, a, desc) * n * DBL_EPSILON);
    /* Z' Z - I */
    pdlaset_("All", &n, &n, &none, &plus_one, r, &one, &one, desc, 1);
    pdgemm_("Transpose", "No", &n, &n, &n, &plus_one, z, &one, &one, desc, z, &one, &one, desc, &minus_one, r, &one,
            &one, desc);
    double orthogonality = norm(n, r, desc) / (n * DBL_EPSILON);

    int right = info == 0 && residual < 10 && orthogonality < 10; /* not if one is a NaN */
    if (grid.myrow == 0 && grid.mycol == 0) {
        if (info != 0) printf("pdsyevd: info %d\n", info);
        printf("n %d on %d x %d: %.4f s, eigenvalues %.4f to %.4f, residual %.1e, orthogonality %.1e"
               " (below 10 is right)\n",
               n, grid.nprow, grid.npcol, seconds, w[0], w[n - 1], residual, orthogonality);
    }
    free(a);
    free(z);
    free(r);
    free(w);
    entries_free(&matrix);
    return end(&grid, right);
}
