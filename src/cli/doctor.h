/* cli/doctor.h - inside `dais doctor`: what its checks share. */
#ifndef DAIS_CLI_DOCTOR_H
#define DAIS_CLI_DOCTOR_H

#include "cli/cli.h"

/* A note is worth knowing and no fault; only problems make the exit code 1. */
enum finding { FINDING_OK, FINDING_NOTE, FINDING_PROBLEM };

struct doctor {
	struct cli *cli;
	json_t *checks; /* owned; NULL: lines for people are printed */
	size_t problems;
	bool rebuilds; /* the log of threads is compared with their tables */
};

void doctor_say(struct doctor *doctor, enum finding finding, const char *check, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* ---- machine.c: limits, kernel, disk ---- */
void machine_check(struct doctor *doctor);

#endif
