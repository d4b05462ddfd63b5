"""context of a large scope: exact as far as that is cheap, and it says where it is not."""


def fill(dais, waiting, most=100):
    """A project in which so many items wait for the first one."""
    root = dais.item("large", type="project")
    first = dais.item("first", parentId=root)
    made = []
    while len(made) < waiting:
        ops = [{"op": "create", "title": f"w{len(made) + n}", "parentId": root} for n in range(min(most, waiting - len(made)))]
        made += [result["id"] for result in dais.envelope("items_write", {"ops": ops})["results"]]
    for at in range(0, len(made), most):
        ops = [{"op": "create", "from": first, "to": item} for item in made[at:at + most]]
        assert dais.envelope("deps_write", {"ops": ops})["ok"]
    return root


def test_blocked_items_are_counted_exactly_up_to_500_queued_ones(dais):
    root = fill(dais, 498)  # and the first one, and the project
    answer = dais.envelope("items_read", {"select": "context", "rootId": root, "limit": 5})
    assert answer["data"]["counts"]["blocked"] == 498
    assert "scan_bounded" not in [warning["code"] for warning in answer.get("warnings", [])]


def test_of_more_those_that_are_shown_are_looked_for_and_it_is_said(dais):
    root = fill(dais, 499)
    answer = dais.envelope("items_read", {"select": "context", "rootId": root, "limit": 5})
    assert 5 <= answer["data"]["counts"]["blocked"] < 499
    assert len(answer["data"]["blocked"]) == 5
    assert "scan_bounded" in [warning["code"] for warning in answer["warnings"]]
