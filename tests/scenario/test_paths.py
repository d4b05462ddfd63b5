"""A06, as far as the work graph goes: no name leaves its folder."""
import os

import pytest

from harness import Refused, refused


@pytest.fixture
def shelf(stopped):
    (stopped.home / "secret.md").write_text("TOP-SECRET")
    config = stopped.work / ".dais"
    config.mkdir()
    (config / "config.yaml").write_text("{}\n")
    for folder in (config, stopped.work):
        (folder / "body.md").write_text("from the file\n")
        (folder / "inner").mkdir()
        (folder / "inner/deep.md").write_text("deep\n")
        os.symlink(stopped.home / "secret.md", folder / "link.md")
        os.symlink(stopped.home, folder / "out")
        os.mkfifo(folder / "pipe.md")
    stopped.start()
    stopped.root = stopped.item("shelf", type="project")
    return stopped


def put(dais, name):
    return dais.op("notes_write", "upsert", itemId=dais.root, key="n", role="work", bodyFromFile=name)


@pytest.mark.parametrize("name, body", [("body.md", "from the file\n"), ("inner/deep.md", "deep\n")])
def test_a06_a_file_below_the_configuration_directory_is_read(shelf, name, body):
    put(shelf, name)
    assert shelf.body(shelf.root, "n") == body


@pytest.mark.parametrize("name", ["../secret.md", "inner/../../secret.md", "/etc/passwd", "link.md", "out/secret.md", "", ".", "..", "inner",
                                  "absent.md", "./body.md", "body.md/", "a\nb", "pipe.md", "x" * 5000, "~/secret.md"])
def test_a06_every_other_name_is_refused_and_says_nothing_of_what_is_there(shelf, name):
    with pytest.raises(Refused) as caught:
        put(shelf, name)
    assert caught.value.code in ("invalid_request", "not_found", "forbidden", "payload_too_large"), caught.value
    assert "TOP-SECRET" not in str(caught.value) and str(shelf.home) not in str(caught.value)
    with refused("not_found"):
        shelf.body(shelf.root, "n")


def test_a06_a_caller_over_http_names_no_files(shelf):
    with refused("forbidden"):
        shelf.admin().op("notes_write", "upsert", itemId=shelf.root, key="n", role="work", bodyFromFile="body.md")


@pytest.mark.parametrize("slug", ["../../x", "/etc/x", "a/../b", "", " ", "a b", "\u202ex", "A" * 121, "-x/..", "."])
def test_a06_a_slug_is_a_name_not_a_path(shelf, slug):
    with pytest.raises(Refused) as caught:
        shelf.op("docs_write", "put", kind="page", rootId=shelf.root, slug=slug, body="x")
    assert caught.value.code == "invalid_request", caught.value
    assert shelf.read("docs_read", "list", rootId=shelf.root)["documents"] == []


@pytest.mark.parametrize("path", ["/api/v1/../../etc/hosts", "/%2e%2e/", "/..", "//etc/hosts", "/%2e%2e%2fetc%2fhosts", "/api/v1/ops/../info",
                                  "/api/v1/ops/items_read%00", "/.", "/api/v1/ops/" + "x" * 3000, "/static/../../../etc/passwd"])
def test_a06_no_url_reaches_a_file(shelf, path):
    for method in ("GET", "POST"):
        status, _, body = shelf.admin().ask(method, path, b"{}" if method == "POST" else None)
        assert 400 <= status < 500, (method, path, status, body)
        assert b"root:" not in body and b"localhost" not in body.lower().replace(b"http://localhost", b"")
