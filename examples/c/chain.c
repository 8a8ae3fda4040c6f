/* A block visits all ranks by copies that start one after the other: rank 0 issues the whole chain, and computes while
 * others carry it on. No other rank does anything.
 *
 *     tasuki run -n 4 ./chain
 *
 * Source: Honda, Yamada, Morie, Nanri, Takami, the collective communication interface of the ACP library: an access names
 * the one after which it starts.
 */
#include <acp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 4096

int main(int argc, char **argv) {
    if (acp_init(&argc, &argv) != 0) {
        fprintf(stderr, "%s\n", tasuki_error_string(tasuki_error_code()));
        return 1;
    }
    int rank = acp_rank(), procs = acp_procs(), is_right = 1;
    unsigned char *block = acp_query_address(acp_query_starter_ga(rank));
    if (rank == 0)
        for (int i = 0; i < BYTES; i++) block[i] = (unsigned char)(i * 5);
    acp_sync();
    if (rank == 0) {
        acp_handle_t last = ACP_HANDLE_NULL;
        for (int to = 1; to < procs; to++) {
            acp_ga_t here = acp_query_starter_ga(to), before = acp_query_starter_ga(to - 1);
            last = acp_copy(here, before, BYTES, last);
            if (last == ACP_HANDLE_NULL) acp_abort("a copy was refused");
        }
        if (acp_complete(last) != 0) acp_abort("a copy has failed");
    }
    acp_sync();
    for (int i = 0; i < BYTES; i++) is_right &= block[i] == (unsigned char)(i * 5);
    printf("rank %d %s the block\n", rank, is_right ? "has" : "lacks");
    acp_finalize();
    return is_right ? 0 : 1;
}
