/* SPDX-License-Identifier: MIT */
/* Every op of the table against its own derivative rules: adjoint identity,
 * central differences, accumulation, unwanted gradients, the same bits on any
 * number of threads, and float against double. An op without a variant here
 * fails the first test. */
#include <stdio.h>

#include "test_ops_call.h"

/* Sizes are small, odd and unequal, so that a mixed-up axis shows. */
static const variant variants[] = {
    /* clang-format off */
    {.op = "identity", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)}},
    {.op = "identity", .batch = 1, .time = 1, .nin = 1, .in = {SCALAR}},
    {.op = "branch", .batch = 3, .time = 2, .nin = 1, .in = {STREAM(5)}},
    {.op = "stop", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)},
     .flags = V_FROZEN},
    {.op = "add", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), STREAM(5)}},
    {.op = "add", .batch = 2, .time = 3, .nin = 2, .in = {SCALAR, SCALAR}},
    {.op = "add", .batch = 3, .time = 37, .nin = 2,
     .in = {STREAM(401), STREAM(401)}, .flags = V_BIG},
    {.op = "sub", .batch = 3, .time = 2, .nin = 2,
     .in = {STREAM(7), STREAM(7)}},
    {.op = "sub", .batch = 2, .time = 3, .nin = 2, .in = {SCALAR, SCALAR}},
    {.op = "mul", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), STREAM(5)}},
    {.op = "mul", .batch = 2, .time = 3, .nin = 2,
     .in = {VECTOR(5), STREAM(5)}},
    {.op = "mul", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), VECTOR(5)}},
    {.op = "mul", .batch = 2, .time = 3, .nin = 2, .in = {SCALAR, STREAM(5)}},
    {.op = "mul", .batch = 2, .time = 3, .nin = 2, .in = {STREAM(5), SCALAR}},
    {.op = "mul", .batch = 1, .time = 1, .nin = 2, .in = {SCALAR, STREAM(1)}},
    {.op = "mul", .batch = 1, .time = 1, .nin = 2, .in = {STREAM(1), VECTOR(1)}},
    {.op = "mul", .batch = 2, .time = 3, .nin = 2, .in = {SCALAR, SCALAR}},
    {.op = "mul", .batch = 3, .time = 37, .nin = 2,
     .in = {SCALAR, STREAM(401)}, .flags = V_BIG},
    {.op = "mul", .batch = 3, .time = 37, .nin = 2,
     .in = {VECTOR(401), STREAM(401)}, .flags = V_BIG},
    {.op = "div", .batch = 2, .time = 3, .nin = 2, .in = {STREAM(5), SCALAR}},
    {.op = "div", .batch = 2, .time = 3, .nin = 2, .in = {SCALAR, SCALAR}},
    {.op = "div", .batch = 3, .time = 37, .nin = 2,
     .in = {STREAM(401), SCALAR}, .flags = V_BIG},
    {.op = "div", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), STREAM(5)}},
    {.op = "div", .batch = 1, .time = 1, .nin = 2, .in = {STREAM(1), SCALAR}},
    {.op = "div", .batch = 3, .time = 37, .nin = 2,
     .in = {STREAM(401), STREAM(401)}, .flags = V_BIG},
    {.op = "shift", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), VECTOR(5)}},
    {.op = "shift", .batch = 2, .time = 3, .nin = 2, .in = {STREAM(5), SCALAR}},
    {.op = "shift", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(1), VECTOR(1)}},
    {.op = "shift", .batch = 3, .time = 37, .nin = 2,
     .in = {STREAM(401), VECTOR(401)}, .flags = V_BIG},
    {.op = "shift", .batch = 3, .time = 37, .nin = 2,
     .in = {STREAM(401), SCALAR}, .flags = V_BIG},
    {.op = "affine", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)},
     .attr = {-1.75, 0}},
    {.op = "affine", .batch = 5, .time = 13, .nin = 1, .in = {STREAM(5)},
     .attr = {0.3, 1.5}},
    {.op = "affine", .batch = 1, .time = 1, .nin = 1, .in = {SCALAR},
     .attr = {-1, 1}},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)},
     .attr = {1e-5}},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(7), VECTOR(7)}, .attr = {0}},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(5), VECTOR(5), VECTOR(5)}, .attr = {0.1}},
    {.op = "layernorm", .batch = 2, .time = 2, .nin = 3,
     .in = {STREAM(1), VECTOR(1), VECTOR(1)}, .attr = {0.1}},
    {.op = "layernorm", .batch = 2, .time = 2, .nin = 3,
     .in = {STREAM(2), VECTOR(2), VECTOR(2)}, .attr = {0.5}},
    {.op = "layernorm", .batch = 3, .time = 37, .nin = 3,
     .in = {STREAM(401), VECTOR(401), VECTOR(401)}, .attr = {1e-5},
     .flags = V_BIG},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(5), VECTOR(5), VECTOR(5)}, .attr = {0.1, TB_EPS_OUTSIDE}},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), VECTOR(5)}, .attr = {0.1, TB_EPS_CLAMP}},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(5), VECTOR(5), VECTOR(5)}, .attr = {50, TB_EPS_CLAMP}},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)},
     .attr = {50, TB_EPS_CLAMP_SQUARE}},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)},
     .attr = {0.1, TB_EPS_CLAMP_SQUARE}},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)},
     .attr = {0.1, TB_EPS_DTYPE}},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), VECTOR(5)}, .attr = {0.1, TB_EPS_NONE}},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(5), VECTOR(5), VECTOR(5)},
     .attr = {0.1, 0, TB_VARIANCE_ONEPASS}, .flags = V_OWN},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), VECTOR(5)},
     .attr = {0.1, TB_EPS_OUTSIDE, TB_VARIANCE_ONEPASS_CLIPPED},
     .flags = V_OWN},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(5), VECTOR(5), VECTOR(5)}, .attr = {0.1, 0, 0, 1}},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(2), VECTOR(2)}, .attr = {0.1, TB_EPS_OUTSIDE, 0, 1}},
    {.op = "layernorm", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(6), VECTOR(3), VECTOR(3)}, .attr = {0.1, 0, 0, 0, 2}},
    {.op = "layernorm", .batch = 3, .time = 37, .nin = 3,
     .in = {STREAM(401), VECTOR(401), VECTOR(401)},
     .attr = {1e-5, TB_EPS_OUTSIDE}, .flags = V_BIG},
    {.op = "rmsnorm", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)},
     .attr = {1e-6}},
    {.op = "rmsnorm", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), VECTOR(5)}, .attr = {1e-3, TB_EPS_CLAMP}},
    {.op = "rmsnorm", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(9), VECTOR(3), VECTOR(3)},
     .attr = {0.1, TB_EPS_OUTSIDE, 0, 0, 3}},
    {.op = "rmsnorm", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(6), VECTOR(2)}, .attr = {1e-6, 0, 0, 0, 3}},
    {.op = "scalenorm", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), SCALAR}, .attr = {1e-5}},
    {.op = "scalenorm", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), SCALAR}, .attr = {50}},
    {.op = "scalenorm", .batch = 2, .time = 2, .nin = 2,
     .in = {STREAM(1), SCALAR}, .attr = {0.5, TB_EPS_INSIDE}},
    {.op = "scalenorm", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(6), SCALAR}, .attr = {0.1, TB_EPS_OUTSIDE, 0, 0, 3}},
    {.op = "scalenorm", .batch = 3, .time = 37, .nin = 2,
     .in = {STREAM(401), SCALAR}, .attr = {1e-5}, .flags = V_BIG},
    {.op = "l2norm", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)},
     .attr = {0}},
    {.op = "l2norm", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)},
     .attr = {0.25, TB_EPS_INSIDE, TB_VARIANCE_ONEPASS}, .flags = V_OWN},
    {.op = "rmsnorm", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), VECTOR(5)}, .attr = {0}},
    {.op = "rmsnorm", .batch = 1, .time = 3, .nin = 3,
     .in = {STREAM(9), VECTOR(9), VECTOR(9)}, .attr = {0.1}},
    {.op = "rmsnorm", .batch = 2, .time = 2, .nin = 2,
     .in = {STREAM(1), VECTOR(1)}, .attr = {0.5}},
    {.op = "rmsnorm", .batch = 3, .time = 37, .nin = 2,
     .in = {STREAM(401), VECTOR(401)}, .attr = {1e-5}, .flags = V_BIG},
    {.op = "dyt", .batch = 2, .time = 3, .nin = 2, .in = {STREAM(5), SCALAR}},
    {.op = "dyt", .batch = 2, .time = 3, .nin = 4,
     .in = {STREAM(5), SCALAR, VECTOR(5), VECTOR(5)}},
    {.op = "dyt", .batch = 3, .time = 37, .nin = 3,
     .in = {STREAM(401), SCALAR, VECTOR(401)}, .flags = V_BIG},
    {.op = "derf", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(5), SCALAR, SCALAR}},
    {.op = "derf", .batch = 2, .time = 3, .nin = 5,
     .in = {STREAM(5), SCALAR, SCALAR, VECTOR(5), VECTOR(5)}},
    {.op = "derf", .batch = 3, .time = 37, .nin = 4,
     .in = {STREAM(401), SCALAR, SCALAR, VECTOR(401)}, .flags = V_BIG},
    {.op = "batchnorm", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)},
     .attr = {0.1}},
    {.op = "batchnorm", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(5), VECTOR(5), VECTOR(5)}, .attr = {1e-5}},
    {.op = "batchnorm", .batch = 2, .time = 1, .nin = 2,
     .in = {STREAM(3), VECTOR(3)}, .attr = {0.1, TB_EPS_OUTSIDE}},
    {.op = "batchnorm", .batch = 1, .time = 1, .nin = 2,
     .in = {STREAM(3), VECTOR(3)}, .attr = {0.1}},
    {.op = "batchnorm", .batch = 3, .time = 5, .nin = 6,
     .in = {STREAM(3), VECTOR(3), VECTOR(3), VECTOR(3), VECTOR(3), STREAM(1)},
     .attr = {0.1}},
    {.op = "batchnorm", .batch = 2, .time = 3, .nin = 6,
     .in = {STREAM(3), VECTOR(3), VECTOR(3), VECTOR(3), VECTOR(3), STREAM(1)},
     .attr = {0.1, 0, TB_STATISTICS_FROZEN}},
    {.op = "batchnorm", .batch = 3, .time = 37, .nin = 6,
     .in = {STREAM(401), VECTOR(401), VECTOR(401), VECTOR(401), VECTOR(401),
            STREAM(1)}, .attr = {1e-5}, .flags = V_BIG},
    {.op = "powernorm", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)},
     .attr = {0.1}},
    {.op = "powernorm", .batch = 3, .time = 5, .nin = 6,
     .in = {STREAM(3), VECTOR(3), VECTOR(3), VECTOR(3), VECTOR(3), STREAM(1)},
     .attr = {0.1, TB_EPS_OUTSIDE}},
    {.op = "powernorm", .batch = 2, .time = 3, .nin = 5,
     .in = {STREAM(3), VECTOR(3), VECTOR(3), VECTOR(3), VECTOR(3)},
     .attr = {0.1, 0, TB_STATISTICS_RUNNING}, .flags = V_APPROX},
    {.op = "powernorm", .batch = 2, .time = 3, .nin = 5,
     .in = {STREAM(3), VECTOR(3), VECTOR(3), VECTOR(3), VECTOR(3)},
     .attr = {0.1, 0, TB_STATISTICS_FROZEN}},
    {.op = "powernorm", .batch = 3, .time = 37, .nin = 6,
     .in = {STREAM(401), VECTOR(401), VECTOR(401), VECTOR(401), VECTOR(401),
            STREAM(1)}, .attr = {1e-5, 0, TB_STATISTICS_RUNNING},
     .flags = V_BIG | V_APPROX},
    {.op = "linear", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), MATRIX(4, 5)}},
    {.op = "linear", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(3), MATRIX(7, 3), VECTOR(7)}},
    {.op = "linear", .batch = 1, .time = 1, .nin = 3,
     .in = {STREAM(1), MATRIX(1, 1), VECTOR(1)}},
    {.op = "linear", .batch = 3, .time = 37, .nin = 3,
     .in = {STREAM(33), MATRIX(401, 33), VECTOR(401)}, .flags = V_BIG},
    {.op = "mha", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(6), STREAM(6), STREAM(6)}, .attr = {2, 2, 0}},
    {.op = "mha", .batch = 2, .time = 5, .nin = 3,
     .in = {STREAM(6), STREAM(6), STREAM(6)}, .attr = {2, 2, 1}},
    {.op = "mha", .batch = 2, .time = 4, .nin = 3,
     .in = {STREAM(12), STREAM(6), STREAM(6)}, .attr = {4, 2, 1}},
    {.op = "mha", .batch = 1, .time = 4, .nin = 3,
     .in = {STREAM(9), STREAM(3), STREAM(3)}, .attr = {3, 1, 0}},
    {.op = "mha", .batch = 3, .time = 1, .nin = 3,
     .in = {STREAM(4), STREAM(4), STREAM(4)}, .attr = {4, 4, 1}},
    {.op = "mha", .batch = 2, .time = 150, .nin = 3,
     .in = {STREAM(20), STREAM(10), STREAM(10)}, .attr = {4, 2, 1},
     .flags = V_BIG},
    {.op = "mha", .batch = 2, .time = 150, .nin = 3,
     .in = {STREAM(15), STREAM(15), STREAM(15)}, .attr = {3, 3, 0},
     .flags = V_BIG},
    {.op = "mha", .batch = 2, .time = 5, .nin = 3,
     .in = {STREAM(12), STREAM(6), STREAM(6)}, .attr = {4, 2, 1, 0.3}},
    {.op = "mha", .batch = 2, .time = 4, .nin = 3,
     .in = {STREAM(6), STREAM(6), STREAM(6)}, .attr = {2, 2, 0, 0.2}},
    {.op = "mha", .batch = 1, .time = 150, .nin = 3,
     .in = {STREAM(6), STREAM(6), STREAM(6)}, .attr = {2, 2, 1, 0.2},
     .flags = V_BIG},
    {.op = "mha", .batch = 2, .time = 3, .in_time = {0, 5, 5}, .nin = 3,
     .in = {STREAM(6), STREAM(6), STREAM(6)}, .attr = {2, 2, 0, 0, 0.3}},
    {.op = "mha", .batch = 2, .time = 3, .in_time = {0, 5, 5}, .nin = 3,
     .in = {STREAM(6), STREAM(3), STREAM(3)}, .attr = {2, 1, 1, 0, -0.7}},
    {.op = "mha", .batch = 2, .time = 5, .in_time = {0, 3, 3}, .nin = 3,
     .in = {STREAM(6), STREAM(6), STREAM(6)}, .attr = {2, 2, 1}},
    {.op = "mha", .batch = 2, .time = 4, .nin = 4,
     .in = {STREAM(6), STREAM(6), STREAM(6), MATRIX(4, 4)},
     .attr = {2, 2, 0}},
    {.op = "mha", .batch = 2, .time = 4, .nin = 4,
     .in = {STREAM(6), STREAM(6), STREAM(6), STREAM(4)},
     .attr = {3, 3, 1, 0, -0.4}},
    {.op = "mha", .batch = 2, .time = 3, .in_time = {0, 5, 5, 0}, .nin = 4,
     .in = {STREAM(4), STREAM(2), STREAM(2), STREAM(5)},
     .attr = {2, 1, 1, 0.3}},
    {.op = "mha", .batch = 2, .time = 3, .in_time = {0, 5, 5, 5}, .nin = 4,
     .in = {STREAM(6), STREAM(6), STREAM(6), STREAM(1)}, .attr = {2, 2, 0}},
    {.op = "mha", .batch = 2, .time = 150, .in_time = {0, 131, 131}, .nin = 3,
     .in = {STREAM(15), STREAM(15), STREAM(15)}, .attr = {3, 3, 1},
     .flags = V_BIG},
    {.op = "mha", .batch = 2, .time = 131, .in_time = {0, 150, 150, 0},
     .nin = 4, .in = {STREAM(6), STREAM(6), STREAM(6), STREAM(150)},
     .attr = {2, 2, 1, 0.2}, .flags = V_BIG},
    {.op = "mha", .batch = 2, .time = 5, .nin = 3,
     .in = {STREAM(12), STREAM(6), STREAM(4)}, .attr = {4, 2, 1, 0.3}},
    {.op = "mha", .batch = 2, .time = 4, .nin = 4,
     .in = {STREAM(4), STREAM(4), STREAM(10), STREAM(4)},
     .attr = {2, 2, 1, 0, -0.4}},
    {.op = "mha", .batch = 2, .time = 150, .nin = 3,
     .in = {STREAM(8), STREAM(4), STREAM(26)}, .attr = {4, 2, 1},
     .flags = V_BIG},
    {.op = "relu", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)}},
    {.op = "relu", .batch = 3, .time = 37, .nin = 1, .in = {STREAM(401)},
     .flags = V_BIG},
    {.op = "gelu", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(7)}},
    {.op = "gelu", .batch = 3, .time = 37, .nin = 1, .in = {STREAM(401)},
     .flags = V_BIG},
    {.op = "gelu_tanh", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(7)}},
    {.op = "silu", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(7)}},
    {.op = "sigmoid", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(7)}},
    {.op = "sigmoid", .batch = 1, .time = 1, .nin = 1, .in = {SCALAR}},
    {.op = "tanh", .batch = 2, .time = 3, .nin = 1, .in = {VECTOR(7)}},
    {.op = "tanh", .batch = 1, .time = 1, .nin = 1, .in = {SCALAR}},
    {.op = "softmax", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)}},
    {.op = "softmax", .batch = 1, .time = 2, .nin = 1, .in = {STREAM(1)}},
    {.op = "softmax", .batch = 3, .time = 37, .nin = 1, .in = {STREAM(401)},
     .flags = V_BIG},
    {.op = "exp", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)}},
    {.op = "exp", .batch = 1, .time = 1, .nin = 1, .in = {SCALAR}},
    {.op = "abs", .batch = 2, .time = 3, .nin = 1, .in = {VECTOR(5)}},
    {.op = "abs", .batch = 3, .time = 37, .nin = 1, .in = {STREAM(401)},
     .flags = V_BIG},
    {.op = "softmax", .batch = 2, .time = 3, .nin = 1, .in = {VECTOR(5)}},
    {.op = "softmax", .batch = 2, .time = 3, .nin = 1, .in = {MATRIX(3, 4)}},
    {.op = "rope", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(8)},
     .attr = {2}},
    {.op = "rope", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(12)},
     .attr = {2, 100, 1, 0, 5}},
    {.op = "rope", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(15)},
     .attr = {3, 0, 1, 2}},
    {.op = "rope", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(10)},
     .attr = {2, 0, 0, 4}},
    {.op = "rope", .batch = 3, .time = 37, .nin = 1, .in = {STREAM(402)},
     .attr = {3}, .flags = V_BIG},
    {.op = "concat", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(4)}},
    {.op = "concat", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(4), STREAM(1), STREAM(3)}},
    {.op = "concat", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(4), STREAM(2), STREAM(6)}, .attr = {2}},
    {.op = "concat", .batch = 3, .time = 37, .nin = 8,
     .in = {STREAM(41), STREAM(7), STREAM(33), STREAM(64), STREAM(2),
            STREAM(100), STREAM(1), STREAM(57)}, .flags = V_BIG},
    {.op = "mix", .batch = 2, .time = 3, .nin = 4,
     .in = {STREAM(4), STREAM(4), STREAM(4), MATRIX(2, 3)}, .attr = {1}},
    {.op = "mix", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(4), STREAM(4), VECTOR(2)}},
    {.op = "mix", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(4), STREAM(4), STREAM(6)}, .attr = {2}},
    {.op = "mix", .batch = 3, .time = 37, .nin = 3,
     .in = {STREAM(401), STREAM(401), MATRIX(2, 2)}, .flags = V_BIG},
    {.op = "mix", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(4), STREAM(1)}},
    {.op = "mix", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(4), STREAM(4), MATRIX(2, 5)}, .attr = {1, 2, 5}},
    {.op = "mix", .batch = 2, .time = 3, .nin = 4,
     .in = {STREAM(4), STREAM(4), STREAM(4), VECTOR(4)}, .attr = {0, 1, 4}},
    {.op = "mix", .batch = 2, .time = 3, .nin = 3,
     .in = {STREAM(4), STREAM(4), STREAM(6)}, .attr = {1, 1, 3}},
    {.op = "dot", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), STREAM(5)}},
    {.op = "headscale", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(6), VECTOR(3)}},
    {.op = "headscale", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(5), VECTOR(1)}},
    {.op = "headscale", .batch = 3, .time = 37, .nin = 2,
     .in = {STREAM(402), VECTOR(6)}, .flags = V_BIG},
    {.op = "dot", .batch = 2, .time = 3, .nin = 2,
     .in = {STREAM(1), STREAM(1)}},
    {.op = "dot", .batch = 3, .time = 37, .nin = 2,
     .in = {STREAM(401), STREAM(401)}, .flags = V_BIG},
    {.op = "sinkhorn", .batch = 2, .time = 3, .nin = 1, .in = {MATRIX(4, 4)},
     .attr = {3}},
    {.op = "sinkhorn", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(9)},
     .attr = {2, 1}},
    {.op = "sinkhorn", .batch = 2, .time = 3, .nin = 1, .in = {MATRIX(2, 2)},
     .attr = {0}},
    {.op = "sinkhorn", .batch = 3, .time = 37, .nin = 1, .in = {STREAM(16)},
     .attr = {20}, .flags = V_BIG},
    {.op = "unit", .batch = 1, .time = 1, .nin = 1, .in = {MATRIX(3, 5)},
     .attr = {0}},
    {.op = "unit", .batch = 1, .time = 1, .nin = 1, .in = {MATRIX(3, 5)},
     .attr = {1e-3, 1}},
    {.op = "unit", .batch = 1, .time = 1, .nin = 1, .in = {VECTOR(4)},
     .attr = {9}},
    {.op = "unit", .batch = 1, .time = 1, .nin = 1, .in = {MATRIX(111, 401)},
     .attr = {0}, .flags = V_BIG},
    {.op = "maxdiv", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)},
     .attr = {8}, .flags = V_FROZEN},
    {.op = "maxdiv", .batch = 3, .time = 37, .nin = 1, .in = {STREAM(401)},
     .attr = {8, 1}, .flags = V_FROZEN | V_BIG},
    {.op = "sum", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)}},
    {.op = "sum", .batch = 2, .time = 3, .nin = 1, .in = {VECTOR(4)}},
    {.op = "sum", .batch = 3, .time = 37, .nin = 1, .in = {STREAM(401)},
     .flags = V_BIG},
    {.op = "mean", .batch = 2, .time = 3, .nin = 1, .in = {STREAM(5)}},
    {.op = "mean", .batch = 2, .time = 3, .nin = 1, .in = {VECTOR(5)}},
    {.op = "skipdrop", .batch = 9, .time = 2, .nin = 1, .in = {STREAM(3)},
     .attr = {0.4}},
    {.op = "skipdrop", .batch = 3, .time = 37, .nin = 1, .in = {STREAM(401)},
     .attr = {0.2}, .flags = V_BIG},
    {.op = "embed", .batch = 2, .time = 5, .nin = 2,
     .in = {TOKENS, MATRIX(4, 3)}, .vocab = 4},
    {.op = "embed", .batch = 3, .time = 37, .nin = 2,
     .in = {TOKENS, MATRIX(11, 401)}, .vocab = 11, .flags = V_BIG},
    {.op = "position", .batch = 3, .time = 2, .nin = 2,
     .in = {STREAM(5), MATRIX(4, 5)}},
    {.op = "position", .batch = 3, .time = 37, .nin = 2,
     .in = {STREAM(401), MATRIX(37, 401)}, .flags = V_BIG},
    {.op = "position", .batch = 3, .time = 2, .nin = 2,
     .in = {STREAM(5), MATRIX(7, 5)}, .attr = {4}},
    {.op = "sinusoid", .batch = 2, .time = 5, .nin = 1, .in = {STREAM(3)}},
    {.op = "sinusoid", .batch = 2, .time = 5, .nin = 1, .in = {STREAM(4)},
     .attr = {9}},
    {.op = "sinusoid", .batch = 2, .time = 5, .nin = 1, .in = {STREAM(6)}},
    {.op = "sinusoid", .batch = 3, .time = 37, .nin = 1, .in = {STREAM(401)},
     .flags = V_BIG},
    {.op = "drop", .batch = 2, .time = 7, .nin = 1, .in = {STREAM(5)},
     .attr = {0.3}},
    {.op = "drop", .batch = 3, .time = 37, .nin = 1, .in = {STREAM(401)},
     .attr = {0.1}, .flags = V_BIG},
    {.op = "xent", .batch = 2, .time = 4, .nin = 2, .in = {STREAM(5), TOKENS},
     .vocab = 5},
    {.op = "xent", .batch = 2, .time = 4, .nin = 2, .in = {STREAM(5), TOKENS},
     .vocab = 5, .flags = V_IGNORE},
    {.op = "xent", .batch = 3, .time = 37, .nin = 2,
     .in = {STREAM(401), TOKENS}, .vocab = 401, .flags = V_BIG | V_IGNORE},
    {.op = "xent", .batch = 2, .time = 4, .nin = 2, .in = {STREAM(5), TOKENS},
     .attr = {0.1}, .vocab = 5, .flags = V_IGNORE},
    {.op = "xent", .batch = 3, .time = 37, .nin = 2,
     .in = {STREAM(401), TOKENS}, .attr = {0.3}, .vocab = 401,
     .flags = V_BIG | V_IGNORE},
    /* clang-format on */
};

