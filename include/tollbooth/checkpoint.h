/* SPDX-License-Identifier: MIT */
/* Files that hold numbers: safetensors, .npy, config.json, and the atomic
 * writing under them. Paths are UTF-8; "-" is not special here. */
#ifndef TOLLBOOTH_CHECKPOINT_H
#define TOLLBOOTH_CHECKPOINT_H

#include "tollbooth/base.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* What every call here returns beside TB_OK:
 *   TB_ERR_INPUT   the file is absent, malformed or of the wrong kind (exit 3);
 *                  the text names file, tensor or key, got and wanted
 *   TB_ERR_IO      the system failed: path and errno text (exit 5)
 *   TB_ERR_MEMORY  nothing is left behind, *out is NULL or cleared          */

/* --- whole files --------------------------------------------------------- */

/** Bytes owned by the caller; one NUL follows data[len-1]. */
typedef struct tb_bytes {
    char *data;
    size_t len;
} tb_bytes;

/** tb_bytes_clear - free and zero `b`; an all-zero `b` is fine. */
void tb_bytes_clear(tb_ctx *ctx, tb_bytes *b);

/**
 * tb_file_read - the whole of a file, a pipe, or standard input ("-").
 *
 * in   max   most bytes accepted, 0 for no limit; a longer file is
 *            TB_ERR_INPUT and is not read further
 * out  out   cleared on failure
 */
tb_status tb_file_read(tb_ctx *ctx, const char *path, size_t max,
                       tb_bytes *out);

/** tb_file_exists - a regular file (or what a link to one names). */
bool tb_file_exists(const char *path);

/**
 * tb_file_write_atomic - after this call, or a crash or kill -9 at any moment
 * of it, `path` holds either all its old bytes or all the new ones.
 *
 * Writes `path`.tmp beside it, checks every write, fsync and close, renames,
 * and fsyncs the folder. A failure removes the partial file and is TB_ERR_IO.
 * The .tmp is locked: a second writer of the same path is refused; one left by
 * a killed writer is reused. Links are followed; a device or pipe is written
 * in place.
 */
tb_status tb_file_write_atomic(tb_ctx *ctx, const char *path, const void *data,
                               size_t n);

/** tb_dir_make - make `path` and its parents; an existing folder is fine. */
tb_status tb_dir_make(tb_ctx *ctx, const char *path);

/*
 * A training folder DIR, safe against kill -9 at any instant:
 *
 *   config.json block.txt tokenizer.json   written once, atomically, before
 *                                          the first step; never changed after
 *   state.safetensors   all that --resume needs, in one file, replaced
 *                       atomically: the weights under their own names, the
 *                       moments as "adam.m/NAME" and "adam.v/NAME"; metadata:
 *                       step, seed, hashes of corpus, settings and block
 *   log.jsonl           of the program only: the lines of train --json, on disk
 *                       after every checkpoint; nothing reads it but report
 *   model.safetensors   the weights of the same step for everybody else,
 *                       written after state.safetensors
 *
 * --resume reads state.safetensors only. A kill between the two writes leaves
 * a model.safetensors one save older, itself complete; the resumed run
 * overwrites it. There is never more than one .tmp per file.
 */
#define TB_DIR_STATE     "state.safetensors"
#define TB_DIR_MODEL     "model.safetensors"
#define TB_DIR_CONFIG    "config.json"
#define TB_DIR_BLOCK     "block.txt"
#define TB_DIR_TOKENIZER "tokenizer.json"
#define TB_DIR_LOG       "log.jsonl"

/** tb_path_join - "dir/name" into a new NUL-terminated out->data. */
tb_status tb_path_join(tb_ctx *ctx, const char *dir, const char *name,
                       tb_bytes *out);

/* --- SHA-256 ------------------------------------------------------------- */

/** tb_sha256_hex - of n bytes: 64 lower-case digits and NUL (FIPS 180-4). */
void tb_sha256_hex(const void *data, size_t n, char out[65]);

/* --- element types of files ---------------------------------------------- */

/* name, safetensors name, bytes */
#define TB_ELEM_LIST(X)                                                        \
    X(F64, "F64", 8)                                                           \
    X(F32, "F32", 4)                                                           \
    X(F16, "F16", 2)                                                           \
    X(BF16, "BF16", 2)                                                         \
    X(I64, "I64", 8)                                                           \
    X(I32, "I32", 4)                                                           \
    X(I16, "I16", 2)                                                           \
    X(I8, "I8", 1)                                                             \
    X(U64, "U64", 8)                                                           \
    X(U32, "U32", 4)                                                           \
    X(U16, "U16", 2)                                                           \
    X(U8, "U8", 1)                                                             \
    X(BOOL, "BOOL", 1)                                                         \
    X(F8_E4M3, "F8_E4M3", 1)                                                   \
    X(F8_E5M2, "F8_E5M2", 1)

