/* SPDX-License-Identifier: MIT */
/* Context, errors, allocation, arenas and growing strings, with every single
 * allocation failing once. */
#include "tb_test.h"

#include <stdlib.h>

/* --- status and errors -------------------------------------------------- */

TB_TEST(status_table)
{
    TB_CHECK(T, tb_status_exit(TB_OK) == 0);
    TB_CHECK(T, tb_status_exit(TB_ERR_PARSE) == 3);
    TB_CHECK(T, tb_status_exit(TB_INTERRUPTED) == 130);
    TB_CHECK(T, tb_status_exit((tb_status)99) == 5);
    TB_STR(T, tb_status_text(TB_ERR_MEMORY), "out of memory");
    TB_STR(T, tb_status_text((tb_status)99), "unknown status");
    TB_CHECK(T, tb_dtype_size(TB_F32) == 4 && tb_dtype_size(TB_F64) == 8);
}

TB_TEST(fail_records)
{
    TB_STR(T, tb_error(T->ctx), "");
    TB_FAILS(T, TB_FAIL(T->ctx, TB_ERR_SHAPE, "got %d", 3), TB_ERR_SHAPE,
             "got 3");
    TB_CHECK(T,
             strncmp(tb_error_where(T->ctx), "test_base_memory.c:", 19) == 0);
    TB_FAILS(T, TB_FAIL(T->ctx, TB_ERR_ARG, "in f: %s", tb_error(T->ctx)),
             TB_ERR_ARG, "in f: got 3"); /* wraps the former text */
    tb_error_clear(T->ctx);
    TB_STR(T, tb_error(T->ctx), "");
    TB_CHECK(T, TB_FAIL(NULL, TB_ERR_ARG, "no context") == TB_ERR_ARG);
    TB_STR(T, tb_error(NULL), "");
    (void)TB_FAIL(T->ctx, TB_ERR_ARG, "%9999d", 1); /* cut, not overrun */
    TB_CHECK(T, strlen(tb_error(T->ctx)) == 4095);
}

static void remember(void *user, tb_log_level level, const char *line)
{
    tb_format(user, 64, "%d:%s", (int)level, line);
}

TB_TEST(log_callback)
{
    char seen[64] = "";
    tb_say(T->ctx, TB_LOG_WARN, "nobody listens");
    tb_ctx_on_log(T->ctx, remember, seen);
    tb_say(T->ctx, TB_LOG_WARN, "step %d", 7);
    TB_STR(T, seen, "1:step 7");
}

TB_TEST(settings)
{
    TB_CHECK(T, !tb_ctx_is_exact(T->ctx) && !tb_ctx_interrupted(T->ctx));
    tb_ctx_exact(T->ctx, true);
    tb_ctx_threads(T->ctx, 3);
    tb_ctx_interrupt(T->ctx);
    TB_CHECK(T, tb_ctx_is_exact(T->ctx) && tb_ctx_interrupted(T->ctx));
    TB_CHECK(T, tb_ctx_thread_limit(T->ctx) == 3);
    tb_ctx_threads(T->ctx, -1);
    TB_CHECK(T, tb_ctx_thread_limit(T->ctx) == 0);
}

TB_TEST(environment)
{
    tb_ctx *ctx;
    setenv("TB_ISA", "avx2", 1);
    setenv("TB_THREADS", "12", 1);
    TB_OKAY(T, tb_ctx_create(&ctx));
    TB_STR(T, tb_ctx_isa_limit(ctx), "avx2");
    TB_CHECK(T, tb_ctx_thread_limit(ctx) == 12);
    tb_ctx_destroy(ctx);
    setenv("TB_THREADS", "many", 1);
    unsetenv("TB_ISA");
    TB_OKAY(T, tb_ctx_create(&ctx));
    TB_CHECK(T, tb_ctx_isa_limit(ctx) == NULL);
    TB_CHECK(T, tb_ctx_thread_limit(ctx) == 0);
    TB_CHECK(T, tb_ctx_environment(ctx) == TB_ERR_USAGE);
    TB_CHECK(T, strstr(tb_error(ctx), "TB_THREADS: got many, wanted") != NULL);
    tb_ctx_destroy(ctx);
    tb_ctx_destroy(NULL);
    unsetenv("TB_THREADS");
}

static void drop_slot(tb_ctx *ctx, void *p)
{
    tb_free(ctx, *(void **)p);
    *(void **)p = NULL;
}

TB_TEST(slots_drop)
{
    tb_ctx *ctx;
    void *block;
    TB_OKAY(T, tb_ctx_create(&ctx));
    TB_CHECK(T, tb_ctx_slot(ctx, TB_SLOT_GEMM) == NULL);
    block = tb_alloc(ctx, 1, 1);
    tb_ctx_slot_set(ctx, TB_SLOT_GEMM, &block, drop_slot);
    TB_CHECK(T, tb_ctx_slot(ctx, TB_SLOT_GEMM) == &block);
    tb_ctx_destroy(ctx);
    TB_CHECK(T, block == NULL);
}