/* --- running all variants ----------------------------------------------- */

typedef void (*bed_test)(tb_test *T, bed *b, const variant *v);

/* A failure inside names the variant. */
static void each_bed(tb_test *T, tb_dtype type, unsigned without, bed_test fn)
{
    for (size_t i = 0; i < TB_LEN(variants); i++) {
        const variant *v = &variants[i];
        int before = T->failed;
        bed b;
        if (v->flags & without || !bed_open(T, &b, v, type))
            continue;
        bed_fwd(&b);
        fn(T, &b, v);
        if (T->failed > before)
            fprintf(stderr, "    in variant %zu: %s, first input width %zu\n",
                    i, v->op, v->in[0].width);
    }
}

/* Runs fn for every moving input alone, then for all together. */
static void each_mask(tb_test *T, bed *b,
                      void (*fn)(tb_test *T, bed *b, unsigned mask))
{
    for (int i = 0; i < b->c.nin; i++)
        if (bed_moves(b, i))
            fn(T, b, 1u << i);
    fn(T, b, bed_all(b));
}

TB_TEST(every_op_has_a_variant)
{
    for (size_t i = 0; tb_ops[i]; i++) {
        bool found = !tb_ops[i]->shape;
        for (size_t j = 0; j < TB_LEN(variants); j++)
            found = found || tb_streq(tb_ops[i]->name, variants[j].op);
        if (!found)
            tb_test_fail(T, __FILE__, __LINE__, "no variant for op %s",
                         tb_ops[i]->name);
    }
}

