/* ACP over Tasuki: a global address space with copies between any two ranks, atomic operations, and order handles.
 *
 * Source: Honda, Yamada, Morie, Nanri, Takami, the collective communication interface of the ACP library; the names of
 * its basic layer as in version 3 of the ACP library. Programs are linked with -ltasuki and started by
 * `tasuki run -n N ./program`, or by mpiexec.
 *
 * Here are the infrastructure, the memory and the accesses of the basic layer. Channels, segmented buffers, remote
 * allocation and collectives are not here yet.
 *
 * A call that fails returns -1, or a null key, address or handle; tasuki_error_string(tasuki_error_code()) tells why. Any
 * thread may make any call.
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
/* Leaves the job. Registrations end. A program that ends without this call leaves, too. */
int acp_finalize(void);
/* Gives this rank another number. The numbers of all ranks are 0 .. procs - 1, each once; otherwise all get an error, and
 * nothing changes. All operations are completed, all registrations end, and the starter memory is zero. */
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
 * ACP library returns nothing here.) */
int acp_complete(acp_handle_t handle);
/* 1 if an access, or one before it, is under way; otherwise 0. */
int acp_inquire(acp_handle_t handle);

#ifdef __cplusplus
}
#endif
#endif
