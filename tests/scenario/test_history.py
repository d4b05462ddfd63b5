"""The history of an item: the one event log, read along the item."""
import sqlite3


def pages(dais, item, limit, between=lambda: None):
    cursor, seen = {}, []
    while True:
        envelope = dais.envelope("items_read", {"select": "history", "itemId": item, "limit": limit, **cursor})
        seen += envelope["data"]["entries"]
        next_cursor = envelope["page"].get("nextCursor")
        if next_cursor is None:
            return seen
        cursor = {"cursor": next_cursor}
        between()


def test_the_history_of_an_item_is_whole_and_newest_first_over_pages(dais):
    one, other = dais.item("one"), dais.item("other")
    for trigger in ("start", "block", "resume", "complete", "reopen", "start", "complete"):
        dais.advance(one, trigger)
        if trigger in ("start", "complete"):
            dais.advance(other, {"start": "start", "complete": "complete"}[trigger])
        if trigger == "complete":
            dais.advance(other, "reopen")
    whole = pages(dais, one, 50)
    assert [entry["trigger"] for entry in whole] == ["complete", "start", "reopen", "complete", "resume", "block", "start"]
    assert pages(dais, one, 2) == whole
    assert pages(dais, one, 1) == whole
    assert all(entry["itemId"] == one for entry in whole)


def test_what_happens_between_two_pages_moves_nothing(dais):
    item = dais.item("busy")
    for trigger in ("start", "complete", "reopen", "start"):
        dais.advance(item, trigger)
    whole = pages(dais, item, 50)
    steps = iter(("complete", "reopen", "start", "complete", "reopen"))
    assert pages(dais, item, 1, lambda: dais.advance(item, next(steps))) == whole


def test_the_number_of_a_deleted_item_is_never_given_again(stopped):
    """Its events stay, and would show a stranger's past: after a restart, and after a way through a file."""
    stopped.start()
    stopped.item("stays")
    gone = stopped.item("gone")
    stopped.advance(gone, "start")
    stopped.op("items_write", "delete", itemId=gone)
    stopped.stop()

    def numbers(state):
        with sqlite3.connect(f"file:{state}/dais.db?mode=ro", uri=True) as db:
            return (db.execute("SELECT max(n) FROM item").fetchone()[0],
                    db.execute("SELECT max(item_n) FROM event WHERE item_n NOT IN (SELECT n FROM item)").fetchone()[0])

    newest, retired = numbers(stopped.state)
    assert newest < retired
    stopped.start()
    stopped.item("next")
    stopped.stop()
    assert numbers(stopped.state)[0] > retired


def test_the_number_of_a_deleted_item_stays_retired_after_an_import(stopped, new_dais):
    stopped.start()
    stopped.item("stays")
    gone = stopped.item("gone")
    stopped.op("items_write", "delete", itemId=gone)
    stopped.stop()
    stopped.run("export", stopped.work / "all.jsonl", check=0)
    copy = new_dais()
    copy.run("import", stopped.work / "all.jsonl", check=0)
    copy.start()
    copy.item("next")
    copy.stop()
    with sqlite3.connect(f"file:{copy.state}/dais.db?mode=ro", uri=True) as db:
        assert db.execute("SELECT count(*) FROM item i JOIN event e ON e.item_n = i.n AND e.entity_id <> i.id"
                          " WHERE e.type IN (1, 4)").fetchone()[0] == 0
