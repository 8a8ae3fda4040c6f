/* Work beside a barrier: each rank starts a fuzzy barrier, computes, and finds the barrier complete. Then the same with a
 * barrier that it waits for before it computes.
 *
 *     tasuki run -n 2 ./overlap
 *
 * Source: Matsuda, Tanaka, Kubota, Sato, Network Interface Active Messages for SMP clusters: the barrier moves off the
 * critical path.
 */
#include <nicam.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 2000
#define WORK 5000

static double now_us(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void must(int code) {
    if (code == NICAM_SUCCESS) return;
    fprintf(stderr, "%s\n", tasuki_error_string(code));
    exit(1);
}

static double work(double value) {
    for (int i = 0; i < WORK; i++) value = value * 0.999 + 0.001;
    return value;
}

int main(void) {
    int self, nodes;
    double value = 0, us[3];
    must(nicam_init());
    must(nicam_self(&self));
    must(nicam_nodes(&nodes));
    for (int way = 0; way < 3; way++) { /* 0: work alone; 1: a fuzzy barrier around it; 2: a barrier before it */
        nicam_flag flag = {0, {0, 0, 0}};
        must(nicam_barrier(&flag));
        must(nicam_wait(&flag, 1));
        double begin = now_us();
        for (int round = 0; round < ROUNDS; round++) {
            if (way > 0) must(nicam_barrier(&flag));
            if (way == 2) must(nicam_wait(&flag, 1));
            value = work(value);
            if (way == 1) must(nicam_wait(&flag, 1));
        }
        us[way] = (now_us() - begin) / ROUNDS;
    }
    if (self == 0) {
        printf("%d ranks, %.2f us of work (%.3f)\n", nodes, us[0], value);
        printf("  a fuzzy barrier around it adds  %6.2f us\n", us[1] - us[0]);
        printf("  a barrier before it adds        %6.2f us\n", us[2] - us[0]);
    }
    must(nicam_finalize());
    return 0;
}
