"""Every statement of the program, by three judges: PostgreSQL's own grammar, a list of what the two
stores do not share, and SQLite with our schema (does it prepare, and does a hot one use an index)."""
import os
import pathlib
import re
import sqlite3
import subprocess
import tempfile

import pglast
import pytest
from pglast import ast
from pglast.visitors import Visitor

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("DAIS_BUILD", ROOT / "build"))

# What SQLite alone understands, or what the two read differently.
FUNCTIONS = {
    "json", "json_extract", "json_each", "json_array", "json_object", "json_group_array", "json_tree", "json_array_length",
    "ifnull", "iif", "nvl", "datetime", "strftime", "julianday", "unixepoch", "group_concat", "string_agg", "instr",
    "total", "typeof", "last_insert_rowid", "changes", "hex", "zeroblob", "randomblob", "printf", "format",
    "char", "unicode", "glob", "like", "now", "date", "time",
}
WORDS = {
    r"\browid\b": "rowid", r"\bOR\s+(REPLACE|IGNORE|ABORT|FAIL|ROLLBACK)\b": "INSERT OR …", r"\bGLOB\b": "GLOB",
    r"\bREGEXP\b": "REGEXP", r"\bPRAGMA\b": "PRAGMA", r"\bAUTOINCREMENT\b": "AUTOINCREMENT", r"\bINDEXED\s+BY\b": "INDEXED BY",
    r"\bCOLLATE\s+NOCASE\b": "COLLATE NOCASE", r"\bLIKE\b": "LIKE (folds case in SQLite alone)", r"\bREPLACE\s+INTO\b": "REPLACE INTO",
    r"\?": "? as a parameter", r"`": "back quotes", r"==": "==", r"\bLIMIT\s+\S+\s*,": "LIMIT a, b",
    r"\bRETURNING\b.*\bIN\b": "RETURNING inside",
}

# Search stands on FTS5, which PostgreSQL does not have; its counterpart there will be its own text.
IS_SEARCH = re.compile(r"\bMATCH\b|\w+_fts_(text|grams)\b")


# Those that the program adds to FTS5; what they give does not change how a statement is prepared.
OWN_FUNCTIONS = ("rank_words", "weigh_words", "snippet_words")


def statements():
    text = subprocess.run([BUILD / "tests/tools/dump-sql"], capture_output=True, text=True, check=True).stdout
    return sorted(set(text.splitlines()))


def assembled(named):
    """What sql_add put together, as a unit test saw it come by."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "sql"
        subprocess.run([BUILD / "tests/unit/work/test_work_plans"], capture_output=True, check=True,
                       env=dict(os.environ, DAIS_DUMP_SQL=str(path)))
        return sorted(set(path.read_text().splitlines()) - set(named))


NAMED = statements()
ASSEMBLED = assembled(NAMED)
STATEMENTS = NAMED + ASSEMBLED
COMMON = [sql for sql in STATEMENTS if not IS_SEARCH.search(sql)]


@pytest.fixture(scope="module")
def database():
    database = sqlite3.connect(":memory:")
    for name in ("fold", *OWN_FUNCTIONS):  # the store's own, which only search uses
        database.create_function(name, -1, lambda *_: None)
    for path in sorted((ROOT / "src/store/migrations").glob("*.sql")):
        if not path.name.endswith(".postgres.sql"):
            # The analyser is the program's own; for the plans any will do.
            database.executescript(path.read_text().replace("tokenize = 'grams'", "tokenize = 'trigram'"))
    for name in OWN_FUNCTIONS:
        database.create_function(name, -1, lambda *_: 0)
    yield database
    database.close()


class Beyond(Visitor):
    """Collects what the grammar accepts and the subset does not."""

    def __init__(self):
        super().__init__()
        self.found = []

    def visit_FuncCall(self, _, node):
        name = node.funcname[-1].sval
        if name in FUNCTIONS:
            self.found.append(f"{name}()")
        if name in ("max", "min") and len(node.args or ()) != 1:
            self.found.append(f"{name}() of several values (GREATEST/LEAST there): use CASE")

    def visit_A_Expr(self, _, node):
        if node.kind.name in ("AEXPR_ILIKE", "AEXPR_SIMILAR"):  # LIKE: see bare()
            self.found.append(node.kind.name)

    def visit_TypeCast(self, _, node):
        name = node.typeName.names[-1].sval
        if name not in ("int4", "int8", "text", "bool", "bytea", "float8"):
            self.found.append(f"CAST AS {name}")

    def visit_MinMaxExpr(self, _, node):
        self.found.append("GREATEST/LEAST")


    def visit_RangeSubselect(self, _, node):
        if node.alias is None:
            self.found.append("subquery without a name")


def bare(sql):
    # Both sides in lower case, LIKE means the same to both.
    return re.sub(r"lower\([\w.]+\) LIKE lower\(\$\d+\)", "true", re.sub(r"'(?:[^']|'')*'", "''", sql))


def test_statements_were_found():
    assert len(NAMED) > 40
    assert len(ASSEMBLED) > 40


def fragments():
    """Texts that sql_add is given as they stand. The full-text index is SQLite's own, and so is its file."""
    for path in sorted((ROOT / "src").rglob("*.c")):
        if path.name.endswith("_sqlite.c"):
            continue
        for call in re.finditer(r'sql_add\(&?\w+(?:->\w+)?,([^;]*)\);', path.read_text()):
            for text in re.findall(r'(?:"(?:[^"\\]|\\.)*"\s*)+', call[1]):
                fragment = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace("\\\\", "\\")
                yield pytest.param(fragment, id=f"{path.name}: {fragment[:40]}")