TB_TEST(table_rows_are_complete)
{
    for (size_t i = 0; tb_ops[i]; i++) {
        const tb_op *op = tb_ops[i];
        TB_CHECK(T, tb_op_find(op->name) == op);
        TB_CHECK(T, op->symbol && op->symbol[0]);
        TB_CHECK(T, op->min_in <= op->max_in && op->max_in <= TB_OP_INPUTS);
        TB_CHECK(T, !(op->fwd || op->fwd_rows) == !op->shape);
        TB_CHECK(T, !(op->bwd || op->bwd_rows) == !op->shape);
        TB_CHECK(T, !(op->tan || op->tan_rows) == !op->shape);
        TB_CHECK(T, !op->rows_in || (op->bwd && op->bwd_rows));
        TB_CHECK(T, !op->join || (op->bwd_rows && op->part));
        TB_CHECK(T, (op->lane == TB_LANE_TOLL) == (op->gain != NULL));
        TB_CHECK(T, (op->gain != NULL) == !!tb_op_norm(op->name));
        TB_CHECK(T, (op->state & ~op->data) == 0);
        TB_CHECK(T, !op->update == !op->state);
        TB_CHECK(T, op->nattr + op->noption <= TB_OP_ATTRS);
        for (int a = 0; a < op->nattr + op->noption; a++)
            TB_CHECK(T, op->attr_name[a] != NULL);
    }
    TB_CHECK(T, tb_op_find("no such op") == NULL);
    TB_CHECK(T, tb_op_norm("gelu") == NULL && tb_op_norm(NULL) == NULL);
}

