"""dais project and dais init: a directory becomes a project with rules."""
import json
import re
import stat

from harness import refused


def directory(dais, rules=None, folder=".dais"):
    path = dais.home / "harbour"
    path.mkdir(exist_ok=True)
    if rules is not None:
        (path / folder).mkdir(exist_ok=True)
        (path / folder / "config.yaml").write_text(rules)
    return path


RULES = "work_item_schemas:\n  task:\n    notes:\n      - { key: plan, role: queue, required: true }\n"


def test_a_directory_becomes_a_project_once(dais):
    path = directory(dais, RULES)
    root = dais.run("project", "add", path, check=0).stdout.strip()
    item = dais.get(root, "properties")
    assert (item["title"], item["type"], item["properties"]) == ("harbour", "project", {"path": str(path)})
    link = dais.home / "link"
    link.symlink_to(path)
    assert dais.run("project", "add", link, "--name", "Other", check=0).stdout.strip() == root
    task = dais.item("x", type="task", parentId=root)
    with refused("gate_blocked", says="plan"):
        dais.advance(task, "start")
    assert str(path) in dais.run("project", "list", check=0).stdout
    assert [project["id"] for project in json.loads(dais.run("project", "list", "--json").stdout)] == [root]


def test_the_older_place_of_rules_is_read_too(dais):
    root = dais.run("project", "add", directory(dais, RULES, ".taskorchestrator"), "--name", "Harbour", check=0).stdout.strip()
    assert dais.read("config", "current", rootId=root)["version"] == 1


def test_bad_rules_are_reported_with_their_places_and_make_nothing(dais):
    done = dais.run("project", "add", directory(dais, "traits: []\nwork_item_schemas: 5\n"), check=78)
    assert "line 1" in done.stderr and "line 2" in done.stderr
    assert dais.read("items_read", "list")["items"] == []


def test_a_project_is_removed_by_its_title_only(dais):
    root = dais.run("project", "add", directory(dais), check=0).stdout.strip()
    dais.item("child", parentId=root)
    assert dais.run("project", "remove", root, "--confirm", "Harbour").returncode == 1
    dais.run("project", "remove", root[:8], "--confirm", "harbour", check=0)
    assert dais.read("items_read", "list")["items"] == []
    assert directory(dais).is_dir()


def test_init_writes_rules_that_hold_without_a_warning_and_never_twice(dais):
    path = directory(dais)
    done = dais.run("init", path, check=0)
    config = path / ".dais/config.yaml"
    validated = dais.op("config", "validate", yaml=config.read_text())
    assert validated["valid"] and "schemaWarnings" not in validated, validated
    config.write_text("# mine\n")
    again = dais.run("init", path, check=0)
    assert config.read_text() == "# mine\n" and "left as it is" in again.stdout
    for client in ["Claude Code", "Codex", "Cursor", "VS Code"]:
        assert done.stdout.count(f"  {client}") == 2, "stdio and HTTP"
    assert dais.url + "/mcp" in done.stdout
    assert not re.search(r"dais_[A-Za-z0-9_-]{43}", done.stdout), "a token is never shown"
    assert "--header" not in done.stdout


def test_init_needs_no_server_and_its_json_is_json(stopped):
    out = stopped.run("init", check=0).stdout
    assert (stopped.work / ".dais/config.yaml").exists()
    assert stat.S_IMODE((stopped.work / ".dais/config.yaml").stat().st_mode) & 0o022 == 0
    for block in re.findall(r"^    (\{.*?\})\n(?:\n|\Z|  |Or)", out, re.S | re.M):
        json.loads(block)
    assert stopped.run("init", "/nowhere").returncode == 73


def test_rules_that_init_wrote_tell_the_story(dais):
    dais.run("init", dais.work, check=0)
    root = dais.run("project", "add", dais.work, check=0).stdout.strip()
    task = dais.item("Tide table", type="feature-task", parentId=root, traits=["needs-security-look"])
    with refused("gate_blocked", says="plan"):
        dais.advance(task, "start")
    dais.note(task, "plan", "Read it.")
    dais.advance(task, "start")
    dais.note(task, "implementation", "Read.")
    assert dais.advance(task, "start")["newRole"] == "review"
    with refused("gate_blocked", says="security"):
        dais.note(task, "review", "PASS")
        dais.advance(task, "complete")
