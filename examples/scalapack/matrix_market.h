/* Matrices in Matrix Market format, and two that are computed.
 *
 * Source: https://math.nist.gov/MatrixMarket/formats.html
 */
#ifndef MATRIX_MARKET_H
#define MATRIX_MARKET_H

#include <stddef.h>

/* The entries of a matrix, in any order. Rows and columns are numbered from 1, as in the file and in ScaLAPACK. Entries
 * that the file of a symmetric matrix leaves out are here, too. */
struct entries {
    int rows, columns, symmetric, count;
    int *row, *column;
    double *value;
};

/* Reads a real matrix, general or symmetric, from a file of the formats coordinate or array. Returns NULL, or what is
 * wrong with the file. */
const char *matrix_market_read(const char *path, struct entries *matrix);

/* The equation -u" + wind . u' on a square of side x side points, with zeros around it: 4 on the diagonal, and up to
 * four neighbours. Without wind this is Laplace's equation, and symmetric. */
struct entries convection_diffusion(int side, double wind);

/* Makes room for that number of entries, and frees it. */
void entries_allocate(struct entries *matrix, int count);
void entries_free(struct entries *matrix);

/* Like calloc, but ends the program if there is no memory. */
void *zeros(size_t count, size_t size);

#endif