/* --- allocation --------------------------------------------------------- */

static bool all_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

TB_TEST(alloc_basics)
{
    static const size_t size[] = {0, 1, 63, 64, 65, 4097};
    for (size_t i = 0; i < TB_LEN(size); i++) {
        unsigned char *p = tb_alloc(T->ctx, size[i], 1);
        TB_REQUIRE(T, p);
        TB_CHECK(T, (uintptr_t)p % 64 == 0);
        TB_CHECK(T, all_zero(p, size[i]));
        memset(p, 0xFF, size[i]);
        tb_free(T->ctx, p);
    }
    tb_free(T->ctx, NULL);
    TB_CHECK(T, tb_ctx_blocks(T->ctx) == 0);
}

TB_TEST(alloc_overflow)
{
    TB_CHECK(T, !tb_alloc(T->ctx, SIZE_MAX / 2, 3));
    TB_CHECK(T, strstr(tb_error(T->ctx), "elements"));
    TB_CHECK(T, !tb_alloc(T->ctx, SIZE_MAX, 1));
    size_t v;
    TB_CHECK(T, tb_mul(0, SIZE_MAX, &v) && v == 0);
    TB_CHECK(T, tb_mul(SIZE_MAX, 1, &v) && !tb_mul(SIZE_MAX, 2, &v));
    TB_CHECK(T, tb_add(SIZE_MAX, 0, &v) && !tb_add(SIZE_MAX, 1, &v));
}

TB_TEST(realloc_grows)
{
    unsigned char *p = tb_realloc(T->ctx, NULL, 0, 10);
    TB_REQUIRE(T, p);
    memset(p, 7, 10);
    p = tb_realloc(T->ctx, p, 10, 5); /* bytes 5.. are gone for the caller */
    p = tb_realloc(T->ctx, p, 5, 1000);
    TB_REQUIRE(T, p);
    TB_CHECK(T, p[0] == 7 && p[4] == 7 && all_zero(p + 5, 995));
    tb_ctx_fail_alloc_at(T->ctx, 1);
    TB_CHECK(T, !tb_realloc(T->ctx, p, 1000, 2000));
    TB_CHECK(T, p[4] == 7); /* still ours */
    tb_free(T->ctx, p);
    TB_CHECK(T, tb_ctx_blocks(T->ctx) == 0);
}

TB_TEST(fail_nth)
{
    tb_ctx_fail_alloc_at(T->ctx, 2);
    void *a = tb_alloc(T->ctx, 8, 1), *b = tb_alloc(T->ctx, 8, 1),
         *c = tb_alloc(T->ctx, 8, 1);
    TB_CHECK(T, a && !b && c);
    TB_CHECK(T, strstr(tb_error(T->ctx), "no memory for 8 bytes"));
    tb_ctx_fail_alloc_at(T->ctx, 1);
    tb_ctx_fail_alloc_at(T->ctx, 0);
    b = tb_alloc(T->ctx, 8, 1);
    TB_CHECK(T, b);
    tb_free(T->ctx, a);
    tb_free(T->ctx, b);
    tb_free(T->ctx, c);
}

/* --- arena -------------------------------------------------------------- */

TB_TEST(arena_objects)
{
    tb_arena a;
    unsigned char *p[400];
    tb_arena_init(&a, T->ctx);
    for (size_t i = 0; i < TB_LEN(p); i++) { /* small, large, larger */
        size_t n = i % 10 == 0 ? 5000 + 100 * i : i;
        p[i] = tb_arena_alloc(&a, n);
        TB_REQUIRE(T, p[i]);
        TB_CHECK(T, (uintptr_t)p[i] % 16 == 0 && all_zero(p[i], n));
        memset(p[i], (int)i, n);
    }
    for (size_t i = 1; i < TB_LEN(p); i++) /* nobody overwrote anybody */
        TB_CHECK(T, p[i][0] == (unsigned char)i &&
                        p[i][i - 1] == (unsigned char)i);
    for (size_t n = 0; n < 200; n += 7) {
        unsigned char *line = tb_arena_aligned(&a, n);
        TB_REQUIRE(T, line);
        TB_CHECK(T, (uintptr_t)line % 64 == 0 && all_zero(line, n));
        memset(line, 1, n);
    }
    TB_CHECK(T, !tb_arena_aligned(&a, SIZE_MAX));
    TB_CHECK(T, !tb_arena_aligned(&a, SIZE_MAX - 70));
    TB_CHECK(T, !tb_arena_alloc(&a, SIZE_MAX));
    TB_CHECK(T, !tb_arena_alloc(&a, SIZE_MAX - 20));
    TB_CHECK(T, !tb_arena_strndup(&a, "x", SIZE_MAX));
    tb_arena_clear(&a);
    TB_CHECK(T, tb_ctx_blocks(T->ctx) == 0);
    TB_CHECK(T, tb_arena_alloc(&a, 3) != NULL); /* usable again */
    tb_arena_clear(&a);
}

