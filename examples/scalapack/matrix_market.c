#include "matrix_market.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The format has lines of up to 1024 characters. */
enum { LINE = 1024 + 2 };

void *zeros(size_t count, size_t size) {
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL) {
        fprintf(stderr, "no memory for %zu values\n", count);
        exit(1);
    }
    return memory;
}

void entries_allocate(struct entries *matrix, int count) {
    matrix->row = zeros((size_t)count, sizeof *matrix->row);
    matrix->column = zeros((size_t)count, sizeof *matrix->column);
    matrix->value = zeros((size_t)count, sizeof *matrix->value);
}

void entries_free(struct entries *matrix) {
    free(matrix->row);
    free(matrix->column);
    free(matrix->value);
}

static void add(struct entries *matrix, int row, int column, double value) {
    matrix->row[matrix->count] = row;
    matrix->column[matrix->count] = column;
    matrix->value[matrix->count++] = value;
}

/* Gets the next line that is neither empty nor a comment. */
static int next_line(FILE *file, char *line) {
    while (fgets(line, LINE, file) != NULL) {
        if (line[0] != '%' && strspn(line, " \t\r\n") < strlen(line)) return 1;
    }
    return 0;
}

static const char *read_from(FILE *file, struct entries *matrix) {
    static char why[100];
    char line[LINE] = "", format[12], field[12], symmetry[12];
    if (fgets(line, LINE, file) == NULL) return "the file is empty";
    for (char *letter = line; *letter != '\0'; letter++) *letter = (char)tolower((unsigned char)*letter);
    if (sscanf(line, "%%%%matrixmarket matrix %11s %11s %11s", format, field, symmetry) != 3)
        return "its first line is not that of a Matrix Market file";
    int coordinate = strcmp(format, "coordinate") == 0;
    matrix->symmetric = strcmp(symmetry, "symmetric") == 0;
    int array = strcmp(format, "array") == 0, general = strcmp(symmetry, "general") == 0;
    int real = strcmp(field, "real") == 0 || strcmp(field, "integer") == 0;
    if (!(coordinate || array) || !real || !(matrix->symmetric || general))
        return "only real matrices, general or symmetric, can be read";

    long rows = 0, columns = 0, stored = 0;
    if (!next_line(file, line) ||
        sscanf(line, "%ld %ld %ld", &rows, &columns, &stored) != (coordinate ? 3 : 2) || rows < 1 || rows > INT_MAX ||
        columns < 1 || columns > INT_MAX || (matrix->symmetric && rows != columns))
        return "the line of its size is wrong";
    if (!coordinate) stored = matrix->symmetric ? rows * (rows + 1) / 2 : rows * columns;
    if (stored < 0 || stored > INT_MAX / 2) return "it has too many entries";
    matrix->rows = (int)rows;
    matrix->columns = (int)columns;
    entries_allocate(matrix, (int)stored * (matrix->symmetric ? 2 : 1));

    int row = 0, column = 1;
    for (long number = 1; number <= stored; number++) {
        double value;
        int found;
        if (coordinate) {
            found = fscanf(file, "%d %d %lf", &row, &column, &value) == 3;
        } else { /* column by column, from the diagonal on if symmetric */
            if (++row > rows) {
                column++;
                row = matrix->symmetric ? column : 1;
            }
            found = fscanf(file, "%lf", &value) == 1;
        }
        if (!found || row < 1 || row > rows || column < 1 || column > columns) {
            snprintf(why, sizeof why, "entry %ld of %ld is missing or wrong", number, stored);
            return why;
        }
        add(matrix, row, column, value);
        if (matrix->symmetric && row != column) add(matrix, column, row, value);
    }
    return NULL;
}

const char *matrix_market_read(const char *path, struct entries *matrix) {
    *matrix = (struct entries){0};
    FILE *file = fopen(path, "r");
    if (file == NULL) return strerror(errno);
    const char *why = read_from(file, matrix);
    fclose(file);
    return why;
}

struct entries convection_diffusion(int side, double wind) {
    struct entries matrix = {.rows = side * side, .columns = side * side, .symmetric = wind == 0.0};
    entries_allocate(&matrix, 5 * side * side);
    for (int y = 0; y < side; y++) {
        for (int x = 0; x < side; x++) {
            int here = 1 + x + side * y;
            add(&matrix, here, here, 4.0);
            if (x > 0) add(&matrix, here, here - 1, -1.0 - wind);
            if (x + 1 < side) add(&matrix, here, here + 1, -1.0 + wind);
            if (y > 0) add(&matrix, here, here - side, -1.0 - wind / 2);
            if (y + 1 < side) add(&matrix, here, here + side, -1.0 + wind / 2);
        }
    }
    return matrix;
}
