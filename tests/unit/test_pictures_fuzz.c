/* SPDX-License-Identifier: MIT */
/* What the fuzzer of whole blocks has seen, every published block and lint's
 * texts, through its function: nothing crashes, nothing leaks. */
#include "tb_test.h"

#include <dirent.h>
#include <stdio.h>

#include "fuzz/fuzz_pictures.c"

static void replay(tb_test *T, const char *path)
{
    uint8_t data[LONGEST + 1];
    FILE *f = fopen(path, "rb");
    TB_REQUIRE(T, f);
    size_t n = fread(data, 1, sizeof data, f);
    (void)fclose(f);
    for (int stack = TB_STACKS_DECODER; stack <= TB_STACKS_BOTH; stack++)
        all_of_it(data, n, stack, false);
}

static int replay_all(tb_test *T, const char *folder)
{
    int n = 0;
    char path[1024];
    tb_format(path, sizeof path, "%s/%s", TB_SOURCE_DIR, folder);
    DIR *dir = opendir(path);
    TB_CHECK(T, dir != NULL);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        tb_format(path, sizeof path, "%s/%s/%s", TB_SOURCE_DIR, folder,
                  entry->d_name);
        replay(T, path);
        n++;
    }
    if (dir)
        (void)closedir(dir);
    return n;
}

TB_TEST(fuzz_corpus)
{
    TB_CHECK(T, replay_all(T, "tests/fuzz/corpus/pictures") >= 10);
    TB_CHECK(T, replay_all(T, "tests/fuzz/corpus/equation") >= 10);
}

TB_TEST(published_blocks)
{
    TB_CHECK(T, replay_all(T, "blocks") >= 50);
}

TB_TEST(lint_texts)
{
    TB_CHECK(T, replay_all(T, "tests/golden/lint") >= 20);
}
