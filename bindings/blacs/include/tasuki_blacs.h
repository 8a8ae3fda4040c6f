/* BLACS over Tasuki, for C. The calls are those of NetLib's BLACS; link with -ltasuki_blacs, which also has FMPL's.
 *
 * Source: Dongarra and Whaley, A User's Guide to the BLACS. Matrices are stored by columns. In Fortran the names are in
 * lower case without the C, and all arguments are passed by reference.
 *
 * A send returns when its matrix may be changed, whether or not its receive was posted, for any size and number of
 * messages. A broadcast's source does not wait for the others. Combines use one order of the processes, so results are
 * repeatable and coherent for every topology. An error prints a message and ends all processes of the job.
 */
#ifndef TASUKI_BLACS_H
#define TASUKI_BLACS_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct { float re, im; } tasuki_complex;
typedef struct { double re, im; } tasuki_double_complex;

/* The number of this process and of all. Joins the job at the first call. */
void Cblacs_pinfo(int *mypnum, int *nprocs);
void Cblacs_setup(int *mypnum, int *nprocs);
/* what: 0 system handle of all processes; 1 range of message ids (two values); 2 debug level; 10 system handle of a
 * context; 11, 12 rings and branches of broadcasts; 13, 14 of combines; 15 repeatable; 16 coherent. */
void Cblacs_get(int ctxt, int what, int *val);
void Cblacs_set(int ctxt, int what, const int *val);
/* *ctxt: a system handle, then the context; -1 on a process that is not in the grid. The processes of the grid alone
 * make it. */
void Cblacs_gridinit(int *ctxt, const char *order, int nprow, int npcol);
void Cblacs_gridmap(int *ctxt, const int *usermap, int ldup, int nprow, int npcol);
/* All are -1 for a number that is no context. */
void Cblacs_gridinfo(int ctxt, int *nprow, int *npcol, int *myrow, int *mycol);
void Cblacs_gridexit(int ctxt);
/* Leaves the job when all processes have come, unless notdone is not 0. */
void Cblacs_exit(int notdone);
void Cblacs_abort(int ctxt, int errornum);
void Cblacs_freebuff(int ctxt, int wait);
/* scope: "R" row, "C" column, "A" all. */
void Cblacs_barrier(int ctxt, const char *scope);
int Cblacs_pnum(int ctxt, int prow, int pcol);
void Cblacs_pcoord(int ctxt, int nodenum, int *prow, int *pcol);
double Cdcputime00(void);
double Cdwalltime00(void);
int Cksendid(int ctxt, int rdest, int cdest);
int Ckrecvid(int ctxt, int rsrc, int csrc);
int Ckbsid(int ctxt, const char *scope);
int Ckbrid(int ctxt, const char *scope, int rsrc, int csrc);
/* A system handle stands for itself: there is no MPI communicator behind it. */
int Csys2blacs_handle(int system);
int Cblacs2sys_handle(int handle);
void Cfree_blacs_system_handle(int handle);

void Cigesd2d(int ctxt, int m, int n, const int *a, int lda, int rdest, int cdest);
void Cigerv2d(int ctxt, int m, int n, int *a, int lda, int rsrc, int csrc);
void Citrsd2d(int ctxt, const char *uplo, const char *diag, int m, int n, const int *a, int lda, int rdest,
                int cdest);
void Citrrv2d(int ctxt, const char *uplo, const char *diag, int m, int n, int *a, int lda, int rsrc, int csrc);
void Cigebs2d(int ctxt, const char *scope, const char *top, int m, int n, int *a, int lda);
void Cigebr2d(int ctxt, const char *scope, const char *top, int m, int n, int *a, int lda, int rsrc, int csrc);
void Citrbs2d(int ctxt, const char *scope, const char *top, const char *uplo, const char *diag, int m, int n,
                int *a, int lda);
void Citrbr2d(int ctxt, const char *scope, const char *top, const char *uplo, const char *diag, int m, int n,
                int *a, int lda, int rsrc, int csrc);
void Cigsum2d(int ctxt, const char *scope, const char *top, int m, int n, int *a, int lda, int rdest, int cdest);
void Cigamx2d(int ctxt, const char *scope, const char *top, int m, int n, int *a, int lda, int *ra, int *ca,
                int ldia, int rdest, int cdest);
void Cigamn2d(int ctxt, const char *scope, const char *top, int m, int n, int *a, int lda, int *ra, int *ca,
                int ldia, int rdest, int cdest);

void Csgesd2d(int ctxt, int m, int n, const float *a, int lda, int rdest, int cdest);
void Csgerv2d(int ctxt, int m, int n, float *a, int lda, int rsrc, int csrc);
void Cstrsd2d(int ctxt, const char *uplo, const char *diag, int m, int n, const float *a, int lda, int rdest,
                int cdest);
void Cstrrv2d(int ctxt, const char *uplo, const char *diag, int m, int n, float *a, int lda, int rsrc, int csrc);
void Csgebs2d(int ctxt, const char *scope, const char *top, int m, int n, float *a, int lda);
void Csgebr2d(int ctxt, const char *scope, const char *top, int m, int n, float *a, int lda, int rsrc, int csrc);
void Cstrbs2d(int ctxt, const char *scope, const char *top, const char *uplo, const char *diag, int m, int n,
                float *a, int lda);
void Cstrbr2d(int ctxt, const char *scope, const char *top, const char *uplo, const char *diag, int m, int n,
                float *a, int lda, int rsrc, int csrc);