typedef enum tb_elem {
#define TB_ELEM_ENUM(id, name, bytes) TB_ELEM_##id,
    TB_ELEM_LIST(TB_ELEM_ENUM)
#undef TB_ELEM_ENUM
        TB_ELEM_COUNT
} tb_elem;

/** tb_elem_size - bytes of one element. */
size_t tb_elem_size(tb_elem e);
/** tb_elem_name - as safetensors spells it: "BF16". */
const char *tb_elem_name(tb_elem e);
/** tb_elem_of - the file type that stores a tb_dtype as it is. */
tb_elem tb_elem_of(tb_dtype t);

/** tb_elem_decode - n little-endian elements, of any alignment, to floats or
 * doubles. False for the F8 types, which mean nothing without their scales;
 * then nothing is written. */
bool tb_elem_decode(tb_elem e, const void *raw, size_t n, tb_dtype t,
                    void *out);
/** tb_elem_encode - and back, as tb_elem_decode, rounding to nearest even; too
 * large a number becomes an infinity (floats) or the nearest end (integers, NaN
 * gives 0); BOOL is x != 0. NaN stays NaN. */
bool tb_elem_encode(tb_elem e, tb_dtype t, const void *x, size_t n, void *raw);

/* --- reading safetensors -------------------------------------------------- */

enum { TB_TENSOR_RANK = 8 };                /* most dimensions anywhere */
#define TB_SAFETENSORS_HEADER_MAX 100000000 /* bytes, as the reference */

/** One tensor of a file; strings live as long as the file is open. */
typedef struct tb_tensor_info {
    const char *name;
    tb_elem elem;
    int rank;
    size_t dims[TB_TENSOR_RANK];
    size_t count;       /* product of dims; 1 for a scalar, 0 is legal */
    uint64_t at, bytes; /* in the data area */
} tb_tensor_info;

typedef struct tb_safetensors tb_safetensors;

/**
 * tb_safetensors_open - check the whole header; read no tensor yet.
 *
 * As strict as the reference reader: length at most 100,000,000 and within the
 * file, UTF-8 JSON without duplicate names, known types, sizes multiplied with
 * overflow checks, ranges that cover the data area exactly once. Allowed, as
 * there: scalars, empty tensors, any order, white space around the JSON.
 * Nothing is allocated before the length is checked. A Git LFS pointer, an
 * HTML page, gzip, ZIP (PyTorch), pickle, GGUF, HDF5 are called by name.
 */
tb_status tb_safetensors_open(tb_ctx *ctx, const char *path,
                              tb_safetensors **out);
/** tb_safetensors_open_memory - the same over bytes that outlive it; `name`
 * stands for the path in messages. */
tb_status tb_safetensors_open_memory(tb_ctx *ctx, const char *name,
                                     const void *data, size_t n,
                                     tb_safetensors **out);
/** tb_safetensors_close - frees it and all it gave; NULL is fine. */
void tb_safetensors_close(tb_safetensors *f);

/** tb_safetensors_path - as it was opened. */
const char *tb_safetensors_path(const tb_safetensors *f);
/** tb_safetensors_count - how many tensors. */
size_t tb_safetensors_count(const tb_safetensors *f);
/** tb_safetensors_at - the i-th in the order of the data; never NULL. */
const tb_tensor_info *tb_safetensors_at(const tb_safetensors *f, size_t i);
/** tb_safetensors_find - by name, or NULL. Binary search. */
const tb_tensor_info *tb_safetensors_find(const tb_safetensors *f,
                                          const char *name);
/** tb_safetensors_need - by name and shape (rank -1: any); TB_ERR_INPUT with
 * the nearest name, or both shapes. */
tb_status tb_safetensors_need(tb_ctx *ctx, const tb_safetensors *f,
                              const char *name, int rank, const size_t *dims,
                              const tb_tensor_info **out);

