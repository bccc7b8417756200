/* SPDX-License-Identifier: MIT */
/* Texts that are too short, settings that cannot be, folders and disks that
 * cannot be written, memory that runs out. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "test_train_help.h"

static void fails(tb_test *T, const tb_train_spec *spec, tb_status want,
                  const char *text)
{
    char error[1024];
    help_log log = {0};
    tb_train_result r;
    tb_status s = help_train(T, "pre-ln", spec, &log, &r, error, sizeof error);
    if (s != want || !strstr(error, text))
        tb_test_fail(T, __FILE__, __LINE__, "%s: %s, wanted: %s",
                     tb_status_text(s), error, text);
    TB_CHECK(T, log.header[0] == 0);
}

TB_TEST(texts)
{
    tb_train_spec s = help_spec(tmp_text("empty.txt", ""), NULL);
    fails(T, &s, TB_ERR_INPUT, "empty.txt: the text is empty");
    s.text = tmp_text("short.txt", "too short");
    fails(T, &s, TB_ERR_INPUT, "need at least 13 tokens, have 9");
    s.text = tmp_path("absent.txt");
    fails(T, &s, TB_ERR_INPUT, "absent.txt");
    s.text = NULL;
    fails(T, &s, TB_ERR_ARG, "task lm: got no text, wanted a text");
    s.text = help_text("rhyme.txt", 20);
    s.tokenizer = "word";
    fails(T, &s, TB_ERR_ARG, "word");
}

TB_TEST(settings)
{
    const tb_train_spec base = help_spec(help_text("rhyme.txt", 20), NULL);
    tb_train_spec s;
#define IMPOSSIBLE(field, value, text)                                         \
    do {                                                                       \
        s = base;                                                              \
        s.field = value;                                                       \
        fails(T, &s, TB_ERR_ARG, text);                                        \
    } while (0)
    IMPOSSIBLE(lr, __builtin_nan(""), "lr: got nan");
    IMPOSSIBLE(beta1, 1, "beta1: got 1");
    IMPOSSIBLE(clip, __builtin_inf(), "clip: got inf");
    IMPOSSIBLE(val_fraction, 1, "val_fraction: got 1");
    IMPOSSIBLE(settings.vocab, 7, "vocab: got 7, the tokenizer has");
    IMPOSSIBLE(settings.heads, 3, "width: got 16");
    IMPOSSIBLE(resume, true, "no folder to resume");
#undef IMPOSSIBLE
}

TB_TEST(no_block)
{
    tb_train_result r;
    tb_train_spec s = help_spec(help_text("rhyme.txt", 20), NULL);
    TB_FAILS(T, tb_train(T->ctx, NULL, &s, NULL, &r), TB_ERR_ARG,
             "no block given");
}

/* Without a validation part and without a folder it still trains. */
TB_TEST(no_validation)
{
    help_log log = {0};
    tb_train_result r;
    tb_train_spec s = help_spec(help_text("rhyme.txt", 1), NULL);
    s.val_fraction = 0;
    TB_CHECK(T, help_train(T, "pre-ln", &s, &log, &r, NULL, 0) == TB_OK);
    TB_CHECK(T, r.val_loss != r.val_loss && log.steps == 10 && log.saves == 0);
}

/* --- folders ----------------------------------------------------------------
 */

TB_TEST(folder_is_a_file)
{
    tb_train_spec s = help_spec(help_text("rhyme.txt", 20), NULL);
    s.out = tmp_text("file", "here");
    fails(T, &s, TB_ERR_IO, "cannot make the folder");
}

TB_TEST(folder_cannot_be_written)
{
    if (geteuid() == 0)
        TB_SKIP(T, "root may write anywhere");
    char dir[1024];
    snprintf(dir, sizeof dir, "%s", tmp_path("readonly"));
    TB_OKAY(T, tb_dir_make(T->ctx, dir));
    chmod(dir, 0500);
    tb_train_spec s = help_spec(help_text("rhyme.txt", 20), dir);
    fails(T, &s, TB_ERR_IO, "readonly");
    chmod(dir, 0700);
}