void Csgsum2d(int ctxt, const char *scope, const char *top, int m, int n, float *a, int lda, int rdest, int cdest);
void Csgamx2d(int ctxt, const char *scope, const char *top, int m, int n, float *a, int lda, int *ra, int *ca,
                int ldia, int rdest, int cdest);
void Csgamn2d(int ctxt, const char *scope, const char *top, int m, int n, float *a, int lda, int *ra, int *ca,
                int ldia, int rdest, int cdest);

void Cdgesd2d(int ctxt, int m, int n, const double *a, int lda, int rdest, int cdest);
void Cdgerv2d(int ctxt, int m, int n, double *a, int lda, int rsrc, int csrc);
void Cdtrsd2d(int ctxt, const char *uplo, const char *diag, int m, int n, const double *a, int lda, int rdest,
                int cdest);
void Cdtrrv2d(int ctxt, const char *uplo, const char *diag, int m, int n, double *a, int lda, int rsrc, int csrc);
void Cdgebs2d(int ctxt, const char *scope, const char *top, int m, int n, double *a, int lda);
void Cdgebr2d(int ctxt, const char *scope, const char *top, int m, int n, double *a, int lda, int rsrc, int csrc);
void Cdtrbs2d(int ctxt, const char *scope, const char *top, const char *uplo, const char *diag, int m, int n,
                double *a, int lda);
void Cdtrbr2d(int ctxt, const char *scope, const char *top, const char *uplo, const char *diag, int m, int n,
                double *a, int lda, int rsrc, int csrc);
void Cdgsum2d(int ctxt, const char *scope, const char *top, int m, int n, double *a, int lda, int rdest, int cdest);
void Cdgamx2d(int ctxt, const char *scope, const char *top, int m, int n, double *a, int lda, int *ra, int *ca,
                int ldia, int rdest, int cdest);
void Cdgamn2d(int ctxt, const char *scope, const char *top, int m, int n, double *a, int lda, int *ra, int *ca,
                int ldia, int rdest, int cdest);

void Ccgesd2d(int ctxt, int m, int n, const tasuki_complex *a, int lda, int rdest, int cdest);
void Ccgerv2d(int ctxt, int m, int n, tasuki_complex *a, int lda, int rsrc, int csrc);
void Cctrsd2d(int ctxt, const char *uplo, const char *diag, int m, int n, const tasuki_complex *a, int lda, int rdest,
                int cdest);
void Cctrrv2d(int ctxt, const char *uplo, const char *diag, int m, int n, tasuki_complex *a, int lda, int rsrc, int csrc);
void Ccgebs2d(int ctxt, const char *scope, const char *top, int m, int n, tasuki_complex *a, int lda);
void Ccgebr2d(int ctxt, const char *scope, const char *top, int m, int n, tasuki_complex *a, int lda, int rsrc, int csrc);
void Cctrbs2d(int ctxt, const char *scope, const char *top, const char *uplo, const char *diag, int m, int n,
                tasuki_complex *a, int lda);
void Cctrbr2d(int ctxt, const char *scope, const char *top, const char *uplo, const char *diag, int m, int n,
                tasuki_complex *a, int lda, int rsrc, int csrc);
void Ccgsum2d(int ctxt, const char *scope, const char *top, int m, int n, tasuki_complex *a, int lda, int rdest, int cdest);
void Ccgamx2d(int ctxt, const char *scope, const char *top, int m, int n, tasuki_complex *a, int lda, int *ra, int *ca,
                int ldia, int rdest, int cdest);
void Ccgamn2d(int ctxt, const char *scope, const char *top, int m, int n, tasuki_complex *a, int lda, int *ra, int *ca,
                int ldia, int rdest, int cdest);

void Czgesd2d(int ctxt, int m, int n, const tasuki_double_complex *a, int lda, int rdest, int cdest);
void Czgerv2d(int ctxt, int m, int n, tasuki_double_complex *a, int lda, int rsrc, int csrc);
void Cztrsd2d(int ctxt, const char *uplo, const char *diag, int m, int n, const tasuki_double_complex *a, int lda, int rdest,
                int cdest);
void Cztrrv2d(int ctxt, const char *uplo, const char *diag, int m, int n, tasuki_double_complex *a, int lda, int rsrc, int csrc);
void Czgebs2d(int ctxt, const char *scope, const char *top, int m, int n, tasuki_double_complex *a, int lda);
void Czgebr2d(int ctxt, const char *scope, const char *top, int m, int n, tasuki_double_complex *a, int lda, int rsrc, int csrc);
void Cztrbs2d(int ctxt, const char *scope, const char *top, const char *uplo, const char *diag, int m, int n,
                tasuki_double_complex *a, int lda);
void Cztrbr2d(int ctxt, const char *scope, const char *top, const char *uplo, const char *diag, int m, int n,
                tasuki_double_complex *a, int lda, int rsrc, int csrc);
void Czgsum2d(int ctxt, const char *scope, const char *top, int m, int n, tasuki_double_complex *a, int lda, int rdest, int cdest);
void Czgamx2d(int ctxt, const char *scope, const char *top, int m, int n, tasuki_double_complex *a, int lda, int *ra, int *ca,
                int ldia, int rdest, int cdest);
void Czgamn2d(int ctxt, const char *scope, const char *top, int m, int n, tasuki_double_complex *a, int lda, int *ra, int *ca,
                int ldia, int rdest, int cdest);

#ifdef __cplusplus
}
#endif
#endif
