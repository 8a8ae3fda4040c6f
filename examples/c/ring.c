/* The sum of all ranks, by values that go round a ring: each rank adds what comes, and passes it on.
 *
 *     tasuki run -n 4 ./ring
 */
#include <fmpl.h>
#include <stdio.h>
#include <stdlib.h>

#define TRY(call) \
    do { \
        int code_of_call = (call); \
        if (code_of_call != FMPL_SUCCESS) { \
            fprintf(stderr, "%s\n", tasuki_error_string(code_of_call)); \
            exit(1); \
        } \
    } while (0)

int main(void) {
    int rank, size;
    TRY(fmpl_init(NULL, NULL, 4));
    TRY(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    TRY(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    long passed = rank, sum = rank;
    for (int step = 1; step < size; step++) {
        long came;
        TRY(fmpl_irecv(&came, sizeof came, previous, 0, FMPL_COMM_WORLD));
        TRY(fmpl_send(&passed, sizeof passed, next, 0, FMPL_COMM_WORLD));
        TRY(fmpl_irecv_wait(previous, 0, FMPL_COMM_WORLD));
        passed = came;
        sum += came;
    }
    int expected = size * (size - 1) / 2, same = rank;
    TRY(fmpl_allreduce(&same, 1, fmpl_isum, FMPL_COMM_WORLD, NULL));
    if (rank == 0) printf("the ranks add up to %ld by the ring and to %d by fmpl_allreduce\n", sum, same);
    TRY(fmpl_finalize());
    return sum == expected && same == expected ? 0 : 1;
}
