/* NICAM over Tasuki: transfers that go on while the ranks compute, and say so where they arrive.
 *
 * Source: Matsuda, Tanaka, Kubota, Sato, Network Interface Active Messages for SMP clusters. Programs are linked with
 * -ltasuki and started by `tasuki run -n N ./program`, or by mpiexec. A node of the paper is a rank here.
 *
 * Each call returns NICAM_SUCCESS or a code; tasuki_error_string tells what happened. Any thread of a rank may make any
 * call, several at once. A refused call has changed nothing. A transfer that fails later, because its memory is no
 * longer locked or a rank has died, is reported by the next call of the rank that issued it.
 *
 * Addresses: of memory on another node one gives either the caller's own address of memory of nicam_alloc, which has a
 * counterpart on each node, or the address that the other node gave to nicam_lock_memory. Everything else is
 * NICAM_ERR_MISUSE, and nothing is written.
 *
 * Transfers move on while any rank makes a call of this header that waits or transfers, or with a helper
 * (`tasuki run --helper node`). A thread that waits for a flag calls nicam_wait; a thread that only reads a flag in a loop
 * leaves all that to the others.
 */
#ifndef TASUKI_NICAM_H
#define TASUKI_NICAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NICAM_SUCCESS 0
/* A wrong argument, or a call at a wrong time. */
#define NICAM_ERR_MISUSE 1
/* The two sides of a copy by key have different sizes. */
#define NICAM_ERR_DISAGREEMENT 2
/* Another rank has died or left. */
#define NICAM_ERR_PEER 3
/* The time limit of the job's calls (TASUKI_CALL_TIMEOUT) is over. */
#define NICAM_ERR_TIMEOUT 4
/* Too many copies by key wait for their other side, or too much memory is locked. */
#define NICAM_ERR_FULL 5
#define NICAM_ERR_NO_MEMORY 6
#define NICAM_ERR_PROGRAM 7
#define NICAM_ERR_SYSTEM 8
#define NICAM_ERR_BUG 9
/* nicam_init was not called, or nicam_finalize was. */
#define NICAM_ERR_INIT 10

/* A flag. Set all of it to 0 before its first use; it must be 8-byte aligned. Only value is for programs: read it as an
 * atomic word, or wait for it with nicam_wait. When it has its new value, what the transfer wrote is visible. */
typedef struct {
    volatile uint64_t value;
    uint64_t reserved[3];
} nicam_flag;

/* What a code means: the text of this thread's last error if it had that code. Valid until the next error of the thread;
 * never null. */
const char *tasuki_error_string(int code);

/* Joins the job. Collective. */
int nicam_init(void);
/* Leaves the job. A program that ends without this call leaves, too. */
int nicam_finalize(void);
/* The number of this node, from 0 on, and the number of nodes. */
int nicam_self(int *node);
int nicam_nodes(int *nodes);

/* Allocates size bytes, all 0, at a place that corresponds on all nodes; aligned to 64 bytes. Collective: all nodes make
 * the same call in the same order. nicam_free is collective, too; nobody may access the memory any more. */
int nicam_alloc(void **memory, size_t size);
int nicam_free(void *memory);
/* Makes memory of this node accessible to the others, under its address here. Up to 64 areas. Not needed for memory of
 * nicam_alloc. nicam_unlock_memory ends it, for the addr that was locked; no transfer may use the memory then. */
int nicam_lock_memory(void *addr, size_t range);
int nicam_unlock_memory(void *addr);

/* Copies size bytes from a node to a node; the caller may be any node. Returns at once: nicam_sync tells when it is done.
 * Up to 64 transfers of a node are in flight; one more waits for the oldest. */
int nicam_bcopy(int src_node, const void *src_addr, int dst_node, void *dst_addr, size_t size);
/* Resets a flag of this node to 0, and sets it to 1 when all transfers that this node has issued so far are done: visible
 * at their destinations. The flag may be anywhere in the memory of the program, until it is set. */
int nicam_sync(nicam_flag *flag_addr);
/* Sets a flag of a node, after all earlier copies of this node to that node. */
int nicam_write1(int dst_node, nicam_flag *flag_addr, uint64_t val);
/* Copies, and then sets a flag of the destination. */
int nicam_bcopy_notify(int src_node, const void *src_addr, int dst_node, void *dst_addr, size_t size,
                       nicam_flag *flag_addr, uint64_t onoff);
/* Copies, and then counts the arrival at the destination, which has one counter. */
int nicam_bcopy_countup(int src_node, const void *src_addr, int dst_node, void *dst_addr, size_t size);
/* Sets a flag of this node to 1 when count (1 .. 2^32 - 1) more copies were counted here than earlier nicam_set_counter
 * have taken. An error while an earlier one waits. The flag lies in memory of nicam_alloc or nicam_lock_memory. */
int nicam_set_counter(nicam_flag *flag_addr, uint64_t count);

/* Copies from a node to all nodes, the source included, and sets a flag on each. One node calls it. dst_addr and flag_addr
 * are in memory of nicam_alloc. nicam_bcast_discard: while on is not 0, this node gets no data and no flags of
 * broadcasts that are issued. */
int nicam_bcast(int src_node, const void *src_addr, void *dst_addr, size_t size, nicam_flag *flag_addr,
                uint64_t onoff);
int nicam_bcast_discard(int on);

/* Starts a barrier and returns: resets a flag of this node to 0, and sets it to 1 when all nodes have started theirs. Each
 * has its own flag, anywhere in the memory of the program; up to 128 may be under way. One call a node for each
 * barrier. It says nothing about transfers. */
int nicam_barrier(nicam_flag *flag_addr);

/* A copy whose sides meet by key; equal keys meet in the order of their calls, for each source and destination. Each side
 * gives its own memory and flag, both in memory of nicam_alloc or nicam_lock_memory; the flag is set when the copy is done.
 * Different sizes are NICAM_ERR_DISAGREEMENT on both sides: for the side that came first, in nicam_wait for its flag.
 * Up to 16 sides of a source and destination may wait. */
int nicam_bcopy_src(uint64_t key, int dst_node, const void *src_addr, size_t size, nicam_flag *flag_addr,
                    uint64_t onoff);
int nicam_bcopy_dst(uint64_t key, int src_node, void *dst_addr, size_t size, nicam_flag *flag_addr,
                    uint64_t onoff);

/* Waits until a flag of this node has a value; tells whether it has. Both move transfers on. */
int nicam_wait(const nicam_flag *flag_addr, uint64_t value);
int nicam_test(const nicam_flag *flag_addr, uint64_t value, int *is_set);

#ifdef __cplusplus
}
#endif
#endif
