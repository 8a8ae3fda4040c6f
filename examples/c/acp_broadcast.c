/* A broadcast that its root runs: rank 0 has prepared the list of all copies, and the others only say when their array may
 * be filled. Everyone computes meanwhile.
 *
 *     tasuki run -n 4 ./acp_broadcast
 *
 * Source: Honda, Yamada, Morie, Nanri, Takami, the collective communication interface of the ACP library: create once,
 * send in every step, free.
 */
#include <acp.h>
#include <stdio.h>
#include <stdlib.h>

#define VALUES 100000
#define STEPS 10

int main(int argc, char **argv) {
    if (acp_init(&argc, &argv) != 0) {
        fprintf(stderr, "%s\n", tasuki_error_string(tasuki_error_code()));
        return 1;
    }
    int rank = acp_rank(), procs = acp_procs(), is_right = 1;
    int *group = malloc((size_t)procs * sizeof *group);
    double *values = calloc(VALUES, sizeof *values), work = 0;
    if (!group || !values) acp_abort("there is no memory");
    for (int i = 0; i < procs; i++) group[i] = i; /* the first one is the root */

    acp_bcast_t bcast = acp_create_bcast_direct(group, procs, values, VALUES * sizeof *values);
    if (bcast == ACP_BCAST_NULL) acp_abort("the broadcast was not created");
    for (int step = 1; step <= STEPS; step++) {
        if (rank == 0)
            for (int i = 0; i < VALUES; i++) values[i] = step + 0.5 * i;
        acp_handle_t sent = acp_send_bcast_direct(bcast, 0, VALUES * sizeof *values);
        for (int i = 1; i < 100000; i++) work += 1.0 / i; /* does not need the values */
        if (sent == ACP_HANDLE_NULL || acp_complete(sent) != 0) acp_abort("a broadcast has failed");
        for (int i = 0; i < VALUES; i++) is_right &= values[i] == step + 0.5 * i;
    }
    acp_free_bcast_direct(bcast);

    printf("rank %d %s the values of all %d steps (%.1f)\n", rank, is_right ? "had" : "lacked", STEPS, work);
    acp_finalize();
    free(group);
    free(values);
    return is_right ? 0 : 1;
}
