/* The routines of ScaLAPACK and PBLAS that the examples call: ScaLAPACK has no header of its own.
 *
 * A routine in Fortran takes the length of each CHARACTER argument after all others. PBLAS is in C and takes none.
 */
#ifndef SCALAPACK_H
#define SCALAPACK_H

#include <stddef.h>

/* The length of a descriptor. */
enum { DLEN = 9 };

int numroc_(const int *n, const int *nb, const int *iproc, const int *isrcproc, const int *nprocs);
int indxl2g_(const int *indxloc, const int *nb, const int *iproc, const int *isrcproc, const int *nprocs);
void descinit_(int *desc, const int *m, const int *n, const int *mb, const int *nb, const int *irsrc,
               const int *icsrc, const int *ictxt, const int *lld, int *info);
void pdelset_(double *a, const int *ia, const int *ja, const int *desca, const double *alpha);
void pdlaset_(const char *uplo, const int *m, const int *n, const double *alpha, const double *beta, double *a,
              const int *ia, const int *ja, const int *desca, size_t uplo_length);
double pdlange_(const char *norm, const int *m, const int *n, const double *a, const int *ia, const int *ja,
                const int *desca, double *work, size_t norm_length);

void pdgesv_(const int *n, const int *nrhs, double *a, const int *ia, const int *ja, const int *desca, int *ipiv,
             double *b, const int *ib, const int *jb, const int *descb, int *info);
void pdsyevd_(const char *jobz, const char *uplo, const int *n, double *a, const int *ia, const int *ja,
              const int *desca, double *w, double *z, const int *iz, const int *jz, const int *descz, double *work,
              const int *lwork, int *iwork, const int *liwork, int *info, size_t jobz_length, size_t uplo_length);

void pdgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k, const double *alpha,
             const double *a, const int *ia, const int *ja, const int *desca, const double *b, const int *ib,
             const int *jb, const int *descb, const double *beta, double *c, const int *ic, const int *jc,
             const int *descc);
void pdsymm_(const char *side, const char *uplo, const int *m, const int *n, const double *alpha, const double *a,
             const int *ia, const int *ja, const int *desca, const double *b, const int *ib, const int *jb,
             const int *descb, const double *beta, double *c, const int *ic, const int *jc, const int *descc);
void pdgemv_(const char *trans, const int *m, const int *n, const double *alpha, const double *a, const int *ia,
             const int *ja, const int *desca, const double *x, const int *ix, const int *jx, const int *descx,
             const int *incx, const double *beta, double *y, const int *iy, const int *jy, const int *descy,
             const int *incy);

#endif