/* --- adjoint identity: <gy, J t> = <J' gy, t> --------------------------- */

static double dot(const bed *b, const void *x, const void *z, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += bed_get(b, x, i) * bed_get(b, z, i);
    return sum;
}

static void check_adjoint(tb_test *T, bed *b, unsigned mask)
{
    double rhs = 0, size = 0, bound = b->type == TB_F64 ? 1e-12 : 3e-6;
    bed_tan(b, mask);
    bed_bwd(b, mask);
    for (int i = 0; i < b->c.nin; i++)
        if (mask & (1u << i)) {
            rhs += dot(b, b->g[i], b->t[i], b->n[i]);
            size += dot(b, b->g[i], b->g[i], b->n[i]) *
                    dot(b, b->t[i], b->t[i], b->n[i]);
        }
    size += dot(b, b->gy, b->gy, b->nout) * dot(b, b->ty, b->ty, b->nout);
    double lhs = dot(b, b->gy, b->ty, b->nout);
    TB_CHECK(T, tb_isfinite(lhs));
    TB_CHECK(T, tb_fabs(lhs - rhs) <= bound * tb_sqrt(size));
}

static void adjoint(tb_test *T, bed *b, const variant *v)
{
    (void)v;
    each_mask(T, b, check_adjoint);
}

