/* SPDX-License-Identifier: MIT */
/* Cards and proofs as terminal text and JSON. */
#include "pictures/cards_parts.h"
#include "pictures/scene.h"

/* --- terminal ------------------------------------------------------------- */

static void put_values(tb_buf *b, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tb_buf_printf(b, i ? ", %.8g" : "%.8g", v[i]);
}

tb_status tb_proof_term(tb_ctx *ctx, const char *label, const tb_proof *p,
                        int indent, const tb_terminal *term, tb_out *out)
{
    tb_buf b;
    tb_buf_init(&b, ctx);
    tb_buf_printf(&b, "%s%s", label,
                  p->n ? p->what : "nothing to compute in this card");
    if (p->n) {
        tb_buf_puts(&b, ": ");
        put_values(&b, p->value, p->n);
    }
    if (!p->ok) {
        tb_buf_puts(&b, "; wanted ");
        put_values(&b, p->expected, p->n);
    }
    if (p->said[0])
        tb_buf_printf(&b, " (%s)", p->said);
    tb_status s = tb_buf_status(&b);
    if (s == TB_OK)
        s = tb_text_term(tb_buf_str(&b), indent, term, out);
    tb_buf_clear(&b);
    return s;
}

/* --- JSON ----------------------------------------------------------------- */

static void numbers_json(tb_json *j, const char *key, const double *v, size_t n)
{
    if (n == 1)
        tb_json_number(j, key, v[0]);
    else
        tb_json_tensor(j, key, TB_F64, v, 1, &n);
}

static void proof_json(const tb_proof *p, tb_json *j)
{
    if (!p->n) {
        tb_json_null(j, "proof");
        return;
    }
    tb_json_object(j, "proof");
    tb_json_string(j, "what", p->what);
    tb_json_string(j, "expression", p->expression);
    tb_json_string(j, "command", p->command);
    numbers_json(j, "value", p->value, p->n);
    numbers_json(j, "expected", p->expected, p->n);
    tb_json_number(j, "tolerance", p->tolerance);
    tb_json_string(j, "said", p->said[0] ? p->said : NULL);
    tb_json_bool(j, "ok", p->ok);
    tb_json_end(j);
}

void tb_card_json(const tb_card *card, const tb_proof *proof, tb_json *j)
{
    tb_json_object(j, NULL);
    tb_json_string(j, "id", card->id);
    tb_json_string(j, "deck", card->deck);
    tb_json_string(j, "question", card->question);
    tb_json_string(j, "answer", card->answer);
    tb_json_object(j, "tex");
    tb_json_string(j, "question", card->question_tex);
    tb_json_string(j, "answer", card->answer_tex);
    tb_json_end(j);
    tb_json_string(j, "shot", card->shot);
    tb_json_string(j, "settings", card->settings);
    proof_json(proof, j);
    tb_json_end(j);
}
