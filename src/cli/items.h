/* cli/items.h - inside `dais items`: what its views share. */
#ifndef DAIS_CLI_ITEMS_H
#define DAIS_CLI_ITEMS_H

#include "cli/cli.h"

/* ---- tree.c ---- */
/* Items by their parents; those whose parent is not among them stand at the top. */
void items_print_tree(struct cli *cli, const json_t *items);

/* ---- item.c ---- */
/* One item with its gate, notes and dependencies; `json` prints what was read. */
int item_show(struct cli *cli, struct str id, bool json, struct failure *f);

#endif
