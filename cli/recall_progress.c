/* SPDX-License-Identifier: MIT */
/* When a card is asked again: the rule, and the file that keeps it.
 *
 *   # tollbooth recall: id, days, due, asked
 *   recall-eps<TAB>4<TAB>2026-12-04<TAB>3
 *
 * again: due today; hard: after as many days as the last time; good: after
 * twice as many; easy: after four times as many; at least 1 (easy 4), at most
 * 365. */
#include "recall.h"
#include "tollbooth/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char head[] = "# tollbooth recall: id, days, due, asked";
enum { MOST_DAYS = 365, FILE_MOST = 1 << 20 };

/* --- dates -------------------------------------------------------------------
 */

/* Days since 1970-01-01 of the proleptic Gregorian calendar; years that begin
 * in March, so that the day a leap year has more is their last. */
static long day_of(long year, long month, long day)
{
    long y = year - (month <= 2), m = (month + 9) % 12;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 -
           719468;
}

/* "2026-12-01", and nothing else; a date that there is. */
static bool read_date(const char *text, size_t n, long *out)
{
    static const char form[] = "0000-00-00";
    long part[3] = {0, 0, 0};
    if (n != DATE - 1)
        return false;
    for (size_t i = 0, k = 0; i < n; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        if (form[i] == '0' ? !digit : text[i] != '-')
            return false;
        if (digit)
            part[k] = 10 * part[k] + (text[i] - '0');
        else
            k++;
    }
    char again[DATE];
    if (part[0] < 1970 || part[0] > 9998 || part[1] < 1 || part[1] > 12 ||
        part[2] < 1)
        return false;
    *out = day_of(part[0], part[1], part[2]);
    date_text(*out, again);
    return memcmp(again, text, n) == 0; /* not the 31st of June */
}

void date_text(long day, char out[DATE])
{
    long year = 1970 + day / 365;
    int month = 12;
    while (day_of(year, 1, 1) > day)
        year--;
    while (day_of(year, month, 1) > day)
        month--;
    unsigned d = (unsigned)(day - day_of(year, month, 1)) + 1;
    snprintf(out, DATE, "%04u-%02u-%02u", (unsigned)year % 10000,
             (unsigned)month % 100, d % 100);
}

static long this_day(void)
{
    time_t now = time(NULL);
    struct tm t;
    return localtime_r(&now, &t)
               ? day_of(t.tm_year + 1900L, t.tm_mon + 1L, t.tm_mday)
               : (long)(now / 86400);
}

/* --- the rule ----------------------------------------------------------------
 */

void progress_grade(progress *p, size_t card, grade g)
{
    static const long times[GRADES] = {0, 1, 2, 4},
                      least[GRADES] = {0, 1, 1, 4};
    progress_card *c = &p->cards[card];
    long days = c->interval * times[g];
    days = days < least[g] ? least[g] : days;
    c->interval = days > MOST_DAYS ? MOST_DAYS : days;
    c->due = p->today + c->interval;
    c->asked++;
}

/* --- the file ----------------------------------------------------------------
 */

static int bad_line(const char *path, size_t line, const char *wanted)
{
    complain("tollbooth: %s:%zu: got another text, wanted %s\n", path, line,
             wanted);
    return tb_status_exit(TB_ERR_INPUT);
}

static bool read_count(const char *text, size_t n, long most, long *out)
{
    char word[16];
    size_t v = 0;
    if (n == 0 || n >= sizeof word)
        return false;
    snprintf(word, sizeof word, "%.*s", (int)n, text);
    bool ok = opt_size(word, &v) && v <= (size_t)most;
    *out = (long)v;
    return ok;
}

/* id, days, due, asked, with a tab between them. */
static bool read_line(progress *p, const char *line)
{
    size_t n[4], columns = 0;
    const char *at[4], *s = line;
    char id[64];
    for (; columns < 4; columns++) {
        at[columns] = s;
        n[columns] = strcspn(s, "\t");
        s += n[columns];
        if (*s != '\t')
            break;
        s++;
    }
    progress_card c;
    if (columns != 3 || n[0] == 0 || n[0] >= sizeof id ||
        !read_count(at[1], n[1], MOST_DAYS, &c.interval) ||
        !read_date(at[2], n[2], &c.due) ||
        !read_count(at[3], n[3], 1000000000, &c.asked))
        return false;
    snprintf(id, sizeof id, "%.*s", (int)n[0], line);
    size_t card = tb_card_find(id);
    if (card < tb_card_count())
        p->cards[card] = c;
    else
        strcat(strcat(p->others, line), "\n");
    return true;
}

static int read_text(progress *p, char *text)
{
    size_t line = 0;
    for (char *next; *text; text = next) {
        size_t n = strcspn(text, "\n");
        next = text + n + (text[n] != '\0');
        text[n] = '\0';
        line++;
        if (line == 1 && strcmp(text, head) != 0)
            return bad_line(p->path, line, "the first line of such a file");
        if (line > 1 && !read_line(p, text))
            return bad_line(p->path, line,
                            "ID, days, date and count with tabs between them");
    }
    return line ? 0 : bad_line(p->path, 1, "the first line of such a file");
}

static int read_file(tb_ctx *ctx, progress *p)
{
    tb_bytes file;
    tb_status s = tb_file_read(ctx, p->path, FILE_MOST, &file);
    if (s != TB_OK)
        return die(ctx, s);
    p->others = calloc(1, file.len + 2);
    int code = p->others ? read_text(p, file.data) : die(ctx, TB_ERR_MEMORY);
    tb_bytes_clear(ctx, &file);
    return code;
}

int progress_open(tb_ctx *ctx, const recall_options *o, progress *p)
{
    *p = (progress){.path = o->progress, .today = this_day()};
    if (o->today && !read_date(o->today, strlen(o->today), &p->today))
        return usage_error("recall",
                           "--today: got %s, wanted a date as "
                           "2026-12-01",
                           o->today);
    p->cards = calloc(tb_card_count(), sizeof *p->cards);
    if (!p->cards)
        return die(ctx, TB_ERR_MEMORY);
    return p->path && tb_file_exists(p->path) ? read_file(ctx, p) : 0;
}

int progress_save(tb_ctx *ctx, const progress *p)
{
    if (!p->path)
        return 0;
    size_t n = tb_card_count(), size, used;
    size = sizeof head + 2 + 128 * n + (p->others ? strlen(p->others) : 0);
    char *text = malloc(size), date[DATE];
    if (!text)
        return die(ctx, TB_ERR_MEMORY);
    used = (size_t)snprintf(text, size, "%s\n", head);
    for (size_t i = 0; i < n; i++) {
        const progress_card *c = &p->cards[i];
        date_text(c->due, date);
        if (c->asked)
            used += (size_t)snprintf(text + used, size - used,
                                     "%s\t%ld\t%s\t%ld\n", tb_card_at(i)->id,
                                     c->interval, date, c->asked);
    }
    used += (size_t)snprintf(text + used, size - used, "%s",
                             p->others ? p->others : "");
    tb_status s = tb_file_write_atomic(ctx, p->path, text, used);
    free(text);
    return s == TB_OK ? 0 : die(ctx, s);
}

void progress_close(progress *p)
{
    free(p->cards);
    free(p->others);
}
