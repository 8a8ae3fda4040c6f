/* FMPL over Tasuki: messages that are matched in exclusive slots.
 *
 * Source: Tatebe and others, Design and Implementation of FMPL: A Fast Message-passing Library Based on Remote Memory
 * Operations, section 3. Programs are linked with -ltasuki and started by `tasuki run -n N ./program`, or by mpiexec.
 *
 * Each call returns FMPL_SUCCESS or a code; tasuki_error_string tells what happened. After an error of a collective call
 * its communicator has failed for all its ranks. Any thread may make any call. From Fortran, each call is
 * `call fmpl_xxx(..., ier)` with default integers, or comes from the module fmpl.
 *
 * Slots: each sender has slots 0 .. count - 1 (fmpl_init) for each receiver in each communicator. A slot serves one
 * message at a time. A second fmpl_isend or fmpl_irecv of a slot before the first was waited for is FMPL_ERR_MISUSE,
 * whatever the timing.
 */
#ifndef TASUKI_FMPL_H
#define TASUKI_FMPL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FMPL_SUCCESS 0
/* A wrong argument, or a call at a wrong time. */
#define FMPL_ERR_MISUSE 1
/* Ranks made different calls, or a message is longer than its receive. */
#define FMPL_ERR_DISAGREEMENT 2
/* Another rank has died or left. */
#define FMPL_ERR_PEER 3
/* The time limit of the job's calls (TASUKI_CALL_TIMEOUT) is over. */
#define FMPL_ERR_TIMEOUT 4
/* The send buffer is full. */
#define FMPL_ERR_FULL 5
#define FMPL_ERR_NO_MEMORY 6
#define FMPL_ERR_PROGRAM 7
#define FMPL_ERR_SYSTEM 8
#define FMPL_ERR_BUG 9
/* fmpl_init was not called, or fmpl_finalize was. */
#define FMPL_ERR_INIT 10

/* In a receive: any slot. */
#define FMPL_TAG_ANY (-1)
#define FMPL_COMM_WORLD 0
#define FMPL_COMM_NULL (-1)
/* Bytes of the send buffer that each message takes beside its own. */
#define FMPL_SENDBUF_OVERHEAD 1024

/* What a code means: the text of this thread's last error if it had that code. Valid until the next error of the thread;
 * never null. */
const char *tasuki_error_string(int code);

/* Joins the job. count: the number of slots, 1 or more, the same on all ranks. ma and fa are not used, and may be null:
 * the library has memory of its own, made at first use. Collective. */
int fmpl_init(const void *ma, const void *fa, int count);
/* Leaves the job, after the messages of the send buffer have gone. A message in it that a rank which has left never
 * received is an error. A program that ends without this call leaves, too. */
int fmpl_finalize(void);

/* Sends size bytes to rank dst of comm on slot mai. Returns when buf may be reused: the receive was posted and the bytes
 * are on their way, or they were copied into the send buffer. A message longer than its receive is
 * FMPL_ERR_DISAGREEMENT on both sides, and nothing is written. Messages of a slot arrive in order. */
int fmpl_send(const void *buf, size_t size, int dst, int mai, int comm);
/* Receives a message of at most size bytes from rank src on slot mai, or on any slot (FMPL_TAG_ANY). A shorter message
 * leaves the rest of buf unchanged. */
int fmpl_recv(void *buf, size_t size, int src, int mai, int comm);

/* Begin a send or a receive. buf may not be changed (isend) or used (irecv) until the wait for that peer, slot and
 * communicator. At most one receive of any slot for each source is under way. */
int fmpl_isend(const void *buf, size_t size, int dst, int mai, int comm);
int fmpl_irecv(void *buf, size_t size, int src, int mai, int comm);
int fmpl_isend_wait(int dst, int mai, int comm);
int fmpl_irecv_wait(int src, int mai, int comm);

/* The send buffer of this rank: a send whose receive is not posted within ipara milliseconds copies its message into it
 * and returns. size: bytes for all messages together; each takes FMPL_SENDBUF_OVERHEAD bytes beside its own. ipara 0: at
 * once; less than 0: never, which is the default. buf is not used, and may be null. Waits until the buffer is empty. A
 * send that finds no room is FMPL_ERR_FULL. */
int fmpl_sendbuf_set(void *buf, size_t size, int ipara);
/* Sends what is in the send buffer and has a receive now. nsend: how many messages went; nspool: how many remain. */
int fmpl_sendbuf_check(int *nsend, int *nspool);

/* Messages whose receiver does not name the source. They never meet fmpl_recv. A send returns when its bytes are in the
 * receiver's queue or, if they are more than a buffer of that, when the receiver has fetched them. */
int fmpl_send_any(const void *buf, size_t size, int dst, int mai, int comm);
int fmpl_recv_any(void *buf, size_t size, int mai, int comm);

/* Makes a communicator of the ranks whose key is not 0, in their order. All ranks call it; the others get
 * FMPL_COMM_NULL. */
int fmpl_comm_create(int *comm, int key);
int fmpl_comm_rank(int comm, int *rank);
int fmpl_comm_size(int comm, int *size);
/* Frees a communicator, and sets *comm to FMPL_COMM_NULL. */
int fmpl_comm_free(int *comm);

/* Collective: all ranks of comm make the same calls in the same order. */
int fmpl_barrier(int comm);
/* Sends size bytes of rank root to all. */
int fmpl_bcast(void *buf, size_t size, int root, int comm);

/* An operation combines *count elements: inout = inout . in. It is named by its function. */
typedef void fmpl_function(void *inout, const void *in, const int *count);
typedef fmpl_function *fmpl_op;

/* Sum, and the elements of largest and smallest absolute value (with their sign; of complex numbers |re| + |im|):
 * i int, s float, d double, c and z complex numbers of these. */
fmpl_function fmpl_isum, fmpl_ssum, fmpl_dsum, fmpl_csum, fmpl_zsum;
fmpl_function fmpl_imax, fmpl_smax, fmpl_dmax, fmpl_cmax, fmpl_zmax;
fmpl_function fmpl_imin, fmpl_smin, fmpl_dmin, fmpl_cmin, fmpl_zmin;

/* Makes an operation of a function of the program, for elements of that many bytes. Values are combined in the order of
 * the ranks, whether the operation commutes or not. The function must not wait for other ranks. */
int fmpl_op_create(fmpl_function *function, int bytes, int commutes, fmpl_op *op);

/* Combine count elements of all ranks in place. fmpl_reduce: rank root gets the result, and buf of the others does not
 * change. fmpl_allreduce: all get it, the same bits. work is not used, and may be null. */
int fmpl_reduce(void *buf, int count, fmpl_op func, int root, int comm, void *work);
int fmpl_allreduce(void *buf, int count, fmpl_op func, int comm, void *work);

#ifdef __cplusplus
}
#endif
#endif
