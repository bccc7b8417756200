/* SPDX-License-Identifier: MIT */
/* First bytes of the files people load by mistake. */
#include "checkpoint/looks_like.h"

static const struct magic {
    const char *bytes;
    size_t n;
    bool any_case;
    const char *what;
} magics[] = {
    {"<!DOCT", 6, true, "an HTML page, perhaps an error page"},
    {"<html", 5, true, "an HTML page, perhaps an error page"},
    {"<?xml", 5, true, "an XML page, perhaps an error page"},
    {"\x1f\x8b", 2, false, "gzip; decompress it first"},
    {"PK\x03\x04", 4, false, "a ZIP, perhaps a PyTorch checkpoint"},
    {"\x80\x02", 2, false, "a Python pickle, perhaps an old PyTorch file"},
    {"\x80\x03", 2, false, "a Python pickle, perhaps an old PyTorch file"},
    {"\x80\x04", 2, false, "a Python pickle, perhaps an old PyTorch file"},
    {"\x80\x05", 2, false, "a Python pickle, perhaps an old PyTorch file"},
    {"GGUF", 4, false, "a GGUF file (llama.cpp)"},
    {"\x89HDF\r\n", 6, false, "an HDF5 file, perhaps from Keras"},
    {"\x93NUMPY", 6, false, "a NumPy .npy file"},
    {"\x28\xb5\x2f\xfd", 4, false, "zstd; decompress it first"},
    {"BZh", 3, false, "bzip2; decompress it first"},
    {"\xfd\x37zXZ", 5, false, "xz; decompress it first"},
    {"%PDF", 4, false, "a PDF"},
};

static bool starts_with(const char *p, size_t n, const struct magic *m)
{
    if (n < m->n)
        return false;
    for (size_t i = 0; i < m->n; i++) {
        char c = p[i], want = m->bytes[i];
        if (m->any_case && c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (m->any_case && want >= 'A' && want <= 'Z')
            want = (char)(want - 'A' + 'a');
        if (c != want)
            return false;
    }
    return true;
}

/* The digits after "\nsize ", or an empty run. */
static const char *size_field(const char *p, size_t n, size_t *digits)
{
    static const char key[] = "\nsize ";
    *digits = 0;
    for (size_t i = 0; i + sizeof(key) - 1 < n; i++) {
        if (memcmp(p + i, key, sizeof(key) - 1) != 0)
            continue;
        const char *at = p + i + sizeof(key) - 1;
        while (at + *digits < p + n && at[*digits] >= '0' && at[*digits] <= '9')
            (*digits)++;
        return at;
    }
    return "";
}

const char *tb_looks_like(const void *head, size_t n, char *dst, size_t cap)
{
    static const char lfs[] = "version https://git-lfs";
    const char *p = head;
    if (n >= sizeof(lfs) - 1 && memcmp(p, lfs, sizeof(lfs) - 1) == 0) {
        size_t digits;
        const char *size = size_field(p, n, &digits);
        tb_format(dst, cap,
                  "a Git LFS pointer (the real file has %.*s bytes; fetch it "
                  "with `git lfs pull`)",
                  (int)digits, size);
        return dst;
    }
    for (size_t i = 0; i < TB_LEN(magics); i++)
        if (starts_with(p, n, &magics[i])) {
            tb_format(dst, cap, "%s", magics[i].what);
            return dst;
        }
    return NULL;
}
