/* SPDX-License-Identifier: MIT */
/* Pairs of numbers turned by their angles, in double. */

/* n <= TB_LANES pairs (a, b); out += what they become, if `add` */
TB_INLINE void FN(turn16)(size_t n, double way, const double *cos,
                          const double *sin, const REAL *a, const REAL *b,
                          bool add, REAL *out_a, REAL *out_b)
{
    TB_IVDEP
    for (size_t i = 0; i < n; i++) {
        double x = (double)a[i], y = (double)b[i], s = way * sin[i];
        double xs = x * cos[i] - y * s, ys = x * s + y * cos[i];
        out_a[i] = (REAL)(add ? (double)out_a[i] + xs : xs);
        out_b[i] = (REAL)(add ? (double)out_b[i] + ys : ys);
    }
}

/* Neighbours are taken apart first: gcc 12 makes one multiply-and-add of a
 * product and the addition and subtraction of neighbours, whatever the flags
 * say, and that has other bits. */
TB_INLINE void FN(turn_neighbours)(size_t n, double way, const double *cos,
                                   const double *sin, const REAL *x, bool add,
                                   REAL *y)
{
    REAL a[TB_LANES], b[TB_LANES], ya[TB_LANES], yb[TB_LANES];
    for (size_t j = 0; j < n; j++) {
        a[j] = x[2 * j];
        b[j] = x[2 * j + 1];
        ya[j] = add ? y[2 * j] : 0;
        yb[j] = add ? y[2 * j + 1] : 0;
    }
    FN(turn16)(n, way, cos, sin, a, b, add, ya, yb);
    for (size_t j = 0; j < n; j++) {
        y[2 * j] = ya[j];
        y[2 * j + 1] = yb[j];
    }
}

/* All n pairs; of a whole block the number is known, and `add` always: loops
 * that end where the vector does. */
TB_PER_CASE void FN(turn_all)(size_t n, bool neighbours, double way,
                              const double *cos, const double *sin,
                              const REAL *x, bool add, REAL *y)
{
    size_t i = 0;
    for (; !TB_SMALL && !neighbours && i + TB_LANES <= n; i += TB_LANES)
        FN(turn16)
    (TB_LANES, way, cos + i, sin + i, x + i, x + n + i, add, y + i, y + n + i);
    for (; i < n; i += TB_LANES) {
        size_t m = n - i < TB_LANES ? n - i : TB_LANES;
        if (neighbours)
            FN(turn_neighbours)
        (m, way, cos + i, sin + i, x + 2 * i, add, y + 2 * i);
        else FN(turn16)(m, way, cos + i, sin + i, x + i, x + n + i, add, y + i,
                        y + n + i);
    }
}

static void FN(turn)(size_t n, bool neighbours, double way, const double *cos,
                     const double *sin, const void *x, bool add, void *y)
{
    if (add)
        FN(turn_all)(n, neighbours, way, cos, sin, x, true, y);
    else
        FN(turn_all)(n, neighbours, way, cos, sin, x, false, y);
}
