/* dais open: the status page, signed in. */
#include "cli/cli.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static bool has_display(void)
{
	const char *x = getenv("DISPLAY");
	const char *wayland = getenv("WAYLAND_DISPLAY");

	return (x != NULL && x[0] != '\0') || (wayland != NULL && wayland[0] != '\0');
}

/* The link holds a code, and arguments are visible to every process: the browser is given a page of our own
 * (0600) that leads there. It stays, as nothing tells when the browser has read it; its code is dead after one
 * use or ten minutes. */
static char *write_page(struct cli *cli, struct str link)
{
	char *path = arena_printf(cli->arena, "%s/open.html", cli->state_dir);
	struct str page = str_printf(cli->arena,
		"<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>"
		"<meta http-equiv=refresh content=\"0; url=%.*s\"><title>dais</title>\n",
		STRF(link));
	int fd;
	int rc;

	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return NULL;
	rc = write_all(fd, page);
	(void)close(fd);
	return rc == 0 ? path : NULL;
}

static int show(const char *page)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		(void)execlp("xdg-open", "xdg-open", page, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int open_link(struct cli *cli, bool print, struct failure *f)
{
	json_auto_t *answer = NULL;
	struct str link;
	char *page;

	if (client_admin_running(cli, STR("{\"op\":\"sign_in\"}"), &answer, f) != 0)
		return -1;
	link = str_printf(cli->arena, "%.*s/signin?code=%.*s", STRF(json_member_str(answer, "url")),
		STRF(json_member_str(answer, "code")));
	page = print || !has_display() ? NULL : write_page(cli, link);
	if (page != NULL && show(page) == 0) {
		(void)fprintf(stderr, "dais: the status page opens in your browser.\n");
		return 0;
	}
	(void)printf("%.*s\n", STRF(link));
	(void)fflush(stdout);
	(void)fprintf(stderr, "dais: the link signs one browser in, within 10 minutes.\n");
	return 0;
}

int cmd_open(struct cli *cli, int argc, char **argv)
{
	bool print = false;
	struct failure f;

	failure_init(&f, cli->arena);
	if (cli_parse_switch(cli, argc, argv, "print", "Only print the link",
		    "Open the status page of the running server in a browser, signed in; without a display the link is "
		    "printed instead.\vExample:\n  dais open",
		    &print) != 0)
		return 64;
	return open_link(cli, print, &f) == 0 ? 0 : cli_fail(cli, &f);
}
