"""A14: a database of another version, of another program, or damaged: refused by name and untouched."""
import hashlib
import os
import random
import sqlite3
import time

import pytest

from harness import until


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def database(stopped):
    stopped.state.mkdir(mode=0o700)
    stopped.checks_doctor = False
    return stopped.state / "dais.db"


def assert_refused_untouched(dais, database, *says, codes=(78,)):
    before = digest(database)
    code, said = dais.fails_to_start(seconds=5)
    assert code in codes, (code, said)
    for word in says:
        assert word in said, said
    assert digest(database) == before, "the file was changed"
    assert sorted(path.name for path in dais.state.iterdir() if path.name.startswith("dais.db-")) == []


def test_a14a_a_newer_schema_is_refused_with_both_versions(stopped):
    stopped.start().item("kept")
    stopped.stop()
    database = stopped.state / "dais.db"
    with sqlite3.connect(database) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"PRAGMA user_version = {version + 1}")
    connection.close()
    stopped.checks_doctor = False
    assert_refused_untouched(stopped, database, str(version), str(version + 1))
    with sqlite3.connect(database) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    stopped.start()
    assert [item["title"] for item in stopped.read("items_read", "list")["items"]] == ["kept"]


def test_a14a_a_newer_schema_that_a_crash_left_in_the_log_is_refused_too(stopped):
    """The header still has the old number then; nothing is lost for the program that knows the new one."""
    stopped.start().item("kept")
    stopped.stop()
    database = stopped.state / "dais.db"
    files = [database, stopped.state / "dais.db-wal"]
    with sqlite3.connect(database) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA user_version = {version + 1}")
        connection.commit()
        crashed = [path.read_bytes() for path in files]
    connection.close()
    for path, content in zip(files, crashed):
        path.write_bytes(content)
    stopped.checks_doctor = False
    code, said = stopped.fails_to_start()
    assert code == 78 and f"schema version {version + 1}" in said and f"knows {version}" in said, said
    assert [path.read_bytes() for path in files] == crashed
    with sqlite3.connect(database) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version + 1,)
        assert connection.execute("SELECT count(*) FROM item").fetchone() == (1,)
    connection.close()


@pytest.mark.parametrize("version", [0, -1])
def test_tables_without_a_schema_version_are_refused_untouched(stopped, version):
    stopped.start().item("kept")
    stopped.stop()
    database = stopped.state / "dais.db"
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    stopped.checks_doctor = False
    assert_refused_untouched(stopped, database, "no schema version")


def test_a14c_a_schema_that_was_being_made_is_whole_or_absent(new_dais):
    """There is no older release yet; the first migration is cut off where an upgrade would be."""
    dice = random.Random(14)
    took = None
    for _ in range(25):
        dais = new_dais()
        if took is None:
            began = time.monotonic()
            dais.start()
            took = time.monotonic() - began
        else:
            dais.spawn()
            time.sleep(dice.uniform(0, took))
        dais.kill()
        database = dais.state / "dais.db"
        if database.exists() and database.stat().st_size > 0:
            connection = sqlite3.connect(database)
            tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.close()
            assert (version > 0) == (tables > 0)
        dais.start().item("works")
        dais.stop()


def test_a14e_an_empty_file_becomes_a_database(stopped, database):
    database.touch(mode=0o600)
    stopped.start().item("works")


def test_a14f_random_bytes_are_refused(stopped, database):
    database.write_bytes(os.urandom(1024 * 1024))
    assert_refused_untouched(stopped, database, "dais.db", codes=(73, 78))


def test_a14g_the_database_of_another_program_is_refused(stopped, database):
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE recipe (name TEXT)")
        connection.execute("INSERT INTO recipe VALUES ('soup')")
    connection.close()
    assert_refused_untouched(stopped, database)
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT name FROM recipe").fetchall() == [("soup",)]
    connection.close()


def test_a14h_without_its_log_it_opens_at_the_last_checkpoint(stopped):
    stopped.start()
    stopped.item("before")
    stopped.restart()
    stopped.item("after")
    stopped.kill()
    (stopped.state / "dais.db-wal").unlink()
    (stopped.state / "dais.db-shm").unlink(missing_ok=True)
    stopped.start()
    titles = {item["title"] for item in stopped.read("items_read", "list")["items"]}
    assert "before" in titles
    assert "dais.db-wal" in stopped.log() and "is missing" in stopped.log(), "and it says that something may be gone"


def test_a14h_a_crash_that_left_its_log_loses_nothing_and_warns_of_nothing(stopped):
    stopped.start()
    item = stopped.item("after the checkpoint")
    stopped.kill()
    stopped.start()
    assert stopped.get(item)["title"] == "after the checkpoint"
    stopped.restart()
    assert "is missing" not in stopped.log()


def test_a14i_of_two_starts_at_once_one_serves_and_the_other_says_who(stopped):
    stopped.start().item("kept")
    stopped.stop()
    first, second = (stopped.spawn() for _ in range(2))
    codes = {}
    until(lambda: codes.update({process: process.poll() for process in (first, second) if process.poll() is not None}) or codes)
    loser, = codes
    winner = second if loser is first else first
    stopped.process = winner
    assert codes[loser] == 75, stopped.log()
    assert str(winner.pid) in stopped.log()
    loser.communicate()
    assert winner.stdout.readline().startswith(b"dais: ready ")
    assert [item["title"] for item in stopped.read("items_read", "list")["items"]] == ["kept"]


def test_a_database_file_with_a_second_name_is_refused(stopped):
    stopped.start().stop()
    os.link(stopped.state / "dais.db", stopped.home / "other.db")
    code, said = stopped.fails_to_start()
    assert code in (73, 75, 78)
    assert "link" in said
    (stopped.home / "other.db").unlink()


def test_a_second_start_of_the_same_version_changes_nothing(stopped):
    def content():
        connection = sqlite3.connect(f"file:{stopped.state / 'dais.db'}?mode=ro", uri=True)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = [connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in ("item", "event", "principal", "token")]
        schema = connection.execute("PRAGMA user_version").fetchone(), connection.execute("SELECT sql FROM sqlite_master").fetchall()
        connection.close()
        return schema, rows

    stopped.start().item("kept")
    stopped.stop()
    before = content()
    stopped.start().stop()
    assert content() == before
    assert not list(stopped.state.glob("dais.db.v*")), "no backup where nothing is migrated"


def test_a_backup_of_a_busy_server_is_a_whole_database(dais, stopped):
    local = dais.local()
    items = [local.item(f"item {i}") for i in range(50)]
    copy = stopped.home / "copy.db"
    dais.run("backup", copy, check=0)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert dais.run("backup", copy).returncode == 73, "it never overwrites"
    stopped.start("--store", f"sqlite:{copy}")
    caller = stopped.local()
    assert [caller.get(item)["title"] for item in items] == [f"item {i}" for i in range(50)]
