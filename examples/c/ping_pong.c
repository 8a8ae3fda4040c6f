/* The measurement of the FMPL paper: a message goes to and fro between ranks 0 and 1. Prints time one way and bandwidth.
 *
 *     tasuki run -n 2 --bind 0,1 ./ping_pong
 *
 * Source: Tatebe and others, Design and Implementation of FMPL, section 5.
 */
#include <fmpl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SLOT 0
#define LONGEST (1 << 22)

static double now_us(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void must(int code) {
    if (code == FMPL_SUCCESS) return;
    fprintf(stderr, "%s\n", tasuki_error_string(code));
    exit(1);
}

/* Sends or receives so many messages each way. */
static void play(int rank, char *buffer, size_t size, int rounds) {
    int peer = 1 - rank;
    for (int round = 0; round < rounds; round++) {
        if (rank == 0) must(fmpl_send(buffer, size, peer, SLOT, FMPL_COMM_WORLD));
        must(fmpl_recv(buffer, size, peer, SLOT, FMPL_COMM_WORLD));
        if (rank == 1) must(fmpl_send(buffer, size, peer, SLOT, FMPL_COMM_WORLD));
    }
}

int main(void) {
    int rank, size;
    must(fmpl_init(NULL, NULL, 4));
    must(fmpl_comm_rank(FMPL_COMM_WORLD, &rank));
    must(fmpl_comm_size(FMPL_COMM_WORLD, &size));
    char *buffer = calloc(LONGEST, 1);
    if (!buffer) return 1;
    if (rank == 0) printf("%10s %12s %12s\n", "bytes", "us one way", "MB/s");
    for (size_t bytes = 8; size > 1 && rank < 2 && bytes <= LONGEST; bytes *= 8) {
        int rounds = bytes < 10000 ? 10000 : bytes < 1000000 ? 500 : 50;
        play(rank, buffer, bytes, 10);
        double begin = now_us();
        play(rank, buffer, bytes, rounds);
        double us = (now_us() - begin) / rounds / 2;
        if (rank == 0) printf("%10zu %12.3f %12.1f\n", bytes, us, (double)bytes / us);
    }
    if (rank == 0 && size < 2) printf("with one rank there is nobody to send to\n");
    free(buffer);
    must(fmpl_finalize());
    return 0;
}