TB_TEST(folder_is_in_use)
{
    char dir[1024];
    snprintf(dir, sizeof dir, "%s", tmp_path("busy"));
    TB_OKAY(T, tb_dir_make(T->ctx, dir));
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    TB_REQUIRE(T, fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
    tb_train_spec s = help_spec(help_text("rhyme.txt", 20), dir);
    fails(T, &s, TB_ERR_IO, "another process is training there");
    close(fd);
    help_log log = {0};
    tb_train_result r;
    TB_CHECK(T, help_train(T, "pre-ln", &s, &log, &r, NULL, 0) == TB_OK);
}

/* C124: the second save does not fit; the first one stays. */
static struct rlimit unlimited;

static void shrink_disk(void *user, const tb_train_step *s)
{
    (void)user;
    struct rlimit tight = unlimited;
    tight.rlim_cur = 4096;
    if (s->step == 6)
        setrlimit(RLIMIT_FSIZE, &tight);
}

TB_TEST(disk_is_full)
{
    char dir[1024];
    tb_block *b;
    tb_train_result r;
    tb_lm *m;
    snprintf(dir, sizeof dir, "%s", tmp_path("full"));
    tb_train_spec s = help_spec(help_text("rhyme.txt", 20), dir);
    tb_train_observer o = {.step = shrink_disk};
    s.save_every = 5;
    getrlimit(RLIMIT_FSIZE, &unlimited);
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    tb_status status = tb_train(T->ctx, b, &s, &o, &r);
    setrlimit(RLIMIT_FSIZE, &unlimited);
    TB_CHECK(T, status == TB_ERR_IO && r.good_step == 5 && r.steps == 10);
    TB_CHECK(T, strstr(tb_error(T->ctx), TB_DIR_STATE));
    TB_CHECK(T, !tb_file_exists(tmp_path("full/state.safetensors.tmp")));
    TB_OKAY(T, tb_lm_open(T->ctx, dir, &m));
    TB_CHECK(T, tb_lm_step(m) == 5);
    tb_lm_close(m);
    help_log log = {0};
    s = (tb_train_spec)TB_TRAIN_UNSET;
    s.out = dir;
    s.resume = true;
    TB_CHECK(T, help_train(T, NULL, &s, &log, &r, NULL, 0) == TB_OK);
    TB_CHECK(T, log.first == 6 && r.steps == 10);
    tb_block_destroy(T->ctx, b);
}

TB_TEST(disk_is_full_from_the_start)
{
    struct rlimit none;
    getrlimit(RLIMIT_FSIZE, &unlimited);
    none = unlimited;
    none.rlim_cur = 16;
    tb_train_spec s = help_spec(help_text("rhyme.txt", 20), tmp_path("never"));
    setrlimit(RLIMIT_FSIZE, &none);
    fails(T, &s, TB_ERR_IO, "config.json");
    setrlimit(RLIMIT_FSIZE, &unlimited);
    help_log log = {0}; /* nothing is left that would stand in the way */
    tb_train_result r;
    TB_CHECK(T, help_train(T, "pre-ln", &s, &log, &r, NULL, 0) == TB_OK);
}

/* --- memory -----------------------------------------------------------------
 */

TB_TEST(memory_runs_out)
{
    char dir[1024];
    tb_block *b;
    tb_train_result r;
    tb_lm *m;
    tb_train_spec s = help_spec(help_text("rhyme.txt", 20), NULL);
    s.settings.depth = 1;
    s.steps = 1;
    TB_OKAY(T, tb_block_load(T->ctx, "pre-ln", &b));
    tb_gemm_load(T->ctx);
    size_t blocks = tb_ctx_blocks(T->ctx);
    TMP_EACH_ALLOC(T, tb_train(T->ctx, b, &s, NULL, &r), (void)0);
    TB_CHECK(T, tb_ctx_blocks(T->ctx) == blocks);
    snprintf(dir, sizeof dir, "%s", tmp_path("memory"));
    s.out = dir;
    TB_OKAY(T, tb_train(T->ctx, b, &s, NULL, &r));
    TMP_EACH_ALLOC(T, tb_lm_open(T->ctx, dir, &m), tb_lm_close(m));
    TB_CHECK(T, tb_ctx_blocks(T->ctx) == blocks);
    tb_block_destroy(T->ctx, b);
}

/* The header names what a user may need to know later. */
TB_TEST(header)
{
    help_log log = {0};
    tb_train_result r;
    tb_config *c, *part;
    const char *text;
    size_t n;
    static const char mixed[] = "one\r\ntwo\rthree\n";
    char bytes[1500];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = mixed[i % (sizeof mixed - 1)];
    tb_train_spec s = help_spec(tmp_file("mixed", bytes, sizeof bytes), NULL);
    TB_CHECK(T, help_train(T, "pre-ln", &s, &log, &r, NULL, 0) == TB_OK);
    TB_OKAY(T, tb_config_parse(T->ctx, "header", log.header, strlen(log.header),
                               &c));
    TB_OKAY(T, tb_config_string(c, "tollbooth", &text));
    TB_STR(T, text, TB_VERSION);
    TB_OKAY(T, tb_config_size(c, "parameters", &n));
    TB_CHECK(T, n == r.parameters);
    TB_OKAY(T, tb_config_object(c, "settings", &part));
    TB_OKAY(T, tb_config_string(part, "norm_from", &text));
    TB_STR(T, text, "default");
    TB_OKAY(T, tb_config_object(c, "corpus", &part));
    TB_OKAY(T, tb_config_size(part, "crlf", &n));
    TB_CHECK(T, n == 100);
    TB_OKAY(T, tb_config_size(part, "cr", &n));
    TB_CHECK(T, n == 100);
    TB_OKAY(T, tb_config_size(part, "lf", &n));
    TB_CHECK(T, n == 100);
    TB_OKAY(T, tb_config_array(c, "groups", &part));
    size_t elements = 0, matrices = 0;
    for (size_t i = 0; i < tb_config_length(part); i++) {
        tb_config *g;
        bool decay;
        TB_OKAY(T, tb_config_item(part, i, &g));
        TB_OKAY(T, tb_config_size(g, "elements", &n));
        TB_OKAY(T, tb_config_bool(g, "decay", &decay));
        TB_OKAY(T, tb_config_string(g, "role", &text));
        TB_CHECK(T, decay == tb_streq(text, "matrix"));
        elements += n;
        matrices += decay;
    }
    TB_CHECK(T, elements == r.parameters && matrices == 1);
    tb_config_destroy(c);
}