TB_TEST(adjoint_f64)
{
    each_bed(T, TB_F64, V_APPROX, adjoint);
}

TB_TEST(adjoint_f32)
{
    each_bed(T, TB_F32, V_APPROX, adjoint);
}

/* Only an op that says so may have another backward than its derivative. */
TB_TEST(approximate_ops_say_so)
{
    for (size_t i = 0; i < TB_LEN(variants); i++)
        if (variants[i].flags & V_APPROX)
            TB_CHECK(T, tb_op_find(variants[i].op)->approximate);
}

/* --- central differences, in double ------------------------------------- */

static const double step = 1e-5;

/* x[i] += h t[i] for the inputs in `mask` */
static void move_inputs(const bed *b, unsigned mask, double h)
{
    for (int i = 0; i < b->c.nin; i++)
        for (size_t j = 0; mask & (1u << i) && j < b->n[i]; j++)
            ((double *)b->x[i])[j] += h * ((double *)b->t[i])[j];
}

static void check_difference(tb_test *T, bed *b, unsigned mask)
{
    size_t n = b->nout;
    double *plus = tb_test_guarded(T, n * sizeof *plus);
    bed_tan(b, mask); /* before fwd overwrites saved */
    move_inputs(b, mask, step);
    bed_fwd(b);
    memcpy(plus, b->y, n * sizeof *plus);
    move_inputs(b, mask, -2 * step);
    bed_fwd(b);
    for (size_t i = 0; i < n; i++)
        plus[i] = (plus[i] - ((double *)b->y)[i]) / (2 * step);
    move_inputs(b, mask, step);
    bed_fwd(b);
    TB_NEAR_N(T, (double *)b->ty, plus, n, 1e-7);
}

