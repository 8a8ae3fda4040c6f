/* How the programs start and end: their arguments, their grid of processes, and a matrix that is distributed over it.
 *
 *     PROGRAM [FILE | --generate N] [--grid P Q]
 */
#ifndef START_H
#define START_H

#include "matrix_market.h"

/* Rows and columns of a block of a distributed matrix. */
enum { BLOCK = 32 };

struct options {
    const char *file; /* or NULL */
    int generate;     /* N */
};

/* The grid, and the place of this process in it. */
struct grid {
    int context, nprow, npcol, myrow, mycol;
};

/* Reads the arguments and makes the grid, as square as possible unless the arguments say. A process that is not in the
 * grid ends here. */
void start(int argc, char **argv, int generate, struct options *options, struct grid *grid);

/* Ends all processes with the code of wrong arguments. All call it; the first one prints the text. */
_Noreturn void wrong(const char *text);

/* Leaves the grid and the job. Returns the exit code of the program. */
int end(const struct grid *grid, int right);

/* The entries of the matrix, on all processes: the first one reads or computes it, and broadcasts it. */
struct entries load(const struct options *options, const struct grid *grid, double wind);

/* Makes a matrix of zeros, of which this process gets its blocks, and the descriptor of the matrix. */
double *distributed_zeros(const struct grid *grid, int rows, int columns, int *desc);

/* Distributes a matrix by blocks over the grid. */
double *distribute(const struct grid *grid, const struct entries *matrix, int *desc);

/* How many rows and columns of a matrix this process has. */
int local_rows(const struct grid *grid, int rows);
int local_columns(const struct grid *grid, int columns);

/* The number, from 1, of a local row or column in the whole matrix. Local ones are counted from 0. */
int global_row(const struct grid *grid, int local);
int global_column(const struct grid *grid, int local);

#endif
