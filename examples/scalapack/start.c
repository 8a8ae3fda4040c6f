#include "start.h"
#include "scalapack.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tasuki_blacs.h>

static const int zero = 0;

_Noreturn void wrong(const char *text) {
    int number, ranks;
    Cblacs_pinfo(&number, &ranks);
    if (number == 0) fprintf(stderr, "%s\nusage: PROGRAM [FILE | --generate N] [--grid P Q]\n", text);
    Cblacs_exit(0);
    exit(2);
}

/* A number of the arguments, small enough that five times its square is an int. */
static int number_of(const char *text) {
    char *rest = "";
    long number = text == NULL ? 0 : strtol(text, &rest, 10);
    if (number < 1 || number > 20000 || *rest != '\0') wrong("N, P and Q are numbers from 1 to 20000");
    return (int)number;
}

void start(int argc, char **argv, int generate, struct options *options, struct grid *grid) {
    int number, ranks;
    Cblacs_pinfo(&number, &ranks);
    *options = (struct options){.generate = generate};
    int nprow = 1;
    for (int rows = 1; rows * rows <= ranks; rows++) {
        if (ranks % rows == 0) nprow = rows;
    }
    int npcol = ranks / nprow, generated = 0;
    for (int at = 1; at < argc; at++) {
        if (strcmp(argv[at], "--generate") == 0) {
            options->generate = number_of(argv[++at]);
            generated = 1;
        } else if (strcmp(argv[at], "--grid") == 0) {
            nprow = number_of(argv[++at]);
            npcol = number_of(argv[++at]);
        } else if (argv[at][0] == '-' || options->file != NULL) {
            wrong("there is an argument too many, or an unknown option");
        } else {
            options->file = argv[at];
        }
    }
    if (options->file != NULL && generated) wrong("a FILE and --generate exclude each other");
    if (nprow * npcol > ranks) wrong("the grid has more places than there are processes");

    Cblacs_get(-1, 0, &grid->context);
    Cblacs_gridinit(&grid->context, "Row", nprow, npcol);
    Cblacs_gridinfo(grid->context, &grid->nprow, &grid->npcol, &grid->myrow, &grid->mycol);
    if (grid->myrow < 0) { /* more processes than places */
        Cblacs_exit(0);
        exit(0);
    }
}

int end(const struct grid *grid, int right) {
    fflush(stdout); /* a process that ends with 1 ends the others, too */
    Cblacs_gridexit(grid->context);
    Cblacs_exit(0);
    return right ? 0 : 1;
}

struct entries load(const struct options *options, const struct grid *grid, double wind) {
    int first = grid->myrow == 0 && grid->mycol == 0;
    struct entries matrix = {0};
    const char *why = NULL;
    if (first && options->file != NULL) {
        why = matrix_market_read(options->file, &matrix);
        if (why == NULL && matrix.rows != matrix.columns) why = "the matrix is not square";
    } else if (first) {
        matrix = convection_diffusion(options->generate, wind);
    }
    int sizes[] = {why == NULL, matrix.rows, matrix.symmetric, matrix.count};
    if (first) Cigebs2d(grid->context, "All", " ", 4, 1, sizes, 4);
    else Cigebr2d(grid->context, "All", " ", 4, 1, sizes, 4, 0, 0);
    if (!sizes[0]) {
        char text[300] = "";
        if (first) snprintf(text, sizeof text, "%s: %s", options->file, why);
        wrong(text);
    }
    int count = sizes[3];
    if (first) {
        Cigebs2d(grid->context, "All", " ", count, 1, matrix.row, count);
        Cigebs2d(grid->context, "All", " ", count, 1, matrix.column, count);
        Cdgebs2d(grid->context, "All", " ", count, 1, matrix.value, count);
    } else {
        matrix = (struct entries){.rows = sizes[1], .columns = sizes[1], .symmetric = sizes[2], .count = count};
        entries_allocate(&matrix, count);
        Cigebr2d(grid->context, "All", " ", count, 1, matrix.row, count, 0, 0);
        Cigebr2d(grid->context, "All", " ", count, 1, matrix.column, count, 0, 0);
        Cdgebr2d(grid->context, "All", " ", count, 1, matrix.value, count, 0, 0);
    }
    return matrix;
}

double *distributed_zeros(const struct grid *grid, int rows, int columns, int *desc) {
    int block = BLOCK, info, lld = local_rows(grid, rows) > 1 ? local_rows(grid, rows) : 1;
    descinit_(desc, &rows, &columns, &block, &block, &zero, &zero, &grid->context, &lld, &info);
    return zeros((size_t)lld * (size_t)local_columns(grid, columns), sizeof(double));
}

double *distribute(const struct grid *grid, const struct entries *matrix, int *desc) {
    double *a = distributed_zeros(grid, matrix->rows, matrix->columns, desc);
    for (int k = 0; k < matrix->count; k++) /* pdelset changes an element on the process that has it */
        pdelset_(a, &matrix->row[k], &matrix->column[k], desc, &matrix->value[k]);
    return a;
}

int local_rows(const struct grid *grid, int rows) {
    int block = BLOCK;
    return numroc_(&rows, &block, &grid->myrow, &zero, &grid->nprow);
}

int local_columns(const struct grid *grid, int columns) {
    int block = BLOCK;
    return numroc_(&columns, &block, &grid->mycol, &zero, &grid->npcol);
}

int global_row(const struct grid *grid, int local) {
    int block = BLOCK, from_one = local + 1;
    return indxl2g_(&from_one, &block, &grid->myrow, &zero, &grid->nprow);
}

int global_column(const struct grid *grid, int local) {
    int block = BLOCK, from_one = local + 1;
    return indxl2g_(&from_one, &block, &grid->mycol, &zero, &grid->npcol);
}
