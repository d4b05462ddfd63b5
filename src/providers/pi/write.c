/* Lines to the program. */
#include "providers/pi/pi.h"

#include "base/limits.h"

#include <inttypes.h>

bool pi_command(struct pi *p, struct command *c, const char *type, struct agent_out *out)
{
	if (json_object_size(p->controls) >= LIMIT_PI_COMMANDS)
		return false;
	c->out = out;
	c->id = str_printf(out->arena, "dais-%" PRId64, ++p->requests);
	c->row = json_object();
	state_row_text(c->row, "kind", str_of(type));
	json_object_setn_new(p->controls, c->id.p, c->id.n, c->row);
	buf_init(&c->text, out->arena, SIZE_MAX);
	json_writer_init(&c->w, &c->text);
	jw_object_begin(&c->w);
	jw_kstr(&c->w, "id", c->id);
	jw_ktext(&c->w, "type", type);
	return true;
}

void pi_command_end(struct command *c)
{
	jw_object_end(&c->w);
	agent_out_line(c->out, buf_str(&c->text), false);
}

void pi_write_abort(struct pi *p, struct agent_out *out)
{
	struct command c;

	if (!pi_command(p, &c, "abort", out))
		return; /* interrupt_by ends it */
	pi_command_end(&c);
	p->is_aborting = true;
}

static void response_begin(struct body *b, struct agent_out *out, struct str id)
{
	body_begin(b, out->arena);
	jw_ktext(&b->w, "type", "extension_ui_response");
	jw_kstr(&b->w, "id", id);
}

void pi_write_value(struct agent_out *out, struct str id, struct str value, bool has_secret)
{
	struct body b;

	response_begin(&b, out, id);
	jw_kstr(&b.w, "value", value);
	agent_out_line(out, body_end(&b), has_secret);
}

void pi_write_confirmed(struct agent_out *out, struct str id, bool confirmed)
{
	struct body b;

	response_begin(&b, out, id);
	jw_kbool(&b.w, "confirmed", confirmed);
	agent_out_line(out, body_end(&b), false);
}

void pi_write_cancelled(struct agent_out *out, struct str id)
{
	struct body b;

	response_begin(&b, out, id);
	jw_kbool(&b.w, "cancelled", true);
	agent_out_line(out, body_end(&b), false);
}

struct str pi_settings(const struct pi *p, struct arena *arena)
{
	struct body b;

	body_begin(&b, arena);
	jw_ktext(&b.w, "gate",
		pi_gate((enum runtime_mode)p->runtime, (enum interaction_mode)p->interaction, p->is_confined));
	jw_kstr(&b.w, "workspace", p->workspace);
	if (p->url.n > 0) {
		jw_kstr(&b.w, "url", p->url);
		jw_ktext(&b.w, "token", AGENT_SECRET);
	}
	if (p->instructions.n > 0)
		jw_kstr(&b.w, "instructions", p->instructions);
	return body_end(&b);
}
