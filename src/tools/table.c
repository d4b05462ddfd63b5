#include "tools/frame.h"
#include "tools/plain.h"

/* Table order is the order of tools/list; it never changes within a release. */
const struct tool *const tool_table[] = {
	&tool_items_read,
	&tool_items_write,
	&tool_notes_read,
	&tool_notes_write,
	&tool_deps_read,
	&tool_deps_write,
	&tool_advance,
	&tool_docs_read,
	&tool_docs_write,
	&tool_config,
	&tool_report,
	&tool_orchestrator_capabilities,
	&tool_delegate_task,
	&tool_task_status,
	&tool_task_cancel,
	&tool_create_threads,
	&tool_thread_list,
	&tool_thread_read,
	&tool_thread_update,
	&tool_thread_send,
	&tool_thread_wait,
	&tool_thread_interrupt,
	&tool_thread_launch,
};
const size_t tool_count = sizeof(tool_table) / sizeof(tool_table[0]);

const struct tool *tool_find(struct str name)
{
	for (size_t i = 0; i < tool_count; i++)
		if (str_eq(name, str_of(tool_table[i]->name)))
			return tool_table[i];
	return NULL;
}

bool tool_in_profile(const struct tool *tool, enum profile profile)
{
	if (tool->plain != NULL)
		return ((unsigned)profile & PROFILE_THREADS) != 0;
	for (size_t i = 0; i < tool->select_count; i++)
		if ((tool->selects[i].profiles & (unsigned)profile) != 0)
			return true;
	for (size_t i = 0; i < tool->op_count; i++)
		if ((tool->ops[i].profiles & (unsigned)profile) != 0)
			return true;
	return false;
}