static void tangent_difference(tb_test *T, bed *b, const variant *v)
{
    (void)v;
    each_mask(T, b, check_difference);
}

TB_TEST(tangent_against_difference)
{
    each_bed(T, TB_F64, V_FROZEN | V_BIG, tangent_difference);
}

/* <gy, y> with element j of input i moved by h */
static double moved(const bed *b, int i, size_t j, double h)
{
    double *x = b->x[i], keep = x[j];
    x[j] += h;
    bed_fwd(b);
    x[j] = keep;
    return dot(b, b->gy, b->y, b->nout);
}

/* Every element of every gradient, parameters included. */
static void gradient_difference(tb_test *T, bed *b, const variant *v)
{
    (void)v;
    bed_bwd(b, bed_all(b));
    for (int i = 0; i < b->c.nin; i++) {
        if (!bed_moves(b, i))
            continue;
        double *want = tb_test_guarded(T, b->n[i] * sizeof *want);
        for (size_t j = 0; j < b->n[i]; j++)
            want[j] =
                (moved(b, i, j, step) - moved(b, i, j, -step)) / (2 * step);
        TB_NEAR_N(T, (double *)b->g[i], want, b->n[i], 1e-7);
    }
}

TB_TEST(gradients_against_difference)
{
    each_bed(T, TB_F64, V_FROZEN | V_BIG | V_APPROX, gradient_difference);
}