TB_TEST(arena_strings)
{
    tb_arena a;
    tb_arena_init(&a, T->ctx);
    TB_STR(T, tb_arena_strdup(&a, "block"), "block");
    TB_STR(T, tb_arena_strndup(&a, "block", 2), "bl");
    TB_STR(T, tb_arena_strndup(&a, NULL, 0), "");
    TB_STR(T, tb_arena_printf(&a, "layers.%d.%s", 12, "gain"),
           "layers.12.gain");
    tb_arena_clear(&a);
}

/* --- growing strings ---------------------------------------------------- */

TB_TEST(buf_grows)
{
    tb_buf b;
    tb_buf_init(&b, T->ctx);
    TB_STR(T, tb_buf_str(&b), "");
    tb_buf_put(&b, NULL, 0);
    TB_STR(T, tb_buf_str(&b), "");
    for (int i = 0; i < 2000; i++)
        tb_buf_printf(&b, "%d,", i % 10);
    tb_buf_putc(&b, '!');
    tb_buf_puts(&b, "end");
    TB_CHECK(T, b.len == 4004 && strlen(tb_buf_str(&b)) == 4004);
    TB_STR(T, tb_buf_str(&b) + 3996, "8,9,!end");
    TB_CHECK(T, tb_buf_status(&b) == TB_OK);
    tb_buf_clear(&b);
    TB_CHECK(T, b.len == 0 && tb_ctx_blocks(T->ctx) == 0);
}

TB_TEST(buf_failure_sticks)
{
    tb_buf b;
    tb_buf_init(&b, T->ctx);
    tb_buf_puts(&b, "kept");
    tb_ctx_fail_alloc_at(T->ctx, 1);
    tb_buf_printf(&b, "%200d", 1);
    tb_buf_puts(&b, "lost");
    TB_CHECK(T, tb_buf_status(&b) == TB_ERR_MEMORY);
    TB_STR(T, tb_buf_str(&b), "kept");
    tb_buf_clear(&b);
    tb_buf_init(&b, T->ctx);
    b.len = SIZE_MAX - 2; /* as if it were full */
    tb_buf_puts(&b, "xyz");
    TB_CHECK(T, b.failed);
}

/* --- every allocation fails once ---------------------------------------- */

static tb_status scenario(tb_ctx *ctx)
{
    tb_arena a;
    tb_buf b;
    tb_status s = TB_ERR_MEMORY;
    tb_arena_init(&a, ctx);
    tb_buf_init(&b, ctx);
    for (int i = 0; i < 20; i++) {
        if (!tb_arena_alloc(&a, 1500) || !tb_arena_alloc(&a, 9000) ||
            !tb_arena_strdup(&a, "name") || !tb_arena_printf(&a, "%d", i))
            goto done;
        tb_buf_printf(&b, "%100d", i);
    }
    s = tb_buf_status(&b);
done:
    tb_buf_clear(&b);
    tb_arena_clear(&a);
    return s;
}

TB_TEST(every_allocation_fails)
{
    size_t n = 0;
    tb_status s;
    do {
        tb_error_clear(T->ctx);
        tb_ctx_fail_alloc_at(T->ctx, ++n);
        s = scenario(T->ctx);
        TB_CHECK(T, tb_ctx_blocks(T->ctx) == 0);
        TB_CHECK(T, (s == TB_OK) == (tb_error(T->ctx)[0] == '\0'));
        TB_REQUIRE(T, n < 100);
    } while (s != TB_OK);
    TB_CHECK(T, n > 25); /* it did allocate */
}

/* --- words -------------------------------------------------------------- */

TB_TEST(nearest_word)
{
    static const char *const names[] = {"ln", "layernorm", "tanh", "gelu",
                                        "softmax"};
    TB_STR(T, tb_nearest("lm", names, TB_LEN(names)), "ln");
    TB_STR(T, tb_nearest("tahn", names, TB_LEN(names)), "tanh");
    TB_STR(T, tb_nearest("layer_nrm", names, TB_LEN(names)), "layernorm");
    TB_STR(T, tb_nearest("softmaxx", names, TB_LEN(names)), "softmax");
    TB_STR(T, tb_nearest("gelu", names, TB_LEN(names)), "gelu");
    TB_STR(T, tb_nearest("relu6x", names, TB_LEN(names)), NULL);
    TB_STR(T, tb_nearest("zzzz", names, TB_LEN(names)), NULL);
    TB_STR(T, tb_nearest("x", names, 0), NULL);
    char longer[200];
    memset(longer, 'a', sizeof longer);
    longer[199] = '\0';
    TB_STR(T, tb_nearest(longer, names, TB_LEN(names)), NULL);
    TB_CHECK(T, tb_streq(NULL, NULL) && !tb_streq("a", NULL));
    TB_CHECK(T, tb_streq("a", "a") && !tb_streq("a", "ab"));
}
