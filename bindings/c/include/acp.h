/* ACP over Tasuki: a global address space with copies between any two ranks, atomic operations, and order handles.
 *
 * Source: Honda, Yamada, Morie, Nanri, Takami, the collective communication interface of the ACP library; the names of
 * its basic layer as in version 3 of the ACP library. Programs are linked with -ltasuki and started by
 * `tasuki run -n N ./program`, or by mpiexec.
 *
 * Here are the basic layer and, of the middle layer, memory of any rank, channels, segmented buffers, and the broadcast and
 * allgather of the paper. The data structures of the middle layer (vector, deque, list, set, map) are not here.
 *
 * A call that fails returns -1, or a null key, address or handle; tasuki_error_string(tasuki_error_code()) tells why. A
 * handle or number that names nothing, because it was freed or never returned, is such an error. Any thread may make any
 * call. The calls that say that they wait move everything on meanwhile that this rank has under way.
 */
#ifndef TASUKI_ACP_H
#define TASUKI_ACP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The code of this thread's last error, 0 if there was none; and the text of a code: that of the last error if it had that
 * code. Valid until the next error of the thread; never null. */
int tasuki_error_code(void);
const char *tasuki_error_string(int code);

/* Infrastructure. init, finalize, reset and sync are collective. */

/* Joins the job. The arguments are not used, and may be null. Returns when all ranks have joined. */
int acp_init(int *argc, char ***argv);
/* Leaves the job. Everything that was created, allocated or registered ends, whether it was freed or not. A program that
 * ends without this call leaves, too. */
int acp_finalize(void);
/* Gives this rank another number. The numbers of all ranks are 0 .. procs - 1, each once; otherwise all get an error, and
 * nothing changes. All operations are completed; everything that was created, allocated or registered ends; and the
 * starter memory is zero. */
int acp_reset(int rank);
/* Returns when all ranks have called it. Says nothing about copies under way. */
int acp_sync(void);
int acp_rank(void);
int acp_procs(void);
/* Prints the text and this thread's last error, and ends all ranks. */
void acp_abort(const char *text);

/* Memory. */

/* An address of any byte of any rank; adding an offset inside one registration gives another. */
typedef uint64_t acp_ga_t;
/* A registration. */
typedef uint64_t acp_atkey_t;
#define ACP_GA_NULL UINT64_C(0)
#define ACP_ATKEY_NULL UINT64_C(0)

/* Bytes of starter memory of each rank: zero at first, and reachable without any registration. */
#define ACP_STARTER_BYTES 65536
acp_ga_t acp_query_starter_ga(int rank);
/* Makes memory of this rank accessible to all, until it is unregistered; the same memory any number of times. The color
 * chooses a path of the network: 0 .. acp_colors() - 1. An access that begins after acp_unregister_memory fails; the call
 * waits for those in progress. */
acp_atkey_t acp_register_memory(void *addr, size_t size, int color);
int acp_unregister_memory(acp_atkey_t key);
/* The address of a byte of a registration. */
acp_ga_t acp_query_ga(acp_atkey_t key, void *addr);
/* The byte of an address: null unless it is this rank's. */
void *acp_query_address(acp_ga_t ga);
/* The rank and the color of an address; -1 for the null address. */
int acp_query_rank(acp_ga_t ga);
int acp_query_color(acp_ga_t ga);
int acp_colors(void);

/* Accesses. Each returns a handle at once. */

typedef uint64_t acp_handle_t;
/* As an order: start at once. */
#define ACP_HANDLE_NULL UINT64_C(0)
/* As an order: start after all accesses of this rank so far. In a wait: all of them. */
#define ACP_HANDLE_ALL UINT64_C(0xffffffffffffffff)
/* As an order: like ALL, but it may start earlier if it stays behind them on the same path. */
#define ACP_HANDLE_CONT UINT64_C(0xfffffffffffffffe)
/* Any other handle as an order: start after it and all accesses of this rank before it. If one of these has failed, the
 * access does not start, and fails. */

/* Copies size bytes. Both ends may be on other ranks. The ends may not overlap. */
acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t size, acp_handle_t order);
/* Change the word at src, aligned to its 4 or 8 bytes, and store what it was at dst, which is memory of this rank. Unsigned,
 * wrapping. */
acp_handle_t acp_cas4(acp_ga_t dst, acp_ga_t src, uint32_t oldval, uint32_t newval, acp_handle_t order);
acp_handle_t acp_cas8(acp_ga_t dst, acp_ga_t src, uint64_t oldval, uint64_t newval, acp_handle_t order);
acp_handle_t acp_swap4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_swap8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_add4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_add8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_xor4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_xor8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_or4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_or8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_and4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_and8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);