static void frozen(tb_test *T, bed *b, const variant *v)
{
    if (!(v->flags & V_FROZEN) || !b->op->alias)
        return;
    bed_tan(b, bed_all(b));
    bed_bwd(b, bed_all(b));
    for (size_t i = 0; i < b->nout; i++) {
        TB_CHECK(T, ((double *)b->y)[i] == ((double *)b->x[0])[i]);
        TB_CHECK(T, ((double *)b->ty)[i] == 0);
        TB_CHECK(T, ((double *)b->g[0])[i] == 0);
    }
}

TB_TEST(stop_is_constant)
{
    each_bed(T, TB_F64, 0, frozen);
}

/* --- gradients are added, and only where wanted ------------------------- */

static double *copy_of(tb_test *T, const bed *b, const void *x, size_t n)
{
    double *y = tb_test_guarded(T, n * sizeof *y);
    for (size_t i = 0; i < n; i++)
        y[i] = bed_get(b, x, i);
    return y;
}

static void accumulates(tb_test *T, bed *b, const variant *v)
{
    double *base[TB_OP_INPUTS];
    (void)v;
    bed_bwd(b, bed_all(b));
    for (int i = 0; i < b->c.nin; i++) {
        if (!bed_moves(b, i))
            continue;
        base[i] = copy_of(T, b, b->g[i], b->n[i]);
        bed_fill(T, b->type, b->g[i], b->n[i]);
        for (size_t j = 0; j < b->n[i]; j++)
            base[i][j] += bed_get(b, b->g[i], j);
    }
    bed_bwd_add(b, bed_all(b));
    for (int i = 0; i < b->c.nin; i++)
        if (bed_moves(b, i))
            TB_NEAR_N(T, (double *)b->g[i], base[i], b->n[i], 1e-13);
}

TB_TEST(bwd_adds)
{
    each_bed(T, TB_F64, 0, accumulates);
}

/* gin = gbase + term, with nothing there before; what a whole part does not
 * heed is added to. */
static void from_bases(tb_test *T, bed *b, bool zero)
{
    double *want[TB_OP_INPUTS];
    tb_opcall c = bed_later_call(b);
    bed_bwd(b, bed_all(b));
    c.gout = b->gy;
    for (int i = 0; i < b->c.nin; i++) {
        if (!bed_moves(b, i))
            continue;
        bool rows = tb_op_row_wise(b->op, &c, i);
        bool heeds = rows || (zero && b->op->bases & TB_NEED_IN(i));
        double *base = tb_test_guarded(T, b->n[i] * sizeof *base);
        want[i] = copy_of(T, b, b->g[i], b->n[i]);
        c.gin[i] = b->g[i];
        c.gbase[i] = !heeds ? c.gin[i] : zero ? NULL : base;
        for (size_t j = 0; j < b->n[i]; j++) {
            base[j] = zero ? 0 : (double)j;
            want[i][j] += heeds ? base[j] : 0;
            bed_put(b, tb_op_at(&c, b->g[i], j),
                    &(double){heeds ? __builtin_nan("") : 0}, 1);
        }
    }
    tb_op_backward(b->op, &c);
    for (int i = 0; i < b->c.nin; i++)
        if (bed_moves(b, i))
            TB_NEAR_N(T, (double *)b->g[i], want[i], b->n[i], 1e-13);
}

static void bases(tb_test *T, bed *b, const variant *v)
{
    (void)v;
    from_bases(T, b, true);
    from_bases(T, b, false);
}

TB_TEST(bwd_starts_from_bases)
{
    each_bed(T, TB_F64, 0, bases);
}

/* Row parts in tiles of so many rows: bytes of the output and of all
 * gradients, one after the other. */
static void in_tiles(bed *b, size_t tile, char *all)
{
    size_t one = tb_dtype_size(b->type);
    tb_rowcall r = {.op = b->op, .back = true, .c = bed_later_call(b)};
    tb_rowgroup g = {.calls = &r, .n = 1, .tile = tile, .slots = 2};
    g.rows = tb_op_row_count(&r.c);
    bed_clear_gradients(b);
    r.rows = b->op->bwd_rows;
    r.c.gout = b->gy;
    for (int i = 0; i < b->c.nin; i++)
        if (bed_moves(b, i) && tb_op_row_input(b->op, i))
            r.c.gbase[i] = r.c.gin[i] = b->g[i];
    tb_rows_run(b->c.ctx, &g);
    for (int i = 0; i < b->c.nin; all += b->n[i++] * one)
        if (bed_moves(b, i))
            memcpy(all, b->g[i], b->n[i] * one);
    if (!b->op->fwd_rows || b->op->fwd)
        return;
    r.c = bed_call(b);
    r.rows = b->op->fwd_rows;
    r.back = false;
    tb_rows_run(b->c.ctx, &g);
    memcpy(all, b->y, b->nout * one);
}

static void tiles(tb_test *T, bed *b, const variant *v)
{
    size_t n = b->nout;
    bool any = false;
    (void)v;
    for (int i = 0; i < b->c.nin; n += b->n[i++])
        any = any || (bed_moves(b, i) && tb_op_row_input(b->op, i));
    if (!any)
        return;
    char *small = tb_test_guarded(T, n * tb_dtype_size(b->type));
    char *large = tb_test_guarded(T, n * tb_dtype_size(b->type));
    memset(small, 0, n * tb_dtype_size(b->type));
    memset(large, 0, n * tb_dtype_size(b->type));
    in_tiles(b, 3, small);
    in_tiles(b, 64, large);
    TB_SAME(T, small, large, n * tb_dtype_size(b->type));
}

TB_TEST(tiles_do_not_show)
{
    each_bed(T, TB_F64, 0, tiles);
}

