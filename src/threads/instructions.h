/* threads/instructions.h - what agents are told of delegating and of threads: with their first turn when dais started
 * them, and by the endpoints of the tools. */
#ifndef DAIS_THREADS_INSTRUCTIONS_H
#define DAIS_THREADS_INSTRUCTIONS_H

#define THREADS_INSTRUCTIONS \
	"dais runs other agents for you. delegate_task gives one a piece of work, in a thread of its own, and brings you its " \
	"result; create_threads and t3_thread_launch make top-level threads, which report to nobody: only when the user asked " \
	"for separate conversations. orchestrator_capabilities lists who can work. " \
	"Keep taskId: task_status and task_cancel need it. One round of work, such as a review, is one task: give the next " \
	"round a new task that says what came before; a message to the child's thread does not reopen a task that ended. " \
	"Wait with mode wait and a timeoutMs of 50000 or less, or go on with other work: you are told when a task ends that " \
	"you did not wait for. Poll with task_status or t3_thread_wait a few times, not in a tight loop. " \
	"Give each new piece of work a clientRequestId of its own, and the same one when you repeat a call whose answer was " \
	"lost: it is then done once. Choose the workspace of a thread in the call of t3_thread_launch, not by git worktree add " \
	"in a prompt. Your program may show these tools with a prefix (mcp__dais__delegate_task) or load them late: call the " \
	"known name once before you say that it is missing."

#endif
