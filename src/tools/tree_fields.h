/* tools/tree_fields.h - the arguments of create_tree, for the row of items_write. */
#ifndef DAIS_TOOLS_TREE_FIELDS_H
#define DAIS_TOOLS_TREE_FIELDS_H

#include "tools/tool.h"
#include "work/tree.h"

extern const struct field create_tree_fields[]; /* struct create_tree_args */
int create_tree_check(const void *args, struct str path, struct failure *f);
/* Notes and edges need what notes_write and deps_write would. */
unsigned create_tree_needs(const void *args);

#endif