/* One gradient alone has the bits it has among all; none at all is fine. */
static void unwanted(tb_test *T, bed *b, const variant *v)
{
    (void)v;
    for (int i = 0; i < b->c.nin; i++) {
        if (!bed_moves(b, i))
            continue;
        bed_bwd(b, bed_all(b));
        double *all = copy_of(T, b, b->g[i], b->n[i]);
        bed_bwd(b, 1u << i);
        TB_SAME(T, copy_of(T, b, b->g[i], b->n[i]), all, b->n[i] * sizeof *all);
    }
    bed_bwd(b, 0);
    for (int i = 0; i < b->c.nin; i++)
        for (size_t j = 0; bed_moves(b, i) && j < b->n[i]; j++)
            TB_CHECK(T, bed_get(b, b->g[i], j) == 0);
}

TB_TEST(null_gradient_is_unwanted)
{
    each_bed(T, TB_F64, 0, unwanted);
    each_bed(T, TB_F32, 0, unwanted);
}

/* A tangent that is 0 everywhere. */
static void no_tangent(tb_test *T, bed *b, const variant *v)
{
    (void)v;
    bed_tan(b, 0);
    for (size_t i = 0; i < b->nout; i++)
        TB_CHECK(T, bed_get(b, b->ty, i) == 0);
}

TB_TEST(null_tangent_is_zero)
{
    each_bed(T, TB_F64, 0, no_tangent);
    each_bed(T, TB_F32, 0, no_tangent);
}

/* --- the same bits with any number of threads --------------------------- */

/* All results of all passes, one after the other. */
static char *results(tb_test *T, const bed *b, size_t *bytes)
{
    size_t one = tb_dtype_size(b->type), at = 0;
    *bytes = 2 * b->nout * one + b->saved_bytes;
    for (int i = 0; i < b->c.nin; i++)
        *bytes += bed_moves(b, i) ? b->n[i] * one : 0;
    char *all = tb_test_guarded(T, *bytes);
    bed_fwd(b);
    bed_tan(b, bed_all(b));
    bed_bwd(b, bed_all(b));
    memcpy(all + at, b->y, b->nout * one), at += b->nout * one;
    memcpy(all + at, b->ty, b->nout * one), at += b->nout * one;
    memcpy(all + at, b->c.saved, b->saved_bytes), at += b->saved_bytes;
    for (int i = 0; i < b->c.nin; i++)
        if (bed_moves(b, i)) {
            memcpy(all + at, b->g[i], b->n[i] * one);
            at += b->n[i] * one;
        }
    return all;
}

static void same_bits(tb_test *T, bed *b, const variant *v)
{
    char *one = NULL;
    size_t bytes;
    (void)v;
    tb_ctx_exact(T->ctx, true);
    for (int n = 1; n <= 3; n++) {
        tb_ctx_threads(T->ctx, n);
        char *all = results(T, b, &bytes);
        one = one ? one : all;
        TB_SAME(T, all, one, bytes);
    }
    tb_ctx_threads(T->ctx, 0);
    tb_ctx_exact(T->ctx, false);
}

TB_TEST(same_bits_with_threads_f64)
{
    each_bed(T, TB_F64, 0, same_bits);
}

TB_TEST(same_bits_with_threads_f32)
{
    each_bed(T, TB_F32, 0, same_bits);
}

/* --- float against double ----------------------------------------------- */

static void near_f32(tb_test *T, const bed *a, const bed *b, const void *x,
                     const void *z, size_t n)
{
    TB_NEAR_N(T, copy_of(T, a, x, n), copy_of(T, b, z, n), n, 3e-6);
}

static void compare_types(tb_test *T, const variant *v)
{
    bed a, b;
    uint64_t draws = T->draws;
    if (v->flags & V_OWN)
        return;
    if (!bed_open(T, &a, v, TB_F32))
        return;
    T->draws = draws; /* the same numbers once more */
    if (!bed_open(T, &b, v, TB_F64))
        return;
    bed_fwd(&a), bed_fwd(&b);
    bed_tan(&a, bed_all(&a)), bed_tan(&b, bed_all(&b));
    bed_bwd(&a, bed_all(&a)), bed_bwd(&b, bed_all(&b));
    near_f32(T, &a, &b, a.y, b.y, a.nout);
    near_f32(T, &a, &b, a.ty, b.ty, a.nout);
    for (int i = 0; i < v->nin; i++)
        if (bed_moves(&a, i))
            near_f32(T, &a, &b, a.g[i], b.g[i], a.n[i]);
}

TB_TEST(f32_against_f64)
{
    for (size_t i = 0; i < TB_LEN(variants); i++) {
        int before = T->failed;
        compare_types(T, &variants[i]);
        if (T->failed > before)
            fprintf(stderr, "    in variant %zu: %s\n", i, variants[i].op);
    }
}

/* --- nothing to do ------------------------------------------------------ */

TB_TEST(no_tokens_at_all)
{
    for (size_t i = 0; i < TB_LEN(variants); i++) {
        variant v = variants[i];
        bed b;
        v.time = 0;
        memset(v.in_time, 0, sizeof v.in_time);
        if (!bed_open(T, &b, &v, TB_F32))
            return;
        bed_fwd(&b);
        bed_tan(&b, bed_all(&b));
        bed_bwd(&b, bed_all(&b));
        bool reads_stream =
            v.op[0] == 'x' || b.c.out_shape.kind == TB_SHAPE_STREAM;
        for (int j = 0; j < v.nin && reads_stream; j++)
            for (size_t k = 0; bed_moves(&b, j) && k < b.n[j]; k++)
                TB_CHECK(T, bed_get(&b, b.g[j], k) == 0);
    }
}