/* Waits until an access and all accesses of this rank before it have ended: their bytes are visible at their destinations.
 * Null, ended and never issued handles return at once. Fails if one of them has failed that no call has reported. (The
 * ACP library returns nothing here.)
 *
 * With the handle of a start of a collective, waits until that start has ended on this rank. With ACP_HANDLE_ALL, waits for
 * all accesses and all starts of collectives. */
int acp_complete(acp_handle_t handle);
/* 1 if an access, or one before it, is under way, or the start of a collective is; otherwise 0. */
int acp_inquire(acp_handle_t handle);

/* Memory of any rank. */

/* Allocates size bytes, at least 1, on a rank. They are zero, and aligned to 4096 bytes. Any rank may access them by their
 * address, and free them; acp_query_address gives their owner a pointer. The owner itself allocates: the call waits until
 * the owner is in a call that waits, such as acp_sync, or until its helper serves it (tasuki run --helper rank). A small
 * allocation takes a page: allocate many small objects as one array.
 *
 * For memory of other ranks, acp_init has to be called before the init of any other interface of Tasuki. */
acp_ga_t acp_malloc(size_t size, int rank);
/* Frees memory that acp_malloc has returned, on any rank. Accesses that begin afterwards fail. Waits as acp_malloc does. (The
 * ACP library returns nothing here.) */
int acp_free(acp_ga_t ga);

/* Channels: messages in order from one rank to another. */

typedef struct acp_channel *acp_ch_t;
/* What was begun on a channel. */
typedef struct acp_channel_request *acp_request_t;
#define ACP_CH_NULL ((acp_ch_t)0)
#define ACP_REQUEST_NULL ((acp_request_t)0)

/* Creates this rank's end of a channel from one rank to another; this rank is one of the two. Does not wait for the other
 * end. A pair may have any number of channels, in both directions; both ranks create them in the same order. Error: 64
 * channels of the pair, in that direction, were created whose first messages have not passed. A channel takes 64 KiB at the
 * receiver. */
acp_ch_t acp_create_ch(int sender, int receiver);
/* Begins to send size bytes, 0 or more. The buffer may not be changed before the request was waited for. The sends of a
 * channel are carried out one after the other. A send has ended when its bytes have left the buffer: up to 64 KiB of
 * messages leave before they are received. */
acp_request_t acp_nbsend_ch(acp_ch_t ch, void *buf, size_t size);
/* Begins to receive the next message, into a buffer of size bytes that may not be used before the request was waited for.
 * Of a longer message, the rest is discarded; after a shorter one, the rest of the buffer is as before. */
acp_request_t acp_nbrecv_ch(acp_ch_t ch, void *buf, size_t size);
/* Waits for a send, a receive or a free. Returns the bytes that are in the buffer; 0 after a free; (size_t)-1 if it failed.
 * Each request is waited for once. */
size_t acp_wait_ch(acp_request_t request);
/* Waits for count requests, and stores what acp_wait_ch returns for each, unless sizes is null. Returns -1 if one has failed,
 * after it has waited for all. */
int acp_waitall_ch(acp_request_t *requests, int count, size_t *sizes);
/* Begins to free this rank's end, after all that was begun on it. The sender's messages are still received; a receive that
 * finds no more of them fails. Messages that are not received are lost; a send that finds no receiver any more fails. */
acp_request_t acp_nbfree_ch(acp_ch_t ch);
/* Frees this rank's end, and waits for that. Does not wait for the other end. */
int acp_free_ch(acp_ch_t ch);

/* Segmented buffers: two rings of segments, in memory of two ranks, of which the source's are copied to the destination's.
 *
 * Three numbers, which only grow, tell how far they are; segment n is at place n % segnum of the ring.
 *   head  the segments before it were returned by the destination
 *   sent  the segments before it have been copied
 *   tail  the segments before it were acknowledged by the source; at the destination: and have come
 *
 * The names are those of earlier versions of the ACP library, whose calls return 1 when they fail. */

typedef struct acp_segbuf *acp_segbuf_t;
#define ACP_SEGBUF_NULL ((acp_segbuf_t)0)

/* Creates an end over segnum segments of segsize bytes at buf, which stays in place until the end is freed. */
acp_segbuf_t acp_create_src_segbuf(int dst_rank, void *buf, size_t segsize, size_t segnum);
acp_segbuf_t acp_create_dst_segbuf(int src_rank, void *buf, size_t segsize, size_t segnum);
/* Connects an end with the one of the other rank that has as many segments of that size. Waits for the other rank. Several
 * segmented buffers of a pair are connected in the same order by both. */
