/* Each rank says who it is, in order: a token goes from rank to rank.
 *
 *     tasuki run -n 4 ./hello
 */
#include <fmpl.h>
#include <stdio.h>

int main(void) {
    int rank, size, token = 0, code = fmpl_init(NULL, NULL, 4); /* 4 slots for each pair of ranks */
    if (code != FMPL_SUCCESS) {
        fprintf(stderr, "%s\n", tasuki_error_string(code));
        return 1;
    }
    fmpl_comm_rank(FMPL_COMM_WORLD, &rank);
    fmpl_comm_size(FMPL_COMM_WORLD, &size);
    if (rank > 0) fmpl_recv(&token, sizeof token, rank - 1, 0, FMPL_COMM_WORLD);
    printf("hello from rank %d of %d\n", rank, size);
    fflush(stdout);
    if (rank + 1 < size) fmpl_send(&token, sizeof token, rank + 1, 0, FMPL_COMM_WORLD);
    return fmpl_finalize();
}