/** tb_safetensors_meta - a value of __metadata__, or NULL. */
const char *tb_safetensors_meta(const tb_safetensors *f, const char *key);
/** tb_safetensors_meta_count - pairs in __metadata__; 0 without one. */
size_t tb_safetensors_meta_count(const tb_safetensors *f);
/** tb_safetensors_meta_at - the i-th pair; both live as long as f. */
void tb_safetensors_meta_at(const tb_safetensors *f, size_t i, const char **key,
                            const char **value);

/** tb_safetensors_read - elements [first, first+count) of t, converted. Runs
 * in constant memory. TB_ERR_ARG outside the tensor. */
tb_status tb_safetensors_read(tb_ctx *ctx, const tb_safetensors *f,
                              const tb_tensor_info *t, size_t first,
                              size_t count, tb_dtype dtype, void *out);
/** tb_safetensors_read_raw - all t->bytes of t as they are in the file. */
tb_status tb_safetensors_read_raw(tb_ctx *ctx, const tb_safetensors *f,
                                  const tb_tensor_info *t, void *out);

/* --- writing safetensors -------------------------------------------------- */

typedef struct tb_safetensors_writer tb_safetensors_writer;

/** tb_safetensors_writer_create - an empty file in the making; nothing is
 * written yet. TB_ERR_MEMORY. */
tb_status tb_safetensors_writer_create(tb_ctx *ctx,
                                       tb_safetensors_writer **out);
/** tb_safetensors_writer_destroy - NULL is fine. */
void tb_safetensors_writer_destroy(tb_safetensors_writer *w);

/** tb_safetensors_writer_meta - one __metadata__ pair; both are copied and
 * must be UTF-8. Setting a key again replaces its value. */
tb_status tb_safetensors_writer_meta(tb_safetensors_writer *w, const char *key,
                                     const char *value);

/**
 * tb_safetensors_writer_add - one tensor: stored as `elem`, taken from
 * `data` [dims] of type `dtype`, which must live until _save.
 * TB_ERR_ARG on a name that is not UTF-8, empty or "__metadata__", or on an F8
 * type.
 */
tb_status tb_safetensors_writer_add(tb_safetensors_writer *w, const char *name,
                                    tb_elem elem, int rank, const size_t *dims,
                                    tb_dtype dtype, const void *data);

/**
 * tb_safetensors_writer_save - write the file atomically, tensor by tensor, in
 * constant memory. Order: larger elements first, then by name, so that every
 * tensor is aligned; the header is padded with spaces to 8 bytes. The same
 * content gives the same bytes. TB_ERR_ARG on a name used twice, TB_ERR_INPUT
 * above the header cap, both before anything is written. May be called again.
 */
tb_status tb_safetensors_writer_save(tb_safetensors_writer *w,
                                     const char *path);

/* --- arrays of doubles from files and the command line ---------------------
 */

typedef struct tb_array {
    int rank;
    size_t dims[TB_TENSOR_RANK];
    size_t count;
    double *data; /* row-major */
} tb_array;

/** tb_array_clear - frees the numbers; the array is empty then. */
void tb_array_clear(tb_ctx *ctx, tb_array *a);

/**
 * tb_json_parse_tensor - a number, or nested lists of numbers of equal length;
 * the strings "nan", "inf", "-inf" are numbers too, a bare NaN is not.
 *
 * in   name  what the text is for, e.g. "--set x", for messages:
 *            "--set x: ragged list: [1] has 2 items, [0] has 3"
 * Returns TB_ERR_INPUT on anything else, or above TB_TENSOR_RANK lists deep.
 */
tb_status tb_json_parse_tensor(tb_ctx *ctx, const char *text, const char *name,
                               tb_array *out);

/** tb_npy_read - a NumPy file: floats, integers or bools, little-endian, C
 * order; anything else is refused by name. */
tb_status tb_npy_read(tb_ctx *ctx, const char *path, tb_array *out);

/** tb_array_read_tensor - one tensor of a safetensors file. */
tb_status tb_array_read_tensor(tb_ctx *ctx, const char *path, const char *name,
                               tb_array *out);

typedef struct tb_npy_writer tb_npy_writer;

/** tb_npy_create - start an .npy file (version 1.0, C order); `elem` is one
 * of F32, F64, I64, ... (not BF16, F8). Nothing appears at `path` yet. */
tb_status tb_npy_create(tb_ctx *ctx, const char *path, tb_elem elem, int rank,
                        const size_t *dims, tb_npy_writer **out);
/** tb_npy_append - the next n elements. */
tb_status tb_npy_append(tb_npy_writer *w, tb_dtype t, const void *x, size_t n);
/** tb_npy_finish - put the file in place atomically; TB_ERR_ARG if fewer or
 * more elements came than dims say. Frees w either way. */