@pytest.mark.parametrize("fragment", list(fragments()))
def test_each_fragment_is_part_of_a_statement_that_was_seen(fragment):
    assert any(fragment in sql for sql in ASSEMBLED), "let tests/unit/work/test_plans.c make a call that assembles it"


@pytest.mark.parametrize("sql", COMMON)
def test_postgresql_reads_it(sql):
    assert len(pglast.parse_sql(sql)) == 1


@pytest.mark.parametrize("sql", COMMON)
def test_it_stays_in_the_subset_of_both_stores(sql):
    beyond = Beyond()
    beyond(pglast.parse_sql(sql))
    found = beyond.found + [what for pattern, what in WORDS.items() if re.search(pattern, bare(sql), re.IGNORECASE)]
    assert not found, f"{found} in {sql}"


@pytest.mark.parametrize("sql", COMMON)
def test_parameters_are_numbered_without_gaps(sql):
    numbers = {int(number) for number in re.findall(r"\$(\d+)", bare(sql))}
    assert numbers == set(range(1, len(numbers) + 1)), sql


def plan(database, sql):
    text = re.sub(r"\$(\d+)", r"?\1", sql)
    count = len({int(number) for number in re.findall(r"\?(\d+)", bare(text))})
    return [row[3] for row in database.execute("EXPLAIN QUERY PLAN " + text, (None,) * count)]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_sqlite_prepares_it_against_the_schema(database, sql):
    plan(database, sql)


# Tables that grow with the work kept, and that no statement of a call may walk from end to end.
LARGE = {"item", "item_text", "item_tag", "item_trait", "note", "note_body", "note_revision", "dep", "event", "lease_history",
         "document_version", "idempotency", "call_log", "mcp_session", "run_report"}

# Statements that do walk one, each with the reason why it may.
WALKS = {
    "SELECT count(*) FROM (SELECT root_n, count(*) AS actual FROM item GROUP BY root_n)": "dais doctor looks at everything",
    "SELECT count(*) FROM dep a JOIN dep b": "dais doctor",
    "SELECT count(*) FROM item c JOIN item p": "dais doctor",
    "SELECT count(*) FROM item i LEFT JOIN item_text t": "dais doctor",
    "SELECT count(*) FROM event e JOIN item i ON i.n = e.item_n AND i.id = e.entity_id WHERE e.type = 5": "dais doctor",
    "INSERT INTO meta (key, value) SELECT 'retired_item'": "dais import, at its end",
    "INSERT INTO root_tally": "dais import counts once, at its end",
}


@pytest.mark.parametrize("sql", NAMED)  # of the others test_plans.c asks for the plan
def test_it_reaches_large_tables_through_an_index(database, sql):
    if any(sql.startswith(part) for part in WALKS) or re.search(r"\bLIMIT\b", sql):
        return  # allowed, or ended by its limit
    aliases = {alias: table for table, alias in re.findall(r"\b(?:FROM|JOIN)\s+(\w+)(?:\s+(?:AS\s+)?(\w+))?", sql)}
    walked = []
    for step in plan(database, sql):
        scanned = re.match(r"SCAN (\w+)(?! VIRTUAL TABLE)", step)
        if scanned and aliases.get(scanned[1], scanned[1]) in LARGE:
            walked.append(step)
    assert not walked, f"{walked} in {sql}"


# What lists and readings of threads ask most, and the index that each must go through in its order: with a thousand threads
# and a hundred thousand items none may walk, or sort, more than it shows.
THREAD_READINGS = {
    "SELECT t.n, t.relationship, COALESCE": {"thread_updated", "thread_run_live", "sqlite_autoindex_thread_run_1"},
    "SELECT ordinal + 1 FROM turn_item": {"sqlite_autoindex_turn_item_2"},
    "SELECT n FROM turn_item WHERE thread_n = $1 AND ordinal > $2 ORDER BY": {"sqlite_autoindex_turn_item_2"},
    "SELECT n FROM turn_item WHERE thread_n = $1 AND ordinal > $2 AND type IN": {"turn_item_message"},
    "SELECT n FROM thread_run WHERE thread_n = $1 ORDER BY ordinal DESC LIMIT $2": {"sqlite_autoindex_thread_run_1"},
    "SELECT count(*) FROM runtime_request WHERE thread_n": {"runtime_request_pending"},
    "SELECT n FROM subagent WHERE child_n": {"subagent_child"},
    "SELECT seq FROM event WHERE thread_n = $1 ORDER BY seq DESC": {"event_thread"},
}


@pytest.mark.parametrize("beginning", THREAD_READINGS)
def test_a_reading_of_threads_walks_nothing(database, beginning):
    sql, = [sql for sql in NAMED if sql.startswith(beginning)]
    steps = plan(database, sql)
    assert not [step for step in steps if step.startswith("SCAN") or "TEMP B-TREE" in step], steps
    used = {match[1] for step in steps for match in re.finditer(r"INDEX (\w+)", step)}
    assert used == THREAD_READINGS[beginning], steps
