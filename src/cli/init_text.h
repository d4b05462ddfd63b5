/* cli/init_text.h - inside `dais init`: the texts that it writes. */
#ifndef DAIS_CLI_INIT_TEXT_H
#define DAIS_CLI_INIT_TEXT_H

/* The rules that a project begins with. */
extern const char init_rules[];

/* How clients are told of the server: {command} is a JSON string, {shell} words for a shell, {args} JSON
 * strings after a comma, {url} and {token_file} plain. */
extern const char init_clients[];

#endif
