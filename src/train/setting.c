/* SPDX-License-Identifier: MIT */
/* The table of settings, and one setting: is it set, is it the same, its
 * text. */
#include "train/setting.h"

#define MODEL(key, kind)                                                       \
    {                                                                          \
#        key, TB_SETTING_##kind, offsetof(tb_train_spec, settings.key), false, \
            false                                                              \
    }
#define TRAIN(key, kind, free)                                                 \
    {                                                                          \
#        key, TB_SETTING_##kind, offsetof(tb_train_spec, key), free, false     \
    }
#define LATER(key, kind, field, free)                                          \
    {                                                                          \
#        key, TB_SETTING_##kind, offsetof(tb_train_spec, field), free, true    \
    }

const tb_setting_row tb_setting_rows[] = {
    LATER(kind, STACK, settings.stack, false),
    LATER(task, TASK, task, false),
    MODEL(depth, SIZE),
    LATER(decoder_depth, SIZE, settings.decoder_depth, false),
    MODEL(width, SIZE),
    MODEL(heads, SIZE),
    MODEL(kv_heads, SIZE),
    MODEL(ffn, SIZE),
    MODEL(context, SIZE),
    MODEL(vocab, SIZE),
    LATER(classes, SIZE, settings.classes, false),
    MODEL(norm, TEXT),
    MODEL(eps, REAL),
    MODEL(dropout, REAL),
    MODEL(bias, FLAG),
    MODEL(tied, FLAG),
    MODEL(causal, FLAG),
    MODEL(positions, POSITIONS),
    MODEL(uniform_attention, FLAG),
    MODEL(init, TEXT),
    TRAIN(batch, SIZE, false),
    TRAIN(steps, SIZE, false),
    TRAIN(lr, REAL, false),
    TRAIN(warmup, COUNT, false),
    TRAIN(schedule, SCHEDULE, false),
    TRAIN(beta1, REAL, false),
    TRAIN(beta2, REAL, false),
    TRAIN(adam_eps, REAL, false),
    TRAIN(weight_decay, REAL, false),
    TRAIN(clip, REAL, false),
    LATER(label_smoothing, REAL, label_smoothing, false),
    TRAIN(val_fraction, REAL, false),
    TRAIN(val_every, SIZE, true),
    TRAIN(val_windows, SIZE, false),
    TRAIN(save_every, SIZE, true),
    TRAIN(seed, SEED, false),
    TRAIN(dtype, DTYPE, false),
    TRAIN(tokenizer, TEXT, false),
    TRAIN(text, TEXT, true),
    LATER(source, TEXT, source, true),
    LATER(target, TEXT, target, true),
};
#undef MODEL
#undef TRAIN
#undef LATER

const size_t tb_setting_count = TB_LEN(tb_setting_rows);

const char *const tb_dtype_names[3] = {"f32", "f64", "bf16"};
const char *const tb_origin_names[5] = {"default", "config", "model", "option",
                                        "text"};

void *tb_setting_field(const tb_setting_row *r, tb_train_spec *s)
{
    return (char *)s + r->offset;
}

const void *tb_setting_peek(const tb_setting_row *r, const tb_train_spec *s)
{
    return (const char *)s + r->offset;
}

bool tb_setting_is_set(const tb_setting_row *r, const tb_train_spec *s)
{
    const void *p = tb_setting_peek(r, s);
    switch (r->kind) {
    case TB_SETTING_SIZE:
        return *(const size_t *)p != 0;
    case TB_SETTING_COUNT:
        return *(const size_t *)p != SIZE_MAX;
    case TB_SETTING_REAL: /* nan is set: it is refused, not replaced */
        return !(*(const double *)p < 0);
    case TB_SETTING_FLAG:
    case TB_SETTING_POSITIONS:
        return *(const int *)p >= 0;
    case TB_SETTING_TEXT:
        return *(const char *const *)p != NULL;
    case TB_SETTING_SEED:
        return *(const uint64_t *)p != TB_SEED_UNSET;
    case TB_SETTING_SCHEDULE:
        return *(const tb_schedule *)p != TB_SCHEDULE_UNSET;
    case TB_SETTING_DTYPE:
        return *(const tb_dtype *)p != TB_DTYPE_UNSET;
    case TB_SETTING_STACK:
        return *(const int *)p != TB_STACKS_DECODER;
    case TB_SETTING_TASK:
        return *(const tb_task *)p != TB_TASK_UNSET;
    }
    return false;
}

static size_t bytes_of(tb_setting_kind k)
{
    static const size_t sizes[] = {
        [TB_SETTING_SIZE] = sizeof(size_t),
        [TB_SETTING_COUNT] = sizeof(size_t),
        [TB_SETTING_REAL] = sizeof(double),
        [TB_SETTING_FLAG] = sizeof(int),
        [TB_SETTING_POSITIONS] = sizeof(int),
        [TB_SETTING_TEXT] = sizeof(const char *),
        [TB_SETTING_SEED] = sizeof(uint64_t),
        [TB_SETTING_SCHEDULE] = sizeof(tb_schedule),
        [TB_SETTING_STACK] = sizeof(int),
        [TB_SETTING_TASK] = sizeof(tb_task),
        [TB_SETTING_DTYPE] = sizeof(tb_dtype),
    };
    return sizes[k];
}

bool tb_setting_same(const tb_setting_row *r, const tb_train_spec *a,
                     const tb_train_spec *b)
{
    const void *x = tb_setting_peek(r, a), *y = tb_setting_peek(r, b);
    if (r->kind == TB_SETTING_TEXT)
        return tb_streq(*(const char *const *)x, *(const char *const *)y);
    if (r->kind == TB_SETTING_REAL)
        return *(const double *)x == *(const double *)y;
    return memcmp(x, y, bytes_of(r->kind)) == 0;
}

void tb_setting_copy(const tb_setting_row *r, tb_train_spec *to,
                     const tb_train_spec *from)
{
    memcpy(tb_setting_field(r, to), tb_setting_peek(r, from),
           bytes_of(r->kind));
}

const char *tb_setting_text(const tb_setting_row *r, const tb_train_spec *s,
                            char out[TB_SETTING_CHARS])
{
    const void *p = tb_setting_peek(r, s);
    const char *word = NULL;
    switch (r->kind) {
    case TB_SETTING_SIZE:
    case TB_SETTING_COUNT:
        tb_format(out, TB_SETTING_CHARS, "%zu", *(const size_t *)p);
        return out;
    case TB_SETTING_REAL:
        tb_format(out, TB_SETTING_CHARS, "%g", *(const double *)p);
        return out;
    case TB_SETTING_FLAG:
        return *(const int *)p ? "on" : "off";
    case TB_SETTING_POSITIONS:
        return tb_positions_names[*(const int *)p];
    case TB_SETTING_TEXT:
        word = *(const char *const *)p;
        tb_format(out, TB_SETTING_CHARS, "%.100s", word ? word : "nothing");
        return out;
    case TB_SETTING_SEED:
        tb_format(out, TB_SETTING_CHARS, "%llu",
                  (unsigned long long)*(const uint64_t *)p);
        return out;
    case TB_SETTING_SCHEDULE:
        return tb_schedule_name(*(const tb_schedule *)p);
    case TB_SETTING_DTYPE:
        return tb_dtype_names[*(const tb_dtype *)p];
    case TB_SETTING_STACK:
        return tb_stack_names[*(const int *)p];
    case TB_SETTING_TASK:
        return tb_task_name(*(const tb_task *)p);
    }
    return "";
}
