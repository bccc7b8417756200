/* SPDX-License-Identifier: MIT */
/* What the rooms ask of a system, for the browser: memory that grows, no
 * environment, and string.h. Built with -ffreestanding, so that the loops
 * below do not become calls of themselves. */
#include "base/platform.h"

#include <stdint.h>
#include <string.h>

/* --- memory ------------------------------------------------------------- */

/* Units of 64 bytes: a header unit, then the block. Free blocks form a list by
 * address, so neighbours join; first fit. (Kernighan and Ritchie, 8.7) */
typedef struct unit {
    struct unit *next; /* of a free block */
    size_t units;      /* with the header */
    char pad[64 - sizeof(void *) - sizeof(size_t)];
} unit;

enum { UNIT = sizeof(unit), PAGE = 65536, GROW_PAGES = 16 };

static unit *free_list; /* lowest address first */

static void give(unit *u)
{
    unit *before = NULL, *after = free_list;
    while (after && after < u) {
        before = after;
        after = after->next;
    }
    u->next = after;
    if (after && u + u->units == after) {
        u->units += after->units;
        u->next = after->next;
    }
    if (!before) {
        free_list = u;
    } else if (before + before->units == u) {
        before->units += u->units;
        before->next = u->next;
    } else {
        before->next = u;
    }
}

static int grow(size_t units)
{
    size_t pages = units / (PAGE / UNIT) + 1;
    if (pages < GROW_PAGES)
        pages = GROW_PAGES;
    size_t old = __builtin_wasm_memory_grow(0, pages);
    if (old == SIZE_MAX)
        return 0;
    unit *u = (unit *)(old * PAGE);
    u->units = pages * (PAGE / UNIT);
    give(u);
    return 1;
}

static unit *take(size_t units)
{
    for (unit **at = &free_list; *at; at = &(*at)->next) {
        unit *u = *at;
        if (u->units < units)
            continue;
        if (u->units == units) {
            *at = u->next;
            return u;
        }
        u->units -= units; /* the end of it */
        u += u->units;
        u->units = units;
        return u;
    }
    return NULL;
}

void *tb_platform_alloc(size_t bytes)
{
    size_t units = bytes / UNIT + (bytes % UNIT > 0) + 1;
    unit *u = take(units);
    if (!u && grow(units))
        u = take(units);
    return u ? u + 1 : NULL;
}

void tb_platform_free(void *p)
{
    if (p)
        give((unit *)p - 1);
}

const char *tb_platform_getenv(const char *name)
{
    (void)name;
    return NULL;
}

/* --- string.h ------------------------------------------------------------- */

/* the next three are single instructions (-mbulk-memory) */
void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    return __builtin_memcpy(to, from, n);
}

void *memmove(void *to, const void *from, size_t n)
{
    return __builtin_memmove(to, from, n);
}

void *memset(void *to, int c, size_t n)
{
    return __builtin_memset(to, c, n);
}

int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *p = a, *q = b;
    for (; n > 0; n--, p++, q++)
        if (*p != *q)
            return *p < *q ? -1 : 1;
    return 0;
}

void *memchr(const void *s, int c, size_t n)
{
    const unsigned char *p = s;
    for (; n > 0; n--, p++)
        if (*p == (unsigned char)c)
            return (void *)(uintptr_t)p;
    return NULL;
}

size_t strlen(const char *s)
{
    size_t n = 0;
    while (s[n])
        n++;
    return n;
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

int strncmp(const char *a, const char *b, size_t n)
{
    for (; n > 0; n--, a++, b++) {
        if (*a != *b)
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        if (!*a)
            break;
    }
    return 0;
}

char *strchr(const char *s, int c)
{
    return memchr(s, c, strlen(s) + 1);
}

char *strrchr(const char *s, int c)
{
    for (size_t i = strlen(s) + 1; i-- > 0;)
        if (s[i] == (char)c)
            return (char *)(uintptr_t)s + i;
    return NULL;
}

char *strstr(const char *s, const char *word)
{
    size_t n = strlen(word);
    for (; strncmp(s, word, n) != 0; s++)
        if (!*s)
            return NULL;
    return (char *)(uintptr_t)s;
}

size_t strspn(const char *s, const char *set)
{
    size_t n = 0;
    while (s[n] && strchr(set, s[n]))
        n++;
    return n;
}

size_t strcspn(const char *s, const char *set)
{
    size_t n = 0;
    while (s[n] && !strchr(set, s[n]))
        n++;
    return n;
}

char *strpbrk(const char *s, const char *set)
{
    s += strcspn(s, set);
    return *s ? (char *)(uintptr_t)s : NULL;
}