int acp_connect_segbuf(acp_segbuf_t segbuf);
/* 0 if it is connected, 1 if it is not, or not any more. */
int acp_isconnected_segbuf(acp_segbuf_t segbuf);
/* At the source: begins to copy segment tail to the destination, and increments tail. Does not wait. The segment may be
 * changed when it was copied: sent is above its number then. Error: tail is segnum above head, so no segment is ready. */
int acp_ack_segbuf(acp_segbuf_t segbuf);
/* At the destination: returns segment head to the source, and increments head. Error: it has not come. */
int acp_ready_segbuf(acp_segbuf_t segbuf);
/* 0 if tail is less than segnum above head: a segment may be acknowledged. 1 if it may not. */
int acp_isready_segbuf(acp_segbuf_t segbuf);
/* 0 if a segment has come that was not returned: at the destination, segment head may be read. 1 if none has. */
int acp_isacked_segbuf(acp_segbuf_t segbuf);
int64_t acp_query_segbuf_head(acp_segbuf_t segbuf);
int64_t acp_query_segbuf_tail(acp_segbuf_t segbuf);
/* At the source only. */
int64_t acp_query_segbuf_sent(acp_segbuf_t segbuf);
/* Disconnects an end for good. Waits until all acknowledged segments are copied, and until the other end disconnects. */
int acp_disconnect_segbuf(acp_segbuf_t segbuf);
/* Frees an end that is not connected, or not any more. */
int acp_free_segbuf(acp_segbuf_t segbuf);

/* Collectives of the paper: created once, started ("sent") many times, freed.
 *
 * group has np_group ranks, each once, this one among them; group[0] is the first member. Every member makes every call, with
 * equal groups and sizes; create compares these, send does not. Create waits for all members, and all make their creates in
 * one order. Send does not wait: it returns a handle for acp_complete and acp_inquire, not for the order of an access. Free
 * waits for this rank's starts, and for members that have not begun to free yet.
 *
 * After a send, its part of the array may not be used until the start has ended on this rank: then the bytes of the others
 * are there, and nobody needs this rank's any more. Starts of a collective may follow each other at once, before earlier ones
 * have ended: they are carried out one after the other. No start writes to a member that has not called send for it.
 *
 * Direct: between the arrays themselves. create names the array, which stays in place until the collective is freed; a send
 * chooses a part of it. The copies go on without a call of any member.
 * Buffered: through a buffer of buffersize bytes at each member, so that each send may name another array, of any size. It
 * passes piece by piece; the pieces after the first begin when members make calls that wait. */

typedef struct acp_bcast *acp_bcast_t;
typedef struct acp_allgather *acp_allgather_t;
#define ACP_BCAST_NULL ((acp_bcast_t)0)
#define ACP_ALLGATHER_NULL ((acp_allgather_t)0)

/* Broadcast: the size bytes of group[0] come to the same place of all other arrays. group[0] executes all copies, along a
 * binary tree. Its queue takes about 900 bytes for each member. */
acp_bcast_t acp_create_bcast_direct(const int *group, int np_group, void *array, size_t arraysize);
/* The bytes from offset on: offset + size is at most arraysize. */
acp_handle_t acp_send_bcast_direct(acp_bcast_t bcast, size_t offset, size_t size);
int acp_free_bcast_direct(acp_bcast_t bcast);
acp_bcast_t acp_create_bcast_buffered(const int *group, int np_group, size_t buffersize);
acp_handle_t acp_send_bcast_buffered(acp_bcast_t bcast, void *array, size_t size);
int acp_free_bcast_buffered(acp_bcast_t bcast);

/* Allgather: the array has np_group blocks of size bytes each. The block of member r, number r, comes to all other arrays;
 * member r has put its own block in place before the send. Each member executes the copies of its own block. */
acp_allgather_t acp_create_allgather_direct(const int *group, int np_group, void *array, size_t arraysize);
/* The blocks begin at offset: offset + np_group * size is at most arraysize. */
acp_handle_t acp_send_allgather_direct(acp_allgather_t allgather, size_t offset, size_t size);
int acp_free_allgather_direct(acp_allgather_t allgather);
/* buffersize is at least np_group: a piece is buffersize / np_group bytes of each block. */
acp_allgather_t acp_create_allgather_buffered(const int *group, int np_group, size_t buffersize);
acp_handle_t acp_send_allgather_buffered(acp_allgather_t allgather, void *array, size_t size);
int acp_free_allgather_buffered(acp_allgather_t allgather);

#ifdef __cplusplus
}
#endif
#endif