tb_status tb_npy_finish(tb_npy_writer *w);
/** tb_npy_abort - drop the file; NULL is fine. */
void tb_npy_abort(tb_npy_writer *w);
/** tb_npy_write - the three in one. */
tb_status tb_npy_write(tb_ctx *ctx, const char *path, tb_elem elem, int rank,
                       const size_t *dims, tb_dtype t, const void *x);

/* --- config.json and other JSON ------------------------------------------- */

/* A JSON value that knows its file and place, so that errors read
 *   config.json: rope_scaling.factor: got a string "8", wanted a number
 * The root owns everything; values reached from it die with it. */
typedef struct tb_config tb_config;

typedef enum tb_config_kind {
    TB_CONFIG_ABSENT,
    TB_CONFIG_NULL,
    TB_CONFIG_BOOL,
    TB_CONFIG_INT,
    TB_CONFIG_REAL,
    TB_CONFIG_STRING,
    TB_CONFIG_ARRAY,
    TB_CONFIG_OBJECT
} tb_config_kind;

/** tb_config_open - read a JSON file: duplicate keys, bare NaN, trailing text
 * and nesting beyond 2048 are refused with line and column; a BOM is skipped;
 * integers beyond 64 bits become reals. At most 256 MiB. */
tb_status tb_config_open(tb_ctx *ctx, const char *path, tb_config **out);
/** tb_config_parse - the same for text; `name` stands for the file. */
tb_status tb_config_parse(tb_ctx *ctx, const char *name, const char *text,
                          size_t n, tb_config **out);
/** tb_config_destroy - of a root only, with all below it. NULL is fine. */
void tb_config_destroy(tb_config *root);

/* In all below `key` is a member of the object c, or NULL for c itself. */

/** tb_config_what - its kind; TB_CONFIG_ABSENT where there is none. */
tb_config_kind tb_config_what(const tb_config *c, const char *key);

/* The value, or TB_ERR_INPUT when absent, null or of another kind. */

/** tb_config_int - of 64 bits; it may be written 12.0. */
tb_status tb_config_int(tb_config *c, const char *key, int64_t *out);
/** tb_config_size - an int from 0. */
tb_status tb_config_size(tb_config *c, const char *key, size_t *out);
/** tb_config_number - finite, whole or not. */
tb_status tb_config_number(tb_config *c, const char *key, double *out);
/** tb_config_string - lives as long as the root; one with a NUL inside is
 * refused. */
tb_status tb_config_string(tb_config *c, const char *key, const char **out);
/** tb_config_bool - true or false, no number. */
tb_status tb_config_bool(tb_config *c, const char *key, bool *out);

/* The same; absent or null gives `or_`. Another kind is still an error. */

/** tb_config_int_or - as tb_config_int, or or_. */
tb_status tb_config_int_or(tb_config *c, const char *key, int64_t or_,
                           int64_t *out);
/** tb_config_size_or - as tb_config_size, or or_. */
tb_status tb_config_size_or(tb_config *c, const char *key, size_t or_,
                            size_t *out);
/** tb_config_number_or - as tb_config_number, or or_. */
tb_status tb_config_number_or(tb_config *c, const char *key, double or_,
                              double *out);
/** tb_config_string_or - as tb_config_string, or or_, which may be NULL. */
tb_status tb_config_string_or(tb_config *c, const char *key, const char *or_,
                              const char **out);
/** tb_config_bool_or - as tb_config_bool, or or_. */
tb_status tb_config_bool_or(tb_config *c, const char *key, bool or_, bool *out);

/** tb_config_object, _array - a member that must be one. */
tb_status tb_config_object(tb_config *c, const char *key, tb_config **out);
tb_status tb_config_array(tb_config *c, const char *key, tb_config **out);
/** tb_config_length - items of an array, members of an object, else 0. */
size_t tb_config_length(const tb_config *c);
/** tb_config_item - item i of an array. */
tb_status tb_config_item(tb_config *array, size_t i, tb_config **out);
/** tb_config_ints - a whole array of integers into out[tb_config_length], each
 * within [low, high]. */
tb_status tb_config_ints(tb_config *array, int64_t low, int64_t high,
                         int64_t *out);

/** tb_config_next - step through the members of an object in file order.
 * `*it` starts as NULL; false at the end. */
bool tb_config_next(const tb_config *object, void **it, const char **key);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
